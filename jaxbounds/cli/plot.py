"""`jaxbounds plot`: draw figures of finished runs, and the looseness of verified statements."""

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.progress import track
from rich.table import Table
from rich.text import Text

from jaxbounds import report
from jaxbounds.cli.answers import answer
from jaxbounds.cli.common import Imports, Patterns, Plain, console_for_output
from jaxbounds.experiments import plotting
from jaxbounds.experiments.experiment import Experiment, Finding
from jaxbounds.experiments.results import load
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place
from jaxbounds.ground.folders import Marked
from jaxbounds.papers import find_experiment, load_papers, select
from jaxbounds.report.headline import plural
from jaxbounds.runs.folder import published_in

if TYPE_CHECKING:  # slow to import
    import xarray

MISSING = "figures need matplotlib: pip install matplotlib"


def plot(
    folder: Annotated[Path, tyro.conf.Positional],
    patterns: Patterns = (),
    /,
    *,
    verbose: bool = False,
    imports: Imports = (),
) -> int:
    """Draw the figure of a finished run again, or draw how loose verified forms are.

    A form is one version of a claim: printed, corrected or sharpened.

    Args:
        folder: the folder that `jaxbounds run` or `jaxbounds verify` wrote.
        patterns: the statements to draw from a folder of `verify`, by the patterns of `verify`; all
            statements unless given.
        verbose: print the numbers that decided each claim; only for a folder of `jaxbounds run`.
        imports: Python modules or files that define your own paper as PAPER, or your own
            experiments as EXPERIMENTS.
    """
    if (folder / "verdicts.json").is_file():
        return _plot_slack(folder, patterns, imports)
    if patterns:
        raise Refused(
            f"folder={folder} holds no verdicts from which patterns={patterns} could select. Try "
            f"the folder without patterns"
        )
    dataset = load(folder / "result.nc")
    answer(folder=str(folder))
    experiment = find_experiment(str(dataset.attrs.get("experiment")), imports=imports)
    print_result(experiment, dataset, verbose=verbose)
    return draw_result(experiment, folder)


def _plot_slack(folder: Place, patterns: tuple[str, ...], imports: tuple[str, ...]) -> int:
    if not _can_draw():
        raise Refused(MISSING)
    verdicts = published_in(Path(folder))
    judged = {verdict.id for verdict in verdicts}
    known = [s for p in load_papers(imports) for s in p.statements if s.id in judged]
    console, place = console_for_output(), folder / "slack"
    chosen = select(known, patterns)
    for statement in track(chosen, "drawing", console=Plain(stderr=True), transient=True):
        forms = [verdict for verdict in verdicts if verdict.id == statement.id]
        _draw(partial(report.slack_figure, statement, forms), folder, f"slack/{statement.id}.svg")
    answer(folder=str(place))
    console.print(f"written to {place}: {plural(len(chosen), 'figure')}")
    unknown = judged - {s.id for s in known}
    if unknown:
        console.print(
            f"not drawn: {', '.join(sorted(unknown))}. Try --import with the file or module that "
            f"defines the paper of each named statement"
        )
    return 0


def _can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def _draw(figure: Callable[[], Any], folder: Place, *names: str) -> None:
    import matplotlib.pyplot

    matplotlib.use("Agg")
    with plotting.style():
        drawn = figure()
        for name in names:
            with Marked(folder).writing(name) as to:
                drawn.savefig(to, format=name.rpartition(".")[2])
    matplotlib.pyplot.close(drawn)


def print_result(
    experiment: Experiment, dataset: "xarray.Dataset", /, *, verbose: bool = False
) -> None:
    """Print which of the paper's claims a result reproduces, then the text stored in the result."""
    console = console_for_output()
    console.print(f"{experiment.id}  {experiment.label}: {experiment.title}", markup=False)
    claims = experiment.claims(dataset)
    answer(experiment=experiment.id, findings=[claim._asdict() for claim in claims])
    console.print(_summary(claims, verbose), style="bold")
    if claims:
        console.print(_claim_table(claims, verbose))
    if "text" in dataset.attrs:
        console.print(dataset.attrs["text"], markup=False, soft_wrap=True)


_WORDS = {True: "yes", False: "NO", None: "open"}
_STYLES = {True: "green", False: "bold red", None: "magenta"}


def _summary(claims: Sequence[Finding], verbose: bool) -> str:
    if not claims:
        return "the paper makes no claim about this grid"
    yes, no, unsure = (sum(c.reproduced is kind for c in claims) for kind in _WORDS)
    words = f"{yes} of {len(claims)} claims reproduced"
    words += "".join(f", {n} {text}" for n, text in ((no, "NO"), (unsure, "open")) if n)
    return words + (" (--verbose: the numbers of all)" if yes and not verbose else "")


def _claim_table(claims: Sequence[Finding], verbose: bool) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for claim in claims:
        said = Text(claim.text)
        if verbose or not claim.reproduced:
            said.append(f"\n  {claim.number}", style="dim")
        table.add_row(Text(_WORDS[claim.reproduced], style=_STYLES[claim.reproduced]), said)
    return table


def draw_result(experiment: Experiment, folder: Place, /) -> int:
    """Draw the figure of a stored result into the folder of the result."""
    console, written = console_for_output(), ["result.nc"]
    dataset = load(folder / "result.nc")
    if _can_draw():
        written += ["figure.svg", "figure.png"]
        _draw(lambda: experiment.figure(dataset), folder, *written[1:])
    else:
        console.print(f"no figure: {MISSING}")
    console.print(f"written to {folder}: {', '.join(written)}")
    return 0
