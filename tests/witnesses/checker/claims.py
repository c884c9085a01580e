"""What is confirmed: one claim a form, declared here next to its recomputation, not by a witness.

A witness is compared with it before anything is computed: relation, formula, text, sizes, shapes
and types. When a statement changes its words, its claims here change by hand: `Claim.renewed` says
how.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .witness import KINDS, Witness, need, said

Recompute = Callable[[Witness], Any]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a form says of an instance.

    Attributes:
        statement: its id.
        form: the name of the form.
        lhs, relation, rhs: what is recomputed and compared, in the words of this checker; the
            relation is "<=" or "=".
        formula: the statement's, word for word.
        text: the digest of the witness's other words, `text_digest`.
        size: the sizes, by name or as NAME=NUMBER: "n T d H=1". One without a number follows from
            the shapes.
        leaves: of each array its type (of `KINDS`) and its shape, in names and numbers: "f T d".
            A name stands for one number throughout.
        recompute: from a witness to both sides.
    """

    statement: str
    form: str
    lhs: str
    relation: str
    rhs: str
    formula: str
    text: str
    size: str
    leaves: Mapping[str, str]
    recompute: Recompute

    def __str__(self) -> str:
        return f"{self.lhs} {self.relation} {self.rhs}"

    @property
    def place(self) -> str:
        """Where it is declared."""
        code = self.recompute.__code__
        folder, file = code.co_filename.split("/")[-2:]
        return f"the decorator of {self.recompute.__name__} in checker/{folder}/{file}"

    def admit(self, witness: Witness) -> None:
        """Goes on only with a witness of this claim.

        Raises:
            BadWitness: naming the first thing that differs.
        """
        need(
            witness.relation == self.relation,
            f"the relation is '{self.relation}', and {said(witness.relation)} came",
        )
        need(
            witness.formula == self.formula,
            f"the formula is not the registered one: {said(witness.formula)} came",
        )
        need(
            text_digest(witness.text) == self.text,
            f"other words than the registered ones: {', '.join(witness.text)}",
        )
        index = witness.entry is not None
        need(
            index == (self.relation == "="),
            f"'entry' is {said(witness.entry)}: an index for '=', null for '<='",
        )
        self._fit(witness)

    def _fit(self, witness: Witness) -> None:
        """Types, shapes and sizes."""
        expected, came = set(self.leaves), set(witness.instance)
        need(
            expected == came,
            f"the instance is of {', '.join(sorted(expected))}, "
            f"and {', '.join(map(said, sorted(came)[:20]))} came",
        )
        sizes = dict(part.split("=") for part in self.size.split() if "=" in part)
        known = {name: int(number) for name, number in sizes.items()}
        for name, leaf in self.leaves.items():
            kind, *dimensions = leaf.split()
            found = witness.kinds[name]
            need(found == kind, f"'{name}' is of type {kind}, and {found} came")
            shape = np.shape(witness[name])
            fits = len(shape) == len(dimensions) and all(
                number == (int(d) if d.isdigit() else known.setdefault(d, number))
                for d, number in zip(dimensions, shape)
            )
            stated = [d if d.isdigit() else f"{d} = {known.get(d, '?')}" for d in dimensions]
            need(fits, f"'{name}' has the shape ({', '.join(stated)}), and {shape} came")
        right = {name: known[name] for name in (part.split("=")[0] for part in self.size.split())}
        need(
            witness.size == right,
            f"the size of this instance is {right}, and another one came",
        )

    def renewed(self, witness: Witness) -> str:
        """What to write so that a witness whose words have changed is one of this claim."""
        text = text_digest(witness.text)
        said_so = f"formula={json.dumps(witness.formula)}, text={json.dumps(text)}"
        return f"{self.statement}, '{self.form}': in {self.place} write {said_so}"


CLAIMS: dict[tuple[str, str], Claim] = {}
"""The claims by statement and form."""


def checks(
    statement: str,
    form: str,
    claim: tuple[str, str, str],
    *,
    formula: str,
    text: str,
    leaves: Mapping[str, str],
    size: str = "",
) -> Callable[[Recompute], Recompute]:
    """Registers a recomputation for a form; what the arguments are is said at `Claim`."""
    lhs, relation, rhs = claim
    kinds = {leaf.split()[0] for leaf in leaves.values()}
    if relation not in ("<=", "=") or not kinds <= set(KINDS) or (statement, form) in CLAIMS:
        raise ValueError(f"{statement}, '{form}': one claim of '<=' or '=' and types {set(KINDS)}")

    def register(function: Recompute) -> Recompute:
        CLAIMS[statement, form] = Claim(
            statement=statement,
            form=form,
            lhs=lhs,
            relation=relation,
            rhs=rhs,
            formula=formula,
            text=text,
            size=size,
            leaves=leaves,
            recompute=function,
        )
        return function

    return register


def text_digest(text: Mapping[str, Any]) -> str:
    """128 bits of SHA-256 of a witness's words, as JSON with sorted keys and no spaces."""
    content = json.dumps(dict(text), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()[:32]
