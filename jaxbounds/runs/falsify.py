"""`jaxbounds.falsify`: one statement tried, here and now."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from jaxbounds.claims.statements import Budget, Form, Instance, Size, Statement
from jaxbounds.falsification import (
    UNKEPT,
    Examples,
    Programs,
    Referee,
    StoredInstance,
    load_instance,
    no_referee,
    verdicts_on,
)
from jaxbounds.falsification import replay as replayed
from jaxbounds.falsification.deadline import TIMEOUT, refuse_other_limits
from jaxbounds.falsification.examples import NONE
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.papers import Named, find_statement, the_statement
from jaxbounds.runs.verdicts import Scratch, Verdicts


def by_balls(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Referee:
    """Ask ball arithmetic, if its extra is installed."""
    if importlib.util.find_spec("flint") is None:
        return no_referee(statement, form, instance, size)
    from jaxbounds.certification.referee import referee  # needs the extra

    return referee(statement, form, instance, size)


def falsify(
    statement: Named,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    timeout: float = TIMEOUT,
    store: str | Path | None = None,
    imports: Iterable[str] = (),
    programs: Programs | None = None,
    examples: Examples | None = None,
) -> Verdicts:
    """Try to falsify a statement; one verdict for each of its forms.

    Runs in float64 on the CPU whatever the surrounding settings. The same seed, budget and
    software give the same verdicts, unless an earlier run kept a violation among the examples. A
    violation that may be rounding is decided by ball arithmetic, where the extra `certify` is
    there, and else `inconclusive`.

    Args:
        statement: what to try; or its id, or a file that holds a PAPER of one statement.
        seed: of all draws; combined with the statement's id, so that it does not matter which
            other statements are tried.
        budget: replaces the statement's own.
        timeout: seconds; what is not refuted by then is inconclusive.
        store: folder for `worst/<id>.<form>.npz` (the worst instance) and, where a form fails,
            `counterexamples/<id>.<form>.npz` (a shrunk one); a temporary one, which lives as long
            as the result, unless given.
        imports: modules or files that hold a PAPER of your own.
        programs: compiles, and may keep what was traced; its folder must belong to this state of
            the statement's code. Nothing is kept unless given.
        examples: where the worst instances of earlier runs are, and are kept. No example
            is read or kept unless given.

    Raises:
        Refused: if there is no such statement, or it cannot be measured as it is declared. Also
            if the timeout is no positive number, or the seed none from 0 to 2^32 - 1.
    """
    refuse_other_limits(timeout)
    refuse_other_seeds(seed)
    scratch = Scratch() if store is None else None
    folder = scratch.path if scratch else Path(str(store))
    found = verdicts_on(
        the_statement(statement, imports), seed=seed, budget=budget, store=folder,
        programs=UNKEPT if programs is None else programs,
        examples=NONE if examples is None else examples, referee=by_balls, timeout=timeout,
    )  # fmt: skip
    return Verdicts(found, folder=folder, scratch=scratch)


def replay(
    stored: StoredInstance | str | Path, *, imports: Iterable[str] = ()
) -> tuple[Statement, dict[str, float], float]:
    """Measure a stored instance again.

    Args:
        stored: a .npz file of `worst/` or `counterexamples/`, or what `load_instance` read of it.
        imports: modules or files that hold a PAPER of your own.

    Returns:
        The statement, the ratio of each form (and the control), and the ratio that was stored
        for `stored.meta["form"]`.

    Raises:
        Refused: if the file is none, misses its id, form, size or ratio, or its arrays do not
            fit the statement.
    """
    read = stored if isinstance(stored, StoredInstance) else load_instance(stored)
    return replayed(lambda name: find_statement(name, imports=imports), read)
