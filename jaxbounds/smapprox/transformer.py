"""The encoder-decoder Transformer of Section 4: null keys, hard-max attention, shared weights.

One layer maps h in four steps:

    h + Attn_dec(h, (h_1 .. h_i)),  then  h + Attn_enc(h, (e_1 .. e_m)),
    then  relu(W1 h + b1),  and, with corrections,  relu(W3 relu(W2 h + b2) + b3).

Every timestep i = 0..T applies all layers; at timestep 0 the decoder's memory is empty. The input
of step i+1 is the output of step i plus the position code of i+1.

The parameters are {"embedding" (w, na), "start" (w,), "head" (w,), "layers": {name: (D, ...)}}. The
dictionary `layers` contains "dec" and "enc" (each with Wq, bq, Wk, bk, K0, Wv, bv, V0), W1 and b1,
and in corrected networks W2, b2, W3, b3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.straight_through import hard_max, relu, soft_max

Params = Mapping[str, Any]


class Segment(NamedTuple):
    """Consecutive layers with the same attentions: to past steps, to the input, or both.

    Attributes:
        start: the index of the first layer.
        stop: the index after the last layer.
        decoder: whether the layers attend to past steps.
        encoder: whether the layers attend to the input.
        targets: the coordinates that the attention to past steps may change, which the run stores;
            None means all.
    """

    start: int
    stop: int
    decoder: bool
    encoder: bool
    targets: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Attention:
    """The rule that turns attention scores into attention weights.

    Attributes:
        kind: "hard" averages over the maximisers (the paper's rule); "soft" is softmax.
        straight_through: whether derivatives are surrogates that do not vanish.
        tie_tolerance: the distance from the maximum within which scores count as tied; 0 means
            exact ties.
    """

    kind: str = "hard"
    straight_through: bool = False
    tie_tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("hard", "soft"):
            raise Refused(
                f"kind={self.kind!r} is unknown, expected 'hard' or 'soft'. Try kind='hard'"
            )
        if not 0.0 <= self.tie_tolerance < 0.5:
            raise Refused(
                f"tie_tolerance={self.tie_tolerance}, expected a number in [0, 0.5), because"
                " distinct scores of compiled networks differ by 1. Try tie_tolerance=0.25"
            )

    def __call__(
        self,
        scores: Float[Array, "n"],
        allowed: Bool[Array, "n"],
        inverse_temperature: float | Array,
        /,
    ) -> tuple[Float[Array, "n"], Float[Array, ""]]:
        """Return an unnormalised attention weight for each key, and the sum of these weights.

        A forbidden key has the weight zero.
        """
        if self.kind == "soft":
            return soft_max(scores, allowed, inverse_temperature), jnp.ones((), scores.dtype)
        return hard_max(
            scores,
            allowed,
            straight_through=self.straight_through,
            tie_tolerance=self.tie_tolerance,
        )


HARD = Attention()
"""The paper's attention rule: keys with exactly equal best scores share equal weights."""


class Record(NamedTuple):
    """The states, attention scores and attention weights of a run.

    An absent key has the score -inf and the weight zero.

    Attributes:
        hidden: the state after every layer of every timestep.
        decoder_scores: for each step and layer, the scores of the null key and timesteps 1 .. T.
        encoder_scores: for each step and layer, the scores of the null key and input positions
            1 .. m.
    """

    hidden: Float[Array, "T1 D w"]
    decoder_scores: Float[Array, "T1 D T1"]
    decoder_weights: Float[Array, "T1 D T1"]
    encoder_scores: Float[Array, "T1 D m1"]
    encoder_weights: Float[Array, "T1 D m1"]


class Run(NamedTuple):
    """The outputs of a run of the network.

    Attributes:
        output: the network's output F(x) = theta_cls . o_T.
        outputs: the outputs o_0 .. o_T of all steps.
        record: the states, scores and weights inside the run, or None.
    """

    output: Float[Array, ""]
    outputs: Float[Array, "T1 w"]
    record: Any


def feed_forward(
    p: Params, h: Float[Array, "w"], /, *, straight_through: bool = False
) -> Float[Array, "w"]:
    """Compute relu(W1 h + b1), then the correction if the layer has one."""
    activation = lambda z: relu(z, straight_through=straight_through)
    h = activation(p["W1"] @ h + p["b1"])
    if "W2" not in p:
        return h
    if not straight_through:
        return activation(p["W3"] @ activation(p["W2"] @ h + p["b2"]) + p["b3"])
    frozen = jax.lax.stop_gradient(h)
    inner = activation(p["W2"] @ frozen + p["b2"])
    return activation(p["W3"] @ inner + p["b3"]) + (h - frozen)


def keys_and_values(
    p: Params, h: Float[Array, "w"], /
) -> tuple[Float[Array, "k"], Float[Array, "v"]]:
    """Compute W_K h + b_K and W_V h + b_V, the key and the value of one state."""
    return p["Wk"] @ h + p["bk"], p["Wv"] @ h + p["bv"]


def attend(
    p: Params,
    h: Float[Array, "w"],
    memory: tuple[Float[Array, "n k"], Float[Array, "n v"]],
    allowed: Bool[Array, "n_all"],
    /,
    *,
    attention: Attention = HARD,
    inverse_temperature: float | Float[Array, ""] = 1.0,
    own: tuple[Float[Array, "k"], Float[Array, "v"]] | None = None,
    targets: tuple[int, ...] | None = None,
) -> tuple[Float[Array, "w"], tuple[Float[Array, "n1"], Float[Array, "n1"]]]:
    """Add to h the attention over the null key and given keys (Section 4).

    Return also the scores and weights.

    Args:
        p: the parameters of one attention: Wq, bq, K0, V0.
        h: the hidden state that attends.
        memory: the keys and values of the memory.
        allowed: a mask of the keys; a forbidden key gets the score -inf and the weight zero.
        attention: the rule, hard or soft, that turns scores into weights.
        inverse_temperature: the inverse temperature of softmax attention.
        own: the key and the value of the current step, which follow those of `memory`.
        targets: the coordinates of h to which the values are added; None means all.
    """
    keys, values = memory
    query = p["Wq"] @ h + p["bq"]
    each = [(p["K0"] @ query)[None], keys @ query]
    if own is not None:
        each.append((own[0] @ query)[None])
    scores = jnp.concatenate(each)
    allowed = jnp.concatenate([jnp.ones(1, dtype=bool), allowed])
    mass, total = attention(scores, allowed, inverse_temperature)
    mixed = mass[1 : 1 + keys.shape[0]] @ values
    if own is not None:
        mixed = mixed + mass[-1] * own[1]
    h = h + mass[0] * p["V0"] / total
    h = h + mixed / total if targets is None else h.at[jnp.array(targets)].add(mixed / total)
    return h, (jnp.where(allowed, scores, -jnp.inf), mass / total)


def run(
    params: Params,
    tokens: Float[Array, "m na"],
    present: Bool[Array, "m"],
    encoder_codes: Float[Array, "m w"],
    decoder_codes: Float[Array, "T2 w"],
    /,
    *,
    segments: tuple[Segment, ...],
    attention: Attention = HARD,
    inverse_temperature: float | Float[Array, ""] = 1.0,
    record: bool = False,
    stop: Int[Array, ""] | None = None,
) -> Run:
    """Run T + 1 steps of the decoder on one input.

    Args:
        params: the parameters, as this module's docstring describes them.
        tokens: one-hot input symbols, padded to one length.
        present: whether each symbol is part of the word and not padding.
        encoder_codes: the position codes beta(1) .. beta(m) of the input symbols, as rows.
        decoder_codes: the position codes beta(0) .. beta(T+1) of the timesteps, one row each;
            beta(0) is not read.
        segments: the layers in consecutive groups. One group that holds all layers and has both
            attentions computes the whole network.
        attention: the rule, hard or soft, that turns scores into weights.
        inverse_temperature: the factor of the scores in softmax attention.
        record: whether to return also the states and attention scores inside the run (`Record`).
        stop: the last step to compute, T by default; later outputs are zero. JAX cannot
            differentiate a run with `stop` in reverse mode.

    Raises:
        Refused: if `record` is true, and `stop` is given or some segment lacks one of the
            attentions.
    """
    if record and (stop is not None or not all(s.decoder and s.encoder for s in segments)):
        raise Refused(
            f"record={record} with stop={stop} and segments={len(segments)}; record=True returns "
            f"all states and scores, and expected stop=None, and every segment (group of layers) "
            f"with encoder and decoder attention. Try record=False"
        )
    T = decoder_codes.shape[0] - 2
    layers, dtype = params["layers"], params["start"].dtype
    how: Any = {
        "attention": attention,
        "inverse_temperature": jnp.asarray(inverse_temperature, dtype),
    }
    encoded = tokens @ params["embedding"].T + encoder_codes
    parts = [jax.tree.map(lambda a, s=s: a[s.start : s.stop], layers) for s in segments]
    of_input = jax.vmap(jax.vmap(keys_and_values, (None, 0)), (0, None))
    memory = [of_input(p["enc"], encoded) for p in parts]
    chosen = [None if not s.targets else jnp.array(s.targets) for s in segments]
    value_maps = [
        {n: p["dec"][n] if c is None else p["dec"][n][:, c] for n in ("Wv", "bv")}
        for p, c in zip(parts, chosen)
    ]
    # zeros_like keeps the device axes along which weights vary (under shard_map)
    zeros = lambda of: jnp.zeros_like(of)[:, None, :].repeat(T + 1, axis=1)
    empty = [
        (zeros(p["dec"]["bk"]), zeros(v["bv"])) if s.decoder else ()
        for s, p, v in zip(segments, parts, value_maps)
    ]

    def step(carry: Any, i: Int[Array, ""]) -> Any:
        h, caches = carry
        before = (jnp.arange(T + 1) >= 1) & (jnp.arange(T + 1) < i)
        allowed = jnp.concatenate([before, (i >= 1)[None]])
        updated, traces = [], []
        for segment, *stacked, cache in zip(segments, parts, value_maps, memory, caches):

            def layer(h: Array, xs: Any, segment: Segment = segment) -> Any:
                p, value_map, encoder, past = xs
                own: Any = ()
                dec_seen: Any = ()
                enc_seen: Any = ()
                if segment.decoder:
                    own = keys_and_values({**p["dec"], **value_map}, h)
                    h, dec_seen = attend(
                        p["dec"], h, past, allowed, own=own, targets=segment.targets, **how
                    )
                if segment.encoder:
                    h, enc_seen = attend(p["enc"], h, encoder, present, **how)
                h = feed_forward(p, h, straight_through=attention.straight_through)
                return h, (own, (h, *dec_seen, *enc_seen) if record else None)

            h, (new, trace) = jax.lax.scan(layer, h, (*stacked, cache))
            if segment.decoder:
                cache = jax.tree.map(lambda c, n: c.at[:, i].set(n), cache, new)
            updated.append(cache)
            traces.append(trace)
        following = jax.lax.dynamic_index_in_dim(decoder_codes, i + 1, keepdims=False)
        return (h + following, updated), (h, traces if record else None)

    start = (params["start"], empty)
    if stop is not None:

        def until(i: Int[Array, ""], state: Any) -> Any:
            carry, (output, _) = step(state[0], i)
            return carry, state[1].at[i].set(output)

        outputs = jnp.zeros((T + 1, *params["start"].shape), dtype)
        _, outputs = jax.lax.fori_loop(0, stop + 1, until, (start, outputs))
        return Run(params["head"] @ outputs[stop], outputs, None)
    _, (outputs, traces) = jax.lax.scan(step, start, jnp.arange(T + 1))
    record_of = None
    if record:
        joined = [jnp.concatenate(parts, axis=1) for parts in zip(*traces)]
        own = lambda table: _own_column(table, T)
        record_of = Record(joined[0], own(joined[1]), own(joined[2]), joined[3], joined[4])
    return Run(params["head"] @ outputs[-1], outputs, record_of)


def _own_column(table: Float[Array, "T1 D n"], T: int, /) -> Float[Array, "T1 D T1"]:
    """Move the entry of each timestep's own key from the last column to the timestep's column."""
    here = (jnp.eye(T + 1) > 0) & (jnp.arange(T + 1) > 0)[None, :]
    past = jnp.concatenate([table[..., :1], table[..., 2:-1]], axis=-1)
    return jnp.where(here[:, None, :], table[..., -1:], past)
