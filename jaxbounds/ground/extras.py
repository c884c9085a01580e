"""Optional packages: `require` refuses an absent package and names the extra that installs it."""

import importlib.util

PACKAGES = {
    "h5netcdf": "experiments",
    "h5py": "experiments",
    "pylatexenc": "latex",
    "xarray": "experiments",
}
"""The modules of optional packages; each key gives the extra in `pyproject.toml` that installs it.
"""


def require(*modules: str, why: str) -> None:
    """Raise an error if a module of an extra is absent.

    Args:
        modules: the names of modules; each is a key of `PACKAGES`.
        why: a plural noun for the parts of the library that need the modules, such as
            "experiments".

    Raises:
        ModuleNotFoundError: if a module is absent; the message names the extra.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"{why} need {module}. Try pip install 'jaxbounds[{PACKAGES[module]}]'", name=module
            )
