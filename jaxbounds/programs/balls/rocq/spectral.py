"""Bound a matrix's largest singular value.

In the file for Rocq, the largest singular value s of a matrix A is a variable. A hypothesis of the
theorem defines s: |A t| <= s |t| for every vector t, with equality for at least one t. The lower
bound of s is the quotient of |A v| and |v| for a vector v in the file. The upper bound of s is a
number u such that all pivots of u^2 I - A^T A are positive. The factorisation by these pivots
writes u^2 |t|^2 - |A t|^2 as a sum of squares.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from jaxbounds.programs.balls.certificate import as_fraction
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.numbers import (
    ball_between,
    decimal_text,
    exact_ball,
    fraction_text,
    outward,
)
from jaxbounds.programs.balls.rocq.operations import Operation
from jaxbounds.programs.balls.rocq.scripts import known_as, prepared
from jaxbounds.programs.balls.rocq.terms import ATOM, MINUS, PLUS, TIMES, Real
from jaxbounds.programs.balls.values import Undecided, midpoints

LARGEST = 8
"""The largest min(rows, columns) of a matrix whose singular values are translated. A larger matrix
size allows longer proofs.
"""
LEMMAS = """Lemma lower_end s l q n :
  0 <= s -> 0 <= l -> 0 < n -> l ^ 2 * n <= q -> q <= s ^ 2 * n -> l <= s.
Proof.
  intros hs hl hn hq h. destruct (Rle_or_lt l s) as [|small]; [assumption | exfalso].
  assert (s ^ 2 < l ^ 2) by nra. nra.
Qed.
Lemma upper_end s u q n : 0 <= u -> 0 < n -> q = s ^ 2 * n -> q <= u ^ 2 * n -> s <= u.
Proof.
  intros hu hn hq h. destruct (Rle_or_lt s u) as [|large]; [assumption | exfalso].
  assert (u ^ 2 < s ^ 2) by nra. nra.
Qed."""


def _schur(r: Fraction, a: Fraction, b: Fraction, p: Fraction) -> Fraction | None:
    return r - a * b / p if p else None


SCHUR = Operation(
    "schur", "{0} - {1} * {2} / {3}", PLUS, (PLUS, TIMES, MINUS, MINUS),
    lambda r, a, b, p: r - a * b / p, _schur, cost=3,
)  # fmt: skip
"""An entry of the Schur complement, the matrix that remains after the elimination of a row."""


@dataclass(frozen=True, eq=False)
class Spectral:
    """The largest singular value of a matrix, with the data that prove its bounds.

    Attributes:
        rows: the rows of the matrix, or the rows of its transpose if the matrix has more columns
            than rows.
        vector: the vector t that proves the lower bound on the largest singular value.
        squares: for each step of Gaussian elimination, the entries of the matrix that remains.
        transposed: whether `rows` holds the rows of the transposed matrix.
    """

    rows: list[list[Real]]
    vector: list[Fraction]
    bounds: tuple[Decimal, Decimal]
    squares: list[list[list[Real]]]
    transposed: bool
    name: str = "spectral"

    @property
    def cost(self) -> int:
        """Return the number of operations that prove both bounds, without the elimination."""
        return 4 * len(self.rows) * len(self.vector)


class Smaller(NamedTuple):
    """A singular value other than the largest; only its place in the descending order is known."""

    largest: Real
    place: int


def singular_values(a: np.ndarray, ledger: Ledger, index: Sequence[int]) -> list[Real]:
    """Record a matrix's largest singular value, as a variable that bounds the smaller ones.

    Raises:
        Undecided: if the bounds of the matrix's entries are too coarse to prove the upper bound.
    """
    count = min(a.shape)
    for x in a.ravel():
        if x.why or not x.ball.is_finite():
            return [ledger.undefined(x.why or "a singular value of an infinite matrix")] * count
    if all(x.exact == 0 for x in a.ravel()):
        return [ledger.literal(0)] * count
    if count > LARGEST:
        return [ledger.undefined(f"a spectral norm of more than {LARGEST} columns")] * count
    transposed = a.shape[0] < a.shape[1]
    tall = a.T if transposed else a
    key = ("spectral", a.shape, tuple(x.shown() for x in a.ravel()))
    largest = ledger.known(key, lambda: _largest(tall, transposed, ledger, index))
    others = [
        ledger.known((key, k), lambda: Real(largest.ball * float("nan"), why=WHY, below=largest))
        for k in range(1, count)
    ]
    return [largest, *others]


WHY = "a singular value below the largest, which has no witness"


def _largest(tall: np.ndarray, transposed: bool, ledger: Ledger, index: Sequence[int]) -> Real:
    middle = midpoints(objects_of_balls(tall))
    _, _, right = np.linalg.svd(middle)
    places = 10 ** min(ledger.digits + 2, 17)
    vector = [Fraction(round(float(v) * places), places) for v in right[0]]
    images = [
        sum((x.ball * exact_ball(v) for x, v in zip(row, vector)), exact_ball(Fraction(0)))
        for row in tall
    ]
    length = exact_ball(sum((v * v for v in vector), Fraction(0)))
    square = sum((y * y for y in images), exact_ball(Fraction(0)))
    root = (square / length).sqrt()
    low, _ = outward(root, ledger.digits)
    slack = Fraction(1, 10 ** (ledger.digits // 2 - 1))
    _, high = outward(exact_ball(as_fraction(root.upper()) * (1 + slack)), ledger.digits // 2 + 3)
    squares = _eliminated(tall, Fraction(high), ledger)
    what = Spectral(tall.tolist(), vector, (low, high), squares, transposed)
    inside = [x for matrix in squares for row in matrix for x in row]
    return ledger.record(
        what, tuple((x,) for x in (*tall.ravel(), *inside)), ball_between(low, high), (low, high),
        index,
    )  # fmt: skip


def objects_of_balls(x: np.ndarray) -> np.ndarray:
    """Return the ball (interval) of each number in an array, as an array of the same shape."""
    out = np.empty(x.shape, object)
    out.flat[:] = [v.ball for v in x.flat]
    return out


def _eliminated(tall: np.ndarray, high: Fraction, ledger: Ledger) -> list[list[list[Real]]]:
    """Return u^2 I - A^T A (u is `high`), and the matrix that remains after each elimination."""
    n = tall.shape[1]
    above = ledger.literal(high**2)
    first: list[list[Real]] = [[above] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            product = ledger.total(list(zip(tall[:, i], tall[:, j])), (i, j))
            entry = (
                ledger.binary("sub", above, product, (i, j))
                if i == j
                else ledger.unary("neg", product, (i, j))
            )
            first[i][j] = first[j][i] = entry
    squares = [first]
    for _ in range(n - 1):
        last = squares[-1]
        pivot = last[0][0]
        if not pivot.ball > 0:
            raise Undecided(
                "the bounds on a matrix's entries are too coarse to bound its largest singular "
                "value"
            )
        size = len(last) - 1
        left = [[pivot] * size for _ in range(size)]
        for i in range(size):
            for j in range(i, size):
                terms = (last[i + 1][j + 1], last[i + 1][0], last[0][j + 1], pivot)
                zero = any(x.is_literal and x.exact == 0 for x in terms[1:3])
                entry = (
                    terms[0] if zero else ledger.apply(SCHUR, tuple((x,) for x in terms), (i, j))
                )
                left[i][j] = left[j][i] = entry
        squares.append(left)
    if not squares[-1][0][0].ball > 0:
        raise Undecided(
            "the bounds on a matrix's entries are too coarse to bound its largest singular value"
        )
    return squares


def _linear(row: Sequence[Real], names: Sequence[str]) -> str:
    terms = [
        f"{a.shown(TIMES)} * {t}" for a, t in zip(row, names) if not (a.is_literal and a.exact == 0)
    ]
    return " + ".join(terms) or "0"


def _form(matrix: list[list[Real]], names: Sequence[str]) -> str:
    terms = []
    for i, t in enumerate(names):
        terms.append(f"{matrix[i][i].shown(TIMES)} * {t} ^ 2")
        for j in range(i + 1, len(names)):
            entry = matrix[i][j]
            if not (entry.is_literal and entry.exact == 0):
                terms.append(f"2 * {entry.shown(MINUS)} * {t} * {names[j]}")
    return " + ".join(terms)


def _defined(matrix: list[list[Real]]) -> list[Real]:
    return list({id(x): x for row in matrix for x in row if x.name and x.operation}.values())


def lines_of(x: Real, /) -> Iterator[str]:
    """Yield the Rocq lines about a singular value: variable, definition, and both proved bounds."""
    what: Spectral = x.operation
    n, name = len(what.vector), x.name
    t = [f"t{i}" for i in range(n)]
    listed = " ".join(t)
    low, high = map(decimal_text, what.bounds)
    length = " + ".join(f"{v} ^ 2" for v in t)
    gain = " + ".join(f"({_linear(row, t)}) ^ 2" for row in what.rows)
    other = ", transposed" if what.transposed else ""
    yield f"(* The largest singular value of a matrix of shape ({len(what.rows)}, {n}){other}. *)"
    yield f"Definition {name}_stretch ({listed} : R) : R :=\n  {gain}."
    yield f"Definition {name}_length ({listed} : R) : R := {length}."
    yield f"Variable {name} : R."
    yield (
        f"Hypothesis {name}_is : 0 <= {name} /\\\n"
        f"  (forall {listed}, {name}_stretch {listed} <= {name} ^ 2 * {name}_length {listed}) /\\\n"
        f"  (exists {listed}, 0 < {name}_length {listed} /\\\n"
        f"    {name}_stretch {listed} = {name} ^ 2 * {name}_length {listed})."
    )
    witness = " ".join(f"({fraction_text(v)})" for v in what.vector)
    entries = prepared([a for row in what.rows for a in row])
    yield (
        f"Lemma {name}_low : {low} <= {name}.\n"
        f"Proof.\n  destruct {name}_is as [h [most _]]. specialize (most {witness}).\n"
        f"  refine (lower_end _ _ _ _ h _ _ _ most); clear most;\n"
        f"    unfold {name}_length, ?{name}_stretch; try lra.\n"
        f"  unfold {name}_stretch. {entries} apply Rminus_le; enclosed.\nQed."
    ).replace(f", ?{name}_stretch", "")
    for k in range(n - 1, -1, -1):
        yield _step(name, k, what.squares, t)
    first = what.squares[0]
    inner = [p for m in _defined(first) for p in (m, *(q for q in m.parts()))]
    unfolded = list(dict.fromkeys(p.name for p in inner if p.name and p.operation))
    unfolded = [v for v in unfolded if v not in {a.name for row in what.rows for a in row}]
    form = _form(first, t)
    yield (
        f"Lemma {name}_high : {name} <= {high}.\n"
        f"Proof.\n  destruct {name}_is as [_ [_ [{' ['.join(t)} [some same]{']' * n}]].\n"
        f"  refine (upper_end _ _ _ _ _ some same _); [lra |].\n"
        f"  assert (h := {name}_step_0 {listed}).\n"
        f"  unfold {name}_stretch, {name}_length. apply Rminus_le.\n"
        f"  match goal with |- ?d <= 0 => replace d with (- ({form})) end; [lra |].\n"
        f"  {'unfold ' + ', '.join(unfolded) + '. ' if unfolded else ''}lra.\nQed."
    )
    yield (
        f"Lemma {known_as(x)} : {low} <= {name} <= {high}.\n"
        f"Proof. exact (conj {name}_low {name}_high). Qed."
    )


def _step(name: str, k: int, squares: list[list[list[Real]]], t: Sequence[str]) -> str:
    """Return the proof that a quadratic form is >= 0 if the form after one elimination is >= 0."""
    matrix, free = squares[k], t[k:]
    pivot = matrix[0][0]
    positive = f"assert (p : 0 < {pivot.shown()}) by ({prepared([pivot])} lra)."
    positive = positive.replace(". ", "; ", positive.count(". ") - 0)
    form, listed = _form(matrix, free), " ".join(free)
    head = f"Lemma {name}_step_{k} : forall {listed},\n  0 <= {form}.\nProof.\n  intros. {positive}"
    if len(free) == 1:
        return f"{head}\n  apply Rmult_le_pos; [lra | apply pow2_ge_0].\nQed."
    rest = squares[k + 1]
    known = {id(x) for x in _defined(matrix)}
    fresh = [x.name for x in _defined(rest) if id(x) not in known]
    unfolded = f"unfold {', '.join(fresh)}; " if fresh else ""
    slope = _linear(matrix[0][1:], free[1:])
    p = pivot.shown(TIMES)
    complete = f"{p} * ({free[0]} + ({slope}) / {pivot.shown(MINUS)}) ^ 2"
    return (
        f"{head}\n  assert (r := {name}_step_{k + 1} {' '.join(free[1:])}).\n"
        "  match goal with |- 0 <= ?d => replace d with\n"
        f"    ({complete} + ({_form(rest, free[1:])}))\n"
        f"    by ({unfolded}field; apply Rgt_not_eq; exact p) end.\n"
        f"  apply Rplus_le_le_0_compat; [| exact r].\n"
        f"  apply Rmult_le_pos; [lra | apply pow2_ge_0].\nQed."
    )


__all__ = ["ATOM", "LEMMAS", "Spectral", "lines_of", "singular_values"]
