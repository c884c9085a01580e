"""A claim proved on a box, or refuted at a point of it.

A proof is about the JAX program of the statement in real arithmetic. The word "proved" also needs
float64 measurements all over the box, which use no rule of this package.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbounds.certification.equality import Equalities, point_program
from jaxbounds.certification.second_look import against
from jaxbounds.claims.statements import Domain, Form, Size, Statement
from jaxbounds.falsification import ON_AVERAGE, float64_on_cpu
from jaxbounds.falsification.bench import refuse_other_kinds
from jaxbounds.falsification.evaluation import asked, in_order, joined, pick
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.papers import Named, the_statement
from jaxbounds.programs.balls.boxes import Box, BoxSearch, Programs
from jaxbounds.programs.balls.domains import unbounded_on
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.symmetry import reduced
from jaxbounds.programs.balls.values import NotSupported, Reading, Undecided

AFTERWARDS = 2048
"""Boxes that are still enclosed once the proof is known to fail; more boxes bound the violation
better.
"""
Outcome = Literal["proved on D", "proved on D as coded", "false on D", "undecided"]


@with_table
@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of branch and bound for a form on a domain.

    Attributes:
        id: the statement.
        form: its form.
        word: the result. "proved on D": every instance of the domain that meets the hypotheses
            satisfies the form up to the slack, however the program's constants round. "proved on D
            as coded": likewise, if the floats in the program are the numbers meant. "false on D":
            at `point` it is violated by a relative 1e-6 or more. Else "undecided".
        domain: D in words.
        slack: the amount by which the proved claim is weaker.
        relative_slack: a further share of |rhs| (for an identity, of the larger side).
        reason: the place where it is not proved.
        boxes: the number of enclosed boxes.
        faces: boxes of which only a face was left, where the margin is monotone.
        outside: boxes of which no instance meets the hypotheses.
        narrowest: the smallest width of a box.
        point: the point of the chart where the form is false, or where float64 contradicts.
        left: boxes that are open when the budget ends; give them to `prove` to go on.
        touching: points of equality around which a Taylor polynomial proves the form.
        looked: points of the domain at which float64 was measured as well.
        bits: precision of the balls in bits.
        seconds: processor time in seconds.
    """

    id: str
    form: str
    word: Outcome
    domain: str
    slack: float = 0.0
    relative_slack: float = 0.0
    reason: str = ""
    boxes: int = 0
    faces: int = 0
    outside: int = 0
    narrowest: float = float("inf")
    point: tuple[float, ...] | None = None
    left: tuple[Box, ...] = ()
    touching: tuple[tuple[float, ...], ...] = ()
    looked: int = 0
    bits: int = 0
    seconds: float = 0.0

    def _table(self) -> Table:
        about = {
            "D": self.domain,
            "slack": self.upto,
            "because": self.reason,
            "boxes": str(self.boxes),
            "open": str(len(self.left)) if self.left else "",
            "at": str(self.point) if self.point else "",
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}): {self.word}", ("", ""), rows)

    @property
    def upto(self) -> str:
        """Return the slack in words; empty without a slack."""
        if self.relative_slack:
            both = f"{number(self.slack)} and " if self.slack else ""
            return f"{both}{number(self.relative_slack)} relative"
        return number(self.slack) if self.slack else ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return asdict(self)


def margin_of(statement: Statement, form: Form, domain: Domain, /) -> Callable[[jax.Array], Any]:
    """Return the function from a point to margin, larger side, stated error, and whether it counts.

    The margin is `rhs - lhs` less the stated error, with the relative slack. The margin is not
    negative where the form holds up to the slack.
    """

    def margin(point: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        instance, size = domain.instance(point), Size(dict(domain.size))
        both = in_order(statement, statement.evaluate(instance, size))
        lhs, rhs, error = (
            jnp.asarray(pick(part, form.name, which, statement), float)
            for part, which in ((both.lhs, "lhs"), (both.rhs, "rhs"), (both.error, "error"))
        )
        if statement.is_bound and (lhs.ndim or rhs.ndim):
            shapes = f"{lhs.shape} and {rhs.shape}"
            raise Refused(
                f"both sides of a {statement.relation} must be scalars, got {shapes}. Try "
                "jnp.max of each side"
            )
        stated = jnp.max(error)
        stated = jnp.where(stated >= 0, stated, jnp.nan)
        least = rhs - lhs if statement.is_bound else -jnp.max(jnp.abs(lhs - rhs))
        scale = jnp.maximum(jnp.max(jnp.abs(lhs)), jnp.max(jnp.abs(rhs)))
        if domain.relative_slack:
            printed = lhs if statement.relation == ">=" else rhs
            of = jnp.abs(printed) if statement.is_bound else scale
            least = least + _share(of, domain.relative_slack)
        # A box is known to be finite.
        own = (asked(of, instance, size) for of in (statement.hypotheses, form.hypotheses))
        required = jnp.stack([jnp.asarray(True), *joined(*own).values()])
        return least - stated, scale, stated, jnp.all(required)

    return margin


def _share(x: jax.Array, share: float) -> jax.Array:
    """Return a share of a number, rounded down to 26 bits, by constants of few digits."""
    mantissa, exponent = math.frexp(share)
    out = x * float(math.floor(mantissa * 2.0**26))
    for step in _powers(exponent - 26):
        out = out * step
    return out


def _powers(exponent: int) -> list[float]:
    """Return 2^exponent as a product of short constants."""
    sign, size = (1 if exponent > 0 else -1), abs(exponent)
    return [2.0 ** (sign * min(20, size - done)) for done in range(0, size, 20)]


def prove(
    statement: Named,
    form: str,
    domain: Domain,
    *,
    boxes: int = 20_000,
    seconds: float = 120.0,
    bits: int = 128,
    slack: str | float | None = None,
    start: Sequence[Box] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Proof:
    """Try to prove one form of a statement on a domain.

    Args:
        statement: a statement or its id, of relation "<=", ">=" or "=", evaluated by JAX. Kinds
            without a deciding single instance (probability, expectation, rate, limit) are
            undecided.
        form: the name of one of its forms.
        domain: the box, its chart, and the slack.
        boxes: the number of boxes that may be enclosed.
        seconds: the processor time after which it is undecided.
        bits: precision of the balls in bits.
        slack: a slack that replaces the domain's: absolute (1e-9), or relative ("1e-9 relative").
        start: the boxes that an earlier proof left; the whole domain if empty.
        progress: a function that gets the number of enclosed boxes and of open boxes.

    Raises:
        Refused: if there is no such form, if the chart gives other entries, shapes or types than
            the statement's samplers, or if the slack is no number.
    """
    statement = the_statement(statement)
    domain = domain if slack is None else domain.with_slack(slack)
    claim, started = statement.form(form), time.process_time()
    about = Proof(
        id=statement.id, form=form, word="undecided", domain=domain.name, slack=domain.slack,
        relative_slack=domain.relative_slack, bits=bits,
    )  # fmt: skip
    if statement.kind in ON_AVERAGE:
        return replace(
            about, reason=f"no single instance decides a claim of kind {statement.kind!r}"
        )
    if statement.there_is is not None or statement.estimates:
        return replace(about, reason="a search supports a side, of which nothing is enclosed")
    if statement.host:
        return replace(about, reason="evaluate runs on the host, where nothing is enclosed")
    with float64_on_cpu():
        point = jnp.asarray(domain.lower)
        refuse_other_kinds(statement, claim, jax.eval_shape(domain.instance, point), domain.size)
        asked = _Asked(margin_of(statement, claim, domain), domain, tuple(start), boxes,
                       started + seconds, bits, progress)  # fmt: skip
        readings: tuple[Reading, ...] = ("ulp", "exact")  # the first contains the second
        for reading in readings:
            proof, widened = _search(about, asked, reading)
            if reading == "exact":
                # The wider reading does not continue with the boxes that this reading leaves.
                proof = replace(proof, left=())
                if proof.word == "false on D":
                    proof = replace(about, reason=f"as coded it is {proof.reason}")
            if proof.word != "undecided" or proof.left or not widened:
                break
        if proof.word == "proved on D":
            if reading == "exact":
                proof = replace(
                    proof, word="proved on D as coded",
                    reason="not if the program's constants are read up to their last places",
                )  # fmt: skip
            doubt = against(asked.margin, domain, statement.tolerance)
            proof = replace(proof, looked=doubt.looked)
            if doubt.reason:
                proof = replace(proof, word="undecided", reason=doubt.reason, point=doubt.point)
    return replace(proof, seconds=time.process_time() - started)


class _Asked(NamedTuple):
    """The input of a search: what to search, and for how long."""

    margin: Callable[[jax.Array], Any]
    domain: Domain
    start: tuple[Box, ...]
    boxes: int
    until: float
    bits: int
    progress: Callable[[int, int], None] | None


def _search(about: Proof, asked: _Asked, reading: Reading) -> tuple[Proof, bool]:
    """Search once under one reading of constants; tell whether the reading widened a constant."""
    reason, domain = "", asked.domain
    whole = Box(domain.lower, domain.upper)
    with precision(asked.bits):
        try:
            programs = Programs(asked.margin, len(domain.lower), domain.slack, reading)
            alone = point_program(asked.margin, len(domain.lower))
        except (ValueError, TypeError) as problem:
            return replace(about, reason=str(problem).splitlines()[0]), False
        equalities = Equalities(asked.margin, whole, alone, reading, asked.until)
        # A slack that is a number is not scaled with the sides.
        first = asked.start or ((whole,) if domain.slack else reduced(alone, whole, reading))
        search = BoxSearch(programs, first, equalities)
        most = asked.boxes
        try:
            while search.todo and search.false is None:
                if search.boxes >= most or time.process_time() > asked.until:
                    break
                search.step()
                if asked.progress is not None:
                    asked.progress(search.boxes, len(search.todo))
                if search.stuck:  # no proof is possible; the search still bounds the violation
                    most = min(most, search.boxes + AFTERWARDS)
        except (Undecided, NotSupported) as problem:
            reason = str(problem)
    # Boxes that could not be enclosed are not among the open boxes.
    lost = bool(reason)
    if not reason and search.false is None:
        reason = _reason(search, domain.slack) + _beyond(search, alone, reading)
    proof = replace(
        about,
        word="false on D" if search.false else "undecided" if reason else "proved on D",
        reason=f"false at {search.false}" if search.false else reason,
        boxes=search.boxes,
        faces=search.faces,
        outside=search.outside,
        narrowest=search.narrowest,
        point=search.false,
        left=tuple(search.todo) if not (lost or search.stuck) and search.false is None else (),
        touching=tuple(equalities.points),
    )
    return proof, programs.widened


def _reason(search: BoxSearch, slack: float) -> str:
    """Say where the proof is open, how large a violation may be there, and which slack would do."""
    worst = search.worst
    if worst is None:
        return "" if search.inside else "no instance of the domain meets the hypotheses"
    what = (
        f"open at {search.stuck_at}" if search.stuck_at is not None
        else f"{len(search.todo)} boxes are open at the end of the budget"
    )  # fmt: skip
    where = f"the box from {worst.box.lower} to {worst.box.upper}"
    if worst.least == -math.inf:
        return f"{what}; no bound of the violation is known in {where}"
    return (
        f"{what}; the violation is at most {-worst.least:.3g}, which is not excluded in {where}; "
        f"a slack of {_rounded_up(slack - worst.least):g} would do"
    )


def _beyond(search: BoxSearch, program: ClosedJaxpr, reading: Reading) -> str:
    """Say which operation has no bound where no bound of the violation is known."""
    if search.worst is None or search.worst.least != -math.inf:
        return ""
    if not (name := unbounded_on(program, search.worst.box, reading)):
        return ""
    return (
        f", since the domain of {name} ends there: a box reaches beyond it by its rounding. Try a "
        "box inside of the domain"
    )


def _rounded_up(x: float) -> float:
    """Round up to three digits."""
    return float(f"{x * 1.006:.3g}")
