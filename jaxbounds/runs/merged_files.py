"""Files of results that keep what they hold of other forms."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from jaxbounds.experiments.provenance import versions
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.occupied import Held, take
from jaxbounds.ground.readers import json_in
from jaxbounds.ground.to_json import to_json
from jaxbounds.runs.digest import digest_of

Entry = dict[str, Any]


def taken(
    out: Path, command: str, names: Collection[str], imports: tuple[str, ...], look: Callable, /
) -> Held:
    """A folder of results for this run alone, as `jaxbounds.ground.occupied.take` gives it.

    Runs of one command on one source add to one file, one after the other.

    Args:
        out: that was asked for.
        command: whose results they are.
        names: of the files that keep what they hold of other forms.
        imports: files of the user's.
        look: called while another run has the folder.
    """
    settings = versions() | {"command": command, "source": digest_of(imports)}
    return take(out, settings, names, look=look)


def _entries(stored: Any) -> list[Entry]:
    """The entries of such a file.

    Raises:
        ValueError: if it holds something else.
    """
    words = lambda one: (
        isinstance(one, dict) and all(isinstance(one.get(name), str) for name in ("id", "form"))
    )
    if not isinstance(stored, list) or not all(map(words, stored)):
        raise ValueError("it is no list of entries with id and form")
    return stored


def add_to(
    folder: Path, name: str, found: list[Entry], /, *, instead: Collection[str] = ()
) -> None:
    """Write what was found into a JSON file, after what the file holds of other forms.

    A damaged file is set aside, and the user is told its new name.

    Args:
        folder: that holds the file.
        name: of the file.
        found: each with its id and form.
        instead: ids of statements of which nothing earlier is kept.
    """
    marked = Marked(folder)
    earlier = marked.read(name, lambda file: json_in(file, of=_entries)) or []
    new = {(one["id"], one["form"]) for one in found}
    old = lambda one: one["id"] in instead or (one["id"], one["form"]) in new
    kept = [one for one in earlier if not old(one)]
    text = json.dumps(to_json(kept + found), indent=1, allow_nan=False)
    marked.write(name, text + "\n")
    marked.tidy()
