"""`verify` and `Curvature` need the hard dependencies alone; an error names any other extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from jaxbounds.ground.extras import PACKAGES, require

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
WITHOUT = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {[*PACKAGES]}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.split(".")[0] in {[*PACKAGES]} else found(name, package))
"""
CLAIM = """
import jax, jax.numpy as jnp, jaxbounds as jb
found = jb.find_violation(lambda x: x * x, lambda x: 1.0 + x * x, over={"x": jb.Reals()})
assert not found, found
H = jb.Curvature(lambda x: jnp.sum(x ** 4), jnp.ones(3))
assert abs(float(H.extremes().maximum) - 12) < 1e-3
import jaxbounds.cli.verify
from jaxbounds.papers import load_papers
load_papers()
"""


NEEDY = (
    "import jaxbounds.experiments.results",
    "jb.run('multihead.fig2')",
    "m = jb.CurvatureMonitor(lambda x: jnp.sum(x**4), every=1)\nm(0, jnp.ones(3))\nm.dataset()",
)
"""Calls that need an extra."""
ASKED = f"""
for text in {NEEDY}:
    try:
        exec(text)
    except ModuleNotFoundError as problem:
        print(problem)
from jaxbounds.cli import main
print(main(["run", "multihead.fig2"]))
"""


def test_without_the_extras_claims_and_curvature_work_and_what_needs_one_names_it():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + CLAIM + ASKED], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *said, status = done.stdout.splitlines()
    words = r"need module='xarray', which is not installed. Try pip install 'jaxbounds\[exp"
    assert len(said) == len(NEEDY) and all(re.search(words, line) for line in said), said
    assert status == "2" and done.stderr == (
        "jaxbounds: results need module='xarray', which is not installed. Try pip install "
        "'jaxbounds[experiments]'\n"
    )


def test_each_package_is_in_the_extra_that_is_named():
    for package, extra in PACKAGES.items():
        names = [re.split(r"[<>=\[]", one)[0] for one in PROJECT["optional-dependencies"][extra]]
        assert package in [name.replace("-", "_") for name in names], package
        assert not any(one.startswith(package) for one in PROJECT["dependencies"]), package


def test_what_is_there_is_required_without_a_word():
    require(*PACKAGES, why="tests")
