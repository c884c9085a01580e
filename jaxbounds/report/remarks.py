"""Lines below the table of verdicts that explain some of its rows."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jaxbounds.claims.statements import ON_AVERAGE
from jaxbounds.falsification import Verdict, load_instance
from jaxbounds.report.describe import instance_code, number_code, sides_text


def left_out(group: Iterable[Verdict], /) -> Iterator[str]:
    """Yield a line for each form (version of a claim) whose run left out most random instances."""
    for verdict in group:
        drawn = sum(v["instances"] for k, v in verdict.sources.items() if k != "search")
        missed = {name: count for name, count in verdict.excluded.items() if count > drawn}
        for name, count in missed.items():
            yield f"{verdict.id} ({verdict.form}): {count} draws left out ({name!r}), {drawn} count"


def remarks(
    group: Sequence[Verdict],
    place: Callable[[str], Path],
    judged: Sequence[str],
    stays: Callable[[str], Path] | None = None,
    /,
) -> Iterator[str]:
    """Yield lines that explain verdicts on a statement: instances left out, or a missing record.

    The function `place` maps the name of a stored instance's file to its path now. The function
    `stays`, by default `place`, maps the name to the file's path after the run.
    """
    yield from left_out(group)
    wrong = [verdict for verdict in group if not verdict.as_expected]
    if wrong:
        yield f"{wrong[0].id} ({'; '.join(v.form for v in wrong)}): {wrong[0].reason}"
    for verdict in wrong:
        if verdict.shrunk_file and verdict.kind not in ON_AVERAGE:
            stored = load_instance(place(verdict.shrunk_file))
            file = (stays or place)(verdict.shrunk_file)
            sides = sides_text(verdict.relation, stored.meta)
            yield f"  {verdict.form}: {sides or f'ratio {verdict.shrunk_ratio:.6g}'}"
            if not math.isfinite(float(stored.meta["ratio"])):
                yield (
                    "  floats overflow at this instance, so an erratum cannot store its ratio. "
                    "Try the logarithms of both sides"
                )
                continue
            code = f"your code of {', '.join(judged)}" if judged else "your code"
            yield (
                f"  either {code} differs from the paper's formula, or the paper's claim is false: "
                "compute both sides by hand. For an erratum add expected='fails', "
                "note='why it fails', counterexample=jb.Counterexample(instance="
                f"{instance_code(stored.instance, file)}, "
                f"size={stored.meta['size']}, ratio={number_code(stored.meta['ratio'])})"
            )
