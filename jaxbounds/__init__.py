"""Learning theory on Transformers that runs.

`import jaxbounds as jb` gives the names that `__init__.pyi` lists. Each is imported when it is
first asked for: the package itself touches no device and changes no setting of JAX.
"""

from typing import Any

import lazy_loader

from jaxbounds.ground.moved import serve_old_names as _serve_old_names
from jaxbounds.version import __version__ as __version__

_serve_old_names()

_listed, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name != "Claim":
        return _listed(name)
    from jaxbounds.experiments import experiment

    return experiment.Claim  # which warns: the name goes with the next release
