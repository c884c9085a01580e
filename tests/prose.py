"""The rules of prose that a program can check.

python tests/prose.py ROOM  # each fault of a room: its place, its rule, its words
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1] / "jaxbounds"
LONGEST = 30
"""Words of the longest sentence that is no fault; a larger number lets longer ones pass."""

RULES = {
    "opening": "a sentence opens with What, Of, By, Where or With. Open with the actor",
    "length": f"a sentence has more than {LONGEST} words. Make it two",
    "constant": "a constant gives no unit or no effect of a larger value. Add both",
    "value": "a message names no value. Say name=value",
    "cure": "a message has no cure. End it with Try ...",
}

_OPENING = re.compile(r"(What|Of|By|Where|With)\b(?! is \w+\?)")
_EFFECT = re.compile(
    r"\b(larger|smaller|more|fewer|less|longer|shorter|higher|lower|greater)\b", re.I
)
_UNIT = re.compile(
    r"\b(\w{3,}s|relative|factor|share|ratio|exponent|precision|radius|memory|percent)\b", re.I
)
_ERROR = re.compile(r"\w*(Error|Damaged|NotSupported|Refused)$")
_VALUE = re.compile(r"[\w)\]}] ?= ?(\{\}|[\w'\"(])|\b(got|came|is) \{\}")


_PASSES_ON = "the message only names the place; the message that it passes on has value and cure"
_READER = "a reader of the file adds the folder's name and the cure"
_PYTHON = "Python's own words for a missing attribute"
EXCEPTIONS = {
    "claims/statements/errata.py '{}: {}: {}'": _PASSES_ON,
    "claims/statements/form.py 'form {}: {}'": _PASSES_ON,
    "claims/statements/statement.py 'statement {}: {}'": _PASSES_ON,
    "claims/statements/statement.py 'statement {} is ill formed: {}'": _PASSES_ON,
    "runs/request.py 'file={} describes no run of this library: {}'": _PASSES_ON,
    "qstr/architectures.py 'the module has variables={}, expected \"params\" alone'": (
        "the function itself catches the message and adds the cure"
    ),
    "qstr/architectures.py 'the output has shape={}, expected (2, {})'": (
        "the function itself catches the message and adds the cure"
    ),
    "qstr/experiments/online.py '{}, expected positive counts. Try 1 or more for each'": (
        "the first {} lists each count as name=value"
    ),
    "ground/files.py 'path={} is missing or damaged ({})'": _READER,
    "ground/files.py 'path={} is of another kind or version, got form={}, expected {}'": _READER,
    "ground/files.py 'path={} is damaged: the checksum does not match the arrays'": _READER,
    "ground/folders.py '{} was changed after a run wrote it'": _READER,
    "ground/readers.py '{} is damaged ({}: {})'": _READER,
    "ground/moved.py \"module '{}.{}' has no attribute {}\"": _PYTHON,
    "ground/renamed.py 'module {} has no attribute {}'": _PYTHON,
    "experiments/experiment.py 'module {} has no attribute {}'": _PYTHON,
}
"""Messages that need no value or no cure of their own, each with the reason."""


class Fault(NamedTuple):
    """A fault: where, against which rule, and the words."""

    place: str
    rule: str
    words: str

    def __str__(self) -> str:
        return f"{self.place}: {RULES[self.rule]}: {self.words[:80]!r}"


def sentences(text: str) -> Iterator[str]:
    """The sentences of a docstring or a page, without code, tables and headings."""
    text = re.sub(r"```.*?(```|\Z)", "", text, flags=re.DOTALL)
    lines = []
    for line in text.splitlines():
        bare = line.strip()
        if re.match(r"(\||#|>>>|\$|-{3})", bare) or re.match(r"[A-Z]\w+:$", bare):
            bare = ""
        starts = re.match(r"([-*]|\d+\.)\s", bare) or re.match(r"\**\w+\**(, \w+)*: ", bare)
        lines += (
            ["", re.sub(r"^([-*]|\d+\.)\s+|^\**\w+\**(, \w+)*:\s+", "", bare)] if starts else [bare]
        )
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        flat = " ".join(paragraph.split())
        yield from filter(None, re.split(r"(?<=[.!?])\s+(?=[A-Z`\"(])", flat))


def _in_text(text: str, place: str) -> Iterator[Fault]:
    for sentence in sentences(text):
        if _OPENING.match(sentence):
            yield Fault(place, "opening", sentence)
        if len(sentence.split()) > LONGEST:
            yield Fault(place, "length", sentence)


def _message(node: ast.AST) -> str | None:
    """The text of an f-string, a string or a sum of them, with {} for each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_message(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _message(node.left), _message(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def _constants(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """The numbers that a module names in capitals, each with its docstring."""
    for node, after in zip(tree.body, [*tree.body[1:], None]):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        named = isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(targets[0], ast.Name)
        if not named or not re.fullmatch(r"_?[A-Z][A-Z0-9_]*", targets[0].id):
            continue
        value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
        if isinstance(value, ast.BinOp):
            value = value.left
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            said = getattr(getattr(after, "value", None), "value", "")
            yield node, said if isinstance(said, str) and isinstance(after, ast.Expr) else ""


def in_python(text: str, place: str) -> Iterator[Fault]:
    """The faults of a Python file: docstrings, docstrings of constants, messages."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        said = getattr(getattr(node, "value", None), "value", None)
        if isinstance(node, ast.Expr) and isinstance(said, str):
            yield from _in_text(said, f"{place}:{node.lineno}")
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            kind, said = ast.unparse(node.exc.func), _message(node.exc.args[0])
            if said is not None and _ERROR.match(kind.split(".")[-1]):
                if not _VALUE.search(said):
                    yield Fault(f"{place}:{node.lineno}", "value", said)
                if not re.search(r"\bTry\b", said):
                    yield Fault(f"{place}:{node.lineno}", "cure", said)
    for node, said in _constants(tree):
        if not (_EFFECT.search(said) and _UNIT.search(said)):
            words = ast.unparse(node)
            yield Fault(f"{place}:{node.lineno}", "constant", f"{words} {said}")


def excused_by(fault: Fault, /) -> str:
    """The key in `EXCEPTIONS` that excuses a fault, or an empty text."""
    file = fault.place.partition("/")[2].rpartition(":")[0]
    key = f"{file} {fault.words!r}"
    return key if fault.rule in ("value", "cure") and key in EXCEPTIONS else ""


def files_by_room(root: Path = ROOT) -> dict[str, list[Path]]:
    """The files with prose, by the room (the first part of a path below the package)."""
    found: dict[str, list[Path]] = {}
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.md")]):
        room = file.relative_to(root).parts[0].removesuffix(".py")
        found.setdefault(room, []).append(file)
    return found


def _in_file(file: Path, root: Path) -> Iterator[Fault]:
    check = in_python if file.suffix == ".py" else _in_text
    text = file.read_text(encoding="utf8")
    yield from check(text, f"{root.name}/{file.relative_to(root).as_posix()}")


def faults(root: Path = ROOT) -> dict[str, list[Fault]]:
    """All faults, excused ones too, by the room."""
    rooms = files_by_room(root).items()
    return {room: [one for file in files for one in _in_file(file, root)] for room, files in rooms}


if __name__ == "__main__":
    found = faults().get(sys.argv[1], [])
    print(*(fault for fault in found if not excused_by(fault)), sep="\n")
