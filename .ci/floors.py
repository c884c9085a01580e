"""Print the lowest supported version of each dependency as constraints of pip: `name==version`."""

import re
import tomllib
from pathlib import Path

FLOOR = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>[\w.]+)")


def floors(project: dict) -> dict[str, str]:
    """Names and versions, from the dependencies and the extras of a `[project]` table."""
    extras = project["optional-dependencies"].values()
    found = map(FLOOR.fullmatch, [*project["dependencies"], *(d for e in extras for d in e)])
    return {match["name"]: match["version"] for match in found if match}


if __name__ == "__main__":
    file = Path(__file__).parents[1] / "pyproject.toml"
    for name, version in sorted(floors(tomllib.loads(file.read_text())["project"]).items()):
        print(f"{name}=={version}")
