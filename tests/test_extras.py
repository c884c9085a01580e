"""`verify` and `Curvature` need the hard dependencies alone; an error names any other extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def _run(text):
    return subprocess.run([sys.executable, "-c", WITHOUT + text], capture_output=True, text=True)


def test_claims_and_curvature_work_without_the_extras():
    done = _run(CLAIM)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import jaxbounds.experiments.results",
        "import jaxbounds as jb; jb.run('multihead.fig2')",
        "import jaxbounds as jb, jax.numpy as jnp\n"
        "m = jb.CurvatureMonitor(lambda x: jnp.sum(x**4), every=1)\n"
        "m(0, jnp.ones(3))\nm.dataset()",
    ],
)
def test_what_needs_an_extra_names_it(text):
    done = _run(text)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    words = r"need module='xarray', which is not installed. Try pip install 'jaxbounds\[exp"
    assert re.search(f"ModuleNotFoundError: .* {words}", last)


def test_the_command_names_it_in_a_line():
    done = _run("from jaxbounds.cli import main; sys.exit(main(['run', 'multihead.fig2']))")
    assert done.returncode == 2
    assert done.stderr == (
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
