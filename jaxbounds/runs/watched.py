"""Run work on users' statements, and record the dependencies of the result."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from jaxbounds.experiments.provenance import versions
from jaxbounds.ground import recording, surroundings
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.readers import fits
from jaxbounds.ground.states import Depends
from jaxbounds.runs.digest import digest_of, folder_for_jax

Result = TypeVar("Result")


class Rests(NamedTuple):
    """The state of all dependencies of a result.

    Attributes:
        settings: package versions, the library's source, and the environment that the code can
            read.
        depends: the files and modules that the user's code read, each with its state at that time.
    """

    settings: Depends
    depends: Depends


def settings_of(*, own: bool) -> Depends:
    """Return the settings that all results of this process depend on.

    A result of the user's `own` code depends on all environment variables and installed packages,
    because the code may read anything.
    """
    around = surroundings.for_users() if own else {
        "environment": surroundings.environment(whole=False)
    }  # fmt: skip
    more = {"source": digest_of(()), "jax_settings": surroundings.jax_settings()}
    return versions() | around | more | {"flags": surroundings.flags()}


def watched(work: Callable[[], Result], /, *, own: bool) -> tuple[Result, Depends]:
    """Call a function; return its result, and the files and modules that the user's code read.

    If `own` is False, the function executes no code of the user, and `watched` records nothing.
    """
    if not own:
        return work(), {}
    if (cache := folder_for_jax()) is not None:
        recording.ignore(cache)
    with recording.watching(watched.__code__):
        found = work()
    return found, recording.record()


def rests_in(stored: Any, /) -> Rests:
    """Return the dependencies of a result from the JSON in which `Rests._asdict` stored them.

    Raises:
        Refused: if the JSON does not have the form that `Rests._asdict` gives.
    """
    if not fits(stored, dict[str, dict[str, str]]) or set(stored) != set(Rests._fields):
        raise Refused(
            f"dependencies={stored!r:.40}, expected a JSON object with {', '.join(Rests._fields)}. "
            f"Try to compute the result again"
        )
    return Rests(**stored)
