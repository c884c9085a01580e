"""`jaxbounds constant`: the sharp constants of inequalities, and those of the papers on record."""

import importlib.util
import json as json_module
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxbounds.cli.common import Imports, Patterns, console_for_output
from jaxbounds.cli.streams import say
from jaxbounds.constants import SharpConstant, parse
from jaxbounds.constants.on_record import put_on_record
from jaxbounds.constants.result import SECONDS
from jaxbounds.experiments import plotting
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import try_to_write
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.states import Depends
from jaxbounds.ground.to_json import to_json
from jaxbounds.papers import selected
from jaxbounds.report.codes import pointer
from jaxbounds.report.constants import constant_figure, constant_table, constant_text
from jaxbounds.runs.constants import Search, finding, with_constants
from jaxbounds.runs.engines import HERE, On
from jaxbounds.runs.interruption import look
from jaxbounds.runs.merged_files import add_to, taken

CONSTANTS = "constants.json"


def constant(
    patterns: Patterns = (),
    /,
    *,
    sizes: tuple[str, ...] = (),
    form: str = "printed",
    seed: int = 0,
    seconds: float = SECONDS,
    out: Path = Path("results/constant"),
    json: bool = False,
    grow: bool = False,
    record: bool = False,
    jobs: int = 1,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """The sharp constant of a form: the largest lhs/rhs, size by size, and how it grows.

    The constant found is a lower estimate of the supremum. Digits are certified where ball
    arithmetic can enclose the ratio at the extremal instance; closed forms rest on those alone.
    Needs the extra `constants` (python-flint, mpmath).

    Searches start from what `verify` and earlier runs kept too, and keep what they find for those.

    The exit status is 0, or 1 when a form that should hold has a constant above one, could not be
    measured, or the run was interrupted. It is 2 on bad usage, and 3 when the command cannot write.

    Args:
        patterns: ids, the beginning of ids, shell patterns, or Python files that hold a PAPER.
        sizes: axes with their values, as T=2,4,8 d=2,4: all combinations; axes that are not named
            are as in the first of the statement's sizes. Its own sizes unless given.
        form: its name, or how it begins ("printed": also "printed, Lemma 6").
        seed: of the draws.
        seconds: of processor time for each size, spent as long as it is not settled.
        out: folder for constants.json, which keeps what it holds of other forms, and a figure of
            each constant (with matplotlib).
        json: print the JSON instead of tables (see `jaxbounds schema constants`).
        grow: besides the statement's own sizes, its first with each axis doubled in turn.
        record: keep what is found in the papers' records/, for the page.
        jobs: processes; 0 means one for each core.
        imports: modules or files that hold a PAPER of your own.
        on: where the forms are worked on.
    """
    if not patterns and not record:
        raise Refused(
            f"name a statement, got patterns={patterns}. Try `jaxbounds constant multihead.eq42`"
        )
    selection, axes = selected(patterns, imports=imports), parse(sizes)
    chosen = with_constants(selection, form)
    forms = [(s.id, name) for s, name in chosen]
    search = Search(axes, seed, seconds, grow, len(selection.statements) == 1)
    claimed = {(s.id, name) for s, name in chosen if s.form(name).expected == "holds"}
    papers = {s.id: paper for paper in selection.papers for s in paper.statements}
    held = taken(out, "constant", (CONSTANTS,), imports, look)
    out = held.path
    try_to_write(out)
    given = {"on": on, "jobs": jobs, "folder": Marked(out).scratch("jobs")}
    console, found, broken = console_for_output(), list[SharpConstant](), 0
    rests = list[Depends | None]()
    try:
        for what, (one, depends) in finding(forms, search, selection.catalogue, **given):  # type: ignore[arg-type]
            if isinstance(one, str):
                say(f"{what[0]} ({what[1]}): {one}")
                broken += 1
                continue
            found.append(one)
            rests.append(depends)
            best = one.largest
            say(f"{one.id} ({one.form}): {best.ratio:.6g}, {best.where}")
            if one.fails and what in claimed:
                say(f"{one.id} ({one.form}): fails, where it should hold")
                broken += 1
            if record:
                put_on_record([one], papers[one.id])
            if not json:
                console.print(f"\n{one.id}  {one.label}  {one.form}: {one.formula}", markup=False)
                console.print(constant_table(one, width=console.width))
                console.print(constant_text(one), markup=False)
                if line := pointer([(one.id, one.form)], selection.papers):
                    console.print(line)
    except ValueError:  # bad usage leaves no folder behind
        held.discard()
        raise
    except KeyboardInterrupt:
        broken += 1
        say("interrupted: what was found is written")
    if json:
        print(json_module.dumps(to_json(found), indent=1))
    written = list(_written(out, found, rests))
    held.release()
    say(f"written to {out}: {', '.join(written)}")
    return int(bool(broken))


def _written(
    out: Path, found: Sequence[SharpConstant], rests: Sequence[Depends | None]
) -> Iterator[str]:
    add_to(out, CONSTANTS, list(zip(to_json(found), rests, strict=True)))
    yield CONSTANTS
    if importlib.util.find_spec("matplotlib") is None:
        return
    for one in found:
        if len(one.sizes) > 1 and one.largest.ratio > 0:
            words = one.form.replace(", ", "-").replace(" ", "-").replace("/", "-")
            name = f"{one.id}.{words}.svg"
            _draw(one, out, name)
            yield name


def _draw(constant: SharpConstant, out: Path, name: str) -> None:
    import matplotlib.pyplot

    matplotlib.use("Agg")
    with plotting.style(), Marked(out).writing(name) as to:
        figure = constant_figure(constant)
        figure.savefig(to, format="svg")
    matplotlib.pyplot.close(figure)
