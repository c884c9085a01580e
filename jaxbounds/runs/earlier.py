"""Files of results that keep what they hold of other forms."""

import contextlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any


def with_earlier(
    file: Path, found: list[dict[str, Any]], /, *, instead: Collection[str] = ()
) -> str:
    """JSON of what was found, after what the file holds of other forms.

    Args:
        file: of an earlier run.
        found: each with its id and form.
        instead: ids of statements of which nothing earlier is kept.
    """
    earlier: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):  # none, or nothing of ours
        stored = json.loads(file.read_text(encoding="utf8"))
        earlier = [one for one in stored if {"id", "form"} <= set(one)]
    new = {(one["id"], one["form"]) for one in found}
    old = lambda one: one["id"] in instead or (one["id"], one["form"]) in new
    kept = [one for one in earlier if not old(one)]
    return json.dumps(kept + found, indent=1)
