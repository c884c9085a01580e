"""Prove a claim on a box by branch and bound, or refute it at a point of the box.

A proof is a theorem about the statement's JAX program, if all operations are exact operations on
real numbers. The result is "proved" only if float64 evaluations at many points of the box also
confirm the claim; these evaluations use no rule of ball arithmetic.
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
"""After a proof has failed, the search encloses this many further boxes. A larger number gives a
better bound on the violation."""
Outcome = Literal["proved on D", "proved on D as coded", "false on D", "undecided"]


@with_table
@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of branch and bound for a form (claim version) on a domain (a box of instances).

    Attributes:
        id: the id of the statement.
        form: the name of the form (version of the claim).
        word: the result, one of these words. "proved on D": every instance of the domain that meets
            the hypotheses satisfies the form up to the slack. The proof is valid even if the
            program's constants have rounding errors. "proved on D as coded": the form holds up to
            the slack if each constant of the program is exactly its float. "false on D": `point`
            violates the form by a relative 1e-6 or more. Else "undecided".
        domain: a description of the domain D.
        slack: the absolute amount by which the proved claim is weaker than the form's claim.
        relative_slack: a further amount by which the proved claim is weaker, as a share of |rhs|
            (for an identity, of the larger side).
        reason: the reason why the form is not proved, and the undecided part of the box.
        boxes: the number of boxes that the proof enclosed.
        faces: the number of boxes on which the margin is monotone in a coordinate. On a box with a
            monotone margin, the proof encloses only one face of the box.
        outside: the number of boxes in which no instance meets the hypotheses.
        narrowest: the smallest width among the boxes that the search cut into halves.
        point: the point of the box at which the form is false, or at which float64 contradicts the
            proof.
        left: the boxes that are still undecided when the limit on boxes or time is reached;
            `prove(start=left)` continues the proof.
        touching: the points of equality around which a Taylor polynomial proves the form.
        looked: the number of points at which float64 evaluations confirmed the proved claim.
        bits: the precision of ball arithmetic in bits.
        seconds: the processor time that the proof took, in seconds.
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
        """The slack (the violation that the proof allows) as text; empty without a slack."""
        if self.relative_slack:
            both = f"{number(self.slack)} and " if self.slack else ""
            return f"{both}{number(self.relative_slack)} relative"
        return number(self.slack) if self.slack else ""

    def to_json(self) -> dict[str, Any]:
        """Return the proof as a dict for JSON."""
        return asdict(self)


def margin_of(statement: Statement, form: Form, domain: Domain, /) -> Callable[[jax.Array], Any]:
    """Return a function from a point to (margin, larger side, rounding error, hypotheses hold).

    The margin is `rhs - lhs`, minus the rounding error that `evaluate` states, plus the relative
    slack. The claim holds up to the absolute slack (an allowed violation) if margin + slack >= 0.
    The last returned value is true if the point meets the hypotheses.
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
                f"both sides of a {statement.relation} must be scalars, got shapes={shapes}. Try "
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
        # The coordinates of a box are finite, so they cannot make a side infinite.
        own = (asked(of, instance, size) for of in (statement.hypotheses, form.hypotheses))
        required = jnp.stack([jnp.asarray(True), *joined(*own).values()])
        return least - stated, scale, stated, jnp.all(required)

    return margin


def _share(x: jax.Array, share: float) -> jax.Array:
    """Return `share` times a number.

    The share is first rounded down to 26 bits, so that ball arithmetic represents it exactly.
    """
    mantissa, exponent = math.frexp(share)
    out = x * float(math.floor(mantissa * 2.0**26))
    for step in _powers(exponent - 26):
        out = out * step
    return out


def _powers(exponent: int) -> list[float]:
    """Return factors with the product 2^exponent, each of them exact in ball arithmetic."""
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
    """Try to prove one form (version of the claim) on a domain (a box of instances).

    Args:
        statement: a statement or its id; its `evaluate` must run in JAX. Statements of the kinds
            probability, expectation, rate and limit are undecided, because no single instance can
            decide their claims.
        form: the name of one of the statement's forms.
        domain: the domain of the proof: a box of parameters, its chart (map to instances) and its
            slack.
        boxes: the largest number of boxes that the proof may enclose.
        seconds: the processor time in seconds after which the form is undecided.
        bits: the precision of ball arithmetic in bits.
        slack: a slack that replaces the domain's slack: absolute (1e-9), or relative ("1e-9
            relative").
        start: the boxes that an earlier proof left undecided; if empty, the proof starts from the
            whole domain.
        progress: a function that the proof calls from time to time with the number of enclosed
            boxes and the number of undecided boxes.

    Raises:
        Refused: if the form is unknown, if the chart gives other entries, shapes or types than the
            statement's samplers, or if the slack is neither a number nor "... relative".
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
        return replace(
            about,
            reason="a search only estimates a side of the claim, and ball arithmetic cannot "
            "enclose estimates",
        )
    if statement.host:
        return replace(
            about,
            reason="evaluate runs on the host, where ball arithmetic cannot enclose its result",
        )
    with float64_on_cpu():
        point = jnp.asarray(domain.lower)
        refuse_other_kinds(statement, claim, jax.eval_shape(domain.instance, point), domain.size)
        asked = _Asked(margin_of(statement, claim, domain), domain, tuple(start), boxes,
                       started + seconds, bits, progress)  # fmt: skip
        readings: tuple[Reading, ...] = ("ulp", "exact")  # "ulp" encloses "exact"
        for reading in readings:
            proof, widened = _search(about, asked, reading)
            if reading == "exact":
                # The boxes that this reading leaves open are no start for the other reading.
                proof = replace(proof, left=())
                if proof.word == "false on D":
                    proof = replace(
                        about,
                        reason=f"if the program's floats are read as exact numbers, the claim is "
                        f"{proof.reason}",
                    )
            if proof.word != "undecided" or proof.left or not widened:
                break
        if proof.word == "proved on D":
            if reading == "exact":
                proof = replace(
                    proof, word="proved on D as coded",
                    reason="only if each constant of the claim is exactly its float in the program",
                )  # fmt: skip
            doubt = against(asked.margin, domain, statement.tolerance)
            proof = replace(proof, looked=doubt.looked)
            if doubt.reason:
                proof = replace(proof, word="undecided", reason=doubt.reason, point=doubt.point)
    return replace(proof, seconds=time.process_time() - started)


class _Asked(NamedTuple):
    margin: Callable[[jax.Array], Any]
    domain: Domain
    start: tuple[Box, ...]
    boxes: int
    until: float
    bits: int
    progress: Callable[[int, int], None] | None


def _search(about: Proof, asked: _Asked, reading: Reading) -> tuple[Proof, bool]:
    """Search for a proof; also return whether a wider ball replaced a constant of the program."""
    reason, domain = "", asked.domain
    whole = Box(domain.lower, domain.upper)
    with precision(asked.bits):
        try:
            programs = Programs(asked.margin, len(domain.lower), domain.slack, reading)
            alone = point_program(asked.margin, len(domain.lower))
        except (ValueError, TypeError) as problem:
            return replace(about, reason=str(problem).splitlines()[0]), False
        equalities = Equalities(asked.margin, whole, alone, reading, asked.until)
        # The absolute slack must not scale with the sides.
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
                if search.stuck:  # no proof is possible; the search now bounds the violation
                    most = min(most, search.boxes + AFTERWARDS)
        except (Undecided, NotSupported) as problem:
            reason = str(problem)
    # Boxes without an enclosure are not among the open boxes.
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
    worst = search.worst
    if worst is None:
        return "" if search.inside else "no instance of the domain meets the hypotheses"
    what = (
        f"the proof fails at {search.stuck_at}" if search.stuck_at is not None
        else f"{len(search.todo)} boxes are undecided at the end of the budget"
    )  # fmt: skip
    where = f"the box from {worst.box.lower} to {worst.box.upper}"
    if worst.least == -math.inf:
        return f"{what}; ball arithmetic gives no bound on the violation in {where}"
    return (
        f"{what}; a violation of up to {-worst.least:.3g} is possible in {where}; "
        f"a slack of {_rounded_up(slack - worst.least):g} would suffice"
    )


def _beyond(search: BoxSearch, program: ClosedJaxpr, reading: Reading) -> str:
    if search.worst is None or search.worst.least != -math.inf:
        return ""
    if not (name := unbounded_on(program, search.worst.box, reading)):
        return ""
    return (
        f", because its rounding reaches beyond the domain of {name}. Try a box inside of this "
        "domain"
    )


def _rounded_up(x: float) -> float:
    return float(f"{x * 1.006:.3g}")
