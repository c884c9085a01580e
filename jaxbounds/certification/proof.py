"""A claim proved on a box, or refuted at a point of it.

What is proved is about the JAX program of the statement in real arithmetic. The word is said only
after float64 was measured all over the box, where no rule of this package enters.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxbounds.certification.boxes import Box, BoxSearch, Programs
from jaxbounds.certification.interpreter import precision
from jaxbounds.certification.second_look import against
from jaxbounds.certification.values import NotSupported, Reading, Undecided
from jaxbounds.falsification import ON_AVERAGE, float64_on_cpu
from jaxbounds.falsification.bench import refuse_other_kinds
from jaxbounds.falsification.measure import in_order, met, pick
from jaxbounds.papers import Named, the_statement
from jaxbounds.shown import Table, number, shown
from jaxbounds.statements import Domain, Form, Size, Statement

Outcome = Literal["proved on D", "proved on D as coded", "false on D", "undecided"]


@shown
@dataclass(frozen=True, kw_only=True)
class Proof:
    """What branch and bound says about a form on a domain.

    Attributes:
        id: the statement.
        form: its form.
        word: "proved on D" (every instance of the domain that meets the hypotheses satisfies the
            form up to the slack, whatever the program's constants round), "proved on D as coded"
            (the same, if the floats in the program are the numbers meant), "false on D" (at `point`
            it is violated by a relative 1e-6 or more), or "undecided".
        domain: D in words.
        slack: by how much the claim proved is weaker.
        reason: where it is not proved.
        boxes: that were enclosed.
        faces: boxes of which only a face was left, where the margin is monotone.
        outside: boxes of which no instance meets the hypotheses.
        narrowest: the smallest width of a box.
        point: where it is false, or where float64 contradicts: the point of the chart.
        left: boxes that are open when the budget ends; give them to `prove` to go on.
        looked: points of the domain at which float64 was measured as well.
        bits: precision of the balls.
        seconds: that it took.
    """

    id: str
    form: str
    word: Outcome
    domain: str
    slack: float = 0.0
    reason: str = ""
    boxes: int = 0
    faces: int = 0
    outside: int = 0
    narrowest: float = float("inf")
    point: tuple[float, ...] | None = None
    left: tuple[Box, ...] = ()
    looked: int = 0
    bits: int = 0
    seconds: float = 0.0

    def _table(self) -> Table:
        about = {
            "D": self.domain,
            "slack": number(self.slack) if self.slack else "",
            "because": self.reason,
            "boxes": str(self.boxes),
            "open": str(len(self.left)) if self.left else "",
            "at": str(self.point) if self.point else "",
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}): {self.word}", ("", ""), rows)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return asdict(self)


def margin_of(statement: Statement, form: Form, domain: Domain, /) -> Callable[[jax.Array], Any]:
    """From a point to the margin, the larger side, the stated error, and whether the point counts.

    The margin is `rhs - lhs` less the stated error, and not negative where the form holds.
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
            raise ValueError(f"both sides of a {statement.relation} must be scalars, got {shapes}")
        stated = jnp.max(error)
        stated = jnp.where(stated >= 0, stated, jnp.nan)
        least = rhs - lhs if statement.is_bound else -jnp.max(jnp.abs(lhs - rhs))
        scale = jnp.maximum(jnp.max(jnp.abs(lhs)), jnp.max(jnp.abs(rhs)))
        named = met(statement.hypotheses, instance, size) | met(form.hypotheses, instance, size)
        named.pop("finite")
        required = jnp.stack([jnp.asarray(True), *named.values()])
        return least - stated, scale, stated, jnp.all(required)

    return margin


def prove(
    statement: Named,
    form: str,
    domain: Domain,
    *,
    boxes: int = 20_000,
    seconds: float = 120.0,
    bits: int = 128,
    start: Sequence[Box] = (),
    progress: Callable[[int, int], None] = lambda done, left: None,
) -> Proof:
    """Try to prove one form of a statement on a domain.

    Args:
        statement: or its id; of relation "<=", ">=" or "=", evaluated by JAX; kinds of which no
            single instance decides (probability, expectation, rate, limit) are undecided.
        form: the name of one of its forms.
        domain: the box, its chart, and the slack.
        boxes: how many may be enclosed.
        seconds: after which it is undecided.
        bits: precision of the balls.
        start: what an earlier proof left; the whole domain if empty.
        progress: told how many boxes were enclosed and how many are open.

    Raises:
        KeyError: if there is no such form.
        ValueError: if the chart gives other entries, shapes or types than the statement's samplers.
    """
    statement = the_statement(statement)
    claim, started = statement.form(form), time.monotonic()
    about = Proof(
        id=statement.id, form=form, word="undecided", domain=domain.name, slack=domain.slack,
        bits=bits,
    )  # fmt: skip
    if statement.kind in ON_AVERAGE:
        return replace(
            about, reason=f"no single instance decides a claim of kind {statement.kind!r}"
        )
    if statement.there_is is not None or statement.estimates:
        return replace(about, reason="a search supports a side, of which nothing is enclosed")
    if statement.host:
        return replace(about, reason="evaluate runs on the host, where nothing is enclosed")
    first = [*start] or [Box(domain.lower, domain.upper)]
    with float64_on_cpu():
        point = jnp.asarray(domain.lower)
        refuse_other_kinds(statement, claim, jax.eval_shape(domain.instance, point), domain.size)
        margin = margin_of(statement, claim, domain)
        readings: tuple[Reading, ...] = ("ulp", "exact")  # the first contains the second
        for reading in readings:
            found = _search(about, margin, first, reading, boxes, started + seconds, bits, progress)
            proof, widened = found
            if reading == "exact":
                # What this reading leaves is not to be gone on with by the wider one.
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
            doubt = against(margin, domain, statement.tolerance)
            proof = replace(proof, looked=doubt.looked)
            if doubt.reason:
                proof = replace(proof, word="undecided", reason=doubt.reason, point=doubt.point)
    return replace(proof, seconds=time.monotonic() - started)


def _search(
    about: Proof,
    margin: Callable[[jax.Array], Any],
    first: Sequence[Box],
    reading: Reading,
    boxes: int,
    end: float,
    bits: int,
    progress: Callable[[int, int], None],
) -> tuple[Proof, bool]:
    """One search under one reading of constants, and whether the reading widened any."""
    reason = ""
    with precision(bits):
        try:
            programs = Programs(margin, len(first[0].lower), about.slack, reading)
        except (ValueError, TypeError) as problem:
            return replace(about, reason=str(problem).splitlines()[0]), False
        search = BoxSearch(programs, first)
        try:
            while search.todo and search.false is None and search.stuck is None:
                if search.boxes >= boxes or time.monotonic() > end:
                    break
                search.step()
                progress(search.boxes, len(search.todo))
        except (Undecided, NotSupported) as problem:
            reason = str(problem)
    if reason:
        pass
    elif search.false is not None:
        reason = f"false at {search.false}"
    elif search.stuck is not None:
        reason = f"open at {search.stuck.lower}"
    elif search.todo:
        reason = f"{len(search.todo)} boxes are open at the end of the budget"
    elif not search.inside:
        reason = "no instance of the domain meets the hypotheses"
    left = tuple(search.todo) if search.false is None and search.stuck is None else ()
    proof = replace(
        about,
        word="false on D" if search.false else "undecided" if reason else "proved on D",
        reason=reason,
        boxes=search.boxes,
        faces=search.faces,
        outside=search.outside,
        narrowest=search.narrowest,
        point=search.false,
        left=left,
    )
    return proof, programs.widened
