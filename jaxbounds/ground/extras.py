"""Check for optional packages: `require` names the pip extra that installs an absent package."""

import importlib.util

PACKAGES = {
    "h5netcdf": "experiments",
    "h5py": "experiments",
    "pylatexenc": "latex",
    "xarray": "experiments",
}
"""A dict from the module of each optional package to the pip extra that installs the package.
"""


def require(*modules: str, why: str) -> None:
    """Raise an error if an optional module is absent, and name the pip extra that installs it.

    The text `why` names the parts of the library that need the modules, as a plural noun.

    Raises:
        ModuleNotFoundError: if a module is absent; the message names the extra.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"{why} need {module=}, which is not installed. Try pip install "
                f"'jaxbounds[{PACKAGES[module]}]'",
                name=module,
            )
