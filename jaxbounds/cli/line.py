"""Make a paper's files from the claim that `find_violation` or `sharp_constant` saved."""

import ast
import json
import keyword
import pprint
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from jaxbounds.claims.sets.reading import sets_in
from jaxbounds.claims.sets.words import declared
from jaxbounds.ground.exceptions import Refused

MODEL = '''"""The two sides of the claim, each once."""

{code}'''
STATEMENTS = '''"""The saved claim as a statement: give it a label and a control."""

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
"""A claim counts as false if the ratio of its left side to its right side exceeds this number. If
this number is larger, the library mistakes more small violations for rounding.
"""


def told_in(file: Path, /) -> Callable[[str], dict[str, str]]:
    """Read a saved claim; return a function from a new paper's name to the paper's files.

    Raises:
        Refused: if the file holds no saved claim, or the claim has no readable code. The error also
            occurs if a part of the claim is anything other than names, numbers and sets of the
            library.
    """
    try:
        saved = json.loads(file.read_text(encoding="utf8"))
        line = saved["line"]
        code = line["code"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise Refused(
            f"file={str(file)!r} is no saved claim of sharp_constant or find_violation: "
            f"{problem}. Try to save the claim again"
        ) from problem
    if not code:
        raise Refused(
            f"file={str(file)!r} lacks the source of the claim's functions, got code={code!r}. Try "
            f"to write the functions in a file, and to use only objects of modules in them"
        )
    try:
        told = _Told(saved, line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise Refused(f"file={str(file)!r}: {problem}. Try to save the claim again") from problem
    return told.files


class _Told:
    def __init__(self, saved: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        self.code = _definitions(line["code"])
        self._line = line
        self._over = declared(sets_in(line["over"]))
        self._sides = {which: _names(which, line[which]) for which in ("lhs", "rhs")}
        error = line.get("error")
        self._error = None if error is None else _names("error", error)
        self._sizes = tuple(_size(size) for size in line["sizes"])
        if line["relation"] not in ("<=", ">="):
            raise Refused(
                f"relation={line['relation']!r:.40} is neither '<=' nor '>='. Try relation='<='"
            )
        best = saved
        if "sizes" in saved:  # a sharp constant: take the size at which it is largest
            best = max(saved["sizes"], key=lambda found: float(found["ratio"]))
        self._best = {
            "instance": _literal(best["instance"]),
            "size": _size(best["size"]),
            "where": best.get("where"),
        }
        self._ratio = float(best.get("instance_ratio") or best["ratio"])
        if not isfinite(self._ratio):
            raise Refused(
                f"ratio={self._ratio} of the saved claim is no finite number. Try to save the "
                f"claim again"
            )

    def files(self, name: str) -> dict[str, str]:
        ratio, line, best = self._ratio, self._line, self._best
        sizes = {key for size in self._sizes for key in size}
        take = lambda entry: f'size["{entry}"]' if entry in sizes else f'instance["{entry}"]'
        form = ""
        if ratio > FALSE:
            form = (
                f', expected="fails", note="Found by a search.", counterexample=jb.Counterexample('
                f"\n        instance={best['instance']!r},\n        size={best['size']!r}, "
                f"ratio={ratio!r},\n    )"
            )
        elif best["where"] == "attained" and ratio > 1 - 1e-6:
            words = f"at {_short(best['instance'])}, which a search found"
            form = f", equality={json.dumps(words)}"
        error = ""
        if self._error is not None:
            error = f", error=model.uncertainty({', '.join(map(take, self._error))})"
        least = ratio if line["relation"] == "<=" else 1 / max(ratio, 1e-9)
        factor = 0.5 * least if line["relation"] == "<=" else 2.0 * least
        sides = {which: ", ".join(map(take, names)) for which, names in self._sides.items()}
        statements = STATEMENTS.format(
            name=name, **sides, over=self._over, relation=line["relation"], form=form,
            factor=f"{factor:.3g}", error=error,
            sizes=pprint.pformat(self._sizes, width=88, sort_dicts=False),
        )  # fmt: skip
        return {"model.py": MODEL.format(code=self.code), "statements.py": statements}


def _definitions(code: Any) -> str:
    try:
        tree = ast.parse(code)
    except (SyntaxError, MemoryError, RecursionError) as problem:
        raise Refused(
            f"the saved code of the claim's two sides is not Python: {problem!s:.80}, got "
            f"type={type(code).__name__}. Try to save the claim again"
        ) from problem
    for node in tree.body:
        if not _defines(node):
            raise Refused(
                f"line={node.lineno} of the code of the claim's sides, {ast.unparse(node)!r:.60}, "
                f"neither imports nor defines a function or a number. Try a file with only the two "
                f"sides' functions"
            )
    return str(code)


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Lambda) or _is_literal(node.value)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _names(which: str, names: Any) -> list[str]:
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise Refused(
                f"{which} uses the name={name!r:.40} of type={type(name).__name__}, expected a "
                f"Python identifier. Try a letter such as 'x'"
            )
    return list(names)


def _size(size: Mapping[str, Any]) -> dict[str, float]:
    _names("a size", size)
    for name, value in size.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise Refused(f"the size {name}={value!r:.40} is no finite number. Try an integer")
    return dict(size)


def _literal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _literal(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return list(map(_literal, value))
    if isinstance(value, float) and not isfinite(value):
        raise Refused(
            f"a number of the claim has value={value}, expected a finite number. Try finite numbers"
        )
    return value


def _short(instance: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in instance.items()).replace('"', "'")[:60]
