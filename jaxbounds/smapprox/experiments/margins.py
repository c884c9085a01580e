"""All-layer margins with and without corrections, over depth and over T (Sections 3.1 and 4).

Upper estimates come from attacks, with every perturbation carried over to the other depths and
times, where it is re-evaluated; lower bounds are certified. Neither is the margin.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.smapprox import circuits, execute
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper, recertify
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.experiments.claim import Claim
from jaxbounds.smapprox.feedforward import (
    compile_circuit,
    feedforward,
    straight_through_feedforward,
)
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import simulate
from jaxbounds.smapprox.transformer import Attention
from jaxbounds.smapprox.transformer import run as run_network

KINDS = ("uncorrected", "corrected")


@dataclass(frozen=True)
class Margins:
    """What to measure.

    Attributes:
        depths: numbers of identity gates in the chain, increasing.
        words: inputs a^n b^n of the machine, by increasing running time.
        times: T for each word, at least its halting time.
        bits: position bits, the same for all T so that perturbations carry over.
        refinements: of each attack.
    """

    depths: tuple[int, ...] = (3, 9, 17, 33)
    words: tuple[str, ...] = ("ab", "aabb", "aaabbb")
    times: tuple[int, ...] = (5, 13, 25)
    bits: int = 6
    refinements: int = 2

    def __post_init__(self) -> None:
        """Refuse unequal lists and depths or times out of order."""
        if len(self.words) != len(self.times):
            raise ValueError(f"{len(self.words)} words need as many times, got {len(self.times)}")
        for name in ("depths", "times"):
            if list(getattr(self, name)) != sorted(set(getattr(self, name))):
                raise ValueError(f"{name} must increase, got {getattr(self, name)}")


def run(config: Margins, key: PRNGKeyArray, /) -> xr.Dataset:
    """Upper estimates and certified lower bounds, over depth and over T, in float64.

    Nothing is random: the key is taken so that all experiments are called alike.
    """
    del key
    with jax.enable_x64(True):
        depth_upper, depth_lower = _over_depth(config)
        time_upper, time_lower = _over_time(config)
    return xr.Dataset(
        {
            "depth_upper": (("correction", "depth"), depth_upper),
            "depth_lower": (("depth",), depth_lower),
            "time_upper": (("correction", "T"), time_upper),
            "time_lower": (("T",), time_lower),
        },
        coords={
            "correction": list(KINDS),
            "depth": list(config.depths),
            "T": list(config.times),
            "word": ("T", list(config.words)),
        },
        attrs={"precision": "float64", "correction": "thirds", "machine": "equal_blocks"},
    )


def _over_depth(config: Margins) -> tuple[np.ndarray, np.ndarray]:
    upper = np.full((2, len(config.depths)), np.inf)
    lower = np.zeros(len(config.depths))
    for row, correction in enumerate((None, THIRDS)):
        networks, found = [], []
        for column, depth in enumerate(config.depths):
            chain = circuits.identity_chain(depth)
            params = jax.tree.map(jnp.asarray, compile_circuit(chain, correction=correction))
            if correction is not None:
                x = jnp.asarray(circuits.all_inputs(1), float)
                states = jax.vmap(feedforward, in_axes=(None, 0))(params, x)[1]
                lower[column] = circuit_margin_lower(params, np.asarray(states), THIRDS)
            one = jnp.ones(1)
            carried = [_at_the_end(delta, params) for delta in found]
            estimate = margin_upper(
                lambda p, one=one: feedforward(p, one)[0],
                lambda p, one=one, c=correction: straight_through_feedforward(
                    p, one, corrected=c is not None
                ),
                params,
                blocks_by_layer(params, lambda path: path[0].key == "hidden"),
                starts=carried,
                refinements=config.refinements,
            )
            networks.append(params), found.append(estimate.perturbation)
            upper[row, column] = estimate.radius
    return upper, lower


def _at_the_end(delta: Any, params: Any) -> Any:
    """A perturbation of a shallower chain on the last layers of a deeper one.

    The last layers of an identity chain are the same network on the same states at every depth.
    """
    zero = jax.tree.map(jnp.zeros_like, params)
    width = zero["head"]["W"].shape[0]
    first = jnp.zeros((1, width, width)).at[0, :, :1].set(delta["first"]["W"])
    W = jnp.concatenate([first, delta["hidden"]["W"]])
    b = jnp.concatenate([delta["first"]["b"][None], delta["hidden"]["b"]])
    count = W.shape[0]
    hidden = {
        "W": zero["hidden"]["W"].at[-count:].set(W),
        "b": zero["hidden"]["b"].at[-count:].set(b),
    }
    return {"first": zero["first"], "hidden": hidden, "head": delta["head"]}


def _over_time(config: Margins) -> tuple[np.ndarray, np.ndarray]:
    machine = LIBRARY["equal_blocks"]().machine
    upper = np.full((2, len(config.times)), np.inf)
    lower = np.zeros(len(config.times))
    for row, correction in enumerate((None, THIRDS)):
        outputs, found = [], []
        for column, (word, T) in enumerate(zip(config.words, config.times)):
            verdict = simulate(machine, word, T).verdict
            if verdict == "undecided":
                raise ValueError(f"the machine has not halted on {word!r} after T = {T}: raise T")
            compiled = compile_machine(machine, T, correction=correction, bits=config.bits)
            if correction is not None:
                lower[column] = machine_margin_lower(compiled)
            inputs = execute.encode(compiled, [word])
            args = [inputs.tokens[0], inputs.present[0]]
            args += [inputs.encoder_codes, inputs.decoder_codes]
            args = [jnp.asarray(a) for a in args]
            sign = 1.0 if verdict == "accept" else -1.0

            def output(p: Any, args=args, sign=sign, full=compiled.full, ste: bool = False) -> Any:
                attention = Attention(straight_through=ste)
                return sign * run_network(p, *args, segments=full, attention=attention).output

            params = jax.tree.map(jnp.asarray, compiled.params)
            estimate = margin_upper(
                output,
                lambda p, output=output: output(p, ste=True),
                params,
                blocks_by_layer(params, lambda path: path[0].key == "layers"),
                starts=found,
                refinements=config.refinements,
            )
            found.append(estimate.perturbation), outputs.append((output, params))
            upper[row, column] = estimate.radius
        for column, (output, params) in enumerate(outputs[:-1]):
            for delta in found[column + 1 :]:
                upper[row, column] = min(upper[row, column], recertify(output, params, delta))
    return upper, lower


def claims(dataset: xr.Dataset, /) -> list[Claim]:
    """The paper's picture: corrections keep the margin, without them it decays."""
    of = lambda name, kind: dataset[name].sel(correction=kind)
    chain = of("depth_upper", "uncorrected")
    decay = np.polyfit(np.log(dataset["depth"].values), np.log(chain.values), 1)[0]
    flat = lambda values: float(values[-1] / values[0])
    chain_flat = flat(of("depth_upper", "corrected").values)
    rate = np.polyfit(
        dataset["T"].values.astype(float), np.log(of("time_upper", "uncorrected").values), 1
    )[0]
    time_flat = flat(of("time_upper", "corrected").values)
    gaps = [
        (of("depth_upper", "corrected") / dataset["depth_lower"]).values.min(),
        (of("time_upper", "corrected") / dataset["time_lower"]).values.min(),
    ]
    lower = flat(dataset["depth_lower"].values)
    return [
        Claim(
            "uncorrected chain: decays like depth^-1/2 or faster", bool(decay < -0.35), float(decay)
        ),
        Claim("corrected chain: upper estimate does not decay", chain_flat > 0.5, chain_flat),
        Claim("corrected chain: certified bound independent of depth", lower > 0.99, lower),
        Claim(
            "uncorrected machine: exponential decay in T (slope)", bool(rate < -0.4), float(rate)
        ),
        Claim("corrected machine: upper estimate does not decay", time_flat > 0.3, time_flat),
        Claim("certified bounds are below the attacks", bool(min(gaps) >= 1), float(min(gaps))),
    ]


def figure(dataset: xr.Dataset, /) -> Any:
    """Margins over depth and over T, on logarithmic axes."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = picture.subplots(1, 2)
    for axis, name, over in ((left, "depth", "depth"), (right, "time", "T")):
        for kind, mark in zip(KINDS, ("o--", "s-")):
            values = dataset[f"{name}_upper"].sel(correction=kind)
            axis.plot(dataset[over], values, mark, label=f"{kind}: upper estimate")
        axis.plot(dataset[over], dataset[f"{name}_lower"], "k:", label="corrected: certified")
        axis.set_yscale("log")
        axis.set_xlabel("circuit depth" if over == "depth" else "T")
    left.set_xscale("log")
    left.set_ylabel("all-layer margin")
    left.legend(fontsize=8)
    return picture
