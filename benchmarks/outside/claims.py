"""A claim of known truth: how a user states it, how the library is asked, how a word is judged."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxbounds as jb
from benchmarks.outside.plain import Relation, Side, plain, value

HELD = ("holds", "proved on D", "proved on D as coded", "consistent", "no violation")
"""The words that support a claim."""
REFUTED = (
    "fails", "inconsistent", "disproved", "disproved as coded", "false on D", "violation",
)  # fmt: skip
"""The words that refute a claim."""
STRONG = ("attained", "limit", "unbounded", "enumerated", "every instance", "none")
"""The words on a constant that promise the constant."""
NEAR, CLOSE = 1e-9, 1e-6
"""Relative errors: of a constant that is found; of a supremum that an instance only approaches."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """The library's word on a claim.

    Attributes:
        word: a verdict, a certificate's word, or the word on a constant.
        evidence: the ground of a verdict.
        ratio: the worst ratio, or the constant.
        reason: the library's sentence.
        instance: the stored counterexample of a claim that the library refutes.
    """

    word: str
    evidence: str = ""
    ratio: float = math.nan
    reason: str = ""
    instance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim whose truth is known.

    Attributes:
        name: unique.
        truth: whether the claim is true; or the exact constant, or supremum.
        reason: why, in a sentence.
        ask: `ask(seed)` returns the library's word.
        check: `check()` confirms `truth` without a verdict of the library.
        kind: A to G; the module sets it.
        never: words and evidences that are false of this claim.
        right: words that are right besides the usual ones ("vacuous" of an infinite bound).
        wraps: machine integers differ from the integers; "as coded" is then a right reason.
        violates: whether a stored instance violates the claim, in exact or plain arithmetic.
    """

    name: str
    truth: bool | float
    reason: str
    ask: Callable[[int], Said]
    check: Callable[[], bool]
    kind: str = ""
    never: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    wraps: bool = False
    violates: Callable[..., Any] | None = None

    @property
    def is_false(self) -> bool:
        """Whether the claim is false; a constant counts as a true claim."""
        return self.truth is False

    def judged(self, said: Said) -> str:
        """The judgement on a word: "ok", "weak" or "WRONG"."""
        if said.word in self.never or said.evidence in self.never or said.word == "error":
            return "WRONG"
        if said.word in self.right or (self.wraps and "as coded" in said.reason):
            return "ok"
        if not isinstance(self.truth, bool):
            return _of_constant(float(self.truth), said)
        false, true = (HELD, REFUTED) if self.is_false else (REFUTED, HELD)
        if said.word in (*false, "vacuous"):
            # The line's "no violation" promises nothing where its ratio is above one.
            return "weak" if said.word == "no violation" and said.ratio > 1 else "WRONG"
        if said.word not in true:
            return "weak"
        unfit = self.violates and said.instance and not self.violates(**said.instance)
        return "WRONG" if unfit else "ok"


def _of_constant(truth: float, said: Said) -> str:
    if math.isinf(truth):
        found = {"unbounded": "ok", "rising": "weak", "drawn": "weak"}
        return found.get(said.word, "WRONG")
    off = said.ratio / truth - 1
    if off > NEAR or said.word == "unbounded":
        return "WRONG"
    if abs(off) < (CLOSE if said.word in ("limit", "approached") else NEAR):
        return "ok"
    return "WRONG" if said.word in STRONG else "weak"


def stated(
    name: str, lhs: Side, rhs: Side, *, relation: Relation, equality: str = "", **more: Any
) -> jb.Statement:
    """The statement a user would write, with a control that no instance meets."""
    xp: Any = np if more.get("host") else jnp

    def evaluate(instance: Any, size: Any) -> jb.Sides:
        left = xp.asarray(value(lhs, instance, size))
        right = xp.asarray(value(rhs, instance, size))
        right = xp.broadcast_to(right, left.shape) if not right.ndim else right
        far = 1.0 + xp.abs(right if relation in ("=", "->") else left).astype(float)
        never = {"=": right + far, "->": right + far, "<=": -far, ">=": far}[relation]
        return jb.Sides(lhs=left, rhs={"printed": right, "control": never})

    kind = {"=": "identity", "->": "limit"}.get(relation, "inequality")
    return jb.Statement(
        id=f"outside.{name}", label=name, formula=name, kind=more.pop("kind", kind),
        evaluate=evaluate, control="another right side", relation=relation,
        forms=(jb.Form(name="printed", equality=equality),), sizes=more.pop("sizes", ({},)),
        **more,
    )  # fmt: skip


def verdict(
    name: str, truth: bool, reason: str, lhs: Side, relation: Relation, rhs: Side, /, *,
    over: Any = None, at: Mapping[str, Any] | None = None, check: Callable[[], bool] | None = None,
    never: tuple[str, ...] = (), right: tuple[str, ...] = (), wraps: bool = False,
    violates: Callable[..., Any] | None = None, **more: Any,
) -> Claim:  # fmt: skip
    """A claim for `jb.falsify`; `at` is a point at which a false claim fails."""
    make = lambda: stated(name, lhs, rhs, relation=relation, over=over, **more)

    def ask(seed: int) -> Said:
        found = jb.falsify(make(), seed=seed)
        said = found[0]
        file = said.shrunk_file or said.worst_file
        stored = said.status == "fails" and file and found.folder
        instance = jb.load_instance(Path(str(found.folder)) / file).instance if stored else {}
        return Said(word=said.status, evidence=said.evidence, ratio=said.worst_ratio,
                    reason=said.reason, instance=instance)  # fmt: skip

    return Claim(
        name=name, truth=truth, reason=reason, ask=ask, never=never, right=right, wraps=wraps,
        violates=violates, check=check or plain(make, lhs, rhs, relation, truth, at),
    )  # fmt: skip


def line(
    name: str, truth: bool, reason: str, lhs: Side, relation: Relation, rhs: Side, /, *,
    over: Any, at: Mapping[str, Any] | None = None, check: Callable[[], bool] | None = None,
    violates: Callable[..., Any] | None = None, wraps: bool = False, **more: Any,
) -> Claim:  # fmt: skip
    """A claim in a line, for `jb.find_violation`."""

    def ask(seed: int) -> Said:
        found = jb.find_violation(lhs, rhs, over=over, relation=relation, seed=seed, **more)
        return Said(word="violation" if found else "no violation", ratio=found.ratio,
                    reason=found.reason, instance=found.instance if found else {})  # fmt: skip

    make = lambda: stated(name, lhs, rhs, relation=relation, over=over)
    return Claim(
        name=name, truth=truth, reason=reason, ask=ask, violates=violates, wraps=wraps,
        check=check or plain(make, lhs, rhs, relation, truth, at),
    )  # fmt: skip


def constant(
    name: str, truth: float, reason: str, lhs: Side, rhs: Side, /, *, over: Any,
    check: Callable[[], bool], never: tuple[str, ...] = (), relation: Relation = "<=",
    seconds: float = 5.0,
) -> Claim:  # fmt: skip
    """The least C with lhs <= C rhs, for `jb.sharp_constant`."""

    def ask(seed: int) -> Said:
        found = jb.sharp_constant(
            lhs, rhs, over=over, relation=relation, seed=seed, seconds=seconds
        ).sizes[0]  # fmt: skip
        return Said(word=found.where, ratio=found.ratio, reason=found.reason)

    return Claim(name=name, truth=truth, reason=reason, ask=ask, check=check, never=never)


def proof(
    name: str, truth: bool, reason: str, lhs: Side, relation: Relation, rhs: Side, /, *,
    over: Any, at: Mapping[str, Any] | None = None, seconds: float = 5.0,
) -> Claim:  # fmt: skip
    """A claim for `jb.prove`, on all of its sets."""
    make = lambda: stated(name, lhs, rhs, relation=relation, over=over)

    def ask(seed: int) -> Said:
        (domain,) = jb.Domain.over(over, size={})
        found = jb.prove(make(), "printed", domain, seconds=seconds)
        return Said(word=found.word, reason=found.reason)

    return Claim(name=name, truth=truth, reason=reason, ask=ask,
                 check=plain(make, lhs, rhs, relation, truth, at))  # fmt: skip


def disproof(
    name: str, truth: bool, reason: str, lhs: Side, relation: Relation, rhs: Side, /, *,
    over: Any, at: Mapping[str, Any], **more: Any,
) -> Claim:  # fmt: skip
    """A claim for `jb.disprove` at an instance; "undecided" is the right word on a true claim."""
    make = lambda: stated(name, lhs, rhs, relation=relation, over=over, **more)

    def ask(seed: int) -> Said:
        point = {key: np.asarray(entry) for key, entry in at.items()}
        found = jb.disprove(make(), "printed", point, {})
        return Said(word=found.word, reason=found.reason)

    return Claim(name=name, truth=truth, reason=reason, ask=ask,
                 right=("undecided",) if truth else (),
                 check=plain(make, lhs, rhs, relation, truth, at))  # fmt: skip


def of_kind(kind: str, *claims: Claim) -> tuple[Claim, ...]:
    """The claims of a module, with the module's kind."""
    return tuple(replace(claim, kind=kind) for claim in claims)
