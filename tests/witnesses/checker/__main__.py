"""`python -m checker FILE ...`: for each witness what was found, and what it shows to be false.

Exit status 0 if all are confirmed, 1 if one is not, 2 if one is no witness of a registered claim.
"""

import io
import sys
from collections import Counter
from pathlib import Path

from .judge import Verdict, check
from .witness import BadWitness, parse


def checked(path: Path) -> Verdict:
    """The verdict on a file."""
    try:
        return check(parse(path))
    except BadWitness as error:
        return Verdict("refused", str(error))


def main(paths: list[str]) -> int:
    """Checks the files and prints what was found."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not paths:
        print("which witnesses? python -m checker FILE ...", file=sys.stderr)
        return 2
    words: Counter[str] = Counter()
    for path in paths:
        verdict = checked(Path(path))
        words[verdict.word] += 1
        print(f"{Path(path).name}: {verdict.word}\n    {verdict.reason}")
        if verdict.claim is not None:
            claim = verdict.claim
            print(f"    the claim: {claim.statement}, '{claim.form}': {claim.formula}")
    print(f"{words['confirmed']} of {len(paths)} confirmed")
    return 2 if words["refused"] else 1 if words["rejected"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
