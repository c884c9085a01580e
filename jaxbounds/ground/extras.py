"""Packages of extras: `require` refuses an absent package and names the extra that installs it."""

import importlib.util

PACKAGES = {
    "h5netcdf": "experiments",
    "h5py": "experiments",
    "pylatexenc": "latex",
    "xarray": "experiments",
}
"""Modules and the extra of `pyproject.toml` that installs each."""


def require(*modules: str, why: str) -> None:
    """Refuse to go on without modules of an extra.

    Args:
        modules: names of modules, from `PACKAGES`.
        why: a plural noun for the parts of the library that need them, as "experiments".

    Raises:
        ModuleNotFoundError: if a module is absent; the message names the extra.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"{why} need {module}. Try pip install 'jaxbounds[{PACKAGES[module]}]'", name=module
            )
