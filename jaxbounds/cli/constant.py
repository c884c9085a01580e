"""`jaxbounds constant`: search for sharp constants of inequalities, and record them."""

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
    """Search for a form's sharp constant: the largest lhs/rhs at each size, and its growth.

    A form is one version of a claim: printed, corrected or sharpened.

    The printed constant is a lower estimate of the supremum. If ball arithmetic (which encloses
    rounding errors) can enclose the ratio at the extremal instance, the digits are certified. The
    command looks for a closed form only if the digits are certified. The command needs the extra
    `constants` (python-flint, mpmath).

    Searches also start from the worst instances of `verify` and of earlier runs, and store their
    own worst instances.

    The exit status is 1 when a form that should hold has a constant above one, when a form could
    not be measured, or when the run was interrupted. The exit status is 2 on bad usage, and 3 when
    the command cannot write. In all other cases the exit status is 0.

    Args:
        patterns: ids, the beginning of ids, shell patterns, or Python files that hold a PAPER.
        sizes: the values of some sizes (axes) of the statement, for example T=2,4,8 d=2,4. The
            search runs at all combinations of these values. Axes without given values keep their
            values from the statement's first size. Without `sizes`, the search runs at the sizes
            that the statement declares.
        form: the name of the form, or the name's beginning: "printed" also means "printed,
            Lemma 6".
        seed: the seed of the random instances.
        seconds: seconds of processor time for each size. The search at a size ends earlier if
            ascents from enough starting instances end at the same constant.
        out: the folder for constants.json, and for a figure of each constant (with matplotlib). An
            earlier constants.json keeps its entries of other forms.
        json: print JSON instead of tables (see `jaxbounds schema constants`).
        grow: also search at the statement's first size with each axis doubled in turn.
        record: write the constants into the papers' records/, for the page of `verify`.
        jobs: the number of processes; 0 means one for each core.
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
        on: the engine that runs the searches.
    """
    if not patterns and not record:
        raise Refused(
            f"patterns={patterns} names no statement. Try `jaxbounds constant multihead.eq42`"
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
                say(
                    f"{one.id} ({one.form}): this form of the claim fails, although it is declared "
                    f"to hold"
                )
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
        say("interrupted: the constants found so far are written")
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
