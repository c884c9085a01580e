"""`python -m checker FILE ...`: one line a witness; exit status 1 unless all are confirmed."""

import json
import sys
from pathlib import Path

from . import check


def main(paths: list[str]) -> int:
    """Checks the files and prints what was found."""
    if not paths:
        print("which witnesses? python -m checker FILE ...", file=sys.stderr)
        return 2
    refused = 0
    for path in paths:
        verdict = check(json.loads(Path(path).read_text()))
        refused += not verdict.confirmed
        found = "confirmed" if verdict.confirmed else f"rejected ({verdict.reason})"
        print(f"{Path(path).name}: {found}")
    print(f"{len(paths) - refused} of {len(paths)} confirmed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
