"""Appendix B: gates as ReLU networks, in integers."""

from ..claims import checks
from ..judge import Sides, assume
from ..witness import Witness

AND, OR = 0, 1
"""The codes of operations of which one is known: a gate of a circuit that has one gate is OR."""


def relu(x: int) -> int:
    """max(x, 0)."""
    return max(x, 0)


@checks(
    "smapprox.lemmab.1.norm",
    "printed",
    ("|theta|_1 of the network of one OR gate", "<=", "s"),
    formula="|theta|_1 of the uncorrected network <= s, of each layer = O(r_i)",
    text="0be7b6256e5468873397817b6004812f",
    size="inputs=2",
    leaves={"operation": "i 1 1", "left": "i 1 1", "right": "i 1 1"},
)
def parameter_norm(w: Witness) -> Sides:
    """|theta|_1 of the network of Lemma B.1 for one OR gate of two inputs, against its size s.

    1 - relu(1 - x_1 - x_2) by Proposition B.2: W_1 = (-1, -1), b_1 = 1, W_2 = -1, b_2 = 1. The
    circuit has two inputs and one gate, s = 3.
    """
    operation, left, right = (int(w[name].item()) for name in ("operation", "left", "right"))
    W1, b1, W2, b2 = (-1, -1), 1, -1, 1
    table = {(x, y): W2 * relu(W1[0] * x + W1[1] * y + b1) + b2 for x in (0, 1) for y in (0, 1)}
    inputs = w.size["inputs"]
    sure = {
        "one OR gate": operation == OR and w["operation"].size == 1,
        "of two inputs": inputs == 2 and {left, right} == {0, 1},
        "the network computes OR": all(out == (x | y) for (x, y), out in table.items()),
    }
    assume(sure)
    return Sides(sum(map(abs, W1)) + b1 + abs(W2) + b2, inputs + 1)


@checks(
    "smapprox.lemmab.1.not",
    "printed diagonal",
    ("NOT x_0", "=", "relu(relu(1 - x_1))"),
    formula="NOT(h_j) = relu(1 - h_j), with the -1 in the parent's column j",
    text="f4efbed65e3ba82bace452491a308570",
    size="inputs=2",
    leaves={"x": "i inputs"},
)
def not_on_the_diagonal(w: Witness) -> Sides:
    """NOT of input 0 at coordinate 1, and what row 1 of W_1 with -1 on the diagonal makes of x.

    relu(W_2 relu(W_1 x + b_1) + b_2) with (b_1)_1 = 1, (W_2)_11 = 1, (b_2)_1 = 0.
    """
    x = [int(value) for value in w["x"]]
    sure = {"x in {0, 1}^2": len(x) == 2 and all(value in (0, 1) for value in w["x"])}
    assume(sure)
    return Sides(1 - x[0], relu(relu(1 - x[1])))
