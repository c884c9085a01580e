"""`jaxbounds.bounds_for`: the choice of the papers' bounds that apply to a user's own network."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from jaxbounds.bounds.heads import HEADS, curvature_of_heads
from jaxbounds.bounds.result import Bounds, PaperBound
from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.options import refused, whole
from jaxbounds.networks.own_network import Reason, leaves_by_path
from jaxbounds.qstr import span
from jaxbounds.seqlength import certificate

LENGTH = PaperBound(
    paper="seqlength",
    source="Theorem 4.1 and Appendix C, with Lemma 3.6, sharpened (ours), and these norms",
    of="|population loss - training loss|",
)
TOKENS = PaperBound(
    paper="qstr",
    source="Theorem 6, Section 4",
    of="risk on simple-1STR with a linear link, from below, averaged over directions",
)
MARGINS = PaperBound(
    paper="smapprox",
    source="Lemma 2.4, Corollary A.1",
    of="0-1 risk",
    reasons=(
        Reason(
            "no given network: its bounds need the all-layer margin at each sample from below,"
            " which is certified for compiled circuits and Turing machines only",
            (),
            "with such margins `smapprox.generalization.margin_profile_bound` is one for any"
            " network of at most a given l_1 norm",
        ),
    ),
    hopeless=True,
)


def _line(problem: Exception, /) -> str:
    return str(problem).split("\n")[0]


def _tokens(data: Any) -> tuple[Float[np.ndarray, "n T d"] | None, tuple[Reason, ...]]:
    """Return the data in float64, or None and the reasons why they cannot be used."""
    if data is None:
        return None, ()
    change = "give what comes out of any embedding, fixed beforehand, as an array (n, T, d)"
    try:
        X = np.asarray(data, np.float64)
    except (TypeError, ValueError) as problem:
        return None, (Reason(f"data that are no array: {_line(problem)}", ("data",), change),)
    if X.ndim != 3 or 0 in X.shape:
        what = f"data of shape {X.shape}, where tokens are vectors: (n, T, d)"
        return None, (Reason(what, ("data",), change),)
    if not np.isfinite(X).all():
        return None, (Reason("data that are not finite", ("data",), "leave those samples out"),)
    return X, ()


def _unreadable(model: Any) -> tuple[Reason, ...]:
    """Return the reasons why no parameters can be read; empty if they can."""
    try:
        leaves = leaves_by_path(model).values()
    except (TypeError, ValueError) as problem:
        change = "give variables of linen, a module of nnx or Equinox, nested dicts"
        return (Reason(f"no pytree: {_line(problem)}", ("the model",), change),)
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    change = "call it outside of jit and of other transformations"
    return (Reason("parameters under a trace, without values", ("the model",), change),) * traced


def _length(model: Any, X: Any, outputs: Any, **options: Any) -> PaperBound:
    """Return the bound of seqlength."""
    found = certificate.applicable(model, X, outputs=outputs, **options)
    bound = found.certificate
    if found.reasons or bound is None:
        return replace(LENGTH, reasons=found.reasons, unseen=found.unseen, details=found)
    assumed = (
        f"for a loss in an interval of length {options['loss_range']:g}, {options['lipschitz']:g}-"
        f"Lipschitz, with probability {1 - options['delta']:g}"
    )
    return replace(LENGTH, unseen=found.unseen, assumed=assumed, value=bound.bound,
        trivial=bound.trivial, from_size=bound.smallest_sample, details=found,
    )  # fmt: skip


def _span(model: Any, X: Any, **options: Any) -> PaperBound:
    """Return the floor of qstr."""
    found = span.applicable(leaves_by_path(model), X, **options)
    if found.bound is None:
        return replace(TOKENS, reasons=found.reasons, details=found)
    unseen = ("connections past the first layer, tokens other than N(0, I), other labels",)
    return replace(TOKENS, unseen=unseen, value=found.bound.average, trivial=0.0, from_size=1,
        to_size=math.prod(X.shape[1:]) - 1, details=found,
    )  # fmt: skip


def _answer(
    paper: PaperBound, ask: Callable[[], PaperBound], unfit: tuple[Reason, ...], /
) -> PaperBound:
    """Ask a paper for its bound, and add the faults of the data; a refusal becomes a reason."""
    try:
        found = ask()
    except (TypeError, ValueError) as problem:
        refused = Reason(_line(problem), (), "give what is asked for")
        return replace(paper, reasons=(refused, *unfit))
    if not unfit:
        return found
    reasons = [one for one in found.reasons if one.paths != ("the prompts",)]
    return replace(found, reasons=(*reasons, *unfit))


def bounds_for(
    model: Any,
    data: Any = None,
    *,
    outputs: Any = None,
    dense: Sequence[tuple[str, str]] = (),
    heads: int | None = None,
    cls: int = 0,
    readout: Any = None,
    loss_range: float = 1.0,
    lipschitz: float = 1.0,
    delta: float = 0.05,
    first: str = "",
    encoded: int | None = None,
    direction: Any = None,
) -> Bounds:
    """Say which of the four papers' bounds apply to a network, and all reasons against the others.

    ```python
    found = jb.bounds_for(model, X, outputs=model(X))
    found["seqlength"].value, found["seqlength"].from_size
    found["qstr"].reasons
    ```

    The bound of seqlength is on the generalization gap of one attention layer and dense layers. The
    bound of qstr is on the risk of networks whose first layer takes the whole prompt, from below.
    The bound of multihead is on how negatively the loss of its model (2) is curved. The paper
    smapprox has no bound for a given network.

    The function reads the structure of a network off its parameters, which do not show everything
    (`PaperBound.unseen`): give `outputs`. It rounds norms up to a grid, so that along training the
    bound moves in steps. No model and no data make this function raise.

    Args:
        model: variables of linen, a module or state of `flax.nnx`, an Equinox module, nested dicts.
        data: the training inputs (n, T, d) as the first layer sees them; without, only the
            structure is read.
        outputs: seqlength, multihead: the network's own on `data`, which show what parameters do
            not (residual connections, masks, activations).
        dense: seqlength: dense layers in order, each with the activation before it.
        heads: seqlength: where attention has matrices for projections and no `num_heads`.
        cls: seqlength: the index of the token that is read.
        readout: seqlength: the loss sees readout . outputs.
        loss_range: seqlength: the loss lies in an interval of this length.
        lipschitz: seqlength: of the loss in the scalar it sees.
        delta: seqlength: the allowed probability of failure.
        first: qstr: the path of the first layer, where shapes leave it open.
        encoded: qstr: how many numbers a token has with its encoding, in the network.
        direction: qstr: of the link, if it is known.

    Raises:
        Refused: if `loss_range` or `lipschitz` is not positive, `delta` outside (0, 1), `heads`,
            `cls` or `encoded` no such integer, or `first` no text.
    """
    for name, value in (("loss_range", loss_range), ("lipschitz", lipschitz), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number | jax.Array):
            raise refused(name, value, "number", "0.05")
    for name, given in (("heads", heads), ("cls", cls), ("encoded", encoded)):
        if given is not None:
            whole(name, given, least=0 if name == "cls" else 1)
    if not isinstance(first, str):
        raise Refused(f"first={first!r} is no path. Try the path of a leaf, as 'layer/kernel'")
    if not (0 < loss_range < math.inf and 0 < lipschitz < math.inf and 0 < delta < 1):
        raise Refused(
            "loss_range and lipschitz must be positive and finite, delta in (0, 1), got "
            f"loss_range={loss_range}, lipschitz={lipschitz} and delta={delta}. Try the defaults"
        )
    X, unfit = _tokens(data)
    first = first.removeprefix("params/")
    about: dict[str, Any] = {"dense": dense, "heads": heads, "cls": cls, "readout": readout}
    about |= {"loss_range": loss_range, "lipschitz": lipschitz, "delta": delta}
    seen = outputs if X is not None else None
    asked = (
        (LENGTH, lambda: _length(model, X, seen, **about)),
        (TOKENS, lambda: _span(model, X, u=direction, first=first, encoded=encoded)),
        (HEADS, lambda: curvature_of_heads(model, X, seen)),
    )
    broken = _unreadable(model)
    if broken:
        found = [replace(paper, reasons=(*broken, *unfit)) for paper, _ in asked]
    else:
        found = [_answer(paper, ask, unfit) for paper, ask in asked]
    return Bounds(papers=(*found, MARGINS))
