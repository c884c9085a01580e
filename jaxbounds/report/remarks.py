"""Remarks that a reader of the table of verdicts needs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jaxbounds.falsification import Verdict, load_instance
from jaxbounds.report.describe import instance_code


def left_out(group: Iterable[Verdict], /) -> Iterator[str]:
    """Yield lines about forms of which more draws do not count than do."""
    for verdict in group:
        drawn = sum(v["instances"] for k, v in verdict.sources.items() if k != "search")
        missed = {name: count for name, count in verdict.excluded.items() if count > drawn}
        for name, count in missed.items():
            yield f"{verdict.id} ({verdict.form}): {count} draws do not count: {name!r}; {drawn} do"


def remarks(
    group: Sequence[Verdict],
    place: Callable[[str], Path],
    judged: Sequence[str],
    stays: Callable[[str], Path] | None = None,
    /,
) -> Iterator[str]:
    """Yield lines about forms of one statement that share a reason: draws left out, or no record.

    Args:
        group: the verdicts of the forms.
        place: a function that returns the place of a stored instance.
        judged: the functions that the statement judges.
        stays: a function that returns the later place of an instance; `place` unless given.
    """
    yield from left_out(group)
    wrong = [verdict for verdict in group if not verdict.as_expected]
    if wrong:
        yield f"{wrong[0].id} ({'; '.join(v.form for v in wrong)}): {wrong[0].reason}"
    for verdict in wrong:
        if verdict.shrunk_file:
            stored = load_instance(place(verdict.shrunk_file))
            file = (stays or place)(verdict.shrunk_file)
            yield f"  {verdict.form}: ratio {verdict.shrunk_ratio:.6g}"
            code = f" ({', '.join(judged)})" if judged else ""
            yield (
                f"  is the code{code} wrong, or the claim? for an erratum: expected='fails', "
                "note='why it fails', counterexample=jb.Counterexample(instance="
                f"{instance_code(stored.instance, file)}, "
                f"size={stored.meta['size']}, ratio={stored.meta['ratio']})"
            )
