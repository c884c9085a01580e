"""HTML from values: every text is escaped unless it is already `Html`."""

import html


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: object, /) -> Html:
    """`Html` as it is, anything else with its special characters escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(*parts: object, separator: str = "") -> Html:
    """The parts one after the other, each escaped; `None` is left out."""
    return Html(escaped(separator).join(escaped(part) for part in parts if part is not None))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """An element that has an end tag.

    Args:
        name: of the tag.
        children: its content, as for `joined`.
        attributes: by name; underscores are hyphens and one at the end is dropped (`class_`).
            `True` gives the bare name; `None`, `False` and "" leave the attribute out.
    """
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value not in (None, False, ""):
            words.append(f'{key}="{html.escape(str(value))}"')
    return Html(f"<{' '.join(words)}>{joined(*children)}</{name}>")
