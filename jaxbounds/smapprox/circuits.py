"""Layered Boolean circuits (Section 3): layers of AND, OR, NOT and ID gates."""

import graphlib
import json
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from jaxbounds.ground.exceptions import Refused

ARITY = {"AND": 2, "OR": 2, "NOT": 1, "ID": 1}


class Gate(NamedTuple):
    """One gate: its operation and the positions of its parents in the layer below.

    A gate may repeat a parent: AND(x, x) = x.
    """

    op: str
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Circuit:
    """A layered circuit on `inputs` bits.

    Attributes:
        inputs: the number m of input bits.
        layers: the gates of each layer above the inputs; the last layer computes the outputs.
    """

    inputs: int
    layers: tuple[tuple[Gate, ...], ...]

    def __post_init__(self) -> None:
        layers = tuple(tuple(Gate(op, tuple(parents)) for op, parents in g) for g in self.layers)
        object.__setattr__(self, "layers", layers)
        problems = []
        if self.inputs < 1:
            problems.append(f"needs at least one input, got {self.inputs}")
        if not layers or any(not layer for layer in layers):
            problems.append("needs at least one layer, and at least one gate in every layer")
        below = self.inputs
        for i, layer in enumerate(layers, start=1):
            for j, (op, parents) in enumerate(layer):
                where = f"layer {i}, gate {j}"
                if op not in ARITY:
                    problems.append(f"{where}: {op!r} is none of {', '.join(ARITY)}")
                elif len(parents) != ARITY[op]:
                    problems.append(f"{where}: {op} has {ARITY[op]} parents, got {len(parents)}")
                if any(not 0 <= p < below for p in parents):
                    problems.append(f"{where}: parents {parents} must be in 0..{below - 1}")
            below = len(layer)
        if problems:
            more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise Refused(
                f"ill-formed circuit, problems={len(problems)}: {'; '.join(problems[:5])}{more}."
                " Try to correct these gates"
            )

    @property
    def depth(self) -> int:
        """The depth of the circuit: the number of layers above the inputs."""
        return len(self.layers)

    @property
    def width(self) -> int:
        """The width r of the circuit: the largest number of gates in a layer or of inputs."""
        return max(self.inputs, *(len(layer) for layer in self.layers))

    @property
    def size(self) -> int:
        """The size s of the circuit: the number of its gates, including the input gates."""
        return self.inputs + sum(len(layer) for layer in self.layers)

    def gate_values(self, x: Bool[np.ndarray, "n m"], /) -> list[Bool[np.ndarray, "n r"]]:
        """Compute the value of every gate, layer by layer, on a batch of inputs.

        Raises:
            Refused: if the inputs do not have m bits.
        """
        below = np.asarray(x, dtype=bool)
        if below.ndim != 2 or below.shape[1] != self.inputs:
            raise Refused(
                f"inputs.shape={below.shape}, expected (n, {self.inputs}). Try inputs[None] for a"
                " single input"
            )
        values = []
        for layer in self.layers:
            below = np.stack([_OPERATION[op](below[:, list(ps)]) for op, ps in layer], axis=1)
            values.append(below)
        return values

    def __call__(self, x: Bool[np.ndarray, "n m"], /) -> Bool[np.ndarray, "n"]:
        """Compute the first output on a batch of inputs."""
        return self.gate_values(x)[-1][:, 0]

    def to_json(self) -> str:
        """Write the circuit as JSON that `from_json` reads."""
        layers = [[{"op": op, "inputs": list(ps)} for op, ps in layer] for layer in self.layers]
        return json.dumps({"inputs": self.inputs, "layers": layers})


_OPERATION = {
    "AND": lambda v: v.all(axis=1),
    "OR": lambda v: v.any(axis=1),
    "NOT": lambda v: ~v[:, 0],
    "ID": lambda v: v[:, 0],
}


def from_json(text: str, /) -> Circuit:
    """Read a circuit from {"inputs": m, "layers": [[{"op": "AND", "inputs": [0, 1]}, ...], ...]}.

    Raises:
        Refused: if the text is not JSON, or describes no circuit in this format.
    """
    try:
        data = json.loads(text)
        layers = tuple(
            tuple(Gate(g["op"], tuple(g["inputs"])) for g in ls) for ls in data["layers"]
        )
        inputs = data["inputs"]
        whole = [inputs, *(p for layer in layers for gate in layer for p in gate.parents)]
        if not all(type(number) is int for number in whole):
            raise TypeError(
                f"inputs={whole!r}, expected whole numbers for counts and names of inputs. Try"
                " integers"
            )
        return Circuit(inputs, layers)
    except (json.JSONDecodeError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            f"this text is no circuit ({reprlib.repr(str(error))}), got {reprlib.repr(text)}."
            ' Try {"inputs": m, "layers": [[{"op": ..., "inputs": [...]}, ...], ...]}'
        ) from error


def layered(
    inputs: Sequence[Hashable],
    gates: Mapping[Hashable, tuple[str, Sequence[Hashable]]],
    outputs: Sequence[Hashable],
    /,
) -> Circuit:
    """Turn any acyclic circuit into a layered one by adding ID gates (Section 3).

    Args:
        inputs: the names of the input bits.
        gates: a dict from each gate's name to its operation and the names of its parents.
        outputs: the names of the outputs, in order.

    Raises:
        Refused: if a name is unknown or the gates form a cycle.
    """
    level: dict[Hashable, int] = dict.fromkeys(inputs, 0)
    order = graphlib.TopologicalSorter({name: parents for name, (_, parents) in gates.items()})
    try:
        names = [name for name in order.static_order() if name not in level]
    except graphlib.CycleError as error:
        raise Refused(
            f"the gates form a cycle through gate={error.args[1][0]!r}. Try to remove the cycle"
        ) from error
    for name in [*names, *outputs]:
        if name not in gates and name not in level:
            raise Refused(
                f"gate={name!r} is no gate and no input. Try the name of a gate or an input"
            )
        if name not in level:
            level[name] = 1 + max(level[parent] for parent in gates[name][1])
    top = max(1, *(level[name] for name in outputs))
    wanted = list(outputs)
    layers = []
    for height in range(top, 0, -1):
        below: list[Hashable] = list(inputs) if height == 1 else []
        place: dict[Hashable, int] = {name: i for i, name in enumerate(below)}
        layer = []
        for name in wanted:
            op, parents = gates[name] if level[name] == height else ("ID", (name,))
            for parent in parents:
                if parent not in place:
                    place[parent] = len(below)
                    below.append(parent)
            layer.append(Gate(op, tuple(place[parent] for parent in parents)))
        layers.append(tuple(layer))
        wanted = below
    return Circuit(len(inputs), tuple(reversed(layers)))


def all_inputs(m: int, /) -> Bool[np.ndarray, "n m"]:
    """List all 2^m inputs; the last bit changes fastest.

    Raises:
        Refused: if m > 20, because there are too many inputs.
    """
    if m > 20:
        raise Refused(
            f"m={m} gives 2^{m} inputs, expected m <= 20 to enumerate them. Try a sample of the"
            " inputs"
        )
    return (np.arange(2**m)[:, None] >> np.arange(m)[::-1]) & 1 == 1


def random_circuit(
    key: PRNGKeyArray,
    inputs: int,
    width: int,
    depth: int,
    /,
    *,
    balance: float = 0.25,
    tries: int = 20000,
) -> Circuit:
    """Draw a random layered circuit.

    The fraction of inputs with output 1 lies in [balance, 1 - balance]; most deep random circuits
    are constant, so the function draws until a circuit fits.

    Raises:
        Refused: if no circuit fits in `tries` draws.
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    x = all_inputs(inputs)
    for _ in range(tries):
        layers, below = [], inputs
        for i in range(depth):
            gates = 1 if i == depth - 1 else int(rng.integers(max(1, width // 2), width + 1))
            layers.append(tuple(_random_gate(rng, below) for _ in range(gates)))
            below = gates
        circuit = Circuit(inputs, tuple(layers))
        if balance <= circuit(x).mean() <= 1 - balance:
            return circuit
    raise Refused(
        f"among tries={tries} circuits with inputs={inputs}, width={width} and depth={depth}, none "
        f"had a fraction of outputs 1 from {balance=} to {1 - balance}. Try a smaller depth or "
        f"balance"
    )


def _random_gate(rng: np.random.Generator, below: int) -> Gate:
    op = str(rng.choice(list(ARITY)))
    return Gate(op, tuple(int(p) for p in rng.integers(0, below, ARITY[op])))


def identity_chain(depth: int, /) -> Circuit:
    """Return the circuit that passes one bit through `depth` ID gates."""
    return Circuit(1, ((Gate("ID", (0,)),),) * depth)


def parity_circuit(m: int, /) -> Circuit:
    """Return the circuit that computes the parity of m bits with x ^ y = (x | y) & ~(x & y)."""
    names: list[Any] = [("x", i) for i in range(m)]
    gates: dict[Hashable, tuple[str, Sequence[Hashable]]] = {}
    so_far: Hashable = names[0]
    for i in range(1, m):
        gates["or", i] = ("OR", (so_far, names[i]))
        gates["and", i] = ("AND", (so_far, names[i]))
        gates["nand", i] = ("NOT", (("and", i),))
        gates["xor", i] = ("AND", (("or", i), ("nand", i)))
        so_far = ("xor", i)
    return layered(names, gates, [so_far])
