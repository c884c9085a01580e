"""List the faults of a statement's declaration, each in one sentence."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from jaxbounds.claims.statements.form import LONGEST, REJECTED, Form, Sense
from jaxbounds.claims.statements.judged import owner_of
from jaxbounds.claims.statements.kinds import (
    DRAWN,
    EXACT,
    FITTED,
    SCALED,
    Estimate,
    Kind,
    Relation,
    Search,
)
from jaxbounds.claims.statements.sides import CONTROL
from jaxbounds.ground.exceptions import Refused

FEWEST = 3
"""A limit needs at least this many values of the parameter that tends to its limit. A larger number
makes the fitted limit more reliable, but a statement must then declare more sizes.
"""
WIDEST = 1e-3
"""Largest relative tolerance that a statement may declare; rounding errors are smaller than this
value. If this value were larger, a statement could declare a tolerance that hides violations."""
ID = r"[a-z][a-z0-9_]*(\.[a-z0-9_\-]+)+"
"""A pattern for the ids of statements: a paper, a dot, and further parts."""
NAMED = r"(printed|corrected|sharpened|derived|false)\b"
"""A pattern for the beginning of the name of a form (version of a claim)."""


def two_claims(estimates: Mapping[Any, str], /) -> str:
    """Return advice as text: two claims to write in place of an identity with an estimated side."""
    side, word = next(iter(estimates.items()))
    relation = "<=" if (side == "lhs") == (word == "below") else ">="
    what = "supremum" if word == "below" else "infimum"
    return (
        f'two claims: jb.claim(..., lhs, "{relation}", rhs, estimates={{"{side}": "{word}"}}, '
        f'equality="where the sides agree"), and jb.claim(..., function, "=", value, there_is=..., '
        f"witness=...) for a point at which the function of the {what} has the value"
    )


def container_problems(s: Any, /) -> Iterable[str]:
    """Yield a sentence for each field that holds a container of a wrong type."""
    if isinstance(s.forms, Form) or not all(isinstance(form, Form) for form in s.forms):
        yield "forms must be a tuple of Form; a single one needs a comma: (Form(...),)"
    if isinstance(s.sizes, Mapping) or not all(isinstance(size, Mapping) for size in s.sizes):
        yield "sizes must be a tuple of dicts; a single one needs a comma: ({'d': 2},)"
    for size in s.sizes if not isinstance(s.sizes, Mapping) else ():
        for name, value in size.items() if isinstance(size, Mapping) else ():
            if isinstance(value, bool | str) or not hasattr(value, "__float__"):
                yield f"sizes give {name}={value!r:.40}, which must be a number"
    if callable(s.judges) or not all(callable(function) for function in s.judges):
        yield "judges must be a tuple of functions; a single one needs a comma: (bound,)"


def problems(s: Any, /) -> Iterable[str]:
    """Yield a sentence for each fault of a declaration whose containers have the right types."""
    if not re.fullmatch(ID, s.id):
        small = re.sub(r"[^a-z0-9.]+", "", str(s.id).lower())
        cure = small if re.fullmatch(ID, small) else "paper.name"
        yield f"id={s.id!r}: expected lower case letters, digits and a dot. Try {cure!r}"
    if len(s.id) > LONGEST:
        yield f"the id names files, and has {len(s.id)} characters. Try at most {LONGEST}"
    if s.kind not in get_args(Kind):
        yield f"kind must be one of {', '.join(get_args(Kind))}, got {s.kind!r}"
    if s.search not in get_args(Search):
        yield f"search must be one of {', '.join(get_args(Search))}, got {s.search!r}"
    if s.relation not in get_args(Relation):
        yield f"relation must be '=', '<=' or '>=', got {s.relation!r}"
    yield from _quantifier_problems(s)
    if not s.sizes:
        yield "sizes is empty, expected at least one size. Try ({'T': 2, 'd': 2},)"
    if not s.sample and s.cases is None:
        law = s.kind in DRAWN and s.over
        why = (
            "sample={}: a set has no probability distribution, and this kind needs one. "
            "Try sample=..."
        ) if law else (
            "it has neither sample nor cases nor over, so it has no instance. Try over={...}, or "
            "over={} for a claim about its sizes alone"
        )  # fmt: skip
        yield why
    if s.horizon and any(s.horizon not in size for size in s.sizes):
        yield f"horizon={s.horizon!r} is not in every size. Try one of: {', '.join(s.sizes[0])}"
    if s.enumerates and (s.cases is None or s.sample):
        yield (
            f"enumerates={s.enumerates!r} says that cases returns all members of this class. "
            "Try cases=..., and no sample"
        )
    if s.enumerates and s.search != "none":
        yield (
            f"enumerates={s.enumerates!r} says that cases returns all members of this class, so "
            "no search is needed. Try search='none'"
        )
    if s.host and s.search == "gradient":
        yield "a statement with host=True has no gradient. Try search='random'"
    if s.search == "random" and not s.host and not s.sample:
        yield "search='random' draws its moves from an empty sample. Try sample=..."
    for function in s.judges:
        try:
            owner_of(function)
        except Refused as problem:
            yield str(problem)
    if not s.control.strip() and s.kind not in SCALED:
        yield (
            f"control={s.control!r}: the engine makes a control for the kinds {', '.join(SCALED)} "
            f"alone. Try control='...', the false variant that evaluate returns as rhs['control']"
        )
    if s.kind == "probability" and s.level is None:
        yield "level=None, expected the allowed probability of failure. Try level=0.1"
    elif s.kind != "probability" and s.level is not None:
        yield (
            f"level={s.level} with kind={s.kind!r}, but only a probability has a level. Try "
            "level=None, or kind='probability'"
        )
    elif s.level is not None and not 0 < s.level < 1:
        yield f"level={s.level}: expected a probability of failure between 0 and 1. Try 0.1"
    if not 0 <= s.tolerance <= WIDEST:
        yield (
            f"tolerance={s.tolerance}: expected a relative rounding error of at most {WIDEST:g}. "
            "Try error=... in jb.claim, or Sides(..., error=...), for a larger uncertainty"
        )
    names = [form.name for form in s.forms]
    if not names:
        yield "forms=() is empty. Try forms=(jb.Form(name='printed'),)"
    if len(set(names)) < len(names) or CONTROL in names:
        yield (
            f"form names={names}: expected distinct names other than {CONTROL!r}. "
            "Try tags, as in 'sharpened S5'"
        )
    if len({form.file_name for form in s.forms}) < len(set(names)):
        yield f"form names={names} must differ in letters and digits, because they name files"
    for form in s.forms:
        fitted = s.kind in FITTED
        allowed = ("consistent", "inconsistent") if fitted else ("holds", "fails")
        if form.expected not in (*allowed, "vacuous", "inconclusive"):
            yield f"form {form.name!r} of kind {s.kind!r} cannot have expected={form.expected!r}"
        if not re.match(NAMED, form.name):
            words = "printed, derived, corrected, sharpened or false"
            yield f"form {form.name!r} must start with {words}"
        if form.is_twin and form.expected not in REJECTED:
            yield f"form {form.name!r} is a false twin: it cannot have expected={form.expected!r}"
        senses = ", ".join(map(repr, get_args(Sense)))
        if s.kind == "rate" and form.sense is None:
            yield (
                f"form {form.name!r} of kind 'rate' has sense=None, expected one of {senses}. "
                f"Try jb.Form(name={form.name!r}, sense='at most')"
            )
        elif s.kind != "rate" and form.sense is not None:
            yield (
                f"form {form.name!r} of kind {s.kind!r} has sense={form.sense!r}, expected None, "
                "because only a rate has a sense. Try sense=None, or kind='rate'"
            )
        if form.exponent and (s.kind != "rate" or not form.exponent[0] < form.exponent[1]):
            yield f"form {form.name!r} has exponent={form.exponent}, expected (low, high) of a rate"
        if form.is_twin:  # a search must refute a twin, which stores no counterexample
            continue
        if form.expected == "fails" and not (form.note or form.erratum):
            yield f"form {form.name!r} is expected to fail but no note says why. Try note=..."
        if form.expected == "fails" and s.kind in EXACT and form.counterexample is None:
            yield f"form {form.name!r} is expected to fail but stores no counterexample"


def _quantifier_problems(s: Any) -> Iterable[str]:
    if (s.kind == "limit") != (s.relation == "->"):
        yield f"kind={s.kind!r} with relation={s.relation!r}: kind 'limit' has relation '->'"
    if s.kind == "limit" and not s.towards:
        axis = next(iter(s.sizes[0] if s.sizes else ()), "n")
        yield (
            "towards={}, expected the size that tends to infinity or to 0. "
            f"Try towards={{{axis!r}: math.inf}}"
        )
    elif s.kind != "limit" and s.towards:
        yield (
            f"towards={dict(s.towards)} with kind={s.kind!r}, but only a limit tends to a value. "
            "Try towards={}, or kind='limit' with relation='->'"
        )
    elif s.towards:
        yield from _limit_problems(s)
    if s.relation == ">=" and s.kind == "rate":
        yield "relation='>=' is for other kinds than 'rate'. Try sense='at least' in the form"
    bound = s.is_bound and s.kind in ("inequality", "trajectory")
    if s.estimates and not bound:
        yield (
            f"estimates={dict(s.estimates)} with kind={s.kind!r}: a search bounds a side in one "
            f"direction only, so estimates need '<=' or '>='. Try {two_claims(s.estimates)}"
        )
    if s.strict and not bound:
        yield f"strict=True with relation={s.relation!r} and kind={s.kind!r}. Try relation='<='"
    for form in s.forms if s.strict else ():
        if form.equality:
            yield (
                f"form {form.name!r} has equality={form.equality!r}, but a strict inequality "
                "has no equality case. Try relation='<='"
            )
    if s.there_is and not bound and s.kind != "identity":
        yield f"there_is needs an inequality or an identity, got kind={s.kind!r}"
    if s.witness is not None and not s.there_is:
        yield (
            "witness is where the search for the entries of there_is starts, but there_is is "
            "missing. Try there_is={...}"
        )
    if s.there_is and s.host:
        yield "there_is needs gradients of evaluate, got host=True. Try an evaluate in JAX"
    if set(s.estimates) - {"lhs", "rhs"} or set(s.estimates.values()) - set(get_args(Estimate)):
        yield (
            f"estimates={dict(s.estimates)}: expected 'below' or 'above' for 'lhs' "
            f"or 'rhs'. Try {{'rhs': 'below'}}"
        )
    both = sorted(set(s.over or ()) & set(s.there_is or ()))
    if both:
        yield f"over and there_is both name {', '.join(both)}. Try another name in one of them"


def _limit_problems(s: Any) -> Iterable[str]:
    (axis, end), *more = s.towards.items()
    if more or end not in (math.inf, 0):
        yield f"towards={dict(s.towards)}: expected a size, to 0 or infinity. Try {{'n': math.inf}}"
    elif any(not size.get(axis, 0) > 0 for size in s.sizes):
        yield f"towards names {axis!r}, which must be a positive number in every size"
    else:
        rest = lambda size: tuple((k, v) for k, v in size.items() if k != axis)
        values: dict[Any, set[float]] = {}
        for size in s.sizes:
            values.setdefault(rest(size), set()).add(size[axis])
        few = min(values, key=lambda others: len(values[others]))
        if len(values[few]) < FEWEST:
            others = "".join(f"{name!r}: {value!r}, " for name, value in few)
            along = "10, 100, 1000, 10000" if end else "0.1, 0.01, 0.001, 0.0001"
            same = " at the same other sizes" if few else ""
            yield (
                f"sizes has {axis}={', '.join(map(str, sorted(values[few])))}, expected at least "
                f"{FEWEST} values of {axis!r} for a limit{same}. "
                f"Try sizes=[{{{others}{axis!r}: {axis}}} for {axis} in ({along})]"
            )
