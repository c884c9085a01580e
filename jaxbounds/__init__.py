"""Learning theory on Transformers that runs.

The papers' statements live in `jaxbounds.<paper>.statements`; `jaxbounds.falsify` measures them.
Importing this package touches no device and changes no setting of JAX.
"""

__version__ = "0.1.0"
