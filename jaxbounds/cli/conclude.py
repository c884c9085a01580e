"""What `jaxbounds verify` prints and leaves, while statements are judged and afterwards."""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from jaxbounds import report
from jaxbounds.cli import recorded
from jaxbounds.cli.folder import Folder, Judged
from jaxbounds.cli.screen import Screen
from jaxbounds.falsify import Verdict
from jaxbounds.files import write_text
from jaxbounds.papers import load_papers
from jaxbounds.report.remarks import remarks
from jaxbounds.statements import Paper, Statement

INTERRUPTED, AT_FIRST = "interrupted", "stopped by -x"
"""Why statements were not tried."""


def judge_all(
    chosen: Sequence[Statement],
    judge: Callable[[Sequence[Statement]], Iterator[tuple[Verdict, ...]]],
    folder: Folder,
    before: Judged,
    exitfirst: bool,
    console: Console,
    /,
) -> tuple[Judged, str]:
    """Judge what was not judged before: the verdicts, and why some were not tried."""
    done: Judged = {}
    wrong = lambda: any(not v.as_expected for verdicts in done.values() for v in verdicts)
    screen = Screen(console, [s.id for s in chosen])
    kept = {s.id for s in chosen} & set(before)
    if kept:
        print(f"continued: {len(kept)} statements were judged before", file=sys.stderr)
    try:
        with screen.bar:
            for name in kept:
                done[name] = before[name]
                screen.judged(before[name], before=True)
            over = exitfirst and wrong()
            for verdicts in () if over else judge([s for s in chosen if s.id not in kept]):
                done[verdicts[0].id] = verdicts  # first: an interruption may come in between
                folder.keep(verdicts)
                screen.judged(verdicts)
                if over := exitfirst and wrong():
                    screen.rest()
                    break
        return done, AT_FIRST if over and len(done) < len(chosen) else ""
    except KeyboardInterrupt:
        screen.rest()
        return done, INTERRUPTED
    except OSError:  # it cannot be kept: at least it was seen
        screen.rest()
        raise


def conclude(
    folder: Folder,
    papers: Sequence[Paper],
    chosen: Sequence[Statement],
    done: Judged,
    stopped: str,
    partial: bool,
    console: Console,
    /,
) -> int:
    """Print what was found, then put it in place: the exit status."""
    verdicts = tuple(v for s in chosen for v in done.get(s.id, ()))
    console.print(report.paper_table(papers, verdicts))
    console.print(report.summary(verdicts))
    judged = {s.id: s.judged for s in chosen}
    for (name, _), group in itertools.groupby(verdicts, lambda v: (v.id, v.reason)):
        for line in remarks(list(group), folder.place_of, judged[name]):
            console.print(line, markup=False)
    usual = not folder.settings["seed"] and not folder.settings["thorough"]
    for line in recorded.moved(verdicts) if usual else ():
        console.print(line, markup=False)
    others, imports = folder.published(), tuple(folder.settings["imports"])
    if partial and others:  # the page shows what is kept, too
        papers = load_papers(imports, patterns=[v.paper for v in [*verdicts, *others]])
    if others is None and stopped:
        console.print(f"{stopped}: {folder.path} keeps its earlier results")
    else:
        same = [v for v in others or () if v.id not in done] if partial or stopped else []
        order = {s.id: i for i, s in enumerate(s for paper in papers for s in paper.statements)}
        merged = sorted([*verdicts, *same], key=lambda v: order.get(v.id, len(order)))
        folder.publish(merged, {"statements": len({v.id for v in merged})})
        page = report.html_page(merged, papers, folder.settings, folder.path, imports)
        write_text(folder.path / "report.html", page)
        console.print(
            f"written to {folder.path}: verdicts.json, report.html, run.json, worst/, "
            "counterexamples/"
        )
    if stopped:
        left = len(chosen) - len(done)
        but = "without -x " if stopped == AT_FIRST else ""
        console.print(
            f"{stopped}: {left} statements were not tried; {but}the same command continues"
        )
    else:
        folder.end()
    if any(v.status == "error" for v in verdicts) and stopped != INTERRUPTED:
        return 3
    return int(stopped == INTERRUPTED or not all(v.as_expected for v in verdicts))


def slowest(done: Judged, count: int, /) -> Iterator[str]:
    """The statements that took longest, each with its seconds."""
    seconds = {name: verdicts[0].seconds for name, verdicts in done.items()}
    for name in sorted(seconds, key=lambda name: -seconds[name])[: max(0, count)]:
        yield f"{seconds[name]:8.2f} s  {name}"
