"""Work on users' statements, with a record of what its result depends on."""

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
    """The state of what a result depends on.

    Attributes:
        settings: versions, the library's source, and the surroundings that the code can read.
        depends: the files and modules that a user's code read, each with its state then.
    """

    settings: Depends
    depends: Depends


def settings_of(*, own: bool) -> Depends:
    """Return the settings that every result of this process depends on.

    Args:
        own: whether a user's code has a part in the result; it may read whatever there is.
    """
    around = surroundings.for_users() if own else {
        "environment": surroundings.environment(whole=False)
    }  # fmt: skip
    more = {"source": digest_of(()), "jax_settings": surroundings.jax_settings()}
    return versions() | around | more | {"flags": surroundings.flags()}


def watched(work: Callable[[], Result], /, *, own: bool) -> tuple[Result, Depends]:
    """Return the result of some work, with the files and modules that a user's code read for it.

    Args:
        work: a call.
        own: whether the work executes code of the user's, which is watched then.
    """
    if not own:
        return work(), {}
    if (cache := folder_for_jax()) is not None:
        recording.ignore(cache)
    with recording.watching(watched.__code__):
        found = work()
    return found, recording.record()


def rests_in(stored: Any, /) -> Rests:
    """Read the record that `Rests._asdict` gave from its JSON.

    Raises:
        Refused: if it is something else.
    """
    if not fits(stored, dict[str, dict[str, str]]) or set(stored) != set(Rests._fields):
        raise Refused("it does not say on what a result depends")
    return Rests(**stored)
