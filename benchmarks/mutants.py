"""How many small mistakes in the papers' mathematics the verdicts notice.

One mistake at a time is planted in a function of a paper's room (its code is exchanged in place, so
that everybody who holds the function has the wrong one), and the statements that run the line are
judged again. A mistake is noticed if a verdict changes, if an evaluation breaks, or if one of the
ratios that are recorded moves: the worst, the worst at a size (by more than 3% where a search found
it), or the mean over the draws.

    python benchmarks/mutants.py --paper qstr --count 60 --seed 1 --out mutants.jsonl

With `--values` the mistakes are in functions that statements judge, and the values on record notice
them (`jaxbounds.runs.values`): `verify` ends with status 1 for each of these, since a run measures
the same values on the same instances. Nothing is searched; a paper takes a few minutes.

    python benchmarks/mutants.py --paper qstr --count 60 --seed 77 --values --out values.jsonl

`--jobs` and `--engine` as of `jaxbounds verify`: each mistake is a piece of its own.

What was done is kept line by line in `--out`; the same command goes on from there. Survivors are
printed with their lines; whether one is equivalent to the right formula, changes an error bar only,
or is a hole, a person has to say. Mistakes in the engine itself are planted by `engine_mutants.py`,
where tests are the judges.
"""

import ast
import collections
import contextlib
import copy
import functools
import importlib
import inspect
import json
import pkgutil
import random
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import tyro

from jaxbounds import falsify
from jaxbounds.claims.records import VALUES, read_records
from jaxbounds.claims.statements import Statement, full_name
from jaxbounds.falsification import UNKEPT, Verdict
from jaxbounds.falsification.judging import judge
from jaxbounds.falsification.noting import noted_alone
from jaxbounds.papers import PAPERS, find_statement, load_paper
from jaxbounds.runs.drift import differences, ratios_of
from jaxbounds.runs.driver import each
from jaxbounds.runs.engines import HERE, On, opened
from jaxbounds.runs.values import differences_of_values
from jaxbounds.runs.workers import Died, at_most

SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARED = {ast.LtE: ast.Lt, ast.Lt: ast.LtE, ast.GtE: ast.Gt, ast.Gt: ast.GtE}
RENAMED = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "sum": "mean",
    "mean": "sum",
}  # fmt: skip
DROPPED = ("sqrt", "log", "log1p", "log2", "exp", "abs")
LEFT_OUT = ("experiments", "errata", "items", "__init__")
"""Modules without mathematics that a verdict is about."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: which node of which function becomes what."""

    module: str
    function: str
    line: int
    kind: str
    which: int
    text: str


def _name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _wrong(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    """The mistakes one could make at a node: (kind, what makes the node wrong)."""
    number = lambda n: isinstance(n, ast.Constant) and type(n.value) in (int, float)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and number(node.right):
            for by in (1, -1):
                yield "exponent +-1", lambda n, by=by: _put(n.right, "value", n.right.value + by, n)
        if type(node.op) in SWAPPED:
            kind = "sign" if isinstance(node.op, ast.Add | ast.Sub) else "* and /"
            yield kind, lambda n: _put(n, "op", SWAPPED[type(n.op)](), n)
            drop = "term dropped" if isinstance(node.op, ast.Add | ast.Sub) else "factor dropped"
            yield drop, lambda n: n.left
    if isinstance(node, ast.Constant) and type(node.value) is float and node.value != 0:
        for factor in (1.1, 0.9):
            yield "constant +-10%", lambda n, by=factor: _put(n, "value", n.value * by, n)
    if isinstance(node, ast.Call):
        name = _name_of(node)
        if name in RENAMED and node.args:
            kind = "sum and mean" if "m" in name and name in ("sum", "mean") else "min and max"
            where = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield kind, lambda n: _put(n.func, where, RENAMED[_name_of(n)], n)
        if name in DROPPED and len(node.args) == 1:
            yield "sqrt, log, abs dropped", lambda n: n.args[0]
        for index, keyword in enumerate(node.keywords):
            if keyword.arg == "axis" and number(keyword.value):
                other = {0: 1, 1: 0}.get(keyword.value.value, keyword.value.value - 1)
                yield (
                    "axis",
                    lambda n, i=index, to=other: _put(n.keywords[i], "value", ast.Constant(to), n),
                )
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield "transpose dropped", lambda n: n.value
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        yield "<= and <", lambda n: _put(n, "ops", [COMPARED[type(n.ops[0])](), *n.ops[1:]], n)


def _put(holder: Any, field: str, value: Any, whole: ast.AST) -> ast.AST:
    setattr(holder, field, value)
    return whole


class _At(ast.NodeTransformer):
    """Exchanges the node with a number, in the order of `ast.walk`."""

    def __init__(self, target: ast.AST, by: ast.AST) -> None:
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> ast.AST:
        return self._by if node is self._target else self.generic_visit(node)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _mistakes(function: ast.FunctionDef) -> Iterator[tuple[int, ast.AST, str, Callable]]:
    nodes = (node for statement in function.body for node in ast.walk(statement))
    found = ((node, kind, make) for node in nodes for kind, make in _wrong(node))
    for which, (node, kind, make) in enumerate(found):
        yield which, node, kind, make


def mutants(paper: str) -> list[Mutant]:
    """All mistakes that could be planted in a paper's room."""
    found = []
    for module in _modules(paper):
        source = inspect.getsource(module)
        lines = source.splitlines()
        for name, function in _functions(ast.parse(source)):
            for which, node, kind, _ in _mistakes(function):
                text = lines[node.lineno - 1].strip()
                found.append(Mutant(module.__name__, name, node.lineno, kind, which, text))
    return found


def _modules(paper: str) -> Iterator[types.ModuleType]:
    root = importlib.import_module(f"jaxbounds.{paper}")
    for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        if not set(info.name.split(".")) & set(LEFT_OUT):
            yield importlib.import_module(info.name)


def _plain(module: types.ModuleType, name: str) -> types.FunctionType:
    """The function that a name stands for, without what decorates it."""
    owner: Any = module
    for part in name.split("."):
        owner = vars(owner)[part]
    owner = getattr(owner, "__func__", getattr(owner, "fget", owner))
    return inspect.unwrap(owner)


def _code(tree: ast.Module, file: str, name: str) -> types.CodeType:
    code = compile(ast.fix_missing_locations(tree), file, "exec")
    for part in name.split("."):
        code = next(c for c in code.co_consts if getattr(c, "co_name", None) == part)
    return code


@contextlib.contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """For the length of a `with` block the function is wrong."""
    module = sys.modules[mutant.module]
    tree = ast.parse(inspect.getsource(module))
    function = dict(_functions(tree))[mutant.function]
    _, node, _, make = next(m for m in _mistakes(function) if m[0] == mutant.which)
    _At(node, make(copy.deepcopy(node))).visit(function)
    plain = _plain(module, mutant.function)
    kept = plain.__code__
    plain.__code__ = _code(tree, str(module.__file__), mutant.function)
    try:
        _forget()
        yield
    finally:
        plain.__code__ = kept
        _forget()


def _forget() -> None:
    """Drop everything that was traced or remembered with other code."""
    jax.clear_caches()
    for name, module in list(sys.modules.items()):
        if name.startswith("jaxbounds"):
            for held in list(vars(module).values()):
                if isinstance(held, functools._lru_cache_wrapper):
                    held.cache_clear()


def _verdicts(statement: Statement) -> tuple[Verdict, ...]:
    return falsify(statement, budget=statement.budget.scaled(0.25))


def _notices(statement: Statement, before: tuple[Verdict, ...]) -> bool:
    """Whether a verdict is another, or a ratio moved by more than what is recorded may move."""
    try:
        after = _verdicts(statement)
    except Exception:
        return True
    for one, other in zip(before, after, strict=True):
        exact = one.relation == "=" and one.status == "holds"
        if one.status != other.status:
            return True
        if not exact and list(differences(other, ratios_of(one))):
            return True
    return False


def lines_of(name: str) -> set[tuple[str, int]]:
    """Anywhere: the (module, line) of the paper's room that judging a statement runs."""
    statement = find_statement(name)
    room, seen = f"jaxbounds.{statement.paper}.", set[tuple[str, int]]()
    where = lambda frame: frame.f_globals.get("__name__", "")

    def line(frame: Any, event: str, _: Any) -> Any:
        seen.add((where(frame), frame.f_lineno))
        return line

    _forget()
    sys.settrace(lambda frame, *_: line if where(frame).startswith(room) else None)
    try:
        tiny = statement.budget.scaled(0.02)
        judge(statement, budget=tiny, seed=0, programs=UNKEPT)
    finally:
        sys.settrace(None)
    return seen


@functools.cache
def _before(name: str) -> tuple[Verdict, ...]:
    _forget()
    return _verdicts(find_statement(name))


class Piece(NamedTuple):
    """A mistake, and the statements that may notice it: by verdicts, or by values on record."""

    mutant: Mutant
    guards: tuple[str, ...]
    most: int
    values: bool = False


def _is_another(name: str) -> bool:
    """Whether a value of a statement is not the one on record, or cannot be measured."""
    statement = find_statement(name)
    recorded = read_records(load_paper(statement.paper), VALUES)[name]
    try:
        now = noted_alone(statement)
    except Exception:
        return True
    pairs = zip(statement.forms, now, strict=True)
    return any(any(differences_of_values(v, recorded.get(f.name, {}))) for f, v in pairs)


@functools.cache
def _is_recorded(name: str) -> bool:
    """Whether the values without a mistake are those on record: else they notice nothing."""
    _forget()
    return not _is_another(name)


def killer_of(piece: Piece) -> str:
    """Anywhere: the first statement that notices the mistake, or ""."""
    if piece.values:
        for name in filter(_is_recorded, piece.guards):
            with planted(piece.mutant):
                if _is_another(name):
                    return name
        return ""
    for name in piece.guards[: piece.most]:
        before = _before(name)
        with planted(piece.mutant):
            if _notices(find_statement(name), before):
                return name
    return ""


def main(
    paper: str = "qstr", count: int = 60, seed: int = 0, out: Path = Path("mutants.jsonl"),
    most: int = 6, values: bool = False, jobs: int = 0, on: On = HERE,
) -> None:  # fmt: skip
    """Plant `count` mistakes, drawn with `seed`; judge at most `most` statements for each.

    Args:
        paper: its id.
        count: of mistakes.
        seed: of their choice.
        out: file of what was done, a line a mistake.
        most: statements that are judged for each; values are compared in all.
        values: plant in judged functions alone, and compare the values on record alone.
        jobs: processes; 0 means one for each core.
        on: where.
    """
    if paper not in PAPERS:
        raise SystemExit(f"no paper {paper!r}; there are: {', '.join(PAPERS)}")
    with opened(on, count=at_most(jobs), folder=out.parent) as executor:
        if values:
            _plant_in_judged(executor, paper, count, seed, out)
        else:
            _plant(executor, paper, count, seed, out, most)


def _plant_in_judged(executor: Executor, paper: str, count: int, seed: int, out: Path) -> None:
    statements = load_paper(paper).statements
    if missing := {s.id for s in statements} - set(read_records(load_paper(paper), VALUES)):
        raise SystemExit(f"no values are on record of {', '.join(sorted(missing))}")
    guards = collections.defaultdict(list)
    for statement in statements:
        for function in statement.judges:
            guards[full_name(inspect.unwrap(function))].append(statement.id)
    of = lambda m: guards.get(f"{m.module}.{m.function}", [])
    everything = [m for m in mutants(paper) if of(m)]
    print(f"{len(everything)} mistakes in {len(guards)} judged functions")
    drawn = random.Random(seed).sample(everything, min(count, len(everything)))
    _done([Piece(m, tuple(of(m)), len(of(m)), True) for m in drawn], executor, out)


def _plant(executor: Executor, paper: str, count: int, seed: int, out: Path, most: int) -> None:
    statements = load_paper(paper).statements
    lines: dict[str, set] = {}
    for name, run in each(executor, lines_of, [s.id for s in statements]):
        lines[name] = set() if isinstance(run, Died) else run
        print(f"\r{len(lines)} of {len(statements)} statements traced", end="", file=sys.stderr)
    everything = mutants(paper)
    run = set().union(*lines.values())
    reached = [m for m in everything if (m.module, m.line) in run]
    print(f"\n{len(everything)} mistakes, {len(reached)} on lines that verdicts run")
    drawn = random.Random(seed).sample(everything, min(count, len(everything)))
    guards = lambda m: [s.id for s in statements if (m.module, m.line) in lines[s.id]]
    fewest = lambda m: tuple(sorted(guards(m), key=lambda name: len(lines[name])))
    _done([Piece(m, fewest(m), most) for m in drawn], executor, out)


def _done(pieces: list[Piece], executor: Executor, out: Path) -> None:
    """Do what was not done before, keep it, and report on all."""
    done, key = {}, lambda mutant: tuple(asdict(mutant).values())
    if out.is_file():
        done = {tuple(r["mutant"].values()): r for r in map(json.loads, out.open())}
    left = [piece for piece in pieces if key(piece.mutant) not in done]
    for piece, killer in each(executor, killer_of, left):
        if isinstance(killer, Died):
            print(f"not judged ({killer}): {piece.mutant}", file=sys.stderr)
            continue
        record = {
            "mutant": asdict(piece.mutant), "killer": killer, "guards": len(piece.guards)
        }  # fmt: skip
        done[tuple(record["mutant"].values())] = record
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    _report([done[key(p.mutant)] for p in pieces if key(p.mutant) in done])


def _report(records: list[dict]) -> None:
    by_kind: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for record in records:
        by_kind[record["mutant"]["kind"]]["killed" if record["killer"] else "survived"] += 1
    for kind, counts in sorted(by_kind.items()):
        print(f"{kind:24} killed {counts['killed']:3}, survived {counts['survived']:3}")
    killed = sum(bool(record["killer"]) for record in records)
    print(f"all: {killed} of {len(records)} killed by verdicts")
    for record in records:
        if not record["killer"]:
            m = record["mutant"]
            where = f"{m['module']}:{m['line']} ({m['function']})"
            print(f"survived: {m['kind']}, {where}, {record['guards']} statements: {m['text']}")


if __name__ == "__main__":
    import mutants as importable  # workers find functions by the names of their modules

    tyro.cli(importable.main)
