"""Packages of extras: an import of an absent one fails with the name of its extra."""

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
        modules: names that `import` takes, from `PACKAGES`.
        why: the plural noun that needs them, for the message: "experiments".

    Raises:
        ModuleNotFoundError: if a module is absent; the message names the extra.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"{why} need {module}. Try pip install 'jaxbounds[{PACKAGES[module]}]'", name=module
            )
