"""`python -m benchmarks.outside [NAME ...] [--kind K] [--seed S] [--jobs N] [--check]`."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from benchmarks.outside.claims import HELD, REFUTED
from benchmarks.outside.run import CLAIMS, COUNT, LISTED, Row, rows


def share(found: list[Row], words: Iterable[str]) -> str:
    """The share of claims that the library judged right; claims right "as coded" are named."""
    right = [row for row in found if row.judgement == "ok"]
    other = sum(row.word not in words for row in right)
    besides = f", {other} of them by another right word or a constant" if other else ""
    return f"{len(right)} of {len(found)} ({len(right) / max(len(found), 1):.0%}{besides})"


def summary(found: list[Row]) -> Iterator[str]:
    """Counts by kind, and the three rates."""
    for kind in sorted({CLAIMS[row.name].kind for row in found}):
        of_kind = [row for row in found if CLAIMS[row.name].kind == kind]
        count = Counter(row.judgement for row in of_kind)
        seconds = sum(row.seconds for row in of_kind)
        yield f"{kind}: {count['ok']:3} ok {count['weak']:3} weak {count['WRONG']:3} WRONG of " \
              f"{len(of_kind)}, {seconds:.0f} s"  # fmt: skip
    false = [row for row in found if CLAIMS[row.name].is_false]
    true = [row for row in found if not CLAIMS[row.name].is_false]
    yield f"strong words wrong: {sum(row.judgement == 'WRONG' for row in found)} of {len(found)}"
    yield f"false claims refuted: {share(false, REFUTED)}"
    yield f"true claims held: {share(true, HELD)}"


def checks(names: list[str]) -> int:
    """Confirm the truth of each claim without a verdict; the number of unconfirmed claims."""
    wrong = 0
    for name in names:
        started = time.perf_counter()
        try:
            right, problem = bool(CLAIMS[name].check()), ""
        except Exception as error:
            right, problem = False, f"{type(error).__name__}: {error}"[:150]
        wrong += not right
        seconds = time.perf_counter() - started
        print(f"{'ok' if right else 'WRONG':6} {name:48} {seconds:5.1f} s {problem}", flush=True)
    print(f"truths not confirmed: {wrong} of {len(names)}")
    return wrong


def main() -> int:
    """Run the chosen claims, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outside", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims; all unless given")
    parser.add_argument("--kind", default="", help="letters of kinds, as AC")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--check", action="store_true", help="confirm the truths; ask no verdict")
    given = parser.parse_args()
    false = sum(claim.is_false for claim in CLAIMS.values())
    total = len(LISTED)
    if (len(CLAIMS), total, false) != (COUNT, COUNT, COUNT // 2):
        parser.error(f"{len(CLAIMS)} names, {total} claims, {false} false; expected {COUNT} claims "
                     f"with {COUNT} names, {COUNT // 2} false")  # fmt: skip
    unknown = [name for name in given.names if name not in CLAIMS]
    if unknown:
        parser.error(f"no claim is named {', '.join(unknown)}")
    chosen = [c.name for c in CLAIMS.values() if c.kind in (given.kind.upper() or c.kind)]
    chosen = [name for name in chosen if not given.names or name in given.names]
    if given.check:
        return int(checks(chosen) > 0)
    found = []
    for row in rows(chosen, given.seed, given.jobs):
        found.append(row)
        claim = CLAIMS[row.name]
        print(f"{row.judgement:6} {claim.kind} {row.name:48} {row.seconds:5.1f} s  "
              f"true: {claim.truth!s:12} said: {row.said}", flush=True)  # fmt: skip
    print("\n".join(summary(found)))
    return int(any(row.judgement == "WRONG" for row in found))


if __name__ == "__main__":
    sys.exit(main())
