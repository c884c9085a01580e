"""Nine machines, each with a bound on its running time and with the language that it accepts."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from jaxbounds.smapprox.machines import Action, TuringMachine, total

L, R = -1, 1


@dataclass(frozen=True)
class Example:
    """A ready-made Turing machine, with a bound on its halting time and a test of its language.

    Attributes:
        machine: the machine.
        steps: a function of m that bounds the halting time on all halting inputs of length at most
            m.
        accepts: a function that tells whether the machine accepts a word, without a run. None means
            that the machine neither accepts nor rejects.
    """

    machine: TuringMachine
    steps: Callable[[int], int]
    accepts: Callable[[str], bool | None]


def _machine(
    name: str, alphabet: str, inputs: str, table: dict[str, dict[str, Action]], start: str
) -> TuringMachine:
    states = (*table, "accept", "reject")
    given = {(z, a): action for z, row in table.items() for a, action in row.items()}
    return TuringMachine(
        name=name,
        states=states,
        alphabet=tuple(alphabet),
        blank="_",
        input_alphabet=tuple(inputs),
        transitions=total(given, states, tuple(alphabet), terminal=("accept", "reject")),
        start=start,
    )


def parity() -> Example:
    """Return a machine that accepts the binary words with an odd number of ones."""
    table: dict[str, dict[str, Action]] = {
        "even": {"0": ("even", "0", R), "1": ("odd", "1", R), "_": ("reject", "_", R)},
        "odd": {"0": ("odd", "0", R), "1": ("even", "1", R), "_": ("accept", "_", R)},
    }
    machine = _machine("parity", "01_", "01", table, "even")
    return Example(machine, lambda m: m + 1, lambda w: w.count("1") % 2 == 1)


def equal_blocks() -> Example:
    """Return a machine that accepts a^n b^n.

    In each round the machine crosses off one a and one b.
    """
    table: dict[str, dict[str, Action]] = {
        "take": {"a": ("seek", "X", R), "Y": ("rest", "Y", R), "_": ("accept", "_", R)},
        "seek": {"a": ("seek", "a", R), "Y": ("seek", "Y", R), "b": ("back", "Y", L)},
        "back": {"a": ("back", "a", L), "Y": ("back", "Y", L), "X": ("take", "X", R)},
        "rest": {"Y": ("rest", "Y", R), "_": ("accept", "_", R)},
    }
    machine = _machine("equal_blocks", "abXY_", "ab", table, "take")
    balanced = lambda w: w == "a" * (len(w) // 2) + "b" * (len(w) // 2)
    return Example(machine, lambda m: m * m // 2 + m + 1, balanced)


def palindrome() -> Example:
    """Return a machine that accepts the binary palindromes.

    In each round the machine erases both end symbols.
    """
    table: dict[str, dict[str, Action]] = {
        "start": {"0": ("had0", "_", R), "1": ("had1", "_", R), "_": ("accept", "_", R)},
        "had0": {"0": ("had0", "0", R), "1": ("had0", "1", R), "_": ("last0", "_", L)},
        "had1": {"0": ("had1", "0", R), "1": ("had1", "1", R), "_": ("last1", "_", L)},
        "last0": {"0": ("back", "_", L), "_": ("accept", "_", R)},
        "last1": {"1": ("back", "_", L), "_": ("accept", "_", R)},
        "back": {"0": ("back", "0", L), "1": ("back", "1", L), "_": ("start", "_", R)},
    }
    machine = _machine("palindrome", "01_", "01", table, "start")
    return Example(machine, lambda m: (m + 1) * (m + 2) // 2, lambda w: w == w[::-1])


def increment() -> Example:
    """Return a machine that adds one to a binary number in place and always accepts.

    The number may become one digit longer, and then also occupies cell 0.
    """
    table: dict[str, dict[str, Action]] = {
        "right": {"0": ("right", "0", R), "1": ("right", "1", R), "_": ("carry", "_", L)},
        "carry": {"1": ("carry", "0", L), "0": ("accept", "1", R), "_": ("accept", "1", R)},
    }
    return Example(
        _machine("increment", "01_", "01", table, "right"), lambda m: 2 * m + 2, lambda w: True
    )


def unary_addition() -> Example:
    """Return a machine that replaces 1^a + 1^b by 1^(a+b).

    The machine rejects inputs that do not have exactly one plus.
    """
    table: dict[str, dict[str, Action]] = {
        "first": {"1": ("first", "1", R), "+": ("second", "1", R)},
        "second": {"1": ("second", "1", R), "_": ("erase", "_", L)},
        "erase": {"1": ("done", "_", L)},
        "done": {"1": ("accept", "1", R), "_": ("accept", "_", R)},
    }
    return Example(
        _machine("unary_addition", "1+_", "1+", table, "first"),
        lambda m: m + 3,
        lambda w: w.count("+") == 1,
    )


def divisible_by_three() -> Example:
    """Return a machine that accepts the binary multiples of 3, first digit highest; "" is 0."""
    table: dict[str, dict[str, Action]] = {
        f"r{r}": {
            **{d: (f"r{(2 * r + int(d)) % 3}", d, R) for d in "01"},
            "_": ("reject" if r else "accept", "_", R),
        }
        for r in range(3)
    }
    machine = _machine("divisible_by_three", "01_", "01", table, "r0")
    return Example(machine, lambda m: m + 1, lambda w: int(w or "0", 2) % 3 == 0)


def balanced_parentheses() -> Example:
    """Return a machine that accepts the balanced words over ( and ).

    The machine repeatedly crosses off an innermost pair, and also visits cell 0.
    """
    table: dict[str, dict[str, Action]] = {
        "right": {
            "(": ("right", "(", R),
            "X": ("right", "X", R),
            ")": ("left", "X", L),
            "_": ("check", "_", L),
        },
        "left": {"X": ("left", "X", L), "(": ("right", "X", R)},
        "check": {"X": ("check", "X", L), "_": ("accept", "_", R)},
    }
    machine = _machine("balanced_parentheses", "()X_", "()", table, "right")

    def balanced(word: str) -> bool:
        while "()" in word:
            word = word.replace("()", "")
        return not word

    return Example(machine, lambda m: m * m + 2 * m + 2, balanced)


def busy_beaver() -> Example:
    """Return the two-state, two-symbol busy beaver: six steps and four ones from empty tape."""
    table: dict[tuple[str, str], Action] = {
        ("A", "0"): ("B", "1", R),
        ("A", "1"): ("B", "1", L),
        ("B", "0"): ("A", "1", L),
        ("B", "1"): ("H", "1", R),
    }
    machine = TuringMachine(
        name="busy_beaver",
        states=("A", "B", "H"),
        alphabet=("0", "1"),
        blank="0",
        transitions=table,
        start="A",
        accept=("H",),
        reject=(),
        input_alphabet=("0", "1"),
    )
    return Example(machine, lambda m: m + 6, lambda w: True if not w else None)


def two_way_walker() -> Example:
    """Return a machine that marks five cells left of the input, returns, and looks for marks.

    A network with too few position bits confuses the marked cells with input cells, and rejects.
    """
    table: dict[str, dict[str, Action]] = {
        "out": {a: ("m1", a, L) for a in "01_"},
        "m1": {"_": ("m2", "X", L)},
        "m2": {"_": ("m3", "X", L)},
        "m3": {"_": ("m4", "X", L)},
        "m4": {"_": ("m5", "X", L)},
        "m5": {"_": ("home", "X", R)},
        "home": {
            "X": ("home", "X", R),
            "0": ("scan", "0", R),
            "1": ("scan", "1", R),
            "_": ("accept", "_", R),
        },
        "scan": {"0": ("scan", "0", R), "1": ("scan", "1", R), "_": ("accept", "_", R)},
    }
    machine = _machine("two_way_walker", "01X_", "01", table, "out")
    return Example(machine, lambda m: m + 12, lambda w: True)


LIBRARY = MappingProxyType(
    {
        make.__name__: make
        for make in (
            parity,
            equal_blocks,
            palindrome,
            increment,
            unary_addition,
            divisible_by_three,
            balanced_parentheses,
            busy_beaver,
            two_way_walker,
        )
    }
)
"""The nine machines by name, as functions that make them."""
