"""The part of YAML that machine descriptions use: nested mappings and flow collections.

Scalars stay strings (a symbol 0 is "0"); a key of a block mapping may be a flow list ([0, 1]),
which becomes a tuple. Comments, quotes and block texts ("|") are understood; anchors, tags and
block lists are not.
"""

import re
from typing import Any


def parse_yaml(text: str, /) -> dict[Any, Any]:
    """The mapping that the text describes.

    Raises:
        ValueError: with the line that is outside the subset.
    """
    lines: list[tuple[int, int, str]] = []
    skip_deeper_than: int | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_comment(raw).rstrip()
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if skip_deeper_than is not None:
            if indent > skip_deeper_than:
                continue
            skip_deeper_than = None
        if re.search(r":\s*[|>][-+]?$", line):
            skip_deeper_than = indent
            line = re.sub(r"[|>][-+]?$", "''", line)
        lines.append((number, indent, line.strip()))
    result, rest = _block(lines, 0)
    if rest < len(lines):
        number, _, line = lines[rest]
        raise ValueError(f"line {number}: unexpected indentation before {line!r}")
    return result


def _without_comment(line: str) -> str:
    quote = ""
    for i, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (i == 0 or line[i - 1].isspace()):
            return line[:i]
    return line


def _block(lines: list[tuple[int, int, str]], at: int) -> tuple[dict[Any, Any], int]:
    result: dict[Any, Any] = {}
    if at >= len(lines):
        return result, at
    indent = lines[at][1]
    while at < len(lines) and lines[at][1] == indent:
        number, _, line = lines[at]
        try:
            key, end = _flow(line, 0, ":")
            if line[end : end + 1] != ":":
                raise ValueError("expected 'key: value'")
            rest = line[end + 1 :].strip()
            at += 1
            if rest:
                value, end = _flow(rest, 0, "")
                if rest[end:].strip():
                    raise ValueError(f"unexpected {rest[end:]!r}")
            elif at < len(lines) and lines[at][1] > indent:
                value, at = _block(lines, at)
            else:
                value = None
        except ValueError as error:
            raise ValueError(f"line {number}: {error} in {line!r}") from None
        result[tuple(key) if isinstance(key, list) else key] = value
    return result, at


def _flow(text: str, at: int, stop: str) -> tuple[Any, int]:
    at = _spaces(text, at)
    if at < len(text) and text[at] in "'\"":
        end = text.find(text[at], at + 1)
        if end < 0:
            raise ValueError("unclosed quote")
        return text[at + 1 : end], _spaces(text, end + 1)
    if at < len(text) and text[at] in "[{":
        return _collection(text, at)
    end = at
    while end < len(text) and text[end] not in stop:
        end += 1
    return text[at:end].strip(), end


def _collection(text: str, at: int) -> tuple[Any, int]:
    close = {"[": "]", "{": "}"}[text[at]]
    items: list[Any] = []
    mapping: dict[Any, Any] = {}
    at = _spaces(text, at + 1)
    while at < len(text) and text[at] != close:
        item, at = _flow(text, at, ":,]}" if close == "}" else ",]")
        if close == "}":
            value = None
            if text[at : at + 1] == ":":
                value, at = _flow(text, at + 1, ",}")
            mapping[item] = value
        items.append(item)
        if text[at : at + 1] == ",":
            at = _spaces(text, at + 1)
        elif text[at : at + 1] != close:
            raise ValueError(f"expected ',' or {close!r}")
    if at >= len(text):
        raise ValueError(f"missing {close!r}")
    return (mapping if close == "}" else items), _spaces(text, at + 1)


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at
