"""Each training step and each Hessian routine lowers for a TPU and for a CUDA GPU, in seconds.

`test_lowering.py` exports every program of every experiment, which takes minutes.
"""

import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead import calculus
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.lessons import lessons
from jaxbounds.multihead.experiments.looseness_measured import measured
from jaxbounds.multihead.experiments.weakconvexity_network import Encoder
from jaxbounds.multihead.loss import empirical_risk, logistic
from jaxbounds.multihead.model import head_output
from jaxbounds.networks import curvature
from jaxbounds.networks.training import begin, optimizer, train_step
from jaxbounds.qstr.experiments import online
from jaxbounds.seqlength.experiments import training
from jaxbounds.seqlength.experiments.config import SparseMajority
from jaxbounds.seqlength.sparse_majority import Embedding

PLATFORMS = ("tpu", "cuda")


def _lowers(function, *arguments):
    """Shapes alone are given, and nothing is compiled."""
    shapes = jax.eval_shape(lambda *leaves: leaves, *arguments)
    traced = jax.jit(function).trace(*shapes)
    for platform in PLATFORMS:
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert "func.func public @main" in text


def test_texts_say_one_thing_about_tpus():
    """Lowered and exported, not yet run; whoever runs one changes this test."""
    root = Path(__file__).parents[1]
    texts = [root / "README.md", *root.glob("jaxbounds/guide/*.md"), *root.glob("colab/*.py")]
    about = {file.name: file.read_text(encoding="utf8") for file in texts}
    about = {name: " ".join(text.split()) for name, text in about.items() if "TPU" in text}
    assert {"engines.md", "03_sweeps.py"} <= set(about)
    for name, text in about.items():
        exported = "lowered and exported for TPUs|lower and export the library.s programs for `tpu`"
        assert re.search(exported, text), name
        assert re.search("[Nn]o (# )?TPU has run (the library|them) yet|not yet run there", text), (
            name
        )


def test_what_only_a_cpu_has_is_refused():
    """The control: this test can fail."""
    with pytest.raises(NotImplementedError, match="tpu"):
        _lowers(jnp.linalg.eigvals, jnp.eye(3))


@pytest.mark.default_cases(
    "gd-equal-heads", "momentum-all-heads", "adam-equal-heads", "adamw-all-heads"
)
@pytest.mark.parametrize("student", ["equal-heads", "all-heads"])
@pytest.mark.parametrize("rule", ["gd", "momentum", "adam", "adamw"])
def test_the_steps_of_figures_2_to_5(rule, student):
    part = {"X": jnp.ones((1, 4, 3, 6)), "y": jnp.ones((1, 6))}
    one, keys = jnp.ones(1), jax.random.split(jax.random.key(0), 1)
    lanes = {"train": part, "test": part, "heads": 2 * one, "step_size": one}
    (lesson,) = lessons(student, rule, (2,), lanes, keys, lambda lane, params: {})

    def whole(lanes):
        state = jax.vmap(lesson.step)(lanes, jax.vmap(lesson.begin)(lanes))
        return state, jax.vmap(lesson.record)(lanes, state)

    _lowers(whole, lesson.lanes)


@pytest.mark.slow_cases("fixed")
@pytest.mark.parametrize("arm", ["split", "fixed"])
def test_the_step_of_the_encoder(arm):
    encoder, rule = Encoder(2, arm, 8), optimizer("adam", 1e-3)

    def step(key, X, y):
        params = encoder.init(key, X)["params"]
        loss = lambda p: jnp.mean(logistic(y * encoder.apply({"params": p}, X)))
        return train_step(loss, rule, begin(params, rule))

    _lowers(step, jax.random.key(0), jnp.ones((5, 4, 3)), jnp.ones(5))


@pytest.mark.slow_cases("rnn", "transformer", "gru128")
@pytest.mark.parametrize("name", ["transformer", "feedforward256", "gru128", "rnn", "state_space"])
def test_the_chunks_of_figures_1_and_2_of_qstr(name):
    protocol = online.Protocol(d=2, check_every=4, batch=8, test_prompts=20)

    def chunk(key, shared):
        return online.train_chunk(online.start(key, shared, name, 4, protocol), name, 4, protocol)

    _lowers(chunk, jax.random.key(0), jax.random.key(1))


@pytest.mark.slow_cases("momentum")
@pytest.mark.parametrize("rule", ["adam", "momentum"])
def test_a_round_of_the_majority(rule):
    embedding = Embedding(d=8, symbols="l2")
    config = SparseMajority(
        lengths=(5,), seeds=1, sparsity=1, train=40, validation=60, every=2, batch=16, hidden=8,
        embedding=embedding, rule=rule,
    )  # fmt: skip

    def whole(key):
        start, data, order = jax.random.split(key, 3)
        params = jax.tree.map(lambda leaf: leaf[0], training.draw_params(start[None], config))
        rates = (jnp.asarray(rate) for rate in (0.1, 0.9, 0.0))
        lane = training.Lane(order, params, training.draw_data(data, config, 5), *rates)
        return training.round_(config, lane, training.start(config, lane), jnp.int32(2))

    _lowers(whole, jax.random.key(0))


def _network():
    key = jax.random.key(0)
    data = SparseContext(tokens=4, dimension=3, relevant=1, distractors=1).sample(key, 5)
    shapes = {"U": (2, 4, 3), "W": (2, 3, 3)}
    return {name: jax.random.normal(key, shape) for name, shape in shapes.items()}, data


COMPOSITE = curvature.Composite(
    lambda params, data: jax.vmap(partial(_margin, params))(data["X"]),
    lambda outputs, data: jnp.mean(logistic(outputs * data["y"].astype(outputs.dtype))),
)


def _margin(params, tokens):
    return jnp.sum(jax.vmap(head_output, in_axes=(0, 0, None))(params["U"], params["W"], tokens))


# `weak_convexity` reads numbers on the host between programs; its program is that of the extremes.
ROUTINES = {
    "jax.hessian": jax.hessian(empirical_risk),
    "closed Hessian of the loss": calculus.loss_hessian,
    "certified extremes": calculus.loss_hessian_extremes,
    "head": lambda p, data: calculus.head_hessian(p["U"][0], p["W"][0], data["X"][0]),
    "certificate": lambda p, data: calculus.hessian_certificate(p["U"][0], p["W"][0], data["X"][0]),
    "looseness": lambda p, data: measured(p, data, 2),
    "product": lambda p, data: curvature.hessian_vector_product(empirical_risk, p, data)(p),
    "Gauss-Newton product": lambda p, data: curvature.ggn_vector_product(COMPOSITE, p, data)(p),
    "dense": partial(curvature.dense_hessian, empirical_risk),
    "dense extremes": partial(curvature.hessian_extremes, empirical_risk),
    "Lanczos extremes": partial(curvature.hessian_extremes, empirical_risk, dense_limit=0),
    "spectrum": partial(curvature.spectrum, empirical_risk),
    "trace": lambda p, data: curvature.trace(empirical_risk, p, data).estimate,
}


@pytest.mark.slow_cases("certified extremes", "looseness")
@pytest.mark.parametrize("name", ROUTINES)
def test_hessian_routines(name):
    """Statements and looseness ask in float64, which a TPU imitates."""
    with enable_x64(name in ("certified extremes", "looseness")):
        _lowers(ROUTINES[name], *_network())
