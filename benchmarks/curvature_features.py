"""A table of features of four libraries of curvature, each tried on a network of 20 numbers.

A try compares with the dense matrix of automatic differentiation, and ends in `works`, `wrong`,
`refuses` (an error), `by hand` (the user writes it, and it works), or `not there` (the package has
nothing for it; the evidence is a search of its public names). Another verdict says what is missing.
matfree takes a product that the user writes, so that all that concerns parameters and data is by
hand there. The evidence follows each verdict.

Run: python benchmarks/curvature_features.py [--only PATTERN]
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import importlib
import pkgutil
import re
import warnings
from importlib.util import find_spec

import tyro
from curvature_libraries import LIBRARIES
from features_jax import matfree, ours
from features_torch import curvlinops, eigenthings

FEATURES: dict[str, tuple[str, ...]] = {
    "tied weights": ("tied", "shar"),
    "batches of 8 and 4 examples": ("batch",),
    "a DataLoader, read again": ("loader", "stream"),
    "a generator, read once": ("generator",),
    "greatest eigenvalues, residuals, flag": ("eig", "lanczos"),
    "both ends from one call": ("extreme", "ends"),
    "density": ("dens", "spectr"),
    "trace with its error": ("trace",),
    "diagonal with its error": ("diag",),
    "log-determinant with its error": ("logdet", "log_det"),
    "f(H) v": ("funm", "inverse", "apply"),
    "Gauss-Newton matrix": ("ggn", "gauss"),
    "empirical Fisher matrix": ("empirical", "ef"),
    "Fisher by sampling": ("mc", "sampled"),
    "KFAC": ("kfac",),
    "Adam's sharpness": ("precond",),
    "gradient noise": ("noise",),
    "block of a layer": ("block", "filter"),
    "block of an attention head": ("head",),
    "monitor of a run, resumed": ("monitor", "callback"),
    "SciPy operator": ("scipy",),
    "several vectors at once": ("matmat",),
    "sums of operators": ("add",),
    "several devices": ("ddp", "shard", "distributed", "device"),
    "an error where the loss is NaN": ("finite",),
    "refusal before memory is short": ("memory",),
    "product without a second derivative": ("finite_difference",),
    "inside of jit and vmap": ("vmap",),
    "derivative of an eigenvalue": ("vjp",),
    "Jacobian and its singular values": ("jacobian", "svd"),
}


def names_of(package: str) -> set[str]:
    """The public names of a package, of its modules and of its classes, in lower case."""
    root = importlib.import_module(package)
    found = set()
    modules = [package]
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            modules.append(module.name)
    for name in modules:
        if ".backend" in name or name.endswith(".test_util"):
            continue
        module = importlib.import_module(name)
        found |= {name.rsplit(".", 1)[-1]}
        for public, thing in vars(module).items():
            if public.startswith("_") or getattr(thing, "__module__", name) != name:
                continue
            found.add(public)
            if isinstance(thing, type):
                found |= {n for n in vars(thing) if not n.startswith("_")}
    return {name.lower() for name in found}


TRIES = {
    "jaxbounds": ours, "matfree": matfree, "hessian-eigenthings": eigenthings,
    "curvlinops": curvlinops,
}  # fmt: skip


def main(only: str = "") -> None:
    """Try each feature whose name a regular expression finds."""
    warnings.simplefilter("ignore")
    table: dict[str, dict[str, str]] = {
        feature: {} for feature in FEATURES if re.search(only, feature)
    }
    for library, make in TRIES.items():
        package = LIBRARIES[library][1]
        if not find_spec(package):
            print(f"{library} is not installed here, and is left out.")
            continue
        tries = make()
        package = "jaxbounds.networks.curvature" if library == "jaxbounds" else package
        names = names_of(package)
        for feature in table:
            try:
                words = ", ".join(FEATURES[feature])
                like = sorted(n for n in names if any(w in n for w in FEATURES[feature]))
                there = f"no name like {words}" if not like else f"names {', '.join(like[:4])}"
                verdict, said = tries.get(feature, lambda said=there: ("not there", said))()
            except Exception as problem:
                verdict = "refuses"
                said = f"{type(problem).__name__}: {str(problem).splitlines()[0][:90]}"
            table[feature][library] = verdict
            print(f"{feature:<38} {library:<20} {verdict:<10} {said}", flush=True)
    for feature, row in table.items():
        print(f"| {feature} | " + " | ".join(row.values()) + " |")


if __name__ == "__main__":
    tyro.cli(main)
