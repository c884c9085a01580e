"""The first phase, the oracle's margins and the certificate, against plain numpy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.multihead.certificate import certified_run, observe
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.first_phase import (
    balanced_signs,
    deviation,
    deviation_bound,
    first_step,
    head_bound,
    head_bound_sharp,
    heads_for_margin,
    hoeffding_tail,
    margin_loss,
    model_bound,
    sign_sum_bound,
)
from jaxbounds.multihead.global_margin import head_margins, search_global_margin
from jaxbounds.multihead.oracle import (
    Assumption3,
    irrelevant_score,
    oracle_classifier,
    oracle_direction,
    oracle_weights,
    relevance_formula,
    relevant_score,
)
from jaxbounds.multihead.oracle_bounds import (
    attention_part,
    deviation_part,
    deviation_part_sharp,
    gamma_attention,
    gamma_linear,
    gamma_star,
    lemma_18,
    lemma_18_sharp,
    log_target_scale,
    saturation_scale,
    saturation_scale_sharp,
    target_slacks,
    term_one_bounds,
    term_two_bound,
)
from jaxbounds.multihead.statements.contexts import sequence, unfold


def _context(T, relevant, S, M, per_coordinate, **options):
    """DM1 with noise bounded by `per_coordinate` in every coordinate."""
    along = per_coordinate * S
    return SparseContext(
        tokens=T, dimension=M + 2, relevant=relevant, distractors=M, signal=S, noise_mu=along,
        noise_nu=along * M, **options,
    )  # fmt: skip


def _drawn(model, key, n):
    """`model.sample` as one program."""
    return jax.jit(lambda key: model.sample(key, n))(key)


def _softmax(rows):
    weights = np.exp(rows - rows.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _output(U, W, X):
    """Eq. (1) in numpy: shares no code with the model."""
    return float(np.sum(U * (_softmax(X @ W @ X.T) @ X)))


@pytest.mark.parametrize("noise", ["extreme", "none"])
def test_noise_kinds_keep_their_bounds(key, x64, noise):
    model = _context(5, 2, 2.0, 2, 0.3, noise=noise)
    data, relevant = jax.jit(lambda key: model.sample_marked(key, 50))(key)
    tokens, mask = np.asarray(data["X"]), np.asarray(relevant)
    assert np.all(mask.sum(axis=1) == 2)
    own = np.where(np.asarray(data["y"])[:, None] > 0, [2.0, 0, 0, 0], [0, 2.0, 0, 0])
    np.testing.assert_array_equal(tokens[mask].reshape(50, 2, 4), np.repeat(own[:, None], 2, 1))
    others = tokens[~mask]
    largest = {"extreme": 0.3, "none": 0.0}[noise]
    assert np.max(np.abs(others[:, :2])) <= largest + 1e-12
    if noise == "extreme":
        np.testing.assert_allclose(np.abs(others[:, :2]), 0.3)
    assert np.max(np.linalg.norm(tokens, axis=2)) <= model.radius + 1e-12


def test_unknown_noise_is_refused(unannotated):
    with pytest.raises(ValueError, match="uniform, extreme, none"):
        _context(5, 2, 2.0, 2, 0.1, noise="loud")


def test_first_step_is_a_step_of_the_loss(key, x64):
    data = _drawn(_context(3, 1, 1.5, 1, 0.2), key, 5)
    tokens, labels = np.asarray(data["X"]), np.asarray(data["y"])
    alpha = np.array([0.7, -1.3])

    def loss(U):
        outputs = [sum(_output(U[h], np.zeros((3, 3)), x) for h in range(2)) for x in tokens]
        return np.mean(np.log1p(np.exp(-labels * np.array(outputs) / 2**0.5)))

    # Central differences of a loss written in numpy: neither autograd nor the closed form.
    slope, h = np.zeros((2, 3, 3)), 1e-5
    for index in np.ndindex(2, 3, 3):
        bump = np.zeros((2, 3, 3))
        bump[index] = h
        slope[index] = (loss(bump) - loss(-bump)) / (2 * h)
    step = jax.jit(first_step)(data, alpha)
    np.testing.assert_allclose(step["U"], -alpha[:, None, None] * 2**0.5 * slope, atol=1e-9)
    assert not np.any(step["W"])


def test_the_first_direction_concentrates_at_a_quarter_of_the_sparsity(x64):
    model = _context(10, 3, 2.0, 2, 0.1)
    classifier = oracle_classifier(model.patterns())
    every = _drawn(model, jax.random.key(0), 4000)
    for samples in (100, 4000):
        data = {name: leaf[:samples] for name, leaf in every.items()}
        p = np.asarray(jax.jit(deviation)(data, classifier, model.sparsity))
        printed = p - model.sparsity / 4 * np.asarray(classifier)
        assert np.linalg.norm(p) < float(deviation_bound(model.radius, samples, 0.01))
        # zeta S sqrt(2) / 4 = .2121 stays, however large n1 is (erratum E2).
        assert np.linalg.norm(printed) == pytest.approx(0.2121, abs=0.02)


def test_margins_at_equal_rows_against_differences(key, x64):
    @jax.jit
    def parts(key):
        instance = sequence(key, Size({"T": 4, "d": 4}))
        c = unfold(instance)
        vector = instance["p"] + c.classifier
        return c.margins_at(vector), vector, c.X, c.direction, c.y

    ((outer,), (inner,)), vector, X, direction, y = jax.tree.map(np.asarray, parts(key))
    rows, U, W = np.tile(vector, (4, 1)), direction["U"], direction["W"]
    h, y = 1e-4, float(y)
    ahead, behind = _output(rows, h * W, X), _output(rows, -h * W, X)
    assert float(inner) == pytest.approx(y * (ahead - behind) / (2 * h), rel=1e-6, abs=1e-8)
    assert float(outer) == pytest.approx(y * _output(U, 0 * W, X))


def test_relevance_scores_by_loops(key, x64):

    @jax.jit
    def parts(key):
        instance = sequence(key, Size({"T": 4, "d": 5}))
        c = unfold(instance)
        formula = relevance_formula(c.patterns, instance["relevant"], instance["z"], c.y)
        return c.patterns, oracle_weights(c.patterns), c.X, formula

    patterns, weights, X, formula = jax.tree.map(np.asarray, parts(key))
    mu, nu = patterns[:2], patterns[2:]
    W = sum(np.outer(m, m) for m in mu) + sum(np.outer(v, mu[0] + mu[1]) for v in nu)
    np.testing.assert_allclose(weights, W)
    for t in range(4):
        for s in range(4):
            assert formula[t, s] == pytest.approx(X[t] @ W @ X[s], abs=1e-9)


@pytest.mark.parametrize(
    "T, relevant, S, M, noise, star, linear",
    [(10, 5, 3.0, 2, 0.05, 8.466, 3.242), (10, 1, 2.0, 2, 0.1, -1.037, 0.0447),
     (6, 2, 1.0, 2, 0.1, 0.1185, 0.3464)],
)  # fmt: skip
def test_margins_by_hand(T, relevant, S, M, noise, star, linear):
    model, zeta = _context(T, relevant, S, M, noise), relevant / T
    Z = max(model.noise_mu, model.noise_nu)
    main = zeta * S**4 - 7 * Z * S**2 - 12 * Z**2 - 16 * Z**3 / S**2
    by_hand = T * (1 - zeta) * zeta * main / (4 * (2 * (M + 1)) ** 0.5)
    by_hand += S * (T / 2) ** 0.5 * (zeta - 2 * (1 - zeta) * model.noise_mu / S**2)
    dm1 = Assumption3.of(model)
    assert float(gamma_star(dm1, 0.0)) == pytest.approx(by_hand, rel=1e-5)
    assert float(gamma_star(dm1, 0.0)) == pytest.approx(star, rel=1e-3)
    assert float(gamma_linear(dm1)) == pytest.approx(linear, rel=1e-3)


def test_bounds_by_hand(x64):
    """Worked out with S = 2, zeta = 1/4, Z_mu = .5, Z_nu = 1, Z = 1, T = 4, M = 2: R^2 = 6."""
    dm1 = Assumption3(S=2.0, zeta=0.25, Z_mu=0.5, Z_nu=1.0, Z=1.0, T=4, M=2)
    R = 6**0.5
    quieter = replace(dm1, Z_mu=0.25, Z_nu=0.1)
    by_hand = [
        (dm1.R, R),
        (dm1.noise, 1.0),
        (relevant_score(dm1), 16 - 4 * 1.5),
        (irrelevant_score(dm1), 2 * (0.25 + 0.5 + 2.0)),
        (gamma_attention(dm1, 0.1), 2**0.5 / 2 * (4 * 0.9 - 0.1)),
        (attention_part(dm1), 0.75 * (0.25 * 16 - 28 - 12 - 4) / (4 * 6**0.5)),
        (deviation_part(dm1, 0.5), 0.5 * 32 * 27),
        # ||W*||^2 / ||W*||_F^2 = (2 M + 1) / (2 M + 2) = 5/6.
        (deviation_part_sharp(dm1, 0.5), 0.5 * 4 * R**3 * (5 / 6) ** 0.5),
        (term_one_bounds(dm1)[0], 4 * (16 - 4.5 - 2.625 - 0.84375)),
        (term_two_bound(dm1, 0.5), 4 * 6**0.5 * 0.5 * 32 * (0.5 + 2.25) * (1 + 6.75)),
        (lemma_18(3.0, 0.25, 0.1), 2 / 3 * np.log(30)),
        (lemma_18_sharp(3.0, 0.25, 0.1), np.log(30) / 3),
        (lemma_18_sharp(3.0, 0.25, 0.1, exact=True), np.log(27) / 3),
        (lemma_18_sharp(3.0, 0.9, 0.5), 0.0),
        (saturation_scale(dm1, 0.1), 8 * 6**0.5 / (3 * 4) * np.log(30)),
        # A - B = S^4 - 4 S^2 - 4 at Z_mu = Z_nu = 1 is negative; at .25 it is 11.75.
        (saturation_scale_sharp(quieter, 0.1), 4 * 6**0.5 * np.log(30) / 11.75),
        (head_bound(dm1, 0.5), 2 * 2.5),
        (head_bound_sharp(dm1, 0.5), 2 * (0.5 / 8**0.5 + 0.5)),
        (sign_sum_bound(0.1), (2 * np.log(20)) ** 0.5),
        (model_bound(dm1, 0.5, 0.1), 4 * R * 2.5 * (2 * np.log(20)) ** 0.5),
        (hoeffding_tail(0.5, 8), np.exp(-1)),
        (deviation_bound(R, 25, np.exp(-2.0)), R / 2 * 3 / 5),
        (margin_loss(dm1, 0.5, np.exp(-2.0), 16), 2 * (20 * R**3 + 2 * R) * 0.5),
        (heads_for_margin(dm1, 0.5, 3.0, np.exp(-2.0)), (4 * (20 * R**3 + 2 * R) / 3) ** 2 * 4),
        (log_target_scale(2.0, 1.5, np.exp(2.0)), 5 + 1.5),
    ]
    for index, (found, value) in enumerate(by_hand):
        assert float(found) == pytest.approx(value, rel=1e-12), index
    # log n = e^2, S = e, H = e^4, C = 1, p = 1/4: ||U|| = e and ||W|| = e.
    slacks = target_slacks(1.0, 4.0, 0.0, 0.25, np.exp(2.0))
    length = 1 + np.log(2) / 2
    # Heads are equal: log ||theta||_{2,inf} = length - 2.
    expected = (1.0, -3 - 3 * length, -1 - 2 * length, -1 - 4 * length)
    np.testing.assert_allclose(np.asarray(slacks), expected, rtol=1e-12)


def test_without_noise_the_first_term_is_the_margin(key, x64):
    """10.3338 for T = 10, zeta = 1/2, S = 3, M = 2, signs and the centre zeta / 4."""
    model = _context(10, 5, 3.0, 2, 0.0, noise="none")
    data, direction = _drawn(model, key, 4), oracle_direction(model.patterns(), 10)
    rows = np.tile(np.asarray(oracle_classifier(model.patterns())) / 8, (10, 1))
    for tokens, label in zip(np.asarray(data["X"]), np.asarray(data["y"])):
        W = 1e-4 * np.asarray(direction["W"])
        slope = label * (_output(rows, W, tokens) - _output(rows, -W, tokens)) / 2e-4
        assert slope == pytest.approx(10.3338, rel=1e-5)
    quiet = Assumption3(S=3.0, zeta=0.5, Z_mu=0.0, Z_nu=0.0, Z=0.0, T=10, M=2)
    assert float(attention_part(quiet)) == pytest.approx(10.3338, rel=1e-5)


def test_the_certificate_holds_and_sharpening_pays(x64):
    model = _context(4, 2, 1.2, 1, 0.05)
    first, second = (_drawn(model, jax.random.key(i), n) for i, n in ((1, 200), (0, 8)))
    pipeline = certified_run(first, second, 20)
    assert pipeline.margin.gap < 1e-9
    assert float(pipeline.good.margin) == pytest.approx(pipeline.margin.lower)
    printed, corrected = (pipeline.certificates[k] for k in ("printed", "corrected"))
    assert corrected.distance_bound == pytest.approx(2**0.5 * printed.distance_bound)
    assert pipeline.certificates["sharpened"].heads < 1e-2 * printed.heads
    for name in ("corrected", "sharpened S8"):
        seen = observe(pipeline, second, 20, name)
        bound = pipeline.certificates[name].loss_bound
        assert seen.loss_last <= seen.loss_average <= bound
        # P3 with G theta* realises L <= 1/K.
        assert seen.target_margin >= np.log(20)


def test_samples_without_margin_are_refused(x64):
    model = _context(4, 2, 1.2, 1, 0.05)
    data = _drawn(model, jax.random.key(1), 4)
    flipped = {"X": jnp.concatenate([data["X"]] * 2), "y": jnp.concatenate([data["y"], -data["y"]])}
    with pytest.raises(ValueError, match="property P3 of a good start"):
        certified_run(data, flipped, 20)


def test_global_margin_is_feasible_and_reaches_the_saturated_one(key, x64):
    model = _context(4, 1, 1.5, 1, 0.05)
    data = _drawn(model, key, 8)
    initial = oracle_direction(model.patterns(), 4)
    sought = {"starts": 2, "steps": 200, "initial": initial}
    found = {
        norm: search_global_margin(key, data, norm, **sought) for norm in ("both", "projection")
    }
    both, free = found["both"], found["projection"]
    assert sum(np.sum(np.asarray(x) ** 2) for x in both.params.values()) == pytest.approx(2)
    assert np.sum(np.asarray(free.params["U"]) ** 2) == pytest.approx(1)
    for result in found.values():
        U, W = (np.asarray(result.params[k]) for k in "UW")
        outputs = [_output(U, W, x) for x in np.asarray(data["X"])]
        assert float(result.value) == pytest.approx(np.min(np.asarray(data["y"]) * outputs))
        margins = jax.jit(head_margins)(result.params, data)
        np.testing.assert_allclose(margins, np.asarray(data["y"]) * outputs)
    dm1 = Assumption3.of(model)
    assert float(free.value) > 0.97 * float(gamma_attention(dm1, 0.0))
    assert float(both.value) > float(gamma_linear(dm1))


def test_odd_heads_cannot_balance():
    with pytest.raises(ValueError, match="even number"):
        balanced_signs(3)
