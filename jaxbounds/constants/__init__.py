"""The sharp constant of an inequality: the least C with lhs <= C rhs, from a search.

`jaxbounds.sharp_constant` searches for the supremum of lhs/rhs of an inequality lhs <= rhs, at each
size of the arrays. The result shows how loose the inequality is, how the looseness depends on the
shapes, and which instance or limit is the worst. The result has a closed form if the certified
digits determine a formula. Every constant is a lower estimate of the supremum. This module needs no
optional package; the search and the certificates are in `jaxbounds.constants.constant`.
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
