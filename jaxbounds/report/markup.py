"""Make HTML from values. Each function escapes a text, unless the text is already `Html`."""

import html
import re
from urllib.parse import unquote

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that a browser drops from an address, or hides."""
_ADDRESSES = frozenset(("href", "src", "action", "formaction", "xlink:href"))
"""The names of the HTML attributes that hold an address."""


def may_lead(target: str, /) -> bool:
    """Tell whether a link is allowed: to a web page, or within the folder of this page."""
    scheme = _SCHEME.match(_UNSEEN.sub("", unquote(html.unescape(target))))
    return scheme is None or scheme[1].lower() in ("http", "https")


class Html(str):
    """A text that is already HTML."""

    __slots__ = ()


def escaped(value: object, /) -> Html:
    """Return `Html` unchanged, anything else with its special characters escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(*parts: object, separator: str = "") -> Html:
    """Escape and join the parts; skip parts that are None."""
    return Html(escaped(separator).join(escaped(part) for part in parts if part is not None))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an HTML element with an end tag; `joined` makes its content from the children.

    In the name of an attribute, an underscore becomes a hyphen, and an underscore at the end is
    dropped (`class_`). For `True` the attribute has no value; for `None`, `False` and "" the
    element lacks the attribute. The element also lacks a link that `may_lead` refuses.
    """
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if key.lower() in _ADDRESSES and not may_lead(str(value)):
            continue
        if value is True:
            words.append(key)
        elif value is not None and value is not False and value != "":
            words.append(f'{key}="{html.escape(str(value))}"')
    return Html(f"<{' '.join(words)}>{joined(*children)}</{name}>")
