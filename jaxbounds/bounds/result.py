"""The four papers' bounds for one network, or the reasons against them, as data and tables."""

import textwrap
from dataclasses import dataclass
from typing import Any

from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.own_network import Reason


@with_table
@dataclass(frozen=True, kw_only=True)
class PaperBound:
    """One paper's bound for one network, or all reasons why the bound does not apply.

    Attributes:
        paper: the id of the paper.
        source: the theorem or corollary of the paper that states the bound.
        of: the name of the quantity that the paper bounds, such as the risk.
        reasons: all reasons why the bound does not apply; empty if the bound applies.
        unseen: facts that the bound assumes, but that the parameters do not show.
        assumed: the caller's assumptions about the loss and the probability.
        value: the bound; None without data, or if the bound does not apply.
        trivial: a bound that holds for every network; None if no trivial bound is known.
        from_size: the least number of samples at which the bound is better than `trivial`, if the
            norms stay unchanged. None if `value` is None or the number exceeds 2^60.
        to_size: the largest number of samples at which the bound is better than `trivial`; None if
            the number of samples has no upper limit.
        details: the intermediate quantities of the paper's bound, such as the norms for seqlength,
            or the rank of the prompts for qstr.
        hopeless: whether no change of the network can make the bound apply.
    """

    paper: str
    source: str
    of: str
    reasons: tuple[Reason, ...] = ()
    unseen: tuple[str, ...] = ()
    assumed: str = ""
    value: float | None = None
    trivial: float | None = None
    from_size: int | None = None
    to_size: int | None = None
    details: Any = None
    hopeless: bool = False

    @property
    def applies(self) -> bool:
        """Return whether the paper's bound applies to the network."""
        return not self.reasons

    @property
    def sizes(self) -> str:
        """Return as text how many samples the bound needs to be better than the trivial bound."""
        if self.value is None:
            return ""
        if self.from_size is None:
            return "says nothing below n = 2^60"
        if self.to_size is not None:
            return f"says something up to n = {self.to_size:,}"
        if self.from_size == 1:
            return "says something at every n"
        return f"says something from n = {self.from_size:,} on"

    def _said(self) -> str:
        if self.value is None:
            return f"{self.of}: give data for the number"
        beside = "" if self.trivial is None else f" (trivial: {number(self.trivial)})"
        given = f"; {self.assumed}" if self.assumed else ""
        return f"{self.of}: {number(self.value)}{beside}; {self.sizes}{given}"

    def _rows(self) -> list[tuple[str, str, str]]:
        if self.reasons:
            return [(self.paper, reason.what, reason.where) for reason in self.reasons]
        unseen = f"not seen: {'; '.join(self.unseen)}"
        return [(self.paper, self._said(), self.source)] + [(self.paper, unseen, "")] * bool(
            self.unseen
        )

    def _table(self) -> Table:
        if not self.reasons:
            about = {"bounds": self.of, "in print": self.source, "the bound": number(self.value)}
            about |= {"trivial": number(self.trivial), "sample sizes": self.sizes}
            about |= {"assumed": self.assumed}
            if self.value is None:
                about["the bound"] = "give data for the number"
            pairs = [*about.items(), *(("not seen", one) for one in self.unseen)]
            told = [(name, said) for name, said in pairs if said not in ("", "None")]
            return Table(f"{self.paper}: applies", ("", ""), told)
        title = f"{self.paper}: does not apply ({self.source})"
        rows = [(reason.what, reason.where, reason.change) for reason in self.reasons]
        return Table(title, ("why", "where", "what would have to change"), rows)

    def __str__(self) -> str:
        lines = [*map(str, self.reasons)] or [self._said()]
        said = "\n".join([*lines, *(f"not seen: {one}" for one in self.unseen)])
        applies = "applies" if self.applies else f"does not apply, to bound {self.of}"
        wrapped = (
            textwrap.fill(
                line, 100, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
            )
            for line in said.split("\n")
        )
        head = textwrap.fill(f"{self.paper} {applies} ({self.source})", 100)
        return "\n".join([head, *wrapped])


MEASURED = (
    "these work for any network: jb.weak_convexity(loss, params, data) measures -lambda_min / L, "
    "and jb.Curvature(loss, params, data) computes the eigenvalues of the loss's Hessian"
)
"""The text that the library prints if no bound applies: it names measurements for any network."""


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 100, subsequent_indent="      ", break_on_hyphens=False)


@with_table
@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The results of the four papers for one network; `bounds["seqlength"]` is one paper's result.

    Attributes:
        papers: the results of all papers in a fixed order, including the papers whose bounds do not
            apply.
    """

    papers: tuple[PaperBound, ...]

    @property
    def applying(self) -> tuple[PaperBound, ...]:
        """Return the results of the papers whose bounds apply to the network."""
        return tuple(one for one in self.papers if one.applies)

    def __getitem__(self, paper: str) -> PaperBound:
        """Return the result of one paper.

        Raises:
            KeyError: if no result belongs to a paper with this id.
        """
        found = {one.paper: one for one in self.papers}
        if paper not in found:
            raise KeyError(f"paper={paper!r} has no answer. Try one of: {', '.join(found)}")
        return found[paper]

    @property
    def nearest(self) -> PaperBound | None:
        """Return the result of the paper whose bound needs the fewest changes of the network.

        The result is None if a bound applies, or if no change helps.
        """
        able = [one for one in self.papers if not one.hopeless]
        return None if self.applying else min(able, key=lambda p: len(p.reasons), default=None)

    @property
    def verdict(self) -> str:
        """Return one line: the bounds that apply, or else the bound with the fewest obstacles."""
        if self.applying:
            return f"bounds that apply: {', '.join(one.paper for one in self.applying)}"
        if self.nearest is None:
            return f"none of {len(self.papers)} bounds applies, and no change helps"
        many = len(self.nearest.reasons)
        changes = f"{many} change{'s' * (many != 1)}"
        return (
            f"none of {len(self.papers)} bounds applies; nearest: {self.nearest.paper}, {changes}"
        )

    def _obstacles(self) -> list[tuple[str, Reason, dict[str, list[str]]]]:
        """Return (papers, reason, changes) for each distinct reason why a bound does not apply."""
        found: dict[str, tuple[list[str], Reason, dict[str, list[str]]]] = {}
        for one in self.papers:
            for reason in () if one.hopeless else one.reasons:
                papers, first, changes = found.setdefault(reason.what, ([], reason, {}))
                paths = (*first.paths, *(p for p in reason.paths if p not in first.paths))
                found[reason.what] = papers, first._replace(paths=paths), changes
                papers.append(one.paper)
                changes.setdefault(reason.change, []).append(one.paper)
        return [(", ".join(papers), first, changes) for papers, first, changes in found.values()]

    def __str__(self) -> str:
        lines = [self.verdict]
        lines += [str(one) for one in self.applying]
        for papers, reason, changes in self._obstacles():
            where = f" at {reason.where}" if reason.paths else ""
            lines.append(_wrapped(f"{papers}: {reason.what}{where}"))
            for change, whose in changes.items():
                for_whom = f" for {', '.join(whose)}" if len(changes) > 1 else ""
                lines.append(_wrapped(f"  change{for_whom}: {change}"))
        if self.nearest is not None:
            kinds: dict[str, list[str]] = {}
            for one in self.nearest.unseen:
                kinds.setdefault(one.split(" at ")[0], []).append(one)
            for first, *others in kinds.values():
                more = f" (and {len(others)} like it)" if others else ""
                lines.append(_wrapped(f"not seen for {self.nearest.paper}: {first}{more}"))
            lines.append(_wrapped(MEASURED))
        return "\n".join(lines)

    def _table(self) -> Table:
        rows = [row for one in self.applying for row in one._rows()]
        rows += [(papers, reason.what, reason.where) for papers, reason, _ in self._obstacles()]
        title = f"{self.verdict}; print it for what would have to change"
        return Table(title, ("paper", "bound, or why there is none", "where"), rows)
