"""Online training as in the paper's public code: AdamW on fresh prompts, with a fixed test set.

`side_by_side` trains several seeds of one architecture at one length N. After each chunk of
`check_every` training steps, the run measures the test risks of all seeds.
"""

import functools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.training import Params, Training, begin, optimizer, train_step
from jaxbounds.qstr.architectures import build
from jaxbounds.qstr.data import encode, sample_prompts
from jaxbounds.qstr.encodings import published_encoding_dimension, rademacher_encodings
from jaxbounds.qstr.links import find_link


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A training protocol: data, network, and the criterion of learning.

    The default values are the settings of the paper's public code.

    Attributes:
        d: the dimension of a token.
        q: the number of relevant tokens of each position.
        link: the name of the link, which is the function from relevant tokens to a label.
        simple: whether the training data come from the paper's simple task (simple-qSTR), where all
            positions share t.
        test_on: the law of the test data: "same" (the law of the training data), or "simple" (as in
            the public code).
        batch: the number of fresh prompts in each training step.
        learning_rate: the learning rate of AdamW.
        weight_decay: AdamW's decoupled weight decay, which acts on all parameters.
        check_every: the number of training steps between two evaluations of the test risk.
        test_prompts: the number of test prompts, which are drawn once for each seed.
        threshold: a run has learned if its test risk is strictly below this number.
        max_samples: the largest number of training samples of a run. A run that has not learned
            after this number stays in the results as censored.
        shared_task: whether all seeds share one link and one set of encodings, as in the public
            code.
    """

    d: int = 10
    q: int = 1
    link: str = "linear"
    simple: bool = False
    test_on: str = "same"
    batch: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    check_every: int = 10
    test_prompts: int = 5000
    threshold: float = 0.7
    max_samples: int = 1_000_000
    shared_task: bool = False

    def __post_init__(self) -> None:
        if self.test_on not in ("same", "simple"):
            raise Refused(
                f"test_on={self.test_on!r} is unknown, expected 'same' or 'simple'. Try"
                " test_on='same'"
            )
        counts = ("d", "q", "batch", "check_every", "test_prompts", "max_samples")
        wrong = [f"{name}={getattr(self, name)}" for name in counts if getattr(self, name) < 1]
        if wrong:
            raise Refused(f"{', '.join(wrong)}, expected positive counts. Try 1 or more for each")
        if not (0 < self.learning_rate < math.inf and 0 <= self.weight_decay < math.inf):
            rates = f"{self.learning_rate} and {self.weight_decay}"
            raise Refused(
                f"learning_rate, weight_decay = {rates}, expected learning_rate > 0 and"
                " weight_decay >= 0. Try learning_rate=0.001"
            )
        if not math.isfinite(self.threshold):
            raise Refused(
                f"threshold={self.threshold}, expected a finite number. Try threshold=0.1"
            )
        find_link(self.link)


def encoded_dimension(N: int, protocol: Protocol, /) -> int:
    """Return De, an encoded token's dimension, for prompts of N tokens with the paper's encodings.

    Raises:
        Refused: if N < 2, because the paper's encoding dimension floor(5 log N) is then 0.
    """
    return protocol.d + (protocol.q + 1) * published_encoding_dimension(N)


class Task(NamedTuple):
    """A task: the parameters of the link (label function) and the positional encodings."""

    link: Any
    omega: Float[Array, "N de"]


class Run(NamedTuple):
    """The state of one seed's training after a chunk (a group of `check_every` steps)."""

    key: Array
    training: Training
    task: Task
    test: tuple[Float[Array, "B N De"], Float[Array, "B N"]]


def _examples(
    key: Array, task: Task, protocol: Protocol, count: int, N: int, *, simple: bool
) -> tuple[Array, Array]:
    link = find_link(protocol.link)
    prompts = sample_prompts(
        key, link, task.link, shape=(count,), N=N, d=protocol.d, q=protocol.q, simple=simple
    )
    return encode(prompts.x, prompts.t, task.omega, scale=False), prompts.y


def optimiser(protocol: Protocol, /) -> optax.GradientTransformation:
    """Return AdamW as PyTorch defines it: eps = 1e-8 outside the root, decay on all parameters."""
    return optimizer("adamw", protocol.learning_rate, weight_decay=protocol.weight_decay)


def start(key: Array, shared: Array, name: str, N: int, protocol: Protocol, /) -> Run:
    """Draw the task, the test set and the initial parameters of one seed.

    The task and the test set do not depend on the architecture, so that the results of different
    architectures are comparable.
    """
    key_task = shared if protocol.shared_task else jax.random.fold_in(key, 1)
    key_link, key_omega = jax.random.split(key_task)
    task = Task(
        find_link(protocol.link).init(key_link, protocol.q, protocol.d),
        rademacher_encodings(key_omega, N, published_encoding_dimension(N)),
    )
    simple = protocol.simple or protocol.test_on == "simple"
    test = _examples(
        jax.random.fold_in(key, 2), task, protocol, protocol.test_prompts, N, simple=simple
    )
    own = jax.random.fold_in(key, zlib.crc32(name.encode()))
    key_init, key_data = jax.random.split(own)
    params = build(name, N=N, d=protocol.d).init(key_init, test[0][:1])
    return Run(key_data, begin(params, optimiser(protocol)), task, test)


def _mean_over(error: Callable[..., Array], data: tuple[Array, ...], at_once: int = 250) -> Array:
    count = len(data[0])
    whole = count // at_once * at_once
    if whole == 0:
        return error(*data)
    parts = tuple(a[:whole].reshape(-1, at_once, *a.shape[1:]) for a in data)
    mean = jnp.mean(jax.lax.map(lambda part: error(*part), parts))
    if whole == count:
        return mean
    return (whole * mean + (count - whole) * error(*(a[whole:] for a in data))) / count


def train_chunk(run: Run, name: str, N: int, protocol: Protocol, /) -> tuple[Run, Array]:
    """Train for `check_every` steps on fresh prompts, and return the run and its test risk."""
    model, rule = build(name, N=N, d=protocol.d), optimiser(protocol)

    def loss(params: Params, z: Array, y: Array) -> Array:
        return jnp.mean((cast(Array, model.apply(params, z)) - y) ** 2)

    def draw(key: Array) -> tuple[Array, Array]:
        return _examples(key, run.task, protocol, protocol.batch, N, simple=protocol.simple)

    def steps(training: Training, keys: Array) -> tuple[Training, None]:
        # Prompts drawn for many steps at once take half the time: larger kernels use all cores.
        def step(training: Training, batch: tuple[Array, Array]) -> tuple[Training, None]:
            return train_step(lambda params: loss(params, *batch), rule, training), None

        return jax.lax.scan(step, training, jax.vmap(draw)(keys))

    key, key_steps = jax.random.split(run.key)
    keys = jax.random.split(key_steps, protocol.check_every)
    at_once = max(n for n in range(1, 101) if protocol.check_every % n == 0)
    training = jax.lax.scan(steps, run.training, keys.reshape(-1, at_once))[0]
    risk = _mean_over(functools.partial(loss, training.params), run.test)
    return run._replace(key=key, training=training), risk


@functools.lru_cache(maxsize=64)
def _compiled(
    name: str, N: int, protocol: Protocol
) -> tuple[Callable[[Array, Array], Run], Callable[[Run], tuple[Run, Array]]]:
    first = lambda key, shared: start(key, shared, name, N, protocol)
    advance = lambda run: train_chunk(run, name, N, protocol)
    return jax.jit(jax.vmap(first, (0, None))), jax.jit(jax.vmap(advance), donate_argnums=0)


def side_by_side(
    name: str, N: int, protocol: Protocol, /
) -> tuple[Callable[[Array, Array], Run], Callable[[Run], tuple[Run, Array]]]:
    """Return two compiled functions: one starts all seeds, one trains all seeds for one chunk.

    The second returned function overwrites the memory of its arguments (donated buffers). Protocols
    that differ only in `threshold` or in the largest number of samples share the two functions.
    """
    return _compiled(name, N, replace(protocol, threshold=0.0, max_samples=1))
