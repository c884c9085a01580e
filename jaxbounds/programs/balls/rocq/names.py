"""Make names and comments that Rocq accepts."""

import re
import textwrap

_KEYWORDS = """
as at cofix do else end exists exists2 fix for forall fun if in let match mod return then using
where with by Prop Set Type IF SProp
"""
_TAKEN = """
R S O I Z N Q D G C E PI nat INR IZR ln exp sin cos tan sqrt pow up Rabs Rmax Rmin Rpower atan sqr
fact fst snd id not or and iff eq True False true false plus mult minus bool list inf sup dist e
lhs rhs error use enclosed claim_is_false root_is floor_is ceil_is nearest_is lower_end upper_end
"""
_RESERVED = frozenset((_KEYWORDS + _TAKEN).split())


def usable(text: str, /) -> str:
    """Turn a text into a name of letters, digits and underscores that shadows no name of Rocq."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "x"
    name = f"x{name}" if name[0].isdigit() else name
    return f"{name}_" if name in _RESERVED else name


def comment(text: str, /, indent: str = "   ") -> str:
    """Return a text as a comment in Rocq; quotes and comment signs in the text are replaced."""
    safe = text.replace('"', "''").replace("(*", "( *").replace("*)", "* )")
    lines: list[str] = []
    for paragraph in safe.split("\n"):
        lines += textwrap.wrap(paragraph, 94) or [""]
    return "(* " + f"\n{indent}".join(lines) + " *)"
