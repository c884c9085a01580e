"""The referee: ball arithmetic decides whether a float violation is only a rounding error."""

from decimal import Decimal, InvalidOperation

from jaxbounds.certification.disproof import confirmed
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification import Referee
from jaxbounds.falsification.fixed_points import at_best_points


def referee(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Referee:
    """Decide by ball arithmetic whether an instance certainly violates or satisfies a claim.

    If a search estimates a supremum in a side, the function evaluates this side at the best point
    found.
    """
    statement = at_best_points(statement, instance, size)
    try:
        found = confirmed(statement, form.name, instance, size)
    except ValueError as problem:
        return Referee("undecided", str(problem))
    smaller, larger = (found.lhs, found.rhs)[:: -1 if statement.relation == ">=" else 1]
    equal = found.lhs is not None and len({*found.lhs, *(found.rhs or ())}) == 1
    return Referee(
        found.word, found.reason, equal=equal,
        strict=statement.is_bound and _are_apart(smaller, larger),
        meeting=_meet(smaller, larger),
    )  # fmt: skip


SHORT = Decimal("1e-25")
"""Two sides count as equal if their enclosures overlap, and the union has at most this relative
length. A larger value counts wider enclosures as equal."""


def _meet(smaller: tuple[str, str] | None, larger: tuple[str, str] | None) -> bool:
    if not smaller or not larger:
        return False
    try:
        ends = [Decimal(end) for end in (*smaller, *larger)]
        whole = max(ends) - min(ends)
        overlap = ends[2] <= ends[1] and ends[0] <= ends[3]
        return overlap and whole <= SHORT * max(Decimal(1), *map(abs, ends))
    except InvalidOperation:
        return False


def _are_apart(smaller: tuple[str, str] | None, larger: tuple[str, str] | None) -> bool:
    if not smaller or not larger:
        return False
    try:
        return Decimal(smaller[1]) < Decimal(larger[0])
    except InvalidOperation:
        return False
