"""Make a text harmless for a terminal, or short enough for a file name."""

import hashlib
import re

_FORMATTING = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
"""Invisible characters that change the direction of the text or break a line."""
_UNPRINTED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_FORMATTING}]")
r"""The characters that `printable` replaces: control characters except newlines and tabs, lone
surrogates, and characters that change the direction of text."""


def printable(text: str, /) -> str:
    r"""Return the text with control characters escaped: ESC becomes the four characters `\x1b`.

    Newlines and tabs remain.
    """
    if text.isprintable():
        return text
    return _UNPRINTED.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(name: str, most: int, /) -> str:
    """Return a file name of at most `most` bytes; a digest of the name replaces the cut part.

    The name has no suffix (".json"). The limit `most` is at least 33, and counts bytes in UTF-8.
    """
    whole = name.encode(errors="surrogatepass")
    if len(whole) <= most:
        return name
    end = hashlib.sha256(whole).hexdigest()[:32]
    return f"{whole[: most - 33].decode(errors='ignore')}-{end}"
