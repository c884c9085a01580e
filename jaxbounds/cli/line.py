"""From a saved line to a paper's folder: the text of its model and of its statement."""

import json
import pprint
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MODEL = '''"""The two sides of the claim, each once."""

{code}'''
STATEMENTS = '''"""The claim of a line as a statement: give it a label and a control."""

import jaxbounds as jb

from . import model


def _claim(instance, size):
    lhs = model.left_side({lhs})
    rhs = model.right_side({rhs})
    return jb.Sides(lhs=lhs, rhs={{"printed": rhs, "control": {factor} * rhs}}{error})


CLAIM = jb.Statement(
    id="{name}.claim",
    label="the claim",
    formula="left_side {relation} right_side",
    kind="inequality",
    judges=(model.left_side, model.right_side),
    over={over},
    evaluate=_claim,
    relation="{relation}",
    sizes={sizes},
    forms=(jb.Form(name="printed"{form}),),
    control="a factor {factor}",
)

PAPER = jb.Paper(id="{name}", title="A claim", statements=(CLAIM,))
'''
FALSE = 1 + 1e-9
"""From this ratio on the claim is false."""


def told_in(file: Path, /) -> Callable[[str], dict[str, str]]:
    """What makes the files of a paper, from its name.

    Raises:
        ValueError: if the file holds no line, or one whose code could not be read.
    """
    try:
        saved = json.loads(file.read_text(encoding="utf8"))
        line = saved["line"]
        code = line["code"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(
            f"{file} is none that `save` wrote of a sharp_constant or find_violation: {problem}"
        ) from problem
    if not code:
        raise ValueError(
            f"{file}: the code of its functions could not be read: write them in a file, or name "
            "only what a module has"
        )
    return lambda name: _files(name, saved, line)


def _files(name: str, saved: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, str]:
    best = saved
    if "sizes" in saved:  # of a constant: where it is largest
        best = max(saved["sizes"], key=lambda found: found["ratio"])
    ratio = float(best.get("instance_ratio") or best["ratio"])
    sizes = {key for size in line["sizes"] for key in size}
    take = lambda entry: f'size["{entry}"]' if entry in sizes else f'instance["{entry}"]'
    form = ""
    if ratio > FALSE:
        form = (
            f', expected="fails", note="Found by a search.", counterexample=jb.Counterexample('
            f"\n        instance={best['instance']!r},\n        size={best['size']!r}, "
            f"ratio={ratio!r},\n    )"
        )
    elif best.get("where") == "attained" and ratio > 1 - 1e-6:
        form = f', equality="at {_short(best["instance"])}, which a search found"'
    error = line.get("error")
    error = "" if error is None else f", error=model.uncertainty({', '.join(map(take, error))})"
    least = ratio if line["relation"] == "<=" else 1 / max(ratio, 1e-9)
    factor = 0.5 * least if line["relation"] == "<=" else 2.0 * least
    statements = STATEMENTS.format(
        name=name, lhs=", ".join(map(take, line["lhs"])), rhs=", ".join(map(take, line["rhs"])),
        over=line["over"], relation=line["relation"], form=form, factor=f"{factor:.3g}",
        error=error,
        sizes=pprint.pformat(tuple(line["sizes"]), width=88, sort_dicts=False),
    )  # fmt: skip
    return {"model.py": MODEL.format(code=line["code"]), "statements.py": statements}


def _short(instance: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in instance.items()).replace('"', "'")[:60]
