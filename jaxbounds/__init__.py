"""Learning theory on Transformers that runs.

The package measures the claims of learning-theory papers, searches for their worst case, and stores
a counterexample where a claim fails. Try it on a claim of yours:

    import jaxbounds as jb

    ball = {"x": jb.Ball(1, "d")}
    print(jb.find_violation(lambda x: abs(x).sum(), 1.9, over=ball, sizes={"d": (2, 4)}))

The code prints a violation: the ratio of the two sides, the instance, and its size. Next type
`print(jb.verify("multihead.cor1.3"))` for a verdict on a claim of a paper, or `jaxbounds guide` in
a shell for pages to read.

`dir(jb)` lists the public names. Each name is imported when it is first asked for: the package
itself touches no device and changes no setting of JAX.
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

    return experiment.Claim  # warns that the next release drops the name
