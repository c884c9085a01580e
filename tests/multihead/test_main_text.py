"""Theorems 1, 2 and Corollary 2 with constants, the gap's certificate, gradients of read-outs."""

import math

import numpy as np
import pytest

from jaxbounds.multihead import descent
from jaxbounds.multihead.bounds import mixed_hessian_sharp, readout_inner_gradient
from jaxbounds.multihead.certificate import GoodInitialisation
from jaxbounds.multihead.descent_certificate import gap_certificate
from jaxbounds.multihead.main_text import (
    corollary2_rho,
    corollary2_root_heads,
    theorem1_rho,
    theorem1_root_heads,
)

ROUNDED = 1 + 1e-12


def _draws(n):
    """T, d, R and two lengths, all that the docstring of `main_text` asks for."""
    rng = np.random.default_rng(0)
    while n:
        T, d = rng.integers(1, 9, 2)
        R, D, s = np.exp(rng.uniform(0.0, 2.0, 3))
        if d * R**2 >= T:
            n -= 1
            yield int(T), int(d), float(R), float(D), float(s)


def test_appendix_b_and_c_typed_from_the_paper_are_below():
    """(74), (84), alpha, rho and Corollary 5 are written out here, not called."""
    for T, d, R, D, s in _draws(200):
        setting = descent.Setting.bounded(distance=D, size=s, radius=R, T=T, d=d)
        three = 3 * math.sqrt(d) * R**2 * (3 * D + s) + 1
        root = float(theorem1_root_heads(setting))
        assert 36 * math.sqrt(T * d) * R**3 * three * D**2 <= root * ROUNDED
        assert root == pytest.approx(468 * d * math.sqrt(T) * R**5 * s * D**3)
        stable = float(theorem1_root_heads(setting, stability=True))
        assert 256 * math.sqrt(T * d) * R**3 * three * D**2 <= stable * ROUNDED
        inner = 3 * math.sqrt(T) * R**3 * (3 * D + s) + 2 * math.sqrt(T) * R
        alpha = 3 * math.sqrt(d) * R**2 * inner
        rho = (2 * math.sqrt(T * d) * R**3 / root + T * R**2 / 4) * alpha**2
        assert rho <= float(theorem1_rho(setting)) * ROUNDED
        # Corollary 5 at K = 1, B_Phi = 1: g_0 = 2 / gamma; here g_0 = B_2 D.
        B, g = s, s * D
        good, at = GoodInitialisation(B, 1.0, 2.0 / g), {"T": T, "d": d, "corrected": False}
        three = 3 * math.sqrt(d) * R**2 * (4 * g + B) + 1
        root = float(corollary2_root_heads(good, R, 1.0, **at))
        assert 256 * math.sqrt(T * d) * R**3 * B * three * g**2 <= root * ROUNDED
        inner = 3 * math.sqrt(T) * R**3 * (4 * g + B) + 2 * math.sqrt(T) * R
        alpha = 3 * math.sqrt(d) * R**2 * inner
        rho = (2 * math.sqrt(T * d) * R**3 / root + T * R**2 / 4) * alpha**2
        assert rho <= float(corollary2_rho(good, R, 1.0, **at)) * ROUNDED


def test_the_gap_certificate_by_hand():
    """The sharpened (84), rho# and Lemma 11 at one point, from their formulas in the docstrings."""
    given = {"T": 2, "d": 3, "radius": 1.0, "distance": 2.0, "K": 5}
    found = gap_certificate(100, **given, loss_target=0.2, loss_start=0.7, size=1.0)
    c, far = 4 / (3 * math.sqrt(3)), math.sqrt(13 / 3) * 2.0
    beta3 = math.sqrt(2) * (c * (far + 1.0) + 1.0)
    assert found.heads == 2 * math.ceil((8 * far**2 * beta3) ** 2 / 2)
    root = math.sqrt(found.heads)
    ball = far + 4 / math.sqrt(2)
    rho = math.sqrt(2) * (c * (1.0 + ball) + 1.0) / root + 2 * (1 + (1 + ball / root) ** 2) / 4
    step = min(1 / rho, 4.0 / (5 * 0.2), 4.0 / 0.7)
    assert found.step_size == pytest.approx(step, rel=1e-12)
    beta1 = math.sqrt(2 * (1 + (1.0 + far / root) ** 2))
    average = 2 * 0.2 + 3 * 4.0 / (4 * step * 5) + 0.7 / (2 * 5)
    grown = math.exp(8 / 3 * step * beta3 / root * 5 * average)
    stable = grown * step * beta1 / 100 * (5 * average + 0.7)
    assert found.gap_bound == pytest.approx(2 * beta1 * stable, rel=1e-12)
    with pytest.raises(ValueError, match="n=0 samples"):
        gap_certificate(0, **given, loss_target=0.2, loss_start=0.7)


@pytest.mark.parametrize("readout", ["pooling", "last"])
def test_gradients_of_readouts_by_finite_differences(readout):
    """A NumPy model without JAX, at tokens x and -x of which x attends to both sides alike."""
    T = 8
    x = np.array([1.0, 0.0])
    X = np.where(np.arange(T) < T - 1, 1.0, -1.0)[:, None] * x
    W = -0.5 * math.log(T - 1) * np.outer(x, x)
    rows = np.ones(T) if readout == "pooling" else (np.arange(T) == 0).astype(float)

    def output(W):
        scores = X @ W @ X.T
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return float(rows @ (weights @ X) @ x)

    slope = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[i, j] = 1e-5
        slope[i, j] = (output(W + step) - output(W - step)) / 2e-5
    found = np.linalg.norm(slope)
    assert found <= readout_inner_gradient(1.0, 1.0, T=T, readout=readout) * (1 + 1e-9)
    if readout == "pooling":  # above what (46) says of ||u||
        assert found > 2 * readout_inner_gradient(1.0, 1.0, T=T, readout="full")
    else:
        assert found == pytest.approx(1.0, rel=1e-6)


def test_the_mixed_block_at_antipodal_tokens():
    """Written out: sum_t x_t x_t^T (x) Cov^2 with Cov = v v^T has norm T."""
    v = np.array([0.6, 0.8])
    X = np.array([v, -v, v, -v])
    cov = X.T @ X / 4
    square = sum(np.kron(np.outer(x, x), cov @ cov) for x in X)
    assert np.sqrt(np.linalg.norm(square, 2)) == pytest.approx(mixed_hessian_sharp(1.0, T=4))
