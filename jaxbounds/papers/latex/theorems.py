r"""Find the theorem environments that `\newtheorem` and similar commands declare."""

import re
from typing import NamedTuple

from jaxbounds.papers.latex.counters import Counters
from jaxbounds.papers.latex.macros import argument, optional

LISTED = {
    "theorem": "thm", "lemma": "lem", "proposition": "prop", "corollary": "cor", "fact": "fact",
    "definition": "def", "assumption": "asm", "assumptions": "asm", "claim": "claim",
    "conjecture": "conj", "hypothesis": "hyp", "condition": "cond", "property": "property",
    "observation": "obs",
}  # fmt: skip
"""A dict from each kind of item that the library lists, such as "theorem", to the prefix of the ids
of these items.

The library does not list other environments, such as remarks and examples.
"""
_SHARING = {
    "jmlr": "theorem", "jmlr2e": "theorem", "acmart": "theorem", "colt": "theorem",
    "colt2024": "theorem", "sn-jnl": "",
}  # fmt: skip
"""A dict from a document class that declares theorem environments itself to the name of one
environment. All theorem environments that the class declares share the counter of the named
environment."""
_DECLARES = re.compile(
    r"\\(?P<how>newtheorem|spnewtheorem|newmdtheoremenv|declaretheorem|newaliascnt"
    r"|numberwithin|counterwithin|counterwithout)(?![A-Za-z])(?P<star>\*?)"
)


class Theorem(NamedTuple):
    """A theorem environment that a document or its class declares.

    Attributes:
        printed: the name that the paper prints, for example "Theorem".
        counter: the name of the counter that numbers the environment; "" for an environment without
            numbers.
    """

    printed: str
    counter: str

    @property
    def kind(self) -> str:
        """Return the item's kind (theorem, lemma, ...), a key of `LISTED`; "" for another kind."""
        words = re.findall(r"[a-z]+", self.printed.lower())
        return next((word for word in words if word in LISTED), "")


def theorems_in(text: str, counters: Counters, /) -> dict[str, Theorem]:
    """Return the theorem environments that a text declares, and declare their counters."""
    found: dict[str, Theorem] = {}
    for one in _DECLARES.finditer(text):
        how, at = one["how"], one.end()
        if how == "declaretheorem":
            found |= _declared(text, at, counters)
            continue
        style = optional(text, at) if how.startswith("counter") else None
        name = argument(text, style[1] if style else at)
        if name is None:
            continue
        if how in ("newtheorem", "spnewtheorem", "newmdtheoremenv"):
            frame = optional(text, at) if how == "newmdtheoremenv" else None
            name = argument(text, frame[1]) if frame else name
            if name:
                found |= _new(text, name, bool(one["star"]), counters)
            continue
        other = argument(text, name[1])
        if other is None:
            continue
        if how == "newaliascnt":
            counters.share(name[0], other[0])
        elif how == "counterwithout":
            counters.declare(counters.name(name[0]))
        else:
            counters.within(name[0], other[0], printed=not one["star"])
    return found


def _new(text: str, name: tuple[str, int], star: bool, counters: Counters) -> dict[str, Theorem]:
    environment, at = name[0].strip(), name[1]
    shared = optional(text, at)
    printed = argument(text, shared[1] if shared else at)
    if printed is None:
        return {}
    words = re.sub(r"\\[A-Za-z]+\s*|[{}~]", " ", printed[0]).strip()
    if star:
        return {environment: Theorem(words, "")}
    within = optional(text, printed[1])
    if shared and counters.name(shared[0]) == environment:  # the alias of its own counter
        pass
    elif shared:
        counters.share(environment, shared[0].strip())
    elif counters.name(environment) == environment:
        counters.declare(environment, within[0].strip() if within else "")
    return {environment: Theorem(words, environment)}


def _declared(text: str, at: int, counters: Counters) -> dict[str, Theorem]:
    before = optional(text, at)
    names = argument(text, before[1] if before else at)
    if names is None:
        return {}
    after = optional(text, names[1])
    options = ",".join(part[0] for part in (before, after) if part)
    pairs = [pair.partition("=") for pair in re.split(r",(?![^{]*\})", options)]
    given = {key.strip(): value.strip().strip("{}") for key, _, value in pairs}
    pick = lambda *keys: next((given[key] for key in keys if key in given), "")
    found = {}
    for environment in (part.strip() for part in names[0].split(",")):
        printed = pick("name", "title", "heading") or environment.capitalize()
        if pick("numbered") == "no":
            found[environment] = Theorem(printed, "")
            continue
        sibling = pick("sibling", "numberlike", "sharenumber", "sharecounter")
        if sibling:
            counters.share(environment, sibling)
        else:
            counters.declare(environment, pick("numberwithin", "within", "parent"))
        found[environment] = Theorem(printed, environment)
    return found


def of_the_class(text: str, known: dict[str, Theorem], counters: Counters, /) -> dict[str, Theorem]:
    """Return the theorem environments that the document's class, not the document, declares.

    The function recognises such an environment, if the document uses it, by its usual name, such as
    "lemma".
    """
    style = re.search(r"\\documentclass\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}", text)
    first = _SHARING.get(style[1].strip().lower() if style else "", "")
    names = dict.fromkeys(re.findall(r"\\begin\s*\{([A-Za-z]+)\}", text))
    found = {}
    for name in names:
        if name in known or (name not in LISTED and name not in ("remark", "example")):
            continue
        if first and first != name:
            counters.values.setdefault(first, 0)
            counters.share(name, first)
        else:
            counters.declare(name)
        found[name] = Theorem(name.capitalize(), name)
    return found
