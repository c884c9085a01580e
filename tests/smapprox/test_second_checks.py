"""What the statements say of the paper, a second time: by hand, in fractions, in plain NumPy.

Nothing here calls the functions that the statements judge, but for weights of networks, which are
data, and for the value that is checked.
"""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbounds.claims.statements import Size
from jaxbounds.smapprox.all_layer_margin import balls_margin
from jaxbounds.smapprox.certified import NiceConstants, perturbation_radii, theorem_d6
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.circuits import Circuit, Gate, all_inputs, identity_chain
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import compile_circuit
from jaxbounds.smapprox.layers import find_last_visit, ripple_adder
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.sample_complexity import unseen_difference
from jaxbounds.smapprox.statements import (
    appendix_d_lemmas,
    appendix_d_sharing,
    section2_epsilon,
)

relu = lambda v: np.maximum(v, 0)


def hidden_states(params, x):
    """Layer after layer, in NumPy."""
    weights = [(params["first"]["W"], params["first"]["b"])]
    weights += list(zip(params["hidden"]["W"], params["hidden"]["b"]))
    h, states = np.asarray(x, float), []
    for W, b in weights:
        h = relu(np.asarray(W) @ h + np.asarray(b))
        states.append(h)
    return states


# E19: independent, as it counts in fractions and over all rules, not only minimisers of losses.
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_rule_at_all_tells_the_two_targets_apart(n):
    eta = Fraction(1, 50)
    law = [Fraction(1, 2) - eta, 2 * eta, Fraction(1, 2) - eta]
    targets = [(1, 1, 0), (1, 0, 0)]
    for target, model in zip(targets, (1, 0)):
        # (2.3): theta_1 = 1 or -1 is wrong, so without margin, on mass 1/2 - eta = epsilon
        assert sum(p for p, g in zip(law, target) if g != model) == Fraction(1, 2) - eta
        # and the other model exceeds epsilon
        assert sum(p for p, g in zip(law, target) if g == model) > Fraction(1, 2) - eta
    seen = [{}, {}]
    for sample in itertools.product(range(3), repeat=n):
        weight = math.prod(law[x] for x in sample)
        for k, target in enumerate(targets):
            data = tuple((x, target[x]) for x in sample)
            seen[k][data] = seen[k].get(data, 0) + weight
    # the best rule of all: for each labelled sample it is wrong about the less likely target
    least = sum(min(p, seen[1].get(data, 0)) for data, p in seen[0].items()) / 2
    assert least == (1 - 2 * eta) ** n / 2
    assert unseen_difference(0.04, n) == pytest.approx(float(least), rel=1e-12)


def test_the_stored_counterexample_of_lemma_24_by_hand():
    form = section2_epsilon.ONE_EPSILON.form("printed")
    eta, constant = (form.counterexample.instance[k] for k in ("eta", "constant"))
    n = constant * (math.log(2) + 1) / (0.5 - eta) ** 2
    missed = math.exp(n * math.log1p(-2 * eta)) / 2
    assert missed / 0.01 == pytest.approx(form.counterexample.ratio, rel=1e-9) and missed > 0.4


# E11: independent, as the attention is the plain one of conftest.
def test_a_key_that_moves_by_any_amount_changes_what_claim_c4_attends_to(plain_numpy):
    layout = Layout(("p",), ("0", "_"), 3)
    p = find_last_visit(layout)[0].dec
    # a machine that goes so, run by hand: 1 on the cell read halts it, at step 5
    S = {("a", "_"): "b0+", ("b", "_"): "a0-", ("a", "0"): "b1+", ("b", "0"): "a1-"}
    state, tape, heads, H = "a", {}, [1], []
    while (state, tape.get(heads[-1], "_")) in S:
        after, written, move = S[state, tape.get(heads[-1], "_")]
        tape[heads[-1]], state = written, after
        heads.append(heads[-1] + (1 if move == "+" else -1))
    assert heads == [1, 2, 1, 2, 1] and tape == {1: "1", 2: "1"}
    for t in range(1, 5):
        h = np.zeros(layout.width)
        for name, value in (("pos1", t), ("pos2", heads[t - 1]), ("pos3", heads[t])):
            h[list(layout.groups[name])] = [int(c) for c in f"{value:03b}"]
        H.append(h)
    _, scores, best = plain_numpy.attend(p, H[3], H)
    assert best == [1, 3] and sorted(scores)[-3] == max(scores) - 1
    second_bit = layout.groups["pos1"][1]
    for epsilon in (1e-3, 1e-6, 1e-9):
        moved = p | {"Wk": p["Wk"].copy(), "Wv": p["Wv"].copy()}
        moved["Wk"][0, second_bit] += epsilon
        assert plain_numpy.attend(moved, H[3], H)[2] != [1, 3]
        # with values apart by 0.01 a move of H by epsilon makes the layer jump by 0.005
        apart = p | {"Wv": p["Wv"].copy()}
        apart["Wv"][layout.at("scr4", "left"), second_bit] += 0.01
        near = [H[0] + epsilon * np.eye(layout.width)[layout.at("pos2", 0)], *H[1:]]
        jump = plain_numpy.attend(apart, H[3], near)[0] - plain_numpy.attend(apart, H[3], H)[0]
        assert np.linalg.norm(jump) == pytest.approx(0.005, rel=1e-9)


# E2: independent, as the layers are run in NumPy.
def test_the_network_of_lemma_33_is_zero_where_the_circuit_is():
    circuit = identity_chain(5)
    params = compile_circuit(circuit)
    for x in all_inputs(1):
        output = hidden_states(params, x)[-3][0]  # f_{q-1} of zeta_{q-2} of ... of f_1
        assert output == pytest.approx(float(circuit(x[None])[0]), abs=1e-12)
    assert (0 - 0.5) * hidden_states(params, [0.0])[-3][0] <= 0  # (2.1) is met by delta = 0


# E7: independent, as the entries are written out.
def test_an_or_gate_has_norm_five_by_hand():
    row, b1, w2, b2 = [-1, -1], 1, -1, 1  # relu(-relu(1 - x1 - x2) + 1)
    for x in itertools.product((0, 1), repeat=2):
        inner = max(0, sum(w * v for w, v in zip(row, x)) + b1)
        assert max(0, w2 * inner + b2) == max(x)
    assert sum(map(abs, row)) + abs(b1) + abs(w2) + abs(b2) == 5 > 2 + 1
    params = compile_circuit(Circuit(2, ((Gate("OR", (0, 1)),),)), correction=None)
    assert sum(np.abs(v).sum() for k in ("first", "hidden") for v in params[k].values()) == 5


# E20: independent, as the bits are counted in Python integers from (C.11).
def test_nonzero_entries_of_a_state_by_hand():
    # parity on 1^30, T = 31: at step i the head goes from cell i to i + 1, never visited before
    count = lambda i: 2 + sum(v.bit_count() for v in (i, i, i + 1))
    assert count(30) == 15 and 4 + 3 + math.ceil(math.log2(31)) < 15
    assert max(count(i) for i in range(1, 31)) == 15
    # and on 1^62 at T = 63
    assert count(62) == 18 > 4 + 3 + 6


# E3: independent, as the network is run by the plain Transformer of conftest.
def test_positions_that_wrap_read_the_wrong_symbol(plain_numpy):
    machine = LIBRARY["parity"]().machine
    for bits, symbol in ((2, 1), (3, 2)):  # cell 5 is cell 1 modulo 4, which holds a "1"
        compiled = compile_machine(machine, 4, tape="one_way", bits=bits)
        layout = compiled.layout
        code = lambda v, b=bits: [int(c) for c in f"{v % 2**b:0{b}b}"]
        decoder, encoder = np.zeros((6, layout.width)), np.zeros((3, layout.width))
        decoder[:, list(layout.groups["pos1"])] = [code(i) for i in range(6)]
        encoder[:, list(layout.groups["pos1"])] = [code(i + 1) for i in range(3)]
        outputs = plain_numpy.transformer(compiled.params, np.eye(3)[[1, 1, 0]], encoder, decoder)
        assert outputs[4][list(layout.groups["sym1"])].argmax() == symbol
        assert outputs[4] @ compiled.params["head"] == -1  # an even number of ones, either way


# E24: independent, as the two matrices are written out.
def test_not_on_the_diagonal():
    x = np.array([0, 1])
    assert relu(np.array([-1, 0]) @ x + 1) == 1 != 1 - x[1]  # gate 0, parent 1, -1 at (0, 0)
    assert relu(np.array([0, -1]) @ x + 1) == 1 - x[1]


# E23: independent, a scalar network by hand: |f(W + t) - f(W)| / |t| grows without bound.
def test_two_layers_have_no_lipschitz_constant_on_all_parameters():
    f = lambda w1, w2: w2 * max(w1, 0.0)
    quotients = [abs(f(t, t) - f(0.0, 0.0)) / math.hypot(t, t) for t in (1.0, 1e3, 1e6)]
    assert quotients[2] > 1e3 * quotients[1] * 0.99 > 1e5 * quotients[0]


def test_margin_of_balls_against_a_search(x64):
    """Independent: SciPy looks for the nearest parameter inside each ball."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta, centres = rng.normal(size=3), 3 * rng.normal(size=(4, 3))
        radii = rng.uniform(0.1, 0.5, 4)
        nearest = []
        for centre, radius in zip(centres, radii):
            inside = {
                "type": "ineq",
                "fun": lambda v, c=centre, r=radius: r - np.linalg.norm(v - c),
            }
            square = lambda v, t=theta: ((v - t) ** 2).sum()
            nearest.append(minimize(square, centre + 0.01, constraints=inside).fun ** 0.5)
        arrays = map(jnp.asarray, (theta, centres, radii))
        assert balls_margin(*arrays) == pytest.approx(min(nearest), rel=1e-4)
        assert balls_margin(*map(jnp.asarray, (centres[0], centres, radii))) == 0


def test_radii_of_d6_to_d8_by_hand():
    # lambda = 2, kappa_theta = 3, kappa_xi = 5, mu = 7, mu_0 = 11, sigma_h = 13, sigma_zeta = 1/4.
    c = NiceConstants(3.0, 5.0, 7.0, 11.0, 13.0, 0.25, 2.0, 0.5)
    want = (1 / 44, 1 / 48, 1 / 1120)
    assert perturbation_radii(c) == pytest.approx(want, rel=1e-12)
    assert min(perturbation_radii(c)) == theorem_d6(c)
    small = c._replace(trust=1e-4, norm=1.0, mu_0=1e-3)
    assert perturbation_radii(small) == pytest.approx((250, 1e-4, 1e-4), rel=1e-12)
    assert perturbation_radii(c._replace(sigma_h=1e-3)).correction == pytest.approx(1e-3 / 20)


def test_layers_moved_as_far_as_d6_to_d8_allow_are_restored(x64):
    """Independent: the network and the scaling of each part are done in NumPy."""
    params = {k: {n: np.asarray(v) for n, v in p.items()}
              for k, p in appendix_d_lemmas._mixed()[0].items()}  # fmt: skip
    radii, allowed = appendix_d_lemmas._radii()
    layers = [(params["first"]["W"], params["first"]["b"])]
    layers += list(zip(params["hidden"]["W"], params["hidden"]["b"]))
    rng, worst = np.random.default_rng(0), 0.0
    for x in all_inputs(4)[::3]:
        exact = hidden_states(params, x)
        for _ in range(20):
            moved = []
            for part in range(len(layers) // 2):
                radius = radii.first if part == 0 else (radii.layer, radii.correction)[part % 2]
                step = [rng.normal(size=v.shape) for pair in layers[2 * part :][:2] for v in pair]
                length = math.sqrt(sum((v**2).sum() for v in step))
                step = [radius * v / length for v in step]
                moved += [(W + dW, b + db) for (W, b), dW, db in zip(
                    layers[2 * part :][:2], step[::2], step[1::2])]  # fmt: skip
            h = np.asarray(x, float)
            for k, (W, b) in enumerate(moved):
                h = relu(W @ h + b)
                if k % 4 == 1:
                    worst = max(worst, np.linalg.norm(h - exact[k]))
                    rounded = np.clip(3 * h - 1, 0, 1)
                    assert np.abs(rounded - exact[k]).max() < 1e-12
    assert 0.01 < worst < allowed == pytest.approx(1 / 3)


def test_margins_of_shared_layers_by_search(x64):
    """Lemma D.9, independent: SciPy looks for the smallest delta with F <= 0."""
    rng = np.random.default_rng(1)
    reads = ((0, 1, 2), (2, 3, 0), (4, 5))
    sharing = jax.jit(lambda given: appendix_d_sharing._sharing(given, Size({"p": 6})))
    for _ in range(5):
        c, a = rng.normal(size=(3, 3)), rng.uniform(0.5, 2, 3)
        rows = [c[k, : len(r)] for k, r in enumerate(reads)]
        whole = sum(a[k] * np.linalg.norm(row) for k, row in enumerate(rows))
        F = lambda d: 1 - sum(row @ d[list(r)] for row, r in zip(rows, reads)) / whole  # noqa: B023
        flipped = {"type": "ineq", "fun": lambda d: -F(d)}  # noqa: B023
        rho = minimize(lambda d: d @ d, np.ones(6), constraints=flipped).fun ** 0.5
        sides = sharing({"c": c, "a": a, "delta": np.ones(6)})
        assert sides.rhs["printed shared"] == pytest.approx(rho, rel=1e-4) and rho >= a.min()


def test_norm_of_the_ripple_adder_by_hand():
    """Lemma C.2: independent, a closed count of its entries."""
    for nz, na, wp in ((4, 2, 3), (3, 3, 8)):
        layout = Layout(tuple(f"z{n}" for n in range(nz)), tuple("abc"[:na]), wp)
        found = sum(
            np.abs(layer.W1).sum() + np.abs(layer.b1).sum() for layer in ripple_adder(layout)
        )
        # copied: all groups but two coordinates of the bit and the flag; then the new rows
        copied = nz + na + 4 * wp + 3 - 2 - 1
        subtract, add = 2 + 2 + 2, 2 + 2 + 3
        finish = 2 - 2  # one row of two entries for two copied ones
        last = nz + na + 3 * wp - 1 + 2
        want = 2 * wp * copied + wp * (subtract + add) + (2 * wp - 1) * finish + last
        assert found == want


def test_rates_of_the_margin_with_the_length():
    """Against values measured for another reading of the paper, w_pos = 4 to 21."""
    machine = LIBRARY["parity"]().machine
    for bits, want in ((4, 1.5e-3), (6, 9.4e-4), (9, 5.6e-4), (13, 3.5e-4)):
        found = machine_margin_lower(compile_machine(machine, 7, bits=bits, correction=THIRDS))
        assert found == pytest.approx(want, rel=0.05)
