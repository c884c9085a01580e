"""Checks witnesses of false statements: in interval arithmetic, written from the papers' formulas.

It shares no code with what wrote the witnesses, and needs numpy and mpmath only:
`python -m checker FILE ...` in the folder above prints a verdict for each.
"""

from . import multihead, qstr, seqlength, smapprox
from .judge import CHECKS, GAP, Sides, Verdict, check
from .witness import BadWitness, Witness, digest, read

__all__ = [
    "CHECKS",
    "GAP",
    "BadWitness",
    "Sides",
    "Verdict",
    "Witness",
    "check",
    "digest",
    "multihead",
    "qstr",
    "read",
    "seqlength",
    "smapprox",
]
