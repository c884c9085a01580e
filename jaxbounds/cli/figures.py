"""Find the commands that draw a figure of a paper, given the figure's name in the paper."""

import re
from collections.abc import Iterator

from rich.text import Text

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import PAPERS, experiments, load_paper

_FIGURE = re.compile(r"(?i)(?:(?P<paper>\w+) )?(?P<kind>fig(?:ure|\.)?|table) ?(?P<which>\d+\S*)")


def _named(label: str) -> set[str]:
    found = re.fullmatch(r"(Figure|Table)s? (\d+)(\(\w\))?(?: to (\d+))?", label)
    if found is None:
        return set()
    kind, first, part, last = found.groups()
    numbers = range(int(first), int(last or first) + 1)
    return {f"{kind} {n}" for n in numbers} | ({f"{kind} {first}{part}"} if part else set())


def drawing(paper: str, item: str, /) -> list[Experiment]:
    """Return the experiments of a shipped paper that draw a figure or table, such as "Table 1"."""
    own = (e for e in experiments().values() if e.id.split(".")[0] == paper)
    return [e for e in own if item in _named(e.label)]


def about_figure(name: str, /) -> Iterator[Text]:
    """Yield the commands that draw a figure, or the reason why no command draws it.

    The name is "multihead Figure 2", or "Figure 2" for all papers that have one.

    Raises:
        Refused: if no paper has a figure of that name.
    """
    found = _FIGURE.fullmatch(name.strip())
    if found is None or (found["paper"] or PAPERS[0]) not in PAPERS:
        return
    kind = "Table" if found["kind"].lower() == "table" else "Figure"
    told = False
    for paper in [found["paper"]] if found["paper"] else PAPERS:
        item = f"{kind} {found['which']}"
        drawn = drawing(paper, item)
        about = load_paper(paper).items.get(item, "")
        if not drawn and about.startswith("none: "):
            told = True
            yield Text(f"{paper} {item}: no command draws it: {about.removeprefix('none: ')}\n")
        for experiment in drawn:
            told = True
            yield _commands(paper, experiment)
    if not told:
        raise Refused(
            f"figure={name!r} is in no paper. Try jaxbounds run, which lists all experiments"
        )


def _commands(paper: str, experiment: Experiment) -> Text:
    text = Text()
    text.append(f"{paper} {experiment.label}", style="bold cyan").append(f"  {experiment.title}\n")
    quick = " --preset quick" if "quick" in experiment.presets else ""
    text.append(f"  draw it: jaxbounds run {experiment.id}{quick}\n")
    text.append(f"  again:   jaxbounds plot results/{experiment.id}\n")
    text.append(f"  options: jaxbounds run {experiment.id} --help\n")
    return text
