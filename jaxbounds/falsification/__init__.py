"""The engine: it draws instances, searches for the worst instance, and decides on a verdict.

The engine also measures stored instances again. Users call `jaxbounds.falsify`, which also asks
ball arithmetic (arithmetic with rigorous error bounds) about violations as small as rounding
errors.
"""

from jaxbounds.claims.statements import ON_AVERAGE
from jaxbounds.falsification.bench import counterexample_of, fitted, refuse_other_shapes
from jaxbounds.falsification.binding import bindings, is_bound_to
from jaxbounds.falsification.can_fail import can_fail, forms_that_cannot_fail
from jaxbounds.falsification.engine import replay, unmeasured, verdicts_on
from jaxbounds.falsification.examples import Examples
from jaxbounds.falsification.intervals import clopper_pearson, fitted_exponent
from jaxbounds.falsification.measure import Measured, float64_on_cpu, hypothesis_names, measure
from jaxbounds.falsification.planting import planted
from jaxbounds.falsification.programs import UNKEPT, Programs
from jaxbounds.falsification.rules import problems_of
from jaxbounds.falsification.second_opinion import TRUE, Referee, no_referee
from jaxbounds.falsification.storage import StoredInstance, load_instance, save_instance
from jaxbounds.falsification.verdict import Verdict

__all__ = [
    "ON_AVERAGE",
    "TRUE",
    "UNKEPT",
    "Examples",
    "Measured",
    "Programs",
    "Referee",
    "StoredInstance",
    "Verdict",
    "bindings",
    "can_fail",
    "clopper_pearson",
    "counterexample_of",
    "fitted",
    "fitted_exponent",
    "float64_on_cpu",
    "forms_that_cannot_fail",
    "hypothesis_names",
    "is_bound_to",
    "load_instance",
    "measure",
    "no_referee",
    "planted",
    "problems_of",
    "refuse_other_shapes",
    "replay",
    "save_instance",
    "unmeasured",
    "verdicts_on",
]
