"""Learning theory on Transformers that runs.

`import jaxbounds as jb` gives the names that `__init__.pyi` lists. Each is imported when it is
first asked for: the package itself touches no device and changes no setting of JAX.
"""

import lazy_loader

from jaxbounds.ground.moved import serve_old_names as _serve_old_names
from jaxbounds.version import __version__ as __version__

_serve_old_names()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
