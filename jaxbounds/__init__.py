"""Learning theory on Transformers that runs.

`import jaxbounds as jb` gives the names below. Each is imported when it is first asked for: the
package itself touches no device and changes no setting of JAX. `jb.falsify` is both the function
and the package of its parts.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxbounds.certify import disprove, enclose, prove
    from jaxbounds.constants.constant import sharp_constant
    from jaxbounds.curvature import (
        CurvatureMonitor,
        hessian_extremes,
        spectrum,
        trace,
        weak_convexity,
    )
    from jaxbounds.falsify import load_instance, notices, replay, verification
    from jaxbounds.falsify.engine import falsify
    from jaxbounds.multihead.certificate import certify as certify_descent
    from jaxbounds.papers import find_experiment as experiment
    from jaxbounds.papers import find_statement as statement
    from jaxbounds.papers import load_paper
    from jaxbounds.qstr.span import feedforward_certificate as certify_feedforward
    from jaxbounds.seqlength.certificate import certify as certify_generalization
    from jaxbounds.statements import (
        Budget,
        Counterexample,
        Domain,
        Erratum,
        Form,
        Paper,
        Sides,
        Statement,
    )
    from jaxbounds.sweeps import lanes_of, sweep

__version__ = "0.2.0"
__all__ = [
    "Budget",
    "Counterexample",
    "CurvatureMonitor",
    "Domain",
    "Erratum",
    "Form",
    "Paper",
    "Sides",
    "Statement",
    "certify_descent",
    "certify_feedforward",
    "certify_generalization",
    "disprove",
    "enclose",
    "experiment",
    "falsify",
    "hessian_extremes",
    "lanes_of",
    "load_instance",
    "load_paper",
    "notices",
    "prove",
    "replay",
    "sharp_constant",
    "spectrum",
    "statement",
    "sweep",
    "trace",
    "verification",
    "weak_convexity",
]

_WHERE = {
    "Budget": "statements",
    "Counterexample": "statements",
    "CurvatureMonitor": "curvature",
    "Domain": "statements",
    "Erratum": "statements",
    "Form": "statements",
    "Paper": "statements",
    "Sides": "statements",
    "Statement": "statements",
    "certify_descent": "multihead.certificate:certify",
    "certify_feedforward": "qstr.span:feedforward_certificate",
    "certify_generalization": "seqlength.certificate:certify",
    "disprove": "certify",
    "enclose": "certify",
    "experiment": "papers:find_experiment",
    "hessian_extremes": "curvature",
    "lanes_of": "sweeps",
    "load_instance": "falsify",
    "load_paper": "papers",
    "notices": "falsify",
    "prove": "certify",
    "replay": "falsify",
    "sharp_constant": "constants.constant",
    "spectrum": "curvature",
    "statement": "papers:find_statement",
    "sweep": "sweeps",
    "trace": "curvature",
    "verification": "falsify",
    "weak_convexity": "curvature",
}


def __getattr__(name: str) -> Any:
    """A public name, imported on first use."""
    if name == "falsify":
        return importlib.import_module("jaxbounds.falsify")
    if name not in _WHERE:
        raise AttributeError(f"module 'jaxbounds' has no attribute {name!r}")
    module, _, own = _WHERE[name].partition(":")
    found = getattr(importlib.import_module(f"jaxbounds.{module}"), own or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
