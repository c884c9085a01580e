"""From a statement to a verdict: sampling, search for the worst instance, decision, replay.

The package can be called: `jaxbounds.falsify(statement)` is `jaxbounds.falsify.falsify(statement)`.
"""

import sys
import types

from jaxbounds.falsify.bench import counterexample_of, fitted, refuse_other_shapes
from jaxbounds.falsify.binding import noticed, notices, planted
from jaxbounds.falsify.decide import ON_AVERAGE
from jaxbounds.falsify.engine import falsify, replay, unmeasured
from jaxbounds.falsify.examples import Examples
from jaxbounds.falsify.intervals import clopper_pearson, fitted_exponent
from jaxbounds.falsify.measure import Measured, hypothesis_names, measure, verification
from jaxbounds.falsify.programs import UNKEPT, Programs
from jaxbounds.falsify.storage import StoredInstance, load_instance, save_instance
from jaxbounds.falsify.verdict import Verdict

__all__ = [
    "ON_AVERAGE",
    "UNKEPT",
    "Examples",
    "Measured",
    "Programs",
    "StoredInstance",
    "Verdict",
    "clopper_pearson",
    "counterexample_of",
    "falsify",
    "fitted",
    "fitted_exponent",
    "hypothesis_names",
    "load_instance",
    "measure",
    "noticed",
    "notices",
    "planted",
    "refuse_other_shapes",
    "replay",
    "save_instance",
    "unmeasured",
    "verification",
]


class _Package(types.ModuleType):
    """The public face has the function under the name of this package."""

    __call__ = staticmethod(falsify)


sys.modules[__name__].__class__ = _Package
