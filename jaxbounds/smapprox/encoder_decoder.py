"""The Transformer of Section 4 as a Flax module, with both attentions in every layer."""

import math
from typing import Any

import flax.linen as nn
import jax
from jaxtyping import Array, Bool, Float

from jaxbounds.smapprox.transformer import HARD, Attention, Run, Segment, run


class EncoderDecoder(nn.Module):
    """The Transformer of Section 4; each layer has encoder, decoder and cross attention.

    Attributes:
        corrected: whether each layer ends with two ReLU layers that round the state.
        attention: the rule, hard-max or softmax, that turns scores into attention weights.
    """

    width: int
    depth: int
    key_width: int
    corrected: bool = True
    attention: Attention = HARD

    def __call__(self, *inputs: Any) -> Float[Array, ""]:
        """Compute F(x) for one input x, which the arguments of `passes` describe."""
        return self.passes(*inputs).output

    @nn.compact
    def passes(
        self,
        tokens: Float[Array, "m na"],
        present: Bool[Array, "m"],
        encoder_codes: Float[Array, "m w"],
        decoder_codes: Float[Array, "T2 w"],
        inverse_temperature: float | Float[Array, ""] = 1.0,
    ) -> Run:
        """Compute F(x) in T + 1 passes over one input (`transformer.run`)."""
        w, k, D = self.width, self.key_width, self.depth
        shapes = {"Wq": (k, w), "bq": (k,), "Wk": (k, w), "bk": (k,), "K0": (k,)}
        shapes |= {"Wv": (w, w), "bv": (w,), "V0": (w,)}
        layer: dict[str, Any] = {"dec": shapes, "enc": shapes, "W1": (w, w), "b1": (w,)}
        if self.corrected:
            layer |= {"W2": (2 * w, w), "b2": (2 * w,), "W3": (w, 2 * w), "b3": (w,)}
        shape = {
            "embedding": (w, tokens.shape[1]),
            "start": (w,),
            "head": (w,),
            "layers": jax.tree.map(lambda s: (D, *s), layer, is_leaf=lambda s: type(s) is tuple),
        }

        def initial(key: Array) -> Any:
            leaves, tree = jax.tree.flatten(shape, is_leaf=lambda s: type(s) is tuple)
            draws = [
                jax.random.normal(k, s) / math.sqrt(s[-1])
                for k, s in zip(jax.random.split(key, len(leaves)), leaves)
            ]
            return jax.tree.unflatten(tree, draws)

        params = self.param("theta", initial)
        return run(
            params,
            tokens,
            present,
            encoder_codes,
            decoder_codes,
            segments=(Segment(0, D, True, True),),
            attention=self.attention,
            inverse_temperature=inverse_temperature,
        )
