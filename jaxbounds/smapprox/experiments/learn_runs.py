"""The training runs of `smapprox.learn`: transition tables, and all weights after added noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from jaxbounds.experiments.experiment import refuse_unless_increasing
from jaxbounds.experiments.sweeps import lanes_of, sweep
from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.training import begin, optimizer, train_step
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.correction import DYADIC
from jaxbounds.smapprox.experiments.at_once import Count
from jaxbounds.smapprox.learned_table import (
    Task,
    outputs,
    outputs_by_look_up,
    places,
    read_table,
    soft_table,
    task,
)
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, simulate, words

CHUNKS = 10
"""The number of progress reports of one training; a larger number reports more often."""
WEIGHTS = 100.0
"""The processor time of a training step on all weights, as a multiple of a step on a table (28 ms
and 0.3 ms on two cores). A larger number gives the training of all weights a larger part of the
announced time."""


@dataclass(frozen=True)
class Learn:
    """The configuration of the experiment: the machines to learn, and the number of samples.

    Attributes:
        machines: the names of machines in the library, whose writes and moves must not depend on
            their state.
        length: the largest length of the training words, which are uniform over all words of at
            most this length.
        longer: the largest length of further test words for learned tables.
        samples: the numbers n of training words, in increasing order.
        seeds: the number of independent random samples for each sample size n.
        restarts: the number of random initial tables for each sample; the table with the least
            training loss counts.
        table_steps: the number of Adam steps on a table.
        table_step_size: the step size of Adam.
        radii: the norms of the noise on the weights of the corrected network.
        bare_radii: the norms of the noise on the weights of the network without corrections.
        weight_samples: the numbers n of words for the training of all weights.
        weight_steps: the number of gradient steps on all weights.
        weight_step_size: the largest norm of one step on all weights, as a multiple of the noise's
            norm.
    """

    machines: tuple[str, ...] = ("parity", "divisible_by_three")
    length: int = 4
    longer: int = 7
    samples: tuple[int, ...] = (4, 8, 16, 32, 64)
    seeds: int = 4
    restarts: int = 4
    table_steps: int = 60
    table_step_size: float = 0.3
    radii: tuple[float, ...] = (4.0, 7.0, 10.0)
    bare_radii: tuple[float, ...] = (0.01, 0.5)
    weight_samples: tuple[int, ...] = (64,)
    weight_steps: int = 40
    weight_step_size: float = 0.005

    def __post_init__(self) -> None:
        unknown = [name for name in self.machines if name not in LIBRARY]
        if unknown:
            raise Refused(
                f"machines={unknown} are unknown, expected some of {', '.join(LIBRARY)}. Try one"
                " of these names"
            )
        for name in self.machines:
            actions: dict[str, set] = {}
            for (_, a), (_, write, move) in LIBRARY[name]().machine.transitions.items():
                actions.setdefault(a, set()).add((write, move))
            if any(len(found) > 1 for found in actions.values()):
                raise Refused(
                    f"machine={name}: its written symbol or its move depends on the state, expected"
                    " writes and moves that depend on the symbol only. Try another machine"
                )
        refuse_unless_increasing(self, "samples", "weight_samples", "radii", "bare_radii")


def compiled_for(config: Learn, name: str, /, *, corrected: bool) -> Compiled:
    """Return a library machine's network for all words of at most `config.length` symbols."""
    example = LIBRARY[name]()
    correction = DYADIC if corrected else None
    steps = example.steps(config.length)
    return compile_machine(example.machine, steps, tape="one_way", correction=correction)


class Plan(NamedTuple):
    """The amount of work of one call of the training, for the progress report.

    Attributes:
        steps: the number of training steps plus one, for the last measurement.
        chunk: the number of steps between two progress reports.
        each: the amount of work in one step of all runs that `jax.vmap` trains together.
    """

    steps: int
    chunk: int
    each: float

    @property
    def counted(self) -> float:
        """Return the amount of work in all steps after the first chunk of steps."""
        return (self.steps - self.chunk) * self.each

    def telling(self, count: Count, words: str, /) -> Callable[[int, Any], None]:
        """Return a function that reports the work of every chunk of steps except the first."""

        def on_record(step: int, metrics: Any) -> None:
            if step > self.chunk and (step % self.chunk == 0 or step == self.steps):
                count((step % self.chunk or self.chunk) * self.each, words)

        return on_record


def _plan(steps: int, each: float) -> Plan:
    return Plan(steps + 1, -(-(steps + 1) // CHUNKS), each)


def table_plan(config: Learn, /) -> Plan:
    """Return the amount of work of `learned_tables` for one machine."""
    return _plan(config.table_steps, (len(config.samples) + 1) * config.seeds * config.restarts)


def weights_plan(config: Learn, radii: tuple[float, ...], /) -> Plan:
    """Return the amount of work of `trained_weights`."""
    lanes = len(radii) * config.seeds * len(config.weight_samples)
    return _plan(config.weight_steps, WEIGHTS * lanes)


def _frequencies(key: PRNGKeyArray, n: Array, most: int, count: int) -> Array:
    """Draw random words with repetition; for each n, count each word among the first n draws."""
    drawn = jax.random.randint(key, (most,), 0, count)
    one = (jnp.arange(most) < n).astype(jnp.float32)
    return jnp.zeros(count).at[drawn].add(one) / n.astype(jnp.float32)


def _log_loss(problem: Task, F: Array) -> Array:
    """Return -log of the right answer's probability (1 + y F)/2, mixed with 0.001 to be finite."""
    return -jnp.log(0.001 + 0.999 * (1 + problem.labels * F) / 2)


def learned_tables(
    config: Learn, name: str, key: PRNGKeyArray, /, count: Count = lambda more, words: None
) -> tuple[Float[np.ndarray, "n1 seed"], Float[np.ndarray, "n1 seed"]]:
    """Return learned tables' errors on words up to `config.length` symbols, and on longer ones.

    Both results have one row for each number n of samples. The last row is for the straight-through
    derivative at the largest n.

    Args:
        config: the experiment.
        name: the name of a machine of the library.
        key: the random key of all samples.
        count: a function that reports progress after each chunk of training steps.
    """
    compiled = compiled_for(config, name, corrected=False)
    machine, where, structure = compiled.machine, places(compiled), compiled.structure
    problem = task(compiled, words(machine, config.length))
    rule = optimizer("adam", config.table_step_size)
    most = config.samples[-1]
    rows = np.arange(len(config.samples) + 1)
    keys, restarts = jax.random.split(key, config.seeds), np.arange(config.restarts)
    lanes, lengths = lanes_of(keys, row=rows, restart=restarts)
    lanes["n"] = jnp.array([*config.samples, most])[lanes["row"]]
    lanes["straight_through"] = lanes["row"] == rows[-1]

    def start(lane: Any) -> Any:
        own = jax.random.fold_in(lane["key"], lane["restart"])
        logits = jax.random.normal(own, (len(where.pairs), len(where.states)))
        return begin(logits, rule), logits, jnp.zeros(())

    def loss(lane: Any, logits: Array) -> Array:
        through = lane["straight_through"]
        params = soft_table(problem.params, where, logits, straight_through=through)
        frequency = _frequencies(lane["key"], lane["n"], most, problem.labels.shape[0])
        return frequency @ _log_loss(problem, outputs_by_look_up(problem, params, structure))

    def step(lane: Any, state: Any) -> Any:
        logits = state[0].params
        value, slope = jax.value_and_grad(partial(loss, lane))(logits)
        return train_step(partial(jnp.vdot, slope), rule, state[0]), logits, value

    measure = lambda lane, state: {"loss": state[2]}
    plan = table_plan(config)
    told = plan.telling(count, f"table of {name}")
    swept = sweep(
        start, step, measure, lanes, plan.steps, chunk=plan.chunk, group=12, on_record=told
    )
    shape = tuple(lengths.values())
    best = swept.metrics["loss"][:, -1].reshape(shape).argmin(axis=1)
    logits = swept.state[1].reshape(*shape, len(where.pairs), len(where.states))
    chosen = np.take_along_axis(logits, best[:, None, :, None, None], axis=1)[:, 0]
    short = words(machine, config.length)
    longer = words(machine, config.longer)[len(short) :]
    error = lambda tested: [
        [_error(machine, read_table(machine, table), tested) for table in row] for row in chosen
    ]
    return np.array(error(short)), np.array(error(longer))


def _error(machine: TuringMachine, learned: TuringMachine, tested: list[str]) -> float:
    verdict = lambda m, word: simulate(m, word, len(word) + 1).verdict
    wrong = [verdict(machine, word) != verdict(learned, word) for word in tested]
    return float(np.mean(wrong))


def trained_weights(
    config: Learn,
    key: PRNGKeyArray,
    radii: tuple[float, ...],
    corrected: bool,
    /,
    count: Count = lambda more, words: None,
) -> Float[np.ndarray, "stage radius n seed"]:
    """Add noise to all weights, train the network, and return its errors at several stages.

    Args:
        config: the experiment.
        key: the random key of all samples and all noise.
        radii: the norms of the added noise.
        corrected: whether the compiled network has corrections.
        count: a function that reports progress after each chunk of training steps.
    """
    compiled = compiled_for(config, config.machines[0], corrected=corrected)
    problem = task(compiled, words(compiled.machine, config.length))
    theta, unravel = ravel_pytree(problem.params)
    rule = lambda lane: optax.chain(
        optax.clip_by_global_norm(1.0), optax.sgd(config.weight_step_size * lane["radius"])
    )
    lanes, lengths = lanes_of(
        jax.random.split(key, config.seeds),
        radius=np.array(radii, np.float32),
        n=np.array(config.weight_samples),
    )

    def start(lane: Any) -> Any:
        noise = jax.random.normal(lane["key"], theta.shape)
        moved = theta + lane["radius"] * noise / jnp.linalg.norm(noise)
        return begin(moved, rule(lane)), jnp.zeros(())

    def loss(lane: Any, v: Array) -> tuple[Array, Array]:
        frequency = _frequencies(
            lane["key"], lane["n"], config.weight_samples[-1], problem.labels.shape[0]
        )
        agreement = problem.labels * outputs(problem, unravel(v), compiled.full)
        error = (agreement <= 0).mean(dtype=jnp.float32)
        return frequency @ jax.nn.softplus(-2 * agreement), error

    def step(lane: Any, state: Any) -> Any:
        slope, error = jax.grad(partial(loss, lane), has_aux=True)(state[0].params)
        return train_step(partial(jnp.vdot, slope), rule(lane), state[0]), error

    measure = lambda lane, state: {"error": state[1]}
    plan, group = weights_plan(config, radii), config.seeds
    told = plan.telling(count, "all weights")
    swept = sweep(
        start, step, measure, lanes, plan.steps, chunk=plan.chunk, group=group, on_record=told
    )
    before, after = (swept.metrics["error"][:, at].reshape(*lengths.values()) for at in (0, -1))
    return np.stack([before, after])
