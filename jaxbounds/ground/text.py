"""Texts made harmless for a terminal, and shortened for names of files."""

import hashlib
import re

_FORMATTING = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
"""Invisible characters that change the direction of a line or break the line."""
_UNPRINTED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_FORMATTING}]")
r"""All control characters but newlines and tabs, lone surrogates, and invisible formatting."""


def printable(text: str, /) -> str:
    r"""Return the text with control characters written out: ESC becomes the four characters `\x1b`.

    Newlines and tabs stay.
    """
    if text.isprintable():
        return text
    return _UNPRINTED.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(name: str, most: int, /) -> str:
    """Return a file name of at most `most` bytes; a digest replaces the cut part.

    Args:
        name: the whole name.
        most: bytes in UTF-8, at least 33; a file system takes 255 with the ending.
    """
    whole = name.encode(errors="surrogatepass")
    if len(whole) <= most:
        return name
    end = hashlib.sha256(whole).hexdigest()[:32]
    return f"{whole[: most - 33].decode(errors='ignore')}-{end}"
