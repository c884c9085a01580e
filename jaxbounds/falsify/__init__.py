"""From a statement to a verdict: sampling, search for the worst instance, decision, replay."""

from jaxbounds.falsify.decide import Verdict
from jaxbounds.falsify.engine import falsify, replay, unmeasured
from jaxbounds.falsify.intervals import clopper_pearson, fitted_exponent
from jaxbounds.falsify.measure import Measured, hypothesis_names, measure, verification
from jaxbounds.falsify.programs import UNKEPT, Programs
from jaxbounds.falsify.storage import StoredInstance, load_instance, save_instance

__all__ = [
    "UNKEPT",
    "Measured",
    "Programs",
    "StoredInstance",
    "Verdict",
    "clopper_pearson",
    "falsify",
    "fitted_exponent",
    "hypothesis_names",
    "load_instance",
    "measure",
    "replay",
    "save_instance",
    "unmeasured",
    "verification",
]
