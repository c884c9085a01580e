"""Add results about some forms to a JSON file, and keep the file's results about other forms.

A form is one version of a claim: printed, corrected or sharpened.
"""

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from jaxbounds.experiments.provenance import versions
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.folders import Marked, set_aside
from jaxbounds.ground.occupied import Held, take
from jaxbounds.ground.readers import fits, json_in
from jaxbounds.ground.states import Depends, changed
from jaxbounds.ground.to_json import to_json
from jaxbounds.runs.digest import digest_of
from jaxbounds.runs.other_run import what_differs
from jaxbounds.runs.watched import Rests, rests_in, settings_of

Entry = dict[str, Any]


def taken(
    out: Path, command: str, names: Collection[str], imports: tuple[str, ...], look: Callable, /
) -> Held:
    """Lock a folder of results for this run; call `look` while another run has locked the folder.

    Several runs of one command with equal source code can add to one file, one run after the other.
    """
    settings = versions() | {"command": command, "source": digest_of(imports)}
    return take(out, settings, names, look=look)


def _entries(stored: Any) -> list[Entry]:
    words = lambda one: (
        isinstance(one, dict) and all(isinstance(one.get(name), str) for name in ("id", "form"))
    )
    if not isinstance(stored, list) or not all(map(words, stored)):
        raise Refused(
            f"entries={stored!r:.40}, expected a list of objects with id and form. Try to compute "
            f"the file again"
        )
    return stored


def _rests(stored: Any) -> dict[str, Rests]:
    if not fits(stored, dict[str, dict]):
        raise Refused(
            f"dependencies={stored!r:.40}, expected a JSON object with an entry for each form. Try "
            f"to compute the results of the file again"
        )
    return {name: rests_in(one) for name, one in stored.items()}


def _name(entry: Entry) -> str:
    return f"{entry['id']} {entry['form']}"


def _since(rests: Rests | None) -> str:
    if rests is None:
        return "the dependencies of the entry are unknown"
    now, different = settings_of(own=bool(rests.depends)), changed(rests.depends)
    same = not different and rests.settings == now
    return "" if same else what_differs(rests.settings, now, different)


def add_to(
    folder: Path,
    name: str,
    found: Sequence[tuple[Entry, Depends | None]],
    /,
    *,
    instead: Collection[str] = (),
) -> None:
    """Write new entries into a JSON file, after the file's entries of other forms.

    A form is one version of a claim: printed, corrected or sharpened. If a dependency of an earlier
    entry changed, the function renames the earlier file. Therefore a file never holds both new and
    outdated entries. The function also renames a damaged file, and prints the new name.

    Each entry in `found` comes with its dependencies (files and modules); None means unknown. The
    function drops the earlier entries of the statements whose ids are in `instead`.
    """
    marked, beside = Marked(folder), f"{name.removesuffix('.json')}.rests.json"
    earlier = marked.read(name, lambda file: json_in(file, of=_entries)) or []
    known = (marked.read(beside, lambda file: json_in(file, of=_rests)) or {}) if earlier else {}
    new = {
        _name(one): Rests(settings_of(own=bool(depends)), depends)
        for one, depends in found
        if depends is not None
    }
    made = {_name(one) for one, _ in found}
    kept = [one for one in earlier if one["id"] not in instead and _name(one) not in made]
    why = {_name(one): _since(known.get(_name(one))) for one in kept}
    if old := [one for one in why if why[one]]:
        more = f" and {len(old) - 1} more entries" if old[1:] else ""
        set_aside(
            marked.place(name), f"holds outdated entries, such as {old[0]}{more} ({why[old[0]]})"
        )
    fresh = [one for one in kept if not why[_name(one)]]
    text = json.dumps(to_json(fresh + [one for one, _ in found]), indent=1, allow_nan=False)
    rests = {_name(one): known[_name(one)] for one in fresh} | new
    # An entry without dependencies counts as outdated, so the dependencies are written first.
    marked.write(beside, json.dumps({k: one._asdict() for k, one in rests.items()}) + "\n")
    marked.write(name, text + "\n")
    marked.tidy()
