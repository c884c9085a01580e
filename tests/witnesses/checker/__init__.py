"""Checks witnesses of false statements: in interval arithmetic, written from the papers' formulas.

It shares no code with what wrote the witnesses, and needs numpy and mpmath only:
`python -m checker FILE ...` in the folder above prints a verdict for each.
"""

from . import multihead, qstr, seqlength, smapprox
from .claims import CLAIMS, Claim, text_digest
from .judge import GAP, Sides, Verdict, check
from .witness import BadWitness, Witness, digest, parse, read

__all__ = [
    "CLAIMS",
    "GAP",
    "BadWitness",
    "Claim",
    "Sides",
    "Verdict",
    "Witness",
    "check",
    "digest",
    "multihead",
    "parse",
    "qstr",
    "read",
    "seqlength",
    "smapprox",
    "text_digest",
]
