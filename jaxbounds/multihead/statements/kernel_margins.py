"""Definition 1 (P3) and Section 7: this library's solvers for the best NTK and global margins.

The paper does not compute these margins. Each check compares a solver's result with
differentiation, with a search over all faces of a convex hull, or with a known maximum.
"""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.global_margin import feasible, head_margins, search_global_margin
from jaxbounds.multihead.model import model_output
from jaxbounds.multihead.ntk import (
    NTKMargin,
    best_ntk_margin,
    certified_margin,
    held_out_margins,
    ntk_gram,
    ntk_margins,
    sample_gradients,
    separator,
)
from jaxbounds.numerics.norms import vector_norm


def _heads(size: Size) -> Instance:
    rng = np.random.default_rng(0)
    n, T, d, H = (size[name] for name in ("n", "T", "d", "H"))
    shapes = {"U": (H, T, d), "W": (H, d, d), "X": (n, T, d)}
    drawn = {name: rng.normal(size=(16, *shape)) for name, shape in shapes.items()}
    labels = rng.choice([-1, 1], size=(16, n))
    return {**drawn, "y": labels, "q": rng.dirichlet(np.ones(n), size=16)}


def _kernel(instance: Instance, size: Size) -> Sides:
    params = {"U": instance["U"], "W": instance["W"]}
    X, y, q = instance["X"], instance["y"], instance["q"]
    flat = lambda tree, n: jnp.concatenate([tree[k].reshape(n, -1) for k in "UW"], axis=1)
    outputs = lambda params: jax.vmap(model_output, in_axes=(None, 0))(params, X)
    features = flat(jax.jacrev(outputs)(params), size["n"])
    signed = y[:, None].astype(X.dtype) * features
    pull = q @ signed
    along = 2**0.5 * (signed @ pull) / vector_norm(pull)
    gram = ntk_gram(params, X, X)
    margin = NTKMargin(jnp.min(along), 2**0.5 * vector_norm(pull), q)  # valid for any weights q
    best = ntk_margins(params, {"X": X, "y": y}, separator(params, {"X": X, "y": y}, margin))
    own = flat(dict(zip("UW", sample_gradients(params, X))), size["n"])
    held_out = held_out_margins(gram, y, y, margin)
    found = jnp.concatenate([gram.ravel(), best, held_out, own.ravel()])
    want = jnp.concatenate([(features @ features.T).ravel(), along, along, features.ravel()])
    return Sides(lhs=found, rhs={"derived": want, "control": jnp.roll(want, 1)})


KERNEL = Statement(
    id="multihead.def1.kernel",
    label="Definition 1 (P3), the kernel",
    formula="<grad Phi(X_i), grad Phi(X_j)>, theta* = sqrt(2) sum_i q_i y_i grad Phi(X_i) / ||.|| "
    "and its margins",
    tex=r"\theta_\star = \sqrt{2} \frac{\sum_{i} q_i y_i \nabla \tilde\Phi(X_i)}{\left\| "
    r"\sum_{i} q_i y_i \nabla \tilde\Phi(X_i) \right\|}, \quad \mathcal{K}_{ij} = "
    r"\langle \nabla \tilde\Phi(X_i), \nabla \tilde\Phi(X_j) \rangle",
    kind="identity",
    evaluate=_kernel,
    judges=(ntk_gram, ntk_margins, sample_gradients, separator, held_out_margins),
    forms=(
        Form(
            name="derived",
            note="The check compares the gradients of Lemma 1 with reverse differentiation.",
        ),
    ),
    control="neighbouring entries exchanged",
    source="library: the kernel behind P3; Section 7, first open question",
    cases=_heads,
    sizes=({"n": 2, "T": 2, "d": 2, "H": 2},),
    budget=Budget(batch=16),
)


def _gradients(size: Size) -> Instance:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(12, 1, size["p"]))
    return {"gradients": common + rng.normal(size=(12, size["n"], size["p"]))}


def _least_norm(points: np.ndarray) -> float:
    """Compute the distance of a convex hull from the origin, as the least distance over its faces.

    For each face, there is a closed form of the point of the face's plane that is nearest to the
    origin. The nearest point of a plane lies in the face if its barycentric weights are
    non-negative.
    """
    found = []
    for count in range(1, len(points) + 1):
        for face in combinations(points, count):
            gram = np.stack(face) @ np.stack(face).T
            weights = np.linalg.solve(gram, np.ones(count))
            if np.all(weights >= 0):
                found.append(1 / np.sqrt(np.sum(weights)))
    return min(found)


def _best_margin(instance: Instance, size: Size) -> Sides:
    points = instance["gradients"]
    # Labels alternate, so a sign that is lost between kernel and margin changes the result.
    labels = (-1) ** np.arange(size["n"])
    unsigned = labels[:, None] * points
    margin = best_ntk_margin(unsigned @ unsigned.T, labels)
    again = certified_margin(points @ points.T, margin.weights)
    exact = 2**0.5 * _least_norm(points)
    found = np.asarray([margin.lower, margin.upper, again.lower, again.upper])
    wrong = np.full(4, 2**0.5 * np.min(np.linalg.norm(points, axis=1)))
    return Sides(lhs=found, rhs={"derived": np.full(4, exact), "control": wrong})


BEST_MARGIN = Statement(
    id="multihead.def1.margin",
    label="Definition 1 (P3), the best margin",
    formula="max over ||v|| = sqrt(2) of min_i y_i <grad Phi(X_i), v> = sqrt(2) min over the "
    "simplex of ||sum_i q_i y_i grad Phi(X_i)||",
    tex=r"\max_{\|v\| = \sqrt{2}} \min_{i} y_i \langle \nabla \tilde\Phi(X_i), v \rangle = "
    r"\sqrt{2} \min_{q \ge 0, \, \sum q_i = 1} \left\| \sum_{i} q_i y_i \nabla "
    r"\tilde\Phi(X_i) \right\|",
    kind="identity",
    host=True,
    evaluate=_best_margin,
    judges=(best_ntk_margin, certified_margin),
    forms=(
        Form(
            name="derived",
            note="The check compares the certified bounds on the best margin with sqrt(2) times "
            "the distance from the origin to the gradients' convex hull. A closed form for each "
            "face gives this distance.",
        ),
    ),
    control="the shortest of the gradients",
    source="library: duality; every face of the hull in closed form",
    cases=_gradients,
    sizes=({"n": 4, "p": 5},),
)


# Two tokens at an angle of at most 60 degrees, of lengths 2 and 1 to 2, and the search's seed.
_ACUTE = {"turn": Box(-3, 3), "between": Box(-1, 1), "length": Box(1, 2), "seed": Integers(0, 999)}


def _one_length(instance: Instance, size: Size) -> dict[str, jax.Array]:
    return {"||x_1|| = ||x_2||": instance["length"] == 2}


def _global_margin(instance: Instance, size: Size) -> Sides:
    angles = instance["turn"] + instance["between"] * jnp.arange(2.0)
    lengths = jnp.stack([2 * jnp.ones(()), instance["length"]])
    X = lengths[:, None] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    key = jax.random.key(instance["seed"])
    # Phi(-X) = -Phi(X): the labels differ and the margins agree.
    data = {"X": jnp.stack([X, -X]), "y": jnp.asarray([1, -1])}
    found = search_global_margin(
        key, data, "projection", starts=2, steps=size["steps"], step_size=0.3
    )
    again = jnp.min(head_margins(feasible(found.params, "projection"), data))
    # Rows of phi(X W X^T) X are in the tokens' hull, and all rows may tend to the longest token.
    supremum = 2**0.5 * jnp.max(vector_norm(X))
    return Sides.pairs(
        {
            "derived": (jnp.maximum(found.value, again), supremum),
            "derived, reached": (0.98 * supremum, jnp.minimum(found.value, again)),
            "control": (found.value, 0.98 * supremum),
        }
    )


GLOBAL_MARGIN = Statement(
    id="multihead.sec7.global",
    label="Section 7, the global margin",
    formula="with ||U|| = 1 and any W the best margin of X, -X is sqrt(T) max_t ||x_t||, T = 2",
    tex=r"\sup_{\|U\|_F = 1, \, W} \min\{ \Phi(X), -\Phi(-X) \} = \sqrt{T} \max_{t} \|x_t\|, "
    r"\quad T = 2",
    kind="inequality",
    evaluate=_global_margin,
    judges=(search_global_margin, head_margins, feasible),
    forms=(
        Form(
            name="derived",
            equality="two equal tokens",
            note="Each value that the search finds is the margin of a feasible theta, so the "
            "value is at most the supremum.",
        ),
        Form(
            name="derived, reached",
            hypotheses=_one_length,
            note="The search for the largest margin comes within 2% of the supremum if both tokens "
            "have the same length. If one token is shorter, the search can stop below the "
            "supremum. If one token has half the length of the other token, the search may end "
            "from both starts at half of the supremum, with all attention on the shorter token.",
        ),
    ),
    control="98% of the supremum",
    source="library: the search behind Section 7's second open question",
    over=_ACUTE,
    sample={
        "acute": lambda key, size: {},
        "equal": lambda key, size: {"between": jnp.zeros(()), "length": 2 * jnp.ones(())},
    },
    sizes=({"T": 2, "steps": 200},),
    search="random",
    budget=Budget(samples=16, restarts=2, steps=12, batch=16),
)

STATEMENTS = (KERNEL, BEST_MARGIN, GLOBAL_MARGIN)
