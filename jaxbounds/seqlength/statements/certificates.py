"""The paper's bounds applied to a trained network, which the paper itself does not do."""

import bisect
import dataclasses
import functools
import itertools
import math

import numpy as np
from jaxtyping import Float

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.seqlength.certificate import (
    generalization_bound,
    generalization_certificate,
    round_up,
)
from jaxbounds.seqlength.comparisons import first_informative
from jaxbounds.seqlength.extract_norms import AttentionNetwork, Dense, extract_norms, matrix_norms
from jaxbounds.seqlength.generalization import deviation
from jaxbounds.seqlength.network_bound import (
    map_covering,
    map_coverings,
    map_norms,
    network_rademacher,
    norm_product,
    token_norms,
    with_readout,
)
from jaxbounds.seqlength.statements.instances import (
    identity_on_host,
    numbers,
    random_search_on_host,
)

READOUT = np.array([1.0, -1.0])


def _network(scale: float) -> AttentionNetwork:
    return AttentionNetwork(
        maps=np.array([[[scale, 0.0]]]),
        values=np.array([[[0.5]]]),
        offset=np.array([0.25]),
        dense=(Dense(np.array([[scale, -scale]]), np.array([0.5, 0.0]), "relu"),),
        cls=0,
    )


@functools.cache
def _tokens(m: int) -> Float[np.ndarray, "m 3 1"]:
    return np.random.default_rng(m).choice([-1.0, 1.0], size=(m, 3, 1))


@functools.cache
def _signs(m: int) -> Float[np.ndarray, "64 m"]:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(64, m))


def _norms_by_hand(instance: Instance, size: Size) -> Sides:
    (scale,) = numbers(instance, "scale")
    network = with_readout(_network(scale), READOUT)
    X, W = np.array([[[2.0], [-3.0]]] * 2), np.array([[1.0, -2.0], [0.0, 2.0], [3.0, 0.0]])
    norms, every = map_norms(network, X), extract_norms(network)
    found = [norms[name] for name in sorted(norms)]
    found += [norm_product(network, norms), *token_norms(X, 0), every["dense 0"].frobenius]
    dense = 2.0 * scale
    # The CLS token with a 1 is (2, 1); relu is not odd, which costs a factor 2.
    expected = [0.5, dense, scale, scale, 2.0 * scale, scale, 0.25, 0.5]
    expected += [2.0 * 0.5 * dense, 3.0, 3.0, 3.0, math.sqrt(5.0), dense]
    # W^T W is [[10, -2], [-2, 8]], with the larger eigenvalue 9 + sqrt 5.
    root = math.sqrt
    expected += [8.0, 4.0, 3.0, root(10) + root(8), root(5) + 5.0, root(18), root(9 + root(5))]
    found += matrix_norms(W)
    return Sides(np.array(found), {"derived": np.array(expected), "control": np.sort(expected)})


NORMS = identity_on_host(
    id="seqlength.certificate.norms",
    label="the norms of a network",
    tex=r"\|W_{QK}\|_{q,p}, \ \|W_v\|_{q,p}, \ \|W\|_{q,p} \ \text{of dense layers}, \ \max_t "
    r"\|x_t\|",
    formula="of W_QK, of its image of a constant [CLS] token, W_v, dense layers, biases, tokens",
    cases=lambda size: {"scale": np.geomspace(0.1, 10.0, 10)},
    evaluate=_norms_by_hand,
    judges=(map_norms, norm_product, token_norms, extract_norms, matrix_norms, with_readout),
    sizes=({"d": 1},),
    forms=(
        Form(
            name="derived",
            note="The check compares the norms of a network in R^1 and of a 3 x 2 matrix with "
            "values computed by hand.",
        ),
    ),
    control="in increasing order",
    source="library: what `generalization_certificate` measures",
)


def _network_bound(instance: Instance, size: Size) -> Sides:
    scale, m = numbers(instance, "scale", "m")
    X, network = _tokens(m), with_readout(_network(scale), READOUT)
    (last,) = network.dense
    outputs = []
    for a, b, c, e in itertools.product((-1.0, 1.0), repeat=4):
        dense = (last._replace(kernel=c * last.kernel, bias=e * last.bias),)
        values, offset = a * network.values, b * network.offset
        signed = dataclasses.replace(network, values=values, offset=offset, dense=dense)
        outputs.append(signed(X)[:, 0])
    lower = np.mean((_signs(m) @ np.array(outputs).T).max(axis=1)) / m
    bound = network_rademacher(network, map_norms(network, X), token_norms(X, 0), m)
    return Sides(lower, {"derived": bound, "control": bound / 10.0})


NETWORK = random_search_on_host(
    id="seqlength.certificate.complexity",
    label="the complexity of a network's class",
    tex=r"\frac{1}{m} \mathbb{E} \max_{f} \sum_{i=1}^m \sigma_i f(x_i) \le \text{the peeled "
    r"bound}",
    formula="E max over 16 networks of sum sigma_i f(x_i) / m <= the peeling, layer by layer",
    budget=Budget(samples=1, restarts=2, steps=6),
    cases=lambda size: {
        "scale": np.array([0.1, 1.0, 2.0, 0.5, 0.3, 1.0, 5.0, 0.1, 1e-3, 0.1]),
        "m": np.array([64, 4096, 1024, 1, 16, 256, 100, 4, 4096, 16]),
    },
    project=lambda i, size: {**i, "scale": np.clip(np.abs(i["scale"]), 1e-3, 5.0)},
    evaluate=_network_bound,
    judges=(network_rademacher, map_covering, map_norms, token_norms),
    sizes=({"d": 1},),
    forms=(
        Form(
            name="derived",
            note="The bound on the complexity extends Appendix C's peeling to biases and several "
            "layers. For one sequence and a network with biases only, the two sides would be "
            "equal.",
        ),
    ),
    control="a tenth of the right side",
    source="library: the complexity that `generalization_certificate` uses",
)


TO_THE_UNIT = "a network whose m* is below 2000, which is found to the unit"


def _certificate(instance: Instance, size: Size) -> Sides:
    return _certified(*numbers(instance, "scale", "m"))


@functools.cache
def _certified(scale: float, m: int) -> Sides:
    X, network = _tokens(m), _network(scale)
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))[:, :, None]
    mean_loss = lambda X: np.mean(1.0 / (1.0 + np.exp(-network(X) @ READOUT)))
    sure, loose = (
        generalization_certificate(network, X, readout=READOUT, loss_range=1.0, union=union)
        for union in (True, False)
    )
    signed, tokens = with_readout(network, READOUT), token_norms(X, 0)
    bound = lambda norms, m, delta, **about: generalization_bound(
        signed, norms, tokens, m, loss_range=1.0, delta=delta, **about
    )
    shared = map_coverings(signed, loose.norms, tokens)
    at = lambda m: bound(loose.norms, m, loose.delta, coverings=shared)
    # The union over the grid 2^j, j >= 0, of every norm spends delta / ((j + 1)(j + 2)).
    spent, off, rounded = sure.delta, 0.0, {}
    for name, norm in loose.norms.items():
        value, j = round_up(norm, 1.0)
        rounded[name] = value
        spent /= (j + 1) * (j + 2)
        off = max(off, norm / value, value / (2.0 * norm) if j else 0.0)
    tail = float(deviation(0.5, m, spent)) / sure.tail
    # The certificate equals the diagnostic at the rounded norms and the spent delta.
    apart = bound(rounded, m, spent) / sure.bound
    least = loose.smallest_sample or 0
    exact = bisect.bisect_left(range(2**14), True, lo=1, key=lambda m: at(m) < 1.0)
    return Sides.pairs(
        {
            "derived": (abs(mean_loss(every) - mean_loss(X)), sure.bound),
            "derived diagnostic": (max(apart, 1.0 / apart), 1.0),
            "derived grid": (off, 1.0),
            "derived union": (max(tail, 1.0 / tail), 1.0),
            "derived m*": (exact, least),
            "derived m* least": (least, exact + max(0, least // 1000 - 1)),
            "control": (sure.bound, loose.bound),
        }
    )


CERTIFICATE = random_search_on_host(
    id="seqlength.certificate",
    label="the certificate of a trained network",
    tex=r"|L_D - L_S| \le 2 \, \mathrm{Rad}_m + 3 c \sqrt{\frac{2 \ln(3 / \delta')}{m}}, "
    r"\quad \delta' = \frac{\delta}{\prod (j + 1)(j + 2)}",
    formula="|L_D - L_S| <= 2 Rad + the tail at delta / prod (j + 1)(j + 2), norms up to 2^j",
    budget=Budget(samples=1, restarts=1, steps=2),
    project=lambda i, size: {**i, "scale": np.clip(np.abs(i["scale"]), 0.05, 4.0)},
    cases=lambda size: {
        "scale": np.array([0.5, 0.25, 0.3, 1.0, 2.0, 0.1, 0.7, 0.5, 0.2, 1.5]),
        "m": np.array([50, 10, 200, 25, 16, 400, 3, 1000, 1, 64]),
    },
    evaluate=_certificate,
    judges=(
        generalization_certificate,
        generalization_bound,
        round_up,
        first_informative,
        deviation,
    ),
    sizes=({"d": 1},),
    forms=(
        Form(
            name="derived",
            note="The generalization gap is computed exactly, because the data "
            "are eight equally likely sequences.",
        ),
        Form(
            name="derived diagnostic",
            note="The diagnostic is the bound without a union bound. At the rounded norms, and at "
            "the part of delta that the union bound leaves, the diagnostic equals the certificate. "
            "At the network's own norms the "
            "diagnostic is smaller. The control (a deliberately false variant) claims equality at "
            "the network's own norms.",
            equality="always",
        ),
        Form(
            name="derived grid",
            note="A certificate rounds each norm of the network up to the next number 2^j.",
            equality="a norm that is a power of two",
        ),
        Form(
            name="derived union",
            note=(
                "This version of the claim says that the certificate's tail term uses the part of "
                "delta that the union bound over rounded norms leaves."
            ),
            equality="always",
        ),
        Form(
            name="derived m*",
            note="The certificate's sample size m* is at least the smallest m at which the bound "
            "is below the range of the loss. The check finds this smallest m by bisection.",
            equality=TO_THE_UNIT,
        ),
        Form(
            name="derived m* least",
            note="The certificate's sample size m* exceeds the smallest m at which the bound is "
            "below the range of the loss by at most 0.1%. The search finds m* with an error of at "
            "most 0.1%.",
            equality=TO_THE_UNIT,
        ),
    ),
    control="the certificate is below the diagnostic",
    source="library: norms of a trained network depend on its data",
)

STATEMENTS = (NORMS, NETWORK, CERTIFICATE)
