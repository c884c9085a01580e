"""Define `jaxbounds.falsify`, which tries to falsify one statement in this process."""

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
    """Check an instance in ball arithmetic, which encloses rounding errors.

    If the extra `certify` is not installed, the answer is that ball arithmetic is missing.
    """
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
    """Try to falsify a statement; return one verdict for each of its forms.

    A form is one version of the claim: printed, corrected or sharpened.

    The search runs in float64 on the CPU under any settings of JAX. An equal seed, budget and
    software give equal verdicts, unless an earlier run stored a violation in `examples`. If a
    violation may be a rounding error, ball arithmetic (which encloses rounding errors) decides
    whether the violation is real. Without the extra `certify`, the verdict on a violation that may
    be a rounding error is `inconclusive`.

    Args:
        statement: the statement, its id, or a Python file that defines `PAPER`, a `jb.Paper` of one
            statement.
        seed: the seed of all random instances (draws). The random instances also depend on the
            statement's id, but not on other statements.
        budget: the numbers of random instances (draws) and of searches; the statement's own numbers
            unless given.
        timeout: the time limit in seconds. If the search refutes no claim in this time, the verdict
            is inconclusive.
        store: the folder for the worst instance `worst/<id>.<form>.npz` and, if a form fails, for
            `counterexamples/<id>.<form>.npz`, a simpler instance that still violates the form. The
            default is a temporary folder, which Python removes when the result is no longer in use.
        imports: modules or files that define `PAPER`, a `jb.Paper` of your own.
        programs: the store of compiled programs. All programs in the store's folder must come from
            the present code of the statement. If `programs` is None, the function keeps no compiled
            program.
        examples: the store of the worst instances of earlier runs. If `examples` is None, the
            function neither reads nor stores worst instances.

    Raises:
        Refused: if the statement is unknown, or cannot be measured as it is declared. The error
            also occurs if the timeout is not a positive number, or the seed is not an integer from
            0 to 2^32 - 1.
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
    """Measure a stored instance again, and return the ratio lhs/rhs of each form.

    A form is one version of the claim: printed, corrected or sharpened.

    Args:
        stored: a .npz file of `worst/` or `counterexamples/`, or the result of `load_instance`.
        imports: modules or files that define `PAPER`, a `jb.Paper` of your own.

    Returns:
        The statement; the ratios of the forms and of the control (a deliberately false variant);
        and the ratio that the file stores for the instance's form.

    Raises:
        Refused: if the file is not a stored instance, lacks its id, form, size or ratio, or has
            arrays that do not fit the statement.
    """
    read = stored if isinstance(stored, StoredInstance) else load_instance(stored)
    return replayed(lambda name: find_statement(name, imports=imports), read)
