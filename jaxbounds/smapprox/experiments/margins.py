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

from jaxbounds.results import Claim, Experiment
from jaxbounds.smapprox import circuits, execute
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper, recertify
from jaxbounds.smapprox.certified import circuit_margin_lower
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
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


def claims(dataset: xr.Dataset, /) -> tuple[Claim, ...]:
    """The paper's picture: corrections keep the margin, without them it decays."""
    of = lambda name, kind: dataset[name].sel(correction=kind).values
    ratio = lambda values: float(values[-1] / values[0])
    depth, T = dataset["depth"].values.astype(float), dataset["T"].values.astype(float)
    upper = {over: of(f"{over}_upper", "corrected") for over in ("depth", "time")}
    gaps = [(upper[over] / dataset[f"{over}_lower"].values).min() for over in upper]
    found = []
    if len(depth) > 1:
        slope = float(np.polyfit(np.log(depth), np.log(of("depth_upper", "uncorrected")), 1)[0])
        kept, lower = ratio(upper["depth"]), ratio(dataset["depth_lower"].values)
        last_first = f"at depth {depth[-1]:.0f} over depth {depth[0]:.0f}"
        found += [
            Claim(
                "uncorrected chain: decays like depth^-1/2 or faster (exponent < -0.35)",
                slope < -0.35,
                f"exponent {slope:.3f}",
            ),
            Claim(
                "corrected chain: upper estimate does not decay (ratio > 0.5)",
                kept > 0.5,
                f"{kept:.3f}: {last_first}",
            ),
            Claim(
                "corrected chain: certified bound independent of depth (ratio > 0.99)",
                lower > 0.99,
                f"{lower:.6f}: {last_first}",
            ),
        ]
    if len(T) > 1:
        rate = float(np.polyfit(T, np.log(of("time_upper", "uncorrected")), 1)[0])
        kept = ratio(upper["time"])
        found += [
            Claim(
                "uncorrected machine: exponential decay in T (rate < -0.4)",
                rate < -0.4,
                f"rate {rate:.3f} per step",
            ),
            Claim(
                "corrected machine: upper estimate does not decay (ratio > 0.3)",
                kept > 0.3,
                f"{kept:.3f}: at T = {T[-1]:.0f} over T = {T[0]:.0f}",
            ),
        ]
    least = float(min(gaps))
    text = "certified bounds are below the attacks (ratio >= 1)"
    return (*found, Claim(text, least >= 1, f"least ratio {least:.3g}"))


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
        axis.set_ylabel("all-layer margin")
    left.set_xscale("log")
    depths = dataset["depth"].values
    left.set_xticks(depths, [str(depth) for depth in depths])
    left.xaxis.minorticks_off()
    shown = dataset[["depth_upper", "depth_lower"]].to_dataarray()
    left.set_ylim(*(10.0 ** np.array([np.floor(np.log10(shown.min())), 0.0])))
    left.set(xlabel="circuit depth", title="identity chain")
    right.set(
        xlabel="T",
        xticks=dataset["T"].values,
        title=f"machine {dataset.attrs.get('machine', '')}".strip(),
    )
    left.legend(fontsize=8)
    return picture


EXPERIMENT = Experiment(
    id="smapprox.margins",
    label="Sections 3.1 and 4",
    title="all-layer margins with and without corrections, over depth and over T",
    config=Margins(),
    presets={
        "reduced": Margins(),
        "deep": Margins(depths=(3, 9, 17, 33, 65, 129), refinements=4),
    },
    run=run,
    figure=figure,
    claims=claims,
)
