"""A witness as it is written: JSON with exact numbers, enclosures of both sides, and a digest."""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .intervals import FIELD, interval

FORMAT = "jaxbounds witness 1"


class BadWitness(ValueError):
    """A witness that cannot be read, or whose digest is not that of its content."""


def digest(document: dict[str, Any]) -> str:
    """SHA-256 of the document without its digest: sorted keys, no spaces, ASCII."""
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def exact(leaf: dict[str, Any], name: str) -> Any:
    """A Fraction, or an array of them in the stated shape."""
    shape, entries = tuple(leaf["shape"]), [Fraction(text) for text in leaf["exact"]]
    if len(entries) != int(np.prod(shape, dtype=int)):
        raise BadWitness(
            f"'{name}' says shape {shape} and lists {len(entries)} numbers: write as many as the "
            "shape has entries"
        )
    if not shape:
        return entries[0]
    found = np.empty(len(entries), object)
    found[:] = entries
    return found.reshape(shape)


def enclosure(ends: list[str]) -> Any:
    """The interval between two decimals."""
    lower, upper = (Fraction(text) for text in ends)
    if lower > upper:
        raise BadWitness(f"an enclosure from {ends[0]} to {ends[1]} is empty: swap its ends")
    return FIELD.mpf([interval(lower).a, interval(upper).b])


@dataclass(frozen=True)
class Witness:
    """What a certificate says, with exact numbers.

    Attributes:
        statement: its id.
        form: the name of the failing form.
        relation: "<=" or "=", claimed of the two sides and violated by them.
        size: static integers.
        instance: Fractions and arrays of Fractions, by name.
        entry: of an identity, the entry of the flattened sides that differs most.
        lhs, rhs: intervals that contain the sides (at `entry`).
    """

    statement: str
    form: str
    relation: str
    size: dict[str, int]
    instance: dict[str, Any]
    entry: int
    lhs: Any
    rhs: Any

    def __getitem__(self, name: str) -> Any:
        return self.instance[name]

    def whole(self, name: str) -> int:
        """A number of the instance that has to be an integer."""
        value = self.instance[name]
        if value.denominator != 1:
            raise BadWitness(f"'{name}' is {value}, and an integer is expected")
        return int(value)


def read(document: dict[str, Any]) -> Witness:
    """The witness of a parsed file.

    Raises:
        BadWitness: another format, a field that is missing or malformed, or a digest that does
            not match.
    """
    if document.get("format") != FORMAT:
        raise BadWitness(f"format '{FORMAT}' is expected, '{document.get('format')}' came")
    if document.get("digest") != digest(document):
        raise BadWitness("the digest does not match the content: the file was changed; write anew")
    try:
        instance = {name: exact(leaf, name) for name, leaf in document["instance"].items()}
        lhs, rhs = enclosure(document["lhs"]), enclosure(document["rhs"])
        return Witness(
            statement=document["statement"],
            form=document["form"],
            relation=document["relation"],
            size=document["size"],
            instance=instance,
            entry=document["entry"] or 0,
            lhs=lhs,
            rhs=rhs,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, BadWitness):
            raise
        raise BadWitness(f"a field is missing or is no exact number: {error!r}") from error
