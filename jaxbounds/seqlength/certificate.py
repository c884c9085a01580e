"""A generalization certificate for a trained network: the bound with the network's own norms.

The norms of a trained network depend on the data. A certificate therefore rounds each norm up to
the next number 2^j B_0 (j = 0, 1, ..), and divides the failure probability delta among all j (a
union bound).
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.own_network import Reason
from jaxbounds.seqlength.comparisons import first_informative
from jaxbounds.seqlength.extract_norms import AttentionNetwork, MatrixNorms, extract_norms
from jaxbounds.seqlength.fold import fold
from jaxbounds.seqlength.generalization import generalization_gap
from jaxbounds.seqlength.linear_bounds import LogCovering
from jaxbounds.seqlength.network_bound import (
    TokenNorms,
    map_coverings,
    map_norms,
    network_rademacher,
    token_norms,
    with_readout,
)


class GeneralizationCertificate(NamedTuple):
    """The value of the bound for one trained network.

    Attributes:
        gap: min(bound, trivial), a bound on |population loss - training loss|.
        bound: the bound on the generalization gap; it may exceed the trivial value.
        trivial: the range of the loss; the gap never exceeds the range.
        ratio: bound / trivial; a bound with a ratio above 1 says nothing.
        rademacher: the bound on the Rademacher complexity of the network's scalar output.
        tail: the term of the bound that depends on the failure probability delta.
        certified: whether the bound holds with probability 1 - delta. If this field is False, the
            norms were not fixed before training, and `gap` is no valid bound.
        smallest_sample: m*, the least sample size at which the bound would be below the trivial
            value with these norms; None if it exceeds 2^60.
        norms: the norms of matrices and tokens that entered the bound, by name.
    """

    gap: float
    bound: float
    trivial: float
    ratio: float
    rademacher: float
    tail: float
    certified: bool
    delta: float
    smallest_sample: int | None
    norms: dict[str, float]


def round_up(norm: float, base: float, /) -> tuple[float, int]:
    """Return the smallest number base * 2^j >= norm with a whole j >= 0, and this j.

    Raises:
        Refused: if the norm is negative or not finite, or the base is not positive.
    """
    if not (0 <= norm < math.inf and base > 0):
        raise Refused(
            f"norm={norm} and base={base}, expected a finite norm >= 0 and base > 0. Try base=2"
        )
    j = 0 if norm <= base else math.ceil(math.log2(norm / base))
    while base * 2.0**j < norm:
        j += 1
    return base * 2.0**j, j


def generalization_bound(
    network: AttentionNetwork,
    norms: dict[str, float],
    tokens: TokenNorms,
    m: int,
    /,
    *,
    loss_range: float,
    delta: float,
    lipschitz: float = 1.0,
    coverings: Sequence[LogCovering] = (),
) -> float:
    """Bound the generalization gap of all networks with this shape and with norms at most `norms`.

    The bound holds for m samples with probability 1 - `delta` if the norms are chosen independently
    of the data. It may exceed `loss_range`.

    Raises:
        Refused: if m < 1 or delta is outside (0, 1).
    """
    rademacher = network_rademacher(network, norms, tokens, m, coverings=coverings)
    # Losses in an interval of length c are within c / 2 of the interval's middle.
    c = loss_range / 2.0
    return float(generalization_gap(rademacher, c=c, m=m, delta=delta, lipschitz=lipschitz))


def generalization_certificate(
    network: AttentionNetwork,
    X: Float[np.ndarray, "m T d"],
    /,
    *,
    readout: np.ndarray,
    loss_range: float,
    lipschitz: float = 1.0,
    delta: float = 0.05,
    union: bool = True,
    base: float = 1.0,
) -> GeneralizationCertificate:
    """Bound the generalization gap of a trained network on its training inputs `X`.

    Args:
        network: a network from `extract_norms.extract_network`.
        X: the training inputs.
        readout: a vector with one entry per output; the loss depends on the outputs only through
            the scalar readout . outputs. The cross entropy of two classes needs the readout [-1, 1]
            and `lipschitz` 1.
        loss_range: the length of an interval that contains the loss; clip an unbounded loss.
        lipschitz: the Lipschitz constant of the loss as a function of readout . outputs.
        delta: the probability, in (0, 1), with which the bound may fail.
        union: whether to round each norm up to a number 2^j `base` and divide delta among all j;
            False gives a value that is no valid bound.
        base: a number above 0, the least to which a norm is rounded.

    Raises:
        Refused: if the sample is empty or not finite, the readout has the wrong length, the loss
            range is not positive, or delta is outside (0, 1).
    """
    if not 0 < loss_range < math.inf:
        raise Refused(
            f"loss_range={loss_range}, expected a positive finite number. Try to clip the loss"
        )
    X = np.asarray(X, np.float64)
    tokens = token_norms(X, network.cls)
    network = with_readout(network, readout)
    norms = map_norms(network, X)
    spent = delta
    if union:
        rounded = {name: round_up(value, base) for name, value in norms.items()}
        norms = {name: value for name, (value, _) in rounded.items()}
        # sum over j >= 0 of 1 / ((j + 1)(j + 2)) is 1.
        for _, j in rounded.values():
            spent /= (j + 1.0) * (j + 2.0)

    coverings = map_coverings(network, norms, tokens)
    about = {"loss_range": loss_range, "delta": spent, "lipschitz": lipschitz}
    at = partial(generalization_bound, network, norms, tokens, coverings=coverings, **about)
    m = X.shape[0]
    bound = at(m)
    rademacher = network_rademacher(network, norms, tokens, m, coverings=coverings)
    return GeneralizationCertificate(
        gap=min(bound, loss_range),
        bound=bound,
        trivial=loss_range,
        ratio=bound / loss_range,
        rademacher=rademacher,
        tail=bound - 2.0 * lipschitz * rademacher,
        certified=union,
        delta=delta,
        smallest_sample=first_informative(at, loss_range),
        norms=norms,
    )


def certificate_text(certificate: GeneralizationCertificate, /) -> str:
    """Return a table of the bound, its terms, the trivial value, the sample size m* and norms."""
    c = certificate
    certified, diagnostic = "certified (norms rounded up, union paid)", "diagnostic, not certified"
    says = "says something" if c.ratio < 1 else "vacuous"
    needed = "beyond 2^60" if c.smallest_sample is None else f"{c.smallest_sample:.3g}"
    rows = {
        "kind": certified if c.certified else diagnostic,
        "gap at most": f"{c.gap:.4g} ({says})",
        "bound before clipping": f"{c.bound:.4g}",
        "trivial value": f"{c.trivial:.4g}",
        "bound / trivial": f"{c.ratio:.4g}",
        "Rademacher part": f"{c.bound - c.tail:.4g} (complexity {c.rademacher:.4g})",
        "tail": f"{c.tail:.4g} at delta = {c.delta:g}",
        "m*, where it beats the trivial value": needed,
        **{f"norm: {name}": f"{value:.4g}" for name, value in c.norms.items()},
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


class Applicability(NamedTuple):
    """The result of `applicable`: a network and its bound, or the reasons why no bound applies.

    Attributes:
        network: the model as a network that the bounds cover, or None.
        reasons: every reason why the model does not fit; empty if it fits.
        unseen: parts without parameters that the model may have, for example residual connections.
            The bound is valid only if the model has none of these parts.
    """

    network: AttentionNetwork | None
    norms: Mapping[str, MatrixNorms]
    certificate: GeneralizationCertificate | None
    reasons: tuple[Reason, ...]
    unseen: tuple[str, ...]

    def __str__(self) -> str:
        shown = ["does not apply:"] if self.reasons else ["applies"]
        shown += map(str, self.reasons)
        if self.certificate:
            shown.append(certificate_text(self.certificate))
        elif self.network:
            shown.append("norms only: give X for the bound")
            shown += [f"{name}: ||.||_1,1 = {n.entries_1:.4g}" for name, n in self.norms.items()]
        return "\n".join([*shown, *(f"not seen: {one}" for one in self.unseen)])


def applicable(
    model: Any,
    X: ArrayLike | None = None,
    /,
    *,
    dense: Sequence[tuple[str, str]] = (),
    heads: int | None = None,
    cls: int = 0,
    outputs: ArrayLike | None = None,
    readout: ArrayLike | None = None,
    loss_range: float = 1.0,
    lipschitz: float = 1.0,
    delta: float = 0.05,
) -> Applicability:
    """Bound the generalization gap of a model of any JAX library, or list why no bound applies.

    Args:
        model: variables of linen, a module or state of `flax.nnx`, an Equinox module, or nested
            dicts.
        X: the inputs of the attention layer on the training data, with shape (m, T, d). Without X,
            the function only measures the norms.
        dense: the paths of the dense layers in order, each with the activation before it
            ("identity", "relu", "tanh"). The default infers the order from the layers' widths and
            the activations from `outputs`, else relu.
        heads: the number of heads, needed if projections are matrices and no module has
            `num_heads`.
        cls: the index of the token whose output the network uses.
        outputs: the model's own outputs on `X`, before the loss. They show whether the model has
            parts without parameters, such as a residual connection or a mask.
        readout: a vector with one entry per output; the loss depends on the outputs only through
            the scalar readout . outputs. The default read-out is [1] for one output and [-1, 1] for
            two outputs.
        loss_range: the length of an interval that contains the loss; clip an unbounded loss.
        lipschitz: the Lipschitz constant of the loss as a function of readout . outputs.
        delta: the probability, in (0, 1), with which the bound may fail.

    Raises:
        Refused: if the sample is empty or not finite, has no token `cls`, the loss range is not
            positive, or delta is outside (0, 1). For a model that does not fit, the function
            returns reasons and raises no error.
    """
    array = lambda given: None if given is None else np.asarray(given, np.float64)
    inputs, reads = array(X), array(readout)
    if inputs is not None and inputs.ndim == 3:
        token_norms(inputs, cls)
    about: dict[str, Any] = {"dense": dense, "heads": heads, "cls": cls}
    network, reasons, unseen = fold(model, **about, X=inputs, outputs=array(outputs))
    if network is not None and reads is None:
        count = network.dense[-1].bias.size
        reads = {1: np.array([1.0]), 2: np.array([-1.0, 1.0])}.get(count)
        if reads is None:
            what = f"the network has {count} outputs, but the bound needs a scalar output"
            reasons = (Reason(what, (), "give readout=... with one entry for each output"),)
    if network is None or reads is None:
        return Applicability(None, {}, None, reasons, unseen)
    bound = None
    if inputs is not None:
        about = {"loss_range": loss_range, "lipschitz": lipschitz, "delta": delta}
        bound = generalization_certificate(network, inputs, readout=reads, **about)
    return Applicability(network, extract_norms(network), bound, (), unseen)
