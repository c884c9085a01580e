"""Every program of every experiment lowers for machines that are not here: a TPU, a CUDA GPU."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxbounds.experiments.provenance import asked_for
from jaxbounds.papers import experiments

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
LOWERING = runpy.run_path(str(BENCHMARKS / "lowering.py"))
FLOAT64 = {
    "multihead.looseness",
    "multihead.ntk",
    "qstr.constructions",
    "seqlength.comparison",
    "seqlength.majority",  # its bounds; it trains in float32
    "smapprox.margins",
}
"""Which a TPU only imitates."""
HIGHEST = {"multihead.fig4", "multihead.fig5", "multihead.fig6"}
"""Whose products of matrices are all told so; other figures of that paper have none."""
QUICK = ("multihead.fig4", "smapprox.machine")
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in experiments()
]


@pytest.mark.slow_cases("multihead.fig4")
@pytest.mark.parametrize("name", NAMES)
def test_every_program_lowers_for_a_tpu_and_for_cuda(name):
    found = LOWERING["programs_of"](name)
    assert found.programs >= 5 and found.refused == {"tpu": [], "cuda": []}
    # What may be overwritten here may be there.
    assert found.kept == {"tpu": found.donating, "cuda": found.donating}
    assert found.types <= {"f32", "f64"} and ("f64" in found.types) == (name in FLOAT64)
    if name in HIGHEST:
        assert found.precisions == {"highest"} and found.donating


def test_the_precision_that_is_asked_for_is_that_of_the_programs():
    run = experiments()["multihead.fig4"].run
    with asked_for("high"):
        found = LOWERING["programs_of"]("multihead.fig4", run)
    assert found.precisions == {"high"}


def test_what_only_the_cpu_has_would_be_seen():
    def run(config, key):
        return jax.jit(jnp.linalg.eigvals)(jnp.eye(3) + 1.0), jax.jit(jnp.sin)(1.0)

    found = LOWERING["programs_of"]("multihead.fig4", run)
    (refused,) = found.refused["tpu"]
    assert "primitive 'eig' not found for platform tpu" in refused and found.programs > 1
