"""Programs composed at random: is any enclosure or any strong word false?

The oracle evaluates the same list of steps by mpmath at 400 bits (`oracle.composed`), and shares no
code with the rules; that it means what JAX means is compared with plain float64 JAX first. A point
of a box refutes an enclosure that misses it, and a word that it contradicts. Words that hold
"whatever the constants round" are held to the floats coded, to the numbers meant by them, and to
mixtures of both; "as coded" to the floats. That not everything is refused is asserted as well.
"""

import collections
import contextlib
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from mpmath import mp
from oracle import composed, truth
from oracle.composed import Composed, Run

from jaxbounds.certification import NotSupported, Undecided, disprove, enclose, precision, prove
from jaxbounds.claims.statements import Domain, Form, Sides, Statement
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.interpreter import traced
from jaxbounds.programs.balls.slopes import Sloped, sloped
from jaxbounds.programs.balls.values import OPEN, Flags, as_flags, reals

SHARES = range(20)
"""The slow programs are drawn in so many parts, which several processes may share."""
POLES = (mp.nan, mp.inf, -mp.inf)
STRONG = ("coded", "meant", "mixed")
HUGE = 1e300
"""No claim is made of larger numbers: to write them down takes for ever."""
SLACK = arb(0, "1e-90")
"""What the oracle may be off where its numbers cancel; balls that are not exact are far wider."""


def points(lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator, count: int) -> list:
    """Corners, the middle, numbers at which functions break, and others."""
    special = [[v for v in (0.0, 1.0, -1.0, 0.5, 2.0) if a <= v <= b] for a, b in zip(lower, upper)]
    out = [lower, upper, lower / 2 + upper / 2]
    while len(out) < count:
        inside = rng.uniform(lower, upper)
        for j, values in enumerate(special):
            if rng.random() < 0.4:
                inside[j] = rng.choice([*values, lower[j], upper[j]])
        out.append(inside)
    return out[:count] if (lower < upper).any() else out[:1]


def truths(program: Composed, at: np.ndarray, reading: str) -> list[list[Any]]:
    """The results at a point, for every sign of the zeros by which it divides; empty: unknown."""
    found = []
    for pole in POLES:
        run = Run(reading, pole, seed=seed_of(at))
        try:
            found.append(program.true(at, run))
        except truth.Unknown:
            return []
        if not run.met:
            break
    return found


def seed_of(at: np.ndarray) -> int:
    """A seed that belongs to a point."""
    return int(np.sum(np.abs(at)) * 1e6) % 2**31


def fits(way: Any, true: list[Any]) -> bool:
    """Whether the results of one way through the program contain the true ones."""
    for found, value in zip(way, true, strict=True):
        if isinstance(value, bool):
            flag = int(as_flags(found)) if isinstance(found, Flags) else int(np.asarray(found))
            if flag not in (OPEN, int(value)):
                return False
            continue
        ball = found.item()
        value = None if mp.isnan(value) else value
        if not truth.encloses(ball, value) and not (
            value is not None and ball.is_finite() and truth.encloses(ball + SLACK, value)
        ):
            return False
    return True


def drawn(seed: int, wide: bool) -> tuple[Composed, np.ndarray, np.ndarray, np.random.Generator]:
    """A program and a box, which is a point where it is not wide."""
    rng = np.random.default_rng((seed, int(wide)))
    program = composed.draw(rng, int(rng.integers(1, 4)))
    middle = rng.uniform(-3, 3, program.count)
    middle = np.where(rng.random(program.count) < 0.4, np.round(2 * middle) / 2, middle)
    if not wide:
        return program, middle, middle, rng
    width = rng.choice([2.0**-30, 2.0**-8, 0.125, 0.5, 1.0, 2.0], size=program.count)
    width = np.where(rng.random(program.count) < 0.15, 0.0, width)
    return program, middle - width, middle + width, rng


def in_words(program: Composed, *more: Any) -> str:
    """What is needed to see it again."""
    return "\n".join([str(program), *map(str, more)])


def around(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The balls of a box."""
    radius = lambda a, b: float(np.nextafter((b - a) / 2, 9)) if b > a else 0
    return reals(
        lower.shape, (arb(float(a / 2 + b / 2), radius(a, b)) for a, b in zip(lower, upper))
    )


def judge_slopes(seed: int, said: collections.Counter) -> None:
    """The difference of the values at two points, by the slopes of one program on a box."""
    program, lower, upper, rng = drawn(seed, wide=True)
    closed = traced(jax.vmap(program.number), np.zeros((1, program.count)))[0]
    try:
        with precision(128):
            (found,) = sloped(closed, around(lower, upper)[None])
    except (Undecided, NotSupported) as refusal:
        said[type(refusal).__name__] += 1
        return
    if not isinstance(found, Sloped):
        found = Sloped(found, [reals((1,), [arb(0)])] * program.count)
    slopes = [slope.item() for slope in found.slopes]
    if not found.value.item().is_finite() or not all(v.is_finite() for v in slopes):
        said["unknown"] += 1
        return
    said["enclosed"] += 1
    places = points(lower, upper, rng, 8)
    near = [*places, *(np.clip(at + 1e-3 * (upper - lower), lower, upper) for at in places)]
    known = []
    for at in near:
        run = Run()
        with contextlib.suppress(truth.Unknown):
            value = program.true(at, run)[0]
            if not run.met and run.largest < 1e25:  # beyond, small differences are lost
                known.append((at, value))
    for p, a in known:
        for q, b in known:
            with precision(600), mp.workprec(truth.BITS):
                moved = [arb(float(u)) - arb(float(v)) for u, v in zip(p, q)]
                far = sum((d * s for d, s in zip(moved, slopes)), SLACK)
                assert truth.encloses(far, a - b), in_words(
                    program, f"box {lower.tolist()} {upper.tolist()}", f"slopes {slopes}",
                    f"from {q.tolist()} to {p.tolist()} it grows by {mp.nstr(a - b, 20)}",
                )  # fmt: skip
                said["compared"] += 1


def judge_enclosure(seed: int, wide: bool, said: collections.Counter) -> None:
    """Both readings of one program on a point or a box."""
    program, lower, upper, rng = drawn(seed, wide)
    places = points(lower, upper, rng, 8)
    balls = around(lower, upper)
    for reading in ("exact", "ulp"):
        try:
            ways = enclose(program.in_jax, balls, reading=reading, seconds=10.0).ways
        except (Undecided, NotSupported) as refusal:
            said[f"{reading}: {type(refusal).__name__}"] += 1
            continue
        unknown = all(way[0].item().is_nan() for way in ways)
        said[f"{reading}: {'NaN' if unknown else 'enclosed'}"] += 1
        for at in places:
            for read in ("coded",) if reading == "exact" else STRONG:
                for true in truths(program, at, read):
                    said["compared"] += 1
                    if unknown and mp.isfinite(true[0]):
                        said["NaN of a number"] += 1
                    assert any(fits(way, true) for way in ways), in_words(
                        program, f"x = {at.tolist()}, box {lower.tolist()} {upper.tolist()}",
                        f"{reading}, constants {read}: {ways} does not contain",
                        [v if isinstance(v, bool) else mp.nstr(v, 30) for v in true],
                    )  # fmt: skip


def claim(
    program: Composed, bound: float, upward: bool, *, written: bool, asked: bool
) -> Statement:
    """f(x) <= bound or bound <= f(x), where the boolean holds if that is asked for.

    The bound is a literal, or in the instance.
    """

    def evaluate(instance: Any, size: Any) -> Sides:
        value = program.number(instance["x"])
        edge = jnp.asarray(bound) + 0.0 * instance["x"][0] if written else instance["c"]
        left, right = (value, edge) if upward else (edge, value)
        return Sides(left, {"printed": right, "control": right})

    def sample(key: jax.Array, size: Any) -> Any:
        x = {"x": jax.random.uniform(key, (program.count,))}
        return x if written else x | {"c": jax.random.uniform(key, ())}

    return Statement(
        id="mine.claim", label="Claim", formula="lhs <= rhs", kind="inequality",
        evaluate=evaluate, sample=sample, sizes=({"n": program.count},),
        hypotheses=(lambda i, size: {"asked": program.in_jax(i["x"])[1]}) if asked else None,
        forms=(Form(name="printed"),), control="the same",
    )  # fmt: skip


def answers_at(
    program: Composed, at: np.ndarray, bound: float, upward: bool, asked: bool, read: str
) -> set[str]:
    """Whether the claim is false there: all answers that are possible, none where unknown."""
    answers = set()
    for true in truths(program, at, read):
        value = true[0]
        if asked and not true[1]:
            answers.add("not asked")
            continue
        holds = value <= bound if upward else value >= bound
        answers.add("undefined" if mp.isnan(value) else "true" if holds else "false")
    return answers


def asks(program: Composed, rng: np.random.Generator) -> bool:
    """Whether a boolean of the program is made a hypothesis."""
    return len(program.results) > 1 and bool(rng.random() < 0.5)


def bounds(values: list[float], rng: np.random.Generator) -> tuple[float, bool]:
    """Just above the largest, just below, in the middle, or at it; the same for the smallest."""
    upward = bool(rng.random() < 0.6)
    far = max(values) if upward else min(values)
    step = max(max(values) - min(values), 0.01 * abs(far), 1e-9) * (1 if upward else -1)
    share = float(rng.choice([0.3, 0.05, 1e-3, 1e-5, -1e-5, -1e-3, -0.05, 0.0, -0.5]))
    bound = far + share * step
    return (round(bound, 3) if rng.random() < 0.2 else bound), upward


def near_values(program: Composed, places: list) -> list[float]:
    """Where the oracle has finite ones."""
    values = [float(true[0]) for at in places for true in truths(program, at, "coded")]
    return [v for v in values if math.isfinite(v) and abs(v) < 1e100]


def judge_disproof(seed: int, said: collections.Counter) -> None:
    """One claim at one point."""
    program, at, _, rng = drawn(seed, wide=False)
    found = [true[0] for true in truths(program, at, "coded")]
    if not found or any(abs(v) > HUGE for v in found):
        said["beyond the oracle"] += 1
        return
    values = near_values(program, [at]) or [1.0]  # undefined there: nothing should be said
    bound, upward = bounds(values, rng)
    written, asked = bool(rng.random() < 0.5), asks(program, rng)
    statement = claim(program, bound, upward, written=written, asked=asked)
    instance = {"x": at} | ({} if written else {"c": np.array(bound)})
    certificate = disprove(statement, "printed", instance, {"n": program.count}, seconds=10.0)
    word, against = certificate.word, "contradiction" in certificate.reason
    answers = answers_at(program, at, bound, upward, asked, "coded")
    said[f"{word} ({'/'.join(sorted(answers)) or 'not known to the oracle'})"] += 1
    said[word] += 1
    if word == "undecided":
        # The enclosures violate the claim, and float64 does not: rounding, or our error.
        assert not (against and "true" in answers), in_words(program, at.tolist(), certificate)
        said["contradiction"] += against
        return
    for read in STRONG if word == "disproved" else ("coded",):
        answers = answers_at(program, at, bound, upward, asked, read)
        assert answers <= {"false"}, in_words(
            program, f"hypothesis {asked}", f"x = {at.tolist()}",
            f"{'f <= c' if upward else 'c <= f'}, c = {bound!r}",
            f"{word}, but with the constants {read} it is {answers}",
        )  # fmt: skip


def judge_proof(seed: int, said: collections.Counter) -> None:
    """One claim on one box."""
    program, lower, upper, rng = drawn(seed, wide=True)
    upper = np.where(lower < upper, upper, upper + 0.25)
    values = near_values(program, points(lower, upper, rng, 10)) or [1.0]
    bound, upward = bounds(values, rng)
    asked = asks(program, rng)
    statement = claim(program, bound, upward, written=True, asked=asked)
    domain = Domain(
        name="a box", chart=lambda point, size: {"x": point}, size={"n": program.count},
        lower=tuple(lower.tolist()), upper=tuple(upper.tolist()), slack=0.0,
    )  # fmt: skip
    proof = prove(statement, "printed", domain, boxes=128, seconds=2.0)
    said[proof.word] += 1
    about = [f"hypothesis {asked}", f"box {lower.tolist()} {upper.tolist()}",
             f"{'f <= c' if upward else 'c <= f'}, c = {bound!r}",
             proof.word, proof.reason]  # fmt: skip
    if proof.word == "undecided":
        if "contradiction" in proof.reason and proof.point is not None:
            said["contradiction"] += 1  # rounding, unless the oracle is against the enclosures too
            answers = answers_at(program, np.array(proof.point), bound, upward, asked, "coded")
            assert not answers & {"false", "undefined"}, in_words(program, *about, answers)
        return
    if proof.word == "false on D":
        for read in STRONG:
            answers = answers_at(program, np.array(proof.point), bound, upward, asked, read)
            assert answers <= {"false"}, in_words(program, *about, proof.point, read, answers)
        return
    for at in points(lower, upper, rng, 40):
        for read in STRONG if proof.word == "proved on D" else ("coded",):
            answers = answers_at(program, at, bound, upward, asked, read)
            assert answers <= {"true", "not asked"}, in_words(
                program, *about, at.tolist(), read, answers
            )


def every(judge: Any, seeds: range, *more: Any) -> collections.Counter:
    """All of them; what fails is told together."""
    said: collections.Counter = collections.Counter()
    wrong = []
    with float64_on_cpu(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # constants beyond narrow floats
        for seed in seeds:
            try:
                judge(seed, *more, said)
            except AssertionError as failure:
                wrong.append(f"seed {seed}: {str(failure).split('assert ')[0]}")
    print(dict(sorted(said.items())))
    assert not wrong, f"{len(wrong)} of {len(seeds)}\n" + "\n".join(wrong)
    return said


def parts(count: int, slow: int) -> Any:
    """Some seeds by default; others in parts, slow."""
    size = slow // len(SHARES)
    of_slow = [range(10_000 + k * size, 10_000 + (k + 1) * size) for k in SHARES]
    marked = [pytest.param(seeds, id=f"part {k}", marks=pytest.mark.slow)
              for k, seeds in enumerate(of_slow)]  # fmt: skip
    return pytest.mark.parametrize("seeds", [pytest.param(range(count), id="few"), *marked])


def test_the_oracle_means_what_jax_means():
    """Float64 JAX agrees where it neither rounds at a jump nor overflows: nearly everywhere."""
    same, different = 0, []
    with float64_on_cpu(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(24):
            program, at, _, _ = drawn(seed, wide=False)
            if composed.LOOPS & {step.name for step in program.steps}:
                continue
            true = truths(program, at, "coded")
            if len(true) != 1:
                continue
            near = float(program.number(jnp.asarray(at)))
            if np.isclose(near, float(true[0][0]), rtol=1e-6, atol=1e-9, equal_nan=True):
                same += 1
            else:
                different.append((seed, near, float(true[0][0])))
    assert same > 12
    assert len(different) <= 1, different


@parts(60, 3000)
@pytest.mark.parametrize("wide", [False, True], ids=["points", "boxes"])
def test_an_enclosure_contains_the_truth(seeds, wide):
    said = every(judge_enclosure, seeds, wide)
    decided = said["exact: enclosed"]
    assert decided >= (0.2 if wide else 0.5) * len(seeds)


@parts(60, 3000)
def test_a_difference_is_within_the_slopes(seeds):
    """A mean value form, or a face, that is wrong by little is seen by no word."""
    said = every(judge_slopes, seeds)
    assert said["enclosed"] >= 0.15 * len(seeds)


@parts(30, 2500)
def test_nothing_true_is_disproved(seeds):
    said = every(judge_disproof, seeds)
    assert said["disproved"] + said["disproved as coded"] >= 0.1 * len(seeds)
    assert said["disproved"] >= 0.05 * len(seeds)


@parts(20, 1500)
def test_nothing_false_is_proved(seeds):
    said = every(judge_proof, seeds)
    assert said["undecided"] <= 0.8 * len(seeds)
    assert said["proved on D"] + said["proved on D as coded"] >= 0.05 * len(seeds)
    assert said["false on D"] >= 0.05 * len(seeds)
