"""Formulas written as plain text, set with real subscripts, Greek letters and signs.

Only what cannot be misread is replaced: names that are words of their own, subscripts and
superscripts whose extent is clear, and signs. Everything else stays as it was written.
"""

import re

from jaxbounds.report.markup import Html, element, escaped, joined

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ",
    "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "grad": "∇",
}  # fmt: skip
_SIGNS = {
    "<=": "≤", ">=": "≥", "!=": "≠", "<~": "≲", "=>": "⇒", "->": "→", "<-": "←", "+-": "±",
    "||": "‖", "...": "…", "..": "…", "-": "−", "x": "×",
}  # fmt: skip
_SYMBOL = r"(?:[A-Za-z]\b|[A-Za-z]+[_^(]|\(|\||" + "|".join(rf"{name}\b" for name in _GREEK) + ")"
_TOKEN = re.compile(
    rf"""
    (?P<quoted>(?<![\w)|\]}}'])'[^']+'(?![\w']))
    |(?P<root>sqrt(?=\())
    |(?P<big>(?<!the\ )\b(?:sum|prod)(?=_|\ {_SYMBOL})|\bint(?=_))
    |(?P<times>(?<=\d\ )x(?=\ the\b))
    |(?P<word>[A-Za-z]+\d*)
    |(?P<shift>(?<=[\w|)\]}}'~*#])[_^](?=[\w{{(\[*+]|-\w))
    |(?P<bracket><(?=[A-Za-z](?![^<>]*<[ =]))|(?<=[\w)\]'])>(?!=))
    |(?P<minus>(?<=[\ (=])-(?=[\w(|])|(?<=\ )-(?=\ ))
    |(?P<prime>')
    |(?P<sign><=|>=|!=|<~|=>|->|<-(?!\d)|\+-|\|\||\.\.\.|(?<!\.)\.\.)
    |(?P<other>\d+(?:\.\d+)?|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PRIMED = re.compile(rf"(?:(?<![A-Za-z])[A-Za-z]|{'|'.join(_GREEK)}|[\d)|}}])'*$")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def _group(text: str, start: int) -> int:
    """The end of the bracketed group that starts there, or of the single word or number."""
    if text[start] in _CLOSING:
        opening, depth = text[start], 0
        for end in range(start, len(text)):
            depth += (text[end] == opening) - (text[end] == _CLOSING[opening])
            if depth == 0:
                return end + 1
        return len(text)
    one = re.compile(r"-?\d+(?:\.\d+)?|-?[A-Za-z]+\d*|.").match(text, start)
    return one.end() if one else start


def _word(text: str, match: re.Match) -> Html:
    word = match.group()
    name = word.rstrip("0123456789")
    if name in _GREEK:
        return Html(_GREEK[name] + word[len(name) :])
    follows = text[match.end() :]
    article = word in "aA" and re.match(r" [a-z]{3,}", follows)
    # The letter in "Appendix A", "Lemma C.1" or after an apostrophe is no symbol.
    label = re.match(r"\.\d", follows) or re.search(r"(Appendix |')$", text[: match.start()])
    if len(word) > 1 or article or label:
        return escaped(word)
    return element("i", word)


def _inner(text: str) -> Html:
    """A sub- or superscript: braces only group, and `inf` is infinity there."""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    return typeset(re.sub(r"\binf(?:inity|ty)?\b", "∞", text))


def typeset(text: str, /) -> Html:
    """A formula, or prose that contains formulas, as HTML."""
    text = " ".join(text.split())
    parts: list[Html] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match, "its last alternative is any character"
        kind, token, position = match.lastgroup, match.group(), match.end()
        if kind == "root" and text[_group(text, position) - 1] == ")":
            end = _group(text, position)
            radicand = element("span", typeset(text[position + 1 : end - 1]), class_="radicand")
            parts.append(joined("√", radicand))
            position = end
        elif kind == "shift":
            end = _group(text, position)
            name = "sub" if token == "_" else "sup"
            parts.append(element(name, _inner(text[position:end])))
            position = end
        elif kind == "word":
            parts.append(_word(text, match))
        elif kind == "big":
            parts.append(Html({"sum": "∑", "prod": "∏", "int": "∫"}[token]))
        elif kind == "quoted":
            parts.append(joined("‘", typeset(token[1:-1]), "’"))
        elif kind == "prime":
            # An apostrophe where it does not follow a symbol.
            genitive = re.match(r"s\b", text[position:])
            primed = not genitive and _PRIMED.search(text[: match.start()])
            parts.append(Html("′" if primed else "’"))
        elif kind == "bracket":
            parts.append(Html("⟨" if token == "<" else "⟩"))
        elif kind in ("sign", "minus", "times"):
            parts.append(Html(_SIGNS[token]))
        else:
            parts.append(escaped(token))
    return joined(*parts)
