r"""Read the definitions of a paper's macros, and expand the macros in a text."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers.latex.pieces import Pieces

MOST_STEPS = 20_000
"""`written_out` expands at most this many macros in one text.

A text that needs more expansions stays unexpanded. A larger limit makes the expansion of a circular
definition take longer.
"""
LONGEST = 100_000
"""An expanded text has at most this many characters. A longer text stays unexpanded. A larger limit
makes the expansion of a circular definition take longer."""
_DEFINES = re.compile(
    r"\\(?P<how>(?:re|provide)?newcommand|newcommand|renewcommand|providecommand"
    r"|DeclareRobustCommand|DeclareMathOperator|(?:New|Renew|Provide|Declare)DocumentCommand"
    r"|[gex]?def|let|(?:re)?newenvironment)(?![A-Za-z])(?P<star>\*?)"
)
_ARGUMENT = re.compile(r"#([1-9])")


class Macro(NamedTuple):
    """A command that the paper defines.

    Attributes:
        body: the replacement text, with #1, #2, ... for arguments.
        arguments: a tuple with one entry for each argument: the default of an optional argument,
            else None.
    """

    body: str
    arguments: tuple[str | None, ...] = ()


class Definitions(NamedTuple):
    """The macros and environments that a paper defines.

    Attributes:
        macros: a dict from a macro's name, without the backslash, to the macro.
        environments: a dict from the name of each environment that the paper defines to its
            beginning (a macro) and its end (a text).
    """

    macros: dict[str, Macro]
    environments: dict[str, tuple[Macro, str]]


def group_end(text: str, start: int, /, pair: str = "{}") -> int:
    """Return the index after the bracket that closes the bracket at `start`.

    The result is -1 if there is no bracket at `start`, or no bracket closes it.
    """
    if text[start : start + 1] != pair[0]:
        return -1
    depth, at, braces = 0, start, 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if pair != "{}" and char in "{}":
            braces += 1 if char == "{" else -1
        elif char == pair[0] and not braces:
            depth += 1
        elif char == pair[1] and not braces:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -1


def _skip(text: str, at: int) -> int:
    found = re.compile(r"[ \t]*\n?[ \t]*").match(text, at)
    return found.end() if found else at


def argument(text: str, at: int, /) -> tuple[str, int] | None:
    """Return a command's next argument in braces at or after an index, and the index after it."""
    at = _skip(text, at)
    if text[at : at + 1] == "{":
        end = group_end(text, at)
        return (text[at + 1 : end - 1], end) if end > 0 else None
    found = re.compile(r"\\(?:[A-Za-z@]+|.)|[^\s}]", re.DOTALL).match(text, at)
    return (found[0], found.end()) if found else None


def optional(text: str, at: int, /) -> tuple[str, int] | None:
    """Return the next argument in square brackets at or after an index, and the index after it."""
    at = _skip(text, at)
    end = group_end(text, at, "[]")
    return (text[at + 1 : end - 1], end) if end > 0 else None


def _definition(
    text: str, found: re.Match[str]
) -> tuple[str, Macro | tuple[Macro, str], int] | None:
    how, at = found["how"], found.end()
    if how == "let":
        pair = re.compile(r"\s*\\([A-Za-z@]+)\s*=?\s*(\\[A-Za-z@]+|\S)").match(text, at)
        return (pair[1], Macro(pair[2]), pair.end()) if pair else None
    if how.endswith("def"):
        head = re.compile(r"\s*\\([A-Za-z@]+)((?:#[1-9])*)\s*(?=\{)").match(text, at)
        end = group_end(text, head.end()) if head else -1
        if not head or end < 0:
            return None
        none = (None,) * head[2].count("#")
        return head[1], Macro(text[head.end() + 1 : end - 1], none), end
    named = argument(text, at)
    if named is None:
        return None
    name, at = named[0].strip().lstrip("\\"), named[1]
    if how.endswith("DocumentCommand"):
        letters = argument(text, at)
        body = letters and argument(text, letters[1])
        if not letters or not body:
            return None
        return name, Macro(body[0], tuple(_of_letters(letters[0]))), body[1]
    if how == "DeclareMathOperator":
        body = argument(text, at)
        word = "\\operatorname" + found["star"]
        return (name, Macro(f"{word}{{{body[0]}}}"), body[1]) if body else None
    count = optional(text, at)
    at = count[1] if count else at
    default = optional(text, at) if count else None
    at = default[1] if default else at
    many = int(count[0]) if count and count[0].strip().isdecimal() else 0
    first = [default[0]] if default else []
    given = (*first, *[None] * (many - len(first)))
    body = argument(text, at)
    if body is None:
        return None
    if how.endswith("environment"):
        ends = argument(text, body[1])
        return (name, (Macro(body[0], given), ends[0]), ends[1]) if ends else None
    return name, Macro(body[0], given), body[1]


def _of_letters(letters: str) -> Iterator[str | None]:
    at = 0
    while at < len(letters):
        letter, at = letters[at], at + 1
        if letter == "m":
            yield None
        elif letter == "o":
            yield ""
        elif letter == "O" and (found := argument(letters, at)):
            yield found[0]
            at = found[1]


def without_definitions(pieces: Pieces, /) -> tuple[Pieces, Definitions]:
    r"""Return the text without the definitions of macros, and the removed definitions.

    Definitions such as `\renewcommand{\thesection}` stay in the text, since they print a counter.
    """
    defined, changes, last = Definitions({}, {}), list[tuple[int, int, str]](), 0
    for found in _DEFINES.finditer(pieces.text):
        if found.start() < last:
            continue
        known = _definition(pieces.text, found)
        if known is None:
            continue
        name, what, end = known
        if name.startswith("the") and found["how"] in ("renewcommand", "newcommand"):
            continue
        if not isinstance(what, Macro):
            defined.environments[name] = what
        elif re.fullmatch(r"[A-Za-z@]+", name):
            defined.macros[name] = what
        changes.append((found.start(), end, ""))
        last = end
    return pieces.replaced(changes), defined


def _call(text: str, at: int, macro: Macro) -> tuple[str, int] | None:
    given = list[str]()
    for default in macro.arguments:
        found = optional(text, at) if default is not None else argument(text, at)
        if found is None and default is None:
            return None
        given.append(found[0] if found else str(default))
        at = found[1] if found else at
    pick = lambda number: given[int(number[1]) - 1] if int(number[1]) <= len(given) else ""
    return _ARGUMENT.sub(pick, macro.body), at


_ENDS_IN_A_NAME = re.compile(r"\\[A-Za-z]+$")


def written_out(text: str, macros: Mapping[str, Macro], /) -> str:
    """Return a text with all macros expanded, or the text itself if it grows beyond a limit."""
    found, at, steps = text, 0, 0
    command = re.compile(r"\\([A-Za-z@]+|.)", re.DOTALL)
    while (next_one := command.search(found, at)) is not None:
        name, at = next_one[1], next_one.end()
        macro = macros.get(name)
        called = _call(found, at, macro) if macro is not None else None
        if called is None:
            continue
        body, end = called
        # A letter beside the expansion must not become a part of a command's name.
        before, after = found[: next_one.start()], found[end:]
        before += " " * (body[:1].isalpha() and bool(_ENDS_IN_A_NAME.search(before)))
        gap = " " * (after[:1].isalpha() and bool(_ENDS_IN_A_NAME.search(body)))
        found = f"{before}{body}{gap}{after}"
        at, steps = len(before), steps + 1
        if steps > MOST_STEPS or len(found) > LONGEST:
            return text
    return found


def with_structure(pieces: Pieces, defined: Definitions, /) -> Pieces:
    r"""Expand the macros that begin or end an environment, such as `\be` and `\ee`.

    Raises:
        Refused: if the expanded text becomes too long.
    """
    tells = re.compile(r"\\(?:begin|end|section|subsection|label|appendix|item)(?![A-Za-z])")
    chosen = {name: macro for name, macro in defined.macros.items() if tells.search(macro.body)}
    own = {name: pair for name, pair in defined.environments.items() if tells.search(pair[0].body)}
    for _ in range(4):  # macros of macros
        changes = list[tuple[int, int, str]]()
        last = 0
        for found in re.finditer(r"\\(begin|end)\s*\{([^{}]*)\}|\\([A-Za-z@]+)", pieces.text):
            if found.start() < last:
                continue
            called: tuple[str, int] | None = None
            if found[2] in own:
                begin, end = own[found[2]]
                called = (
                    _call(pieces.text, found.end(), begin) if found[1] == "begin"
                    else (end, found.end())
                )  # fmt: skip
            elif found[3] in chosen:
                called = _call(pieces.text, found.end(), chosen[found[3]])
            if called is not None and len(called[0]) < LONGEST:
                changes.append((found.start(), called[1], called[0]))
                last = called[1]
        if not changes:
            break
        pieces = pieces.replaced(changes)
        if len(pieces.text) > 100 * LONGEST:
            raise Refused(
                f"characters={len(pieces.text)} after the expansion of macros, which is too long. "
                "Try a simpler source"
            )
    return pieces
