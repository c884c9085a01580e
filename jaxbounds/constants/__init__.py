"""From an inequality to its sharp constant (the extra `constants`).

`jaxbounds.sharp_constant` looks for the supremum of lhs/rhs of a form at each size: how loose it
is, how that depends on the shapes, at which instance or in which limit, and in closed form where
certified digits allow one. Everything found is a lower estimate.

This face needs no extra; what searches and certifies is in `jaxbounds.constants.constant`.
"""

from jaxbounds.constants.closed_form import ClosedForm, closed_form
from jaxbounds.constants.dependence import Exponent, dependence
from jaxbounds.constants.on_record import constants_on_record
from jaxbounds.constants.result import MEANING, AtSize, SharpConstant
from jaxbounds.constants.sizes import parse

__all__ = [
    "MEANING",
    "AtSize",
    "ClosedForm",
    "Exponent",
    "SharpConstant",
    "closed_form",
    "constants_on_record",
    "dependence",
    "parse",
]
