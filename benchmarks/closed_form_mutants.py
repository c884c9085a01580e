"""Claim: a mistake in a closed form of a derivative moves no bound, and an identity notices it.

Each of `--count` mistakes (a factor, a sign, a dropped term, a lost transpose or root) is planted
in a closed form: `calculus`, the tangent kernel, the logistic loss, groups of equal heads, and both
ends of a structured Hessian. The statements that call the function are measured on the same
instances before and after. A bound may keep its ratio within its error, or leave `holds`; an
identity fails.

    python benchmarks/closed_form_mutants.py --count 40 --seed 0

Everything runs one instance at a time and uncompiled, and what autograd gives, which calls none of
these functions, is computed once: a mistake costs seconds.
"""

import ast
import importlib
import inspect
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import mutants
import numpy as np
import tyro
from mutants import Mutant, _functions, _mistakes, _plain, planted

from jaxbounds.claims.statements import Size, Statement
from jaxbounds.falsification.called import may_call
from jaxbounds.falsification.measure import Measured, float64_on_cpu, measure
from jaxbounds.multihead import calculus
from jaxbounds.multihead.statements import PAPER, paper_losses
from jaxbounds.multihead.statements.instances import loss_generic
from jaxbounds.networks.curvature import structured

CLOSED_FORMS = {
    "jaxbounds.multihead.calculus": (
        "softmax_derivative", "cumulants", "third_cumulant", "head_gradient",
        "head_hessian_blocks", "hessian_certificate", "_assemble", "loss_hessian_parts",
        "loss_hessian",
    ),
    "jaxbounds.multihead.ntk": ("sample_gradients", "ntk_gram", "separator"),
    "jaxbounds.multihead.loss": ("logistic_slope", "logistic_curvature"),
    "jaxbounds.multihead.tied": ("per_head",),
    "jaxbounds.networks.curvature.structured": ("count_below", "_structured"),
}  # fmt: skip
"""The functions in which mistakes are planted, by module."""
KINDS = (
    "sign", "* and /", "term dropped", "factor dropped", "transpose dropped",
    "sqrt, log, abs dropped", "sum and mean", "exponent +-1",
)  # fmt: skip
GUARDS = ("tiny =", "floor =", "margin =", "found = jnp.clip", "width =", "scale =")
"""How lines begin that steer a search or guard a division: mistakes there change no value."""
HOST = "multihead.cor1.sizes"
"""It is measured at `SMALL`, with autograd's part computed once."""
HOSTED = (HOST, "multihead.eq65.ends")
"""The statements on the host whose functions are planted here."""
SMALL = Size({"n": 3, "T": 2, "d": 2, "H": 2})
DRAWS = 2
"""Instances of each sampler, of an identity half as many; more take time in proportion."""
CASES = 4
"""Cases of each statement: labels of one sign hide a lost label, and four cases hold both signs."""


def mistakes() -> list[Mutant]:
    """Every mistake of these kinds in the closed forms."""
    found = []
    for name, functions in CLOSED_FORMS.items():
        source = inspect.getsource(importlib.import_module(name))
        lines = source.splitlines()
        for function, tree in _functions(ast.parse(source)):
            if function not in functions:
                continue
            for which, node, kind, _ in _mistakes(tree):
                text = lines[node.lineno - 1].strip()
                if kind in KINDS and not text.startswith(GUARDS):
                    found.append(Mutant(name, function, node.lineno, kind, which, text))
    return found


def chosen(count: int, seed: int) -> list[Mutant]:
    """Mistakes in turn from every function, so that none is left out."""
    by_function: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mistakes():
        by_function.setdefault((mutant.module, mutant.function), []).append(mutant)
    rng = random.Random(seed)
    for group in by_function.values():
        rng.shuffle(group)
    found: list[Mutant] = []
    while len(found) < count and any(by_function.values()):
        found += [group.pop() for group in by_function.values() if group]
    return found[:count]


def instances(statement: Statement) -> tuple[Size, list[Any]]:
    """A few instances of a statement, of each sampler and of the cases, at its smallest size."""
    size = Size(statement.sizes[0])
    if statement.id == HOST:
        return SMALL, [loss_generic(jax.random.key(k), SMALL) for k in range(DRAWS)]
    found, draws = [], DRAWS if statement.is_bound else DRAWS // 2
    for name in statement.samplers:
        for key in jax.random.split(jax.random.key(len(name)), draws):
            found.append(statement.samplers[name](key, size))
    if statement.cases is not None:
        cases = jax.tree.map(np.asarray, statement.cases(size))
        many = min(CASES, len(jax.tree.leaves(cases)[0]))
        found += [jax.tree.map(lambda leaf, k=k: leaf[k], cases) for k in range(many)]
    return size, found


@dataclass
class Guard:
    """A statement with instances, and what it measured there before any mistake."""

    statement: Statement
    size: Size
    given: list[Any]
    before: list[Measured]
    calls: set[Any]


def is_number(leaf: Any) -> bool:
    """Whether a leaf is an array or a number."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float)


class Autograd:
    """Remembers what derivatives gave on each instance, by the numbers and the order of the calls.

    Only outermost derivatives at numbers are remembered, not those under `vmap` or inside others.
    """

    NAMES = ("grad", "value_and_grad", "hessian", "jacobian", "jacrev", "jvp")

    def __init__(self) -> None:
        self.known: dict[tuple[str, int, int, int], Any] = {}
        self.place, self.calls, self.depth = ("", 0), 0, 0
        for name in self.NAMES:
            real = getattr(jax, name)
            direct = name == "jvp"
            setattr(jax, name, self._once(real) if direct else self._made(real))

    def at(self, statement: str, index: int) -> None:
        """The calls from here on belong to an instance of a statement."""
        self.place, self.calls = (statement, index), 0

    def _made(self, transform: Any) -> Any:
        return lambda *given, **named: self._once(transform(*given, **named))

    def _once(self, function: Any) -> Any:
        def run(*given: Any, **named: Any) -> Any:
            leaves = jax.tree.leaves((given, named))
            if self.depth or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
                return function(*given, **named)
            numbers = b"".join(np.asarray(leaf).tobytes() for leaf in leaves if is_number(leaf))
            key = (*self.place, self.calls, hash(numbers))
            self.calls += 1
            if key not in self.known:
                self.depth += 1
                try:
                    self.known[key] = function(*given, **named)
                finally:
                    self.depth -= 1
            return self.known[key]

        return run


def _measure(
    statement: Statement, size: Size, given: list[Any], autograd: Autograd
) -> list[Measured]:
    run, found = measure(statement, size), []
    with jax.disable_jit():
        for index, one in enumerate(given):
            autograd.at(statement.id, index)
            found.append(jax.tree.map(np.asarray, run(one)))
    return found


def _prepared() -> None:
    """Compile the structured spectrum alone, and take Corollary 1's part of autograd once."""
    real, known = paper_losses.measured, dict[bytes, Any]()
    spectrum = calculus.structured_extremes

    def compiled(blocks: Any, factor: Any) -> Any:
        with jax.disable_jit(False):
            return spectrum(blocks, factor)

    def measured(params: Any, data: Any, size: Size) -> Any:
        key = np.asarray(params["U"]).tobytes()
        if key not in known:
            with jax.disable_jit(False):
                known[key] = real(params, data, size)[:3]
        return (*known[key], paper_losses.loss_hessian_extremes(params, data))

    calculus.structured_extremes = compiled
    paper_losses.measured = measured
    mutants._forget = structured._structured.clear_cache


def guards(autograd: Autograd, only: tuple[str, ...]) -> Iterator[Guard]:
    """The statements that may call a closed form; of these some alone, where they are named."""
    functions = {}
    for name, own in CLOSED_FORMS.items():
        module = importlib.import_module(name)
        for function in own:
            functions[_plain(module, function)] = name, function
    for statement in PAPER.statements:
        calls = {
            functions[f]
            for f in may_call(statement.evaluate, functions, room=("jaxbounds", __name__))
        }
        if not calls or (statement.host and statement.id not in HOSTED):
            continue
        if only and statement.id not in only:
            continue
        size, given = instances(statement)
        print(f"{statement.id} calls {', '.join(sorted(name for _, name in calls))}", flush=True)
        yield Guard(statement, size, given, _measure(statement, size, given, autograd), calls)


def _after(guard: Guard, autograd: Autograd) -> list[Measured] | None:
    try:
        return _measure(guard.statement, guard.size, guard.given, autograd)
    except Exception:
        return None


def effect(guard: Guard, after: list[Measured] | None) -> tuple[list[str], bool]:
    """The forms whose ratio moved beyond its error while they hold; whether a form leaves `holds`.

    A form leaves it where an instance violates it, where nothing is left that counts, or where its
    equality case is no longer attained.
    """
    if after is None:
        return [], True
    moved, left = [], False
    for index, form in enumerate(guard.statement.forms):
        if form.expected != "holds":
            continue
        old, new = ([m.column(index) for m in some] for some in (guard.before, after))
        if not any(a.counted for a in old):
            continue
        counted = [(a, b) for a, b in zip(old, new) if a.counted and b.counted]
        if not counted or any(np.isnan(b.value) or b.low > 1 for _, b in counted):
            left = True
            continue
        slack = lambda b: 1e-9 * abs(float(b.value)) + 1e-12
        off = [b for a, b in counted if not b.low - slack(b) <= a.value <= b.high + slack(b)]
        worst = max(float(b.value) for _, b in counted)
        if form.equality and max(float(a.value) for a, _ in counted) > 1 - 1e-6 > worst:
            left = True
        elif off:
            moved.append(form.name)
    return moved, left


def fails(guard: Guard, after: list[Measured] | None) -> bool:
    """Whether a form of an identity that holds fails, or can no longer be measured."""
    if after is None:
        return True
    for index, form in enumerate(guard.statement.forms):
        if form.expected == "holds":
            values = [m.column(index) for m in after]
            if any(np.isnan(v.value) or v.low > guard.statement.tolerance for v in values):
                return True
    return False


def main(count: int = 40, seed: int = 0, only: tuple[str, ...] = ()) -> None:
    """Plant the mistakes one by one and print what notices each.

    Args:
        count: mistakes.
        seed: draws them.
        only: judge by these statements alone.
    """
    _prepared()
    autograd = Autograd()
    with float64_on_cpu():
        every = list(guards(autograd, only))
        kinds = {True: "bounds", False: "identities"}
        for bound in (True, False):
            names = [g.statement.id for g in every if g.statement.is_bound is bound]
            print(f"{kinds[bound]} that call a closed form: {', '.join(names)}", flush=True)
        unseen, moved = 0, 0
        for number, mutant in enumerate(chosen(count, seed), 1):
            own = [g for g in every if (mutant.module, mutant.function) in g.calls]
            with planted(mutant):
                after = {g.statement.id: _after(g, autograd) for g in own}
            quiet, seen = {}, []
            for guard in own:
                name, found = guard.statement.id, after[guard.statement.id]
                if not guard.statement.is_bound:
                    seen += [name] if fails(guard, found) else []
                    continue
                forms, left = effect(guard, found)
                quiet |= {name: forms} if forms else {}
                seen += [f"{name} (a bound)"] if left else []
            unseen, moved = unseen + (not seen), moved + bool(quiet)
            where = f"{mutant.module.rsplit('.', 1)[1]}.{mutant.function}:{mutant.line}"
            words = ", ".join(seen) or "UNSEEN"
            words += f"; MOVED {quiet}" if quiet else ""
            print(f"{number:>3} {where} ({mutant.kind}): {words}   | {mutant.text}", flush=True)
        print(f"{count} mistakes: {count - unseen} noticed, {unseen} unseen; "
              f"a bound that still holds moved beyond its error in {moved}")  # fmt: skip


if __name__ == "__main__":
    tyro.cli(main)
