"""Define `bounds_for`: the papers' bounds for a user's network, or why they do not apply."""

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
            "this paper bounds no given network: its bounds need a lower bound on the all-layer"
            " margin at each sample, which the library certifies for compiled circuits and Turing "
            "machines only",
            (),
            "if you have such margins, `smapprox.generalization.margin_profile_bound` is a bound"
            " for any network of at most a given l_1 norm",
        ),
    ),
    hopeless=True,
)


def _line(problem: Exception, /) -> str:
    return str(problem).split("\n")[0]


def _tokens(data: Any) -> tuple[Float[np.ndarray, "n T d"] | None, tuple[Reason, ...]]:
    if data is None:
        return None, ()
    change = "give the embedded tokens as an array (n, T, d), from an embedding fixed beforehand"
    try:
        X = np.asarray(data, np.float64)
    except (TypeError, ValueError) as problem:
        return None, (
            Reason(f"the data are no array of numbers: {_line(problem)}", ("data",), change),
        )
    if X.ndim != 3 or 0 in X.shape:
        what = f"the data have shape {X.shape}, expected (n, T, d) with tokens as vectors"
        return None, (Reason(what, ("data",), change),)
    if not np.isfinite(X).all():
        return None, (
            Reason(
                "the data contain NaN or infinite values",
                ("data",),
                "remove the samples with such values",
            ),
        )
    return X, ()


def _unreadable(model: Any) -> tuple[Reason, ...]:
    try:
        leaves = leaves_by_path(model).values()
    except (TypeError, ValueError) as problem:
        change = "give variables of linen, a module of nnx or Equinox, or nested dicts"
        return (Reason(f"the model is no pytree: {_line(problem)}", ("the model",), change),)
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    change = "call bounds_for outside of jit and of other transformations"
    return (
        Reason("the parameters are traced and have no values", ("the model",), change),
    ) * traced


def _length(model: Any, X: Any, outputs: Any, **options: Any) -> PaperBound:
    """Return the paper seqlength's bound on the generalization gap, or why it does not apply."""
    found = certificate.applicable(model, X, outputs=outputs, **options)
    bound = found.certificate
    if found.reasons or bound is None:
        return replace(LENGTH, reasons=found.reasons, unseen=found.unseen, details=found)
    assumed = (
        f"for a {options['lipschitz']:g}-Lipschitz loss in an interval of length "
        f"{options['loss_range']:g}, with probability {1 - options['delta']:g}"
    )
    return replace(LENGTH, unseen=found.unseen, assumed=assumed, value=bound.bound,
        trivial=bound.trivial, from_size=bound.smallest_sample, details=found,
    )  # fmt: skip


def _span(model: Any, X: Any, **options: Any) -> PaperBound:
    """Return the paper qstr's lower bound on the risk, or reasons why the bound does not apply."""
    found = span.applicable(leaves_by_path(model), X, **options)
    if found.bound is None:
        return replace(TOKENS, reasons=found.reasons, details=found)
    unseen = (
        "connections that bypass the first layer, tokens not drawn from N(0, I), labels of another "
        "task",
    )
    return replace(TOKENS, unseen=unseen, value=found.bound.average, trivial=0.0, from_size=1,
        to_size=math.prod(X.shape[1:]) - 1, details=found,
    )  # fmt: skip


def _answer(
    paper: PaperBound, ask: Callable[[], PaperBound], unfit: tuple[Reason, ...], /
) -> PaperBound:
    """Return a paper's result for the network; refused data and exceptions become its `reasons`."""
    try:
        found = ask()
    except (TypeError, ValueError) as problem:
        refused = Reason(_line(problem), (), "correct the argument that the reason names")
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
    """Return the papers' bounds that apply to a network, and reasons why the others do not apply.

    ```python
    found = jb.bounds_for(model, X, outputs=model(X))
    found["seqlength"].value, found["seqlength"].from_size
    found["qstr"].reasons
    ```

    The paper seqlength bounds the generalization gap of one attention layer with dense layers. The
    paper qstr bounds the risk from below if the network's first layer multiplies the whole prompt.
    The paper multihead limits how negative the curvature of the loss of its attention model (2) can
    be. The paper smapprox has no bound for a given network.

    The function infers the layers of a network from the shapes and names of its parameters. The
    parameters do not show all facts that a bound needs; `PaperBound.unseen` lists the missing
    facts. The function checks some of the missing facts if the caller gives `outputs`. The function
    rounds norms up to a grid, so the bound changes in steps during training. An unsuitable model or
    unsuitable data raise no exception: the result lists the reasons why a bound does not apply.
    Below, the name in brackets is the paper whose bound uses the argument.

    Args:
        model: the network's parameters: Flax linen variables, a module or state of `flax.nnx`, an
            Equinox module, or nested dicts of arrays.
        data: the inputs of the first layer on the training set, of shape (n, T, d). Without data
            the function only checks whether the bounds fit the layers, and computes no bound.
        outputs: (seqlength, multihead) the network's outputs on `data`. The outputs reveal residual
            connections, masks and activations, which the parameters do not reveal.
        dense: (seqlength) the dense layers in order, each as a pair: the layer's path, and the
            activation before the layer ("identity", "relu" or "tanh").
        heads: (seqlength) the number of heads, if the parameters do not show the number.
        cls: (seqlength) the index of the token at which the network reads its output.
        readout: (seqlength) a vector r; the loss depends on the outputs only through the scalar r .
            outputs.
        loss_range: (seqlength) the length of an interval that contains the loss.
        lipschitz: (seqlength) a Lipschitz constant of the loss, as a function of the scalar r .
            outputs.
        delta: (seqlength) the allowed probability that the bound fails.
        first: (qstr) the path of the first layer's weights, if the shapes leave several candidates.
        encoded: (qstr) the width of a token after the network adds its positional encoding.
        direction: (qstr) the direction u of the link function, if u is known.

    Raises:
        Refused: if `loss_range` or `lipschitz` is not positive and finite, or if `delta` is outside
            (0, 1). The function also refuses its arguments if `heads`, `cls` or `encoded` is not an
            integer in range, or if `first` is not a string.
    """
    for name, value in (("loss_range", loss_range), ("lipschitz", lipschitz), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number | jax.Array):
            raise refused(name, value, "number", "0.05")
    for name, given in (("heads", heads), ("cls", cls), ("encoded", encoded)):
        if given is not None:
            whole(name, given, least=0 if name == "cls" else 1)
    if not isinstance(first, str):
        raise Refused(f"first={first!r} is not a string. Try the path of a leaf, 'layer/kernel'")
    if not (0 < loss_range < math.inf and 0 < lipschitz < math.inf and 0 < delta < 1):
        raise Refused(
            f"loss_range={loss_range}, lipschitz={lipschitz}, delta={delta}: expected positive, "
            "finite loss_range and lipschitz, and 0 < delta < 1. Try the defaults (1, 1, 0.05)"
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
