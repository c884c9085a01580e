"""Inequalities from the literature with sharp constants that are known, and where they are from.

Each is `lhs <= C rhs` with the least C as a function of the size. The arrays are free unless
`project` says otherwise; domains are written as maps onto them where one is at hand (softmax for a
simplex, exp for positive numbers).

HLP: Hardy, Littlewood, Polya, Inequalities (1934). HJ: Horn, Johnson, Matrix Analysis (1985).
MPF: Mitrinovic, Pecaric, Fink, Classical and New Inequalities in Analysis (1993).
CT: Cover, Thomas, Elements of Information Theory (1991). BE: Borwein, Erdelyi, Polynomials and
Polynomial Inequalities (1995). BV: Boyd, Vandenberghe, Convex Optimization (2004).
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from jaxbounds import Form, Sides, Statement
from jaxbounds.numerics.norms import frobenius_norm, spectral_norm

Size = Mapping[str, int]


class Classic(NamedTuple):
    """One inequality.

    Attributes:
        name: what it is called.
        source: where it is from.
        kind: the class that its row of the table is in.
        sizes: at which it is tried.
        constant: the sharp one at a size.
        sides: lhs and rhs at an instance.
        shapes: of the arrays at a size, by name; drawn from a Gaussian.
        cases: all instances, where they are enumerated.
    """

    name: str
    source: str
    kind: str
    sizes: tuple[dict[str, int], ...]
    constant: Callable[[Size], float]
    sides: Callable[[Any, Size], tuple[Any, Any]]
    shapes: Callable[[Size], Mapping[str, tuple[int, ...]]]
    cases: Callable[[Size], Mapping[str, Any]] | None = None

    def statement(self, less: float = 1.0) -> Statement:
        """As a claim with the constant times `less`."""

        def evaluate(instance: Any, size: Size) -> Sides:
            lhs, rhs = self.sides(instance, size)
            rhs = jnp.asarray(rhs, float)
            scaled = rhs if less == 1 else less * self.constant(size) * rhs
            return Sides(lhs=jnp.asarray(lhs, float), rhs={"printed": scaled, "control": rhs / 9})

        def sample(key: jax.Array, size: Size) -> dict[str, Any]:
            shapes = self.shapes(size)
            keys = jax.random.split(key, len(shapes))
            return {n: jax.random.normal(k, s) for k, (n, s) in zip(keys, shapes.items())}

        how = {"sample": sample} if self.cases is None else {"cases": self.cases}
        if self.cases is not None:
            how |= {"enumerates": "all"}
        return Statement(
            id="classic." + re.sub("[^a-z0-9]+", "-", self.name.lower()),
            label=self.name,
            formula=self.name,
            kind="inequality",
            evaluate=evaluate,
            sizes=self.sizes,
            forms=(Form(name="printed", equality="named in the literature"),),
            control="a ninth of it",
            source=self.source,
            **how,
        )


CLASSICS: list[Classic] = []


def _add(name: str, source: str, kind: str, values: Any, constant: Any, sides: Any, **arrays: str):
    """Put one on the list: arrays are given as words, "n n" for a square one of side n."""
    sizes = tuple(v if isinstance(v, dict) else {"n": v} for v in values)
    side = lambda word, size: size[word] if word in size else int(word)
    given = {name: words.split() for name, words in arrays.items()}
    shapes = lambda size: {k: tuple(side(w, size) for w in v) for k, v in given.items()}
    fixed = constant if callable(constant) else lambda size: float(constant)
    CLASSICS.append(Classic(name, source, kind, sizes, fixed, sides, shapes))


def _norm(x: Any, p: float) -> Any:
    return jnp.sum(jnp.abs(x) ** p) ** (1 / p)


_one, _two = (lambda x: jnp.sum(jnp.abs(x))), (lambda x: jnp.sqrt(jnp.sum(x**2)))
_SIGNS = jnp.asarray([[1.0, 1.0], [1.0, -1.0]])
_inf = lambda x: jnp.max(jnp.abs(x))
_nuclear = lambda a: jnp.sum(jnp.linalg.svd(a, compute_uv=False))
_positive = jnp.exp

# Smooth, attained.
_add(
    "cauchy-schwarz",
    "HLP 2.4",
    "smooth",
    (3, 6),
    1,
    lambda i, s: (i["x"] @ i["y"], _two(i["x"]) * _two(i["y"])),
    x="n",
    y="n",
)
_add(
    "am-gm",
    "HLP 2.5",
    "smooth",
    (3, 6),
    1,
    lambda i, s: (jnp.exp(jnp.mean(i["x"])), jnp.mean(jnp.exp(i["x"]))),
    x="n",
)
_add(
    "gm-hm",
    "HLP 2.5",
    "smooth",
    (3, 5),
    1,
    lambda i, s: (1 / jnp.mean(jnp.exp(-i["x"])), jnp.exp(jnp.mean(i["x"]))),
    x="n",
)
_add(
    "hoelder-3",
    "HLP 2.8",
    "smooth",
    (2, 4),
    1,
    lambda i, s: (
        jnp.sum(_positive(i["x"] + i["y"])),
        _norm(_positive(i["x"]), 3) * _norm(_positive(i["y"]), 1.5),
    ),
    x="n",
    y="n",
)
_add(
    "minkowski-3",
    "HLP 2.11",
    "smooth",
    (2, 4),
    1,
    lambda i, s: (
        _norm(_positive(i["x"]) + _positive(i["y"]), 3),
        _norm(_positive(i["x"]), 3) + _norm(_positive(i["y"]), 3),
    ),
    x="n",
    y="n",
)
_add(
    "l2-by-l4",
    "HLP 2.10",
    "smooth",
    (2, 5),
    lambda s: s["n"] ** 0.25,
    lambda i, s: (_two(i["x"]), _norm(i["x"], 4)),
    x="n",
)
_add(
    "nesbitt",
    "Nesbitt, Educ. Times (1903)",
    "smooth",
    (3,),
    1,
    lambda i, s: (1.5, (lambda x: jnp.sum(x / (jnp.sum(x) - x)))(_positive(i["x"]))),
    x="n",
)
for _n, _source, _constant in (
    (5, "Bushell, McLeod, J. Inequal. Appl. (2002)", 1.0),
    (8, "Bushell, McLeod, J. Inequal. Appl. (2002)", 1.0),
    (12, "Bushell, McLeod, J. Inequal. Appl. (2002)", 1.0),
    # below 7 where two of 14 numbers vanish; the digits by Newton's method on the stationarity of
    # the other twelve with 40 digits, the slopes at the two zeros being positive
    (14, "Zulauf, Abh. Math. Sem. Hamburg (1958)", 1.000049617175067948),
):
    _add(
        f"shapiro-{_n}",
        _source,
        "smooth",
        (_n,),
        _constant,
        lambda i, s: (
            s["n"] / 2,
            (lambda x: jnp.sum(x / (jnp.roll(x, -1) + jnp.roll(x, -2))))(_positive(i["x"])),
        ),
        x="n",
    )
_add(
    "schur-degree-1",
    "HLP 2.19",
    "smooth",
    (3,),
    1,
    lambda i, s: (
        lambda x: (
            jnp.sum(x) * (x[0] * x[1] + x[1] * x[2] + x[2] * x[0]) - 3 * jnp.prod(x),
            jnp.sum(x**3) + 3 * jnp.prod(x),
        )
    )(_positive(i["x"])),
    x="n",
)
_add(
    "samuelson",
    "Samuelson, JASA (1968)",
    "smooth",
    (3, 6),
    lambda s: math.sqrt(s["n"] - 1),
    lambda i, s: (i["x"][0] - jnp.mean(i["x"]), jnp.std(i["x"])),
    x="n",
)
_add(
    "chebyshev-sum",
    "HLP 2.17",
    "limit",
    (2, 4),
    1,
    lambda i, s: (lambda a, b: (jnp.mean(a) * jnp.mean(b), jnp.mean(a * b)))(
        jnp.cumsum(_positive(i["a"])), jnp.cumsum(_positive(i["b"]))
    ),
    a="n",
    b="n",
)
_add(
    "sigmoid-slope",
    "BV 3.1",
    "smooth",
    (1, 2),
    0.25,
    lambda i, s: (_inf(jax.nn.sigmoid(i["x"]) * jax.nn.sigmoid(-i["x"])), 1.0),
    x="n",
)
_add(
    "logistic-third",
    "BV 3.1",
    "smooth",
    (1,),
    1 / (6 * math.sqrt(3)),
    lambda i, s: ((lambda p: jnp.sum(p * (1 - p) * (1 - 2 * p)))(jax.nn.sigmoid(i["x"])), 1.0),
    x="n",
)
_add(
    "tanh-second",
    "calculus",
    "smooth",
    (1,),
    4 / (3 * math.sqrt(3)),
    lambda i, s: (jnp.sum(2 * jnp.tanh(i["x"]) * (1 - jnp.tanh(i["x"]) ** 2)), 1.0),
    x="n",
)
_add(
    "x-log-x",
    "calculus",
    "smooth",
    (1,),
    1 / math.e,
    lambda i, s: (jnp.sum(-i["x"] * jnp.exp(i["x"])), 1.0),
    x="n",
)
_add(
    "young-2",
    "HLP 4.8",
    "smooth",
    (1, 3),
    1,
    lambda i, s: (jnp.sum(i["x"] * i["y"]), jnp.sum(i["x"] ** 2 + i["y"] ** 2) / 2),
    x="n",
    y="n",
)
_add(
    "laguerre-samuelson range",
    "Popoviciu, Mathematica (1935)",
    "non-smooth",
    (3, 4),
    lambda s: 0.5 if s["n"] == 4 else math.sqrt(2) / 3,
    lambda i, s: (jnp.std(i["x"]), jnp.max(i["x"]) - jnp.min(i["x"])),
    x="n",
)
_add(
    "thompson",
    "Thomson, Biometrika (1955)",
    "non-smooth",
    (3, 4),
    lambda s: math.sqrt(2 * s["n"]),
    lambda i, s: (jnp.max(i["x"]) - jnp.min(i["x"]), jnp.std(i["x"])),
    x="n",
)

# Norms: non-smooth.
_add(
    "l1-by-l2",
    "HJ 5.4",
    "non-smooth",
    (3, 8),
    lambda s: math.sqrt(s["n"]),
    lambda i, s: (_one(i["x"]), _two(i["x"])),
    x="n",
)
_add(
    "l2-by-linf",
    "HJ 5.4",
    "non-smooth",
    (3, 6),
    lambda s: math.sqrt(s["n"]),
    lambda i, s: (_two(i["x"]), _inf(i["x"])),
    x="n",
)
_add(
    "l1-by-linf",
    "HJ 5.4",
    "non-smooth",
    (3, 6),
    lambda s: s["n"],
    lambda i, s: (_one(i["x"]), _inf(i["x"])),
    x="n",
)
_add(
    "linf-by-l1",
    "HJ 5.4",
    "non-smooth",
    (3, 6),
    1,
    lambda i, s: (_inf(i["x"]), _one(i["x"])),
    x="n",
)
_add(
    "kantorovich-l1-linf",
    "HJ 5.4",
    "non-smooth",
    (3, 5),
    lambda s: (1 + math.sqrt(s["n"])) / 2,
    lambda i, s: (_one(i["x"]) * _inf(i["x"]), _two(i["x"]) ** 2),
    x="n",
)
_add(
    "clarkson-4",
    "Clarkson, Trans. AMS (1936)",
    "smooth",
    (2, 3),
    8,
    lambda i, s: (
        _norm(i["x"] + i["y"], 4) ** 4 + _norm(i["x"] - i["y"], 4) ** 4,
        _norm(i["x"], 4) ** 4 + _norm(i["y"], 4) ** 4,
    ),
    x="n",
    y="n",
)
_add(
    "hanner-3/2",
    "Hanner, Ark. Mat. (1956)",
    "non-smooth",
    (2, 3),
    1,
    lambda i, s: (
        (_norm(i["x"], 1.5) + _norm(i["y"], 1.5)) ** 1.5
        + jnp.abs(_norm(i["x"], 1.5) - _norm(i["y"], 1.5)) ** 1.5,
        jnp.sum(jnp.abs(i["x"] + i["y"]) ** 1.5 + jnp.abs(i["x"] - i["y"]) ** 1.5),
    ),
    x="n",
    y="n",
)
_add(
    "parallelogram-l1",
    "Jordan, von Neumann, Ann. Math. (1935)",
    "non-smooth",
    (2, 3),
    2,
    lambda i, s: (
        _one(i["x"] + i["y"]) ** 2 + _one(i["x"] - i["y"]) ** 2,
        2 * (_one(i["x"]) ** 2 + _one(i["y"]) ** 2),
    ),
    x="n",
    y="n",
)
_add(
    "dunkl-williams",
    "Dunkl, Williams, AMM (1964)",
    "smooth",
    (2, 3),
    1,
    lambda i, s: (
        _two(i["x"] / _two(i["x"]) - i["y"] / _two(i["y"])) * (_two(i["x"]) + _two(i["y"])),
        2 * _two(i["x"] - i["y"]),
    ),
    x="n",
    y="n",
)
_add(
    "grothendieck-signs 2",
    "Krivine, Adv. Math. (1979)",
    "non-smooth",
    (2,),
    math.sqrt(2),
    lambda i, s: (
        jnp.sum(i["a"] * (i["u"] @ i["v"].T))
        / jnp.sqrt(jnp.max(jnp.sum(i["u"] ** 2, 1)) * jnp.max(jnp.sum(i["v"] ** 2, 1))),
        jnp.max(jnp.abs(i["a"] @ _SIGNS.T).sum(0)),
    ),
    a="n n",
    u="n 2",
    v="n 2",
)


def _distances(x: Any) -> Any:
    i, j = np.triu_indices(len(x), 1)
    return jnp.sum((x[i] - x[j]) ** 2, -1)


for _n, _value in (
    (3, 1.0),
    (4, 0.5),
    (5, (3 - math.sqrt(5)) / 2),
    (6, (5 - math.sqrt(5)) / 10),  # a pentagon with its centre
    (7, 0.25),  # a hexagon with its centre
):
    _add(
        f"distances-{_n}",
        "Bateman, Erdos, AMM (1951)",
        "non-smooth",
        (_n,),
        _value,
        lambda i, s: (jnp.min(_distances(i["x"])), jnp.max(_distances(i["x"]))),
        x="n 2",
    )

# Matrices.
_add(
    "frobenius-by-operator",
    "HJ 5.6",
    "matrices",
    (2, 3, 4),
    lambda s: math.sqrt(s["n"]),
    lambda i, s: (frobenius_norm(i["a"]), spectral_norm(i["a"])),
    a="n n",
)
_add(
    "operator-by-frobenius",
    "HJ 5.6",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (spectral_norm(i["a"]), frobenius_norm(i["a"])),
    a="n n",
)
_add(
    "nuclear-by-frobenius",
    "HJ 5.6",
    "matrices",
    (2, 3),
    lambda s: math.sqrt(s["n"]),
    lambda i, s: (_nuclear(i["a"]), frobenius_norm(i["a"])),
    a="n n",
)
_add(
    "row-sum-by-operator",
    "HJ 5.6",
    "matrices",
    (2, 3),
    lambda s: math.sqrt(s["n"]),
    lambda i, s: (jnp.max(jnp.sum(jnp.abs(i["a"]), 1)), spectral_norm(i["a"])),
    a="n n",
)
_add(
    "trace-product",
    "HJ 5.6",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (jnp.trace(i["a"] @ i["b"]), frobenius_norm(i["a"]) * frobenius_norm(i["b"])),
    a="n n",
    b="n n",
)
_add(
    "submultiplicative",
    "HJ 5.6",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (frobenius_norm(i["a"] @ i["b"]), frobenius_norm(i["a"]) * frobenius_norm(i["b"])),
    a="n n",
    b="n n",
)
_add(
    "commutator",
    "Boettcher, Wenzel, LAA (2005)",
    "matrices",
    (2, 3),
    math.sqrt(2),
    lambda i, s: (
        frobenius_norm(i["a"] @ i["b"] - i["b"] @ i["a"]),
        frobenius_norm(i["a"]) * frobenius_norm(i["b"]),
    ),
    a="n n",
    b="n n",
)
_add(
    "hadamard",
    "HJ 7.8",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (jnp.abs(jnp.linalg.det(i["a"])), jnp.prod(jnp.sqrt(jnp.sum(i["a"] ** 2, 1)))),
    a="n n",
)
_add(
    "hadamard-psd",
    "HJ 7.8",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (lambda p: (jnp.linalg.det(p), jnp.prod(jnp.diag(p))))(i["a"] @ i["a"].T),
    a="n n",
)
_add(
    "det-by-trace",
    "HJ 7.8",
    "matrices",
    (2, 3),
    lambda s: s["n"] ** -s["n"],
    lambda i, s: (lambda p: (jnp.linalg.det(p), jnp.trace(p) ** s["n"]))(i["a"] @ i["a"].T),
    a="n n",
)
_add(
    "weyl-top",
    "HJ 4.3",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (
        lambda p, q: (
            jnp.linalg.eigvalsh(p + q)[-1],
            jnp.linalg.eigvalsh(p)[-1] + jnp.linalg.eigvalsh(q)[-1],
        )
    )(i["a"] @ i["a"].T, i["b"] @ i["b"].T),
    a="n n",
    b="n n",
)
_add(
    "hadamard-max entries",
    "Hadamard (1893)",
    "matrices",
    (2, 4),
    lambda s: s["n"] ** (s["n"] / 2),
    lambda i, s: (jnp.abs(jnp.linalg.det(i["a"])), _inf(i["a"]) ** s["n"]),
    a="n n",
)
_add(
    "trace-by-nuclear",
    "HJ 7.4",
    "matrices",
    (2, 3),
    1,
    lambda i, s: (jnp.trace(i["a"]), _nuclear(i["a"])),
    a="n n",
)
_add(
    "wielandt-kantorovich",
    "HJ 7.4, lambda in [1, 4]",
    "limit",
    (2, 3),
    25 / 16,
    lambda i, s: (lambda w, l: (jnp.sum(w * l) * jnp.sum(w / l), 1.0))(
        jax.nn.softmax(i["x"]), 1 + 3 * jax.nn.sigmoid(i["y"])
    ),
    x="n",
    y="n",
)

# Simplices and information.
_add(
    "entropy",
    "CT 2.6",
    "simplex",
    (3, 5, 7),
    lambda s: math.log(s["n"]),
    lambda i, s: (-jnp.sum(jax.nn.softmax(i["x"]) * jax.nn.log_softmax(i["x"])), 1.0),
    x="n",
)
_add(
    "gini",
    "calculus",
    "simplex",
    (3, 5),
    lambda s: (s["n"] - 1) / s["n"],
    lambda i, s: (1 - jnp.sum(jax.nn.softmax(i["x"]) ** 2), 1.0),
    x="n",
)
_square = lambda x: x**2 / jnp.sum(x**2)
for _name, _n, _clique in (("C5", 5, 2), ("K4", 4, 4), ("Petersen", 10, 2)):
    _edges = {
        "C5": [(k, (k + 1) % 5) for k in range(5)],
        "K4": [(a, b) for a in range(4) for b in range(a)],
        "Petersen": [(k, (k + 1) % 5) for k in range(5)]
        + [(k, k + 5) for k in range(5)]
        + [(5 + k, 5 + (k + 2) % 5) for k in range(5)],
    }[_name]
    _matrix = np.zeros((_n, _n))
    for _a, _b in _edges:
        _matrix[_a, _b] = _matrix[_b, _a] = 1
    _add(
        f"motzkin-straus-{_name}",
        "Motzkin, Straus, Canad. J. Math. (1965)",
        "simplex",
        (_n,),
        1 - 1 / _clique,
        lambda i, s, m=_matrix: (_square(i["x"]) @ m @ _square(i["x"]), 1.0),
        x="n",
    )
_add(
    "pinsker",
    "CT 11.6",
    "limit",
    (2, 3),
    math.sqrt(2),
    lambda i, s: (
        jnp.sum(jnp.abs(jax.nn.softmax(i["p"]) - jax.nn.softmax(i["q"]))),
        jnp.sqrt(
            jnp.sum(
                jax.nn.softmax(i["p"]) * (jax.nn.log_softmax(i["p"]) - jax.nn.log_softmax(i["q"]))
            )
        ),
    ),
    p="n",
    q="n",
)
_add(
    "softmax-jacobian",
    "Gao, Pavel (2017)",
    "simplex",
    (2,),
    0.5,
    lambda i, s: (lambda p: (spectral_norm(jnp.diag(p) - jnp.outer(p, p)), 1.0))(
        jax.nn.softmax(i["x"])
    ),
    x="n",
)
_add(
    "softmax-jacobian-more",
    "Gao, Pavel (2017)",
    "limit",
    (3,),
    0.5,
    lambda i, s: (lambda p: (spectral_norm(jnp.diag(p) - jnp.outer(p, p)), 1.0))(
        jax.nn.softmax(i["x"])
    ),
    x="n",
)
_add(
    "max-variance",
    "Popoviciu (1935)",
    "simplex",
    (2, 3),
    0.25,
    lambda i, s: (lambda p, b: (p @ b**2 - (p @ b) ** 2, (jnp.max(b) - jnp.min(b)) ** 2))(
        _square(i["x"]), i["b"]
    ),
    x="n",
    b="n",
)
_add(
    "log-sum-exp",
    "BV 3.1",
    "simplex",
    (3, 4),
    lambda s: math.log(s["n"]),
    lambda i, s: (jax.nn.logsumexp(i["x"]) - jnp.max(i["x"]), 1.0),
    x="n",
)
_add(
    "maclaurin-2",
    "HLP 2.22",
    "simplex",
    (3, 5),
    lambda s: (s["n"] - 1) / (2 * s["n"]),
    lambda i, s: (lambda p: ((1 - jnp.sum(p**2)) / 2, 1.0))(_square(i["x"])),
    x="n",
)
_add(
    "maclaurin-3",
    "HLP 2.22",
    "simplex",
    (3, 4),
    lambda s: math.comb(s["n"], 3) / s["n"] ** 3,
    lambda i, s: (lambda p: ((1 - 3 * jnp.sum(p**2) + 2 * jnp.sum(p**3)) / 6, 1.0))(
        _square(i["x"])
    ),
    x="n",
)
_add(
    "x^2 y",
    "Cirtoaje, Algebraic Inequalities (2006)",
    "simplex",
    (3,),
    4 / 27,
    lambda i, s: (lambda p: (jnp.sum(p**2 * jnp.roll(p, -1)), 1.0))(_square(i["x"])),
    x="n",
)
_add(
    "fano-rate",
    "CT 2.10",
    "simplex",
    (3, 5),
    lambda s: math.log(s["n"]),
    lambda i, s: (
        lambda e: (-e * jnp.log(e) - (1 - e) * jnp.log1p(-e) + e * jnp.log(s["n"] - 1.0), 1.0)
    )(jax.nn.sigmoid(jnp.sum(i["x"]))),
    x="1",
)

# Spheres.
_add(
    "rayleigh",
    "HJ 4.2",
    "sphere",
    (3, 5),
    lambda s: 2 + 2 * math.cos(math.pi / (s["n"] + 1)),
    lambda i, s: (2 * i["x"] @ i["x"] + 2 * i["x"][1:] @ i["x"][:-1], i["x"] @ i["x"]),
    x="n",
)
_add(
    "fan-taussky-todd",
    "Fan, Taussky, Todd, Monatsh. (1955)",
    "sphere",
    (3, 6),
    lambda s: 1 / (4 * math.sin(math.pi / (2 * (s["n"] + 1))) ** 2),
    lambda i, s: (i["x"] @ i["x"], jnp.sum(jnp.diff(i["x"], prepend=0.0, append=0.0) ** 2)),
    x="n",
)
_add(
    "wirtinger-cyclic",
    "MPF XX",
    "sphere",
    (4, 6),
    lambda s: 1 / (4 * math.sin(math.pi / s["n"]) ** 2),
    lambda i, s: (
        jnp.sum((i["x"] - jnp.mean(i["x"])) ** 2),
        jnp.sum((i["x"] - jnp.roll(i["x"], 1)) ** 2),
    ),
    x="n",
)
_add(
    "product-on-sphere",
    "HLP 2.5",
    "sphere",
    (3, 4),
    lambda s: s["n"] ** (-s["n"] / 2),
    lambda i, s: (jnp.prod(i["x"]), _two(i["x"]) ** s["n"]),
    x="n",
)
_add(
    "cubic-on-sphere",
    "calculus",
    "sphere",
    (3, 4),
    1,
    lambda i, s: (jnp.sum(i["x"] ** 3), _two(i["x"]) ** 3),
    x="n",
)
_add(
    "hilbert-section",
    "HLP 9.1, largest eigenvalue",
    "sphere",
    (2, 3),
    lambda s: float(
        np.linalg.eigvalsh(1 / (np.add.outer(np.arange(s["n"]), np.arange(s["n"])) + 1.0))[-1]
    ),
    lambda i, s: (
        i["x"]
        @ jnp.asarray(1 / (np.add.outer(np.arange(s["n"]), np.arange(s["n"])) + 1.0))
        @ i["x"],
        i["x"] @ i["x"],
    ),
    x="n",
)
_add(
    "hardy-section",
    "HLP 9.8, largest eigenvalue",
    "sphere",
    (2, 3),
    lambda s: (lambda h: float(np.linalg.eigvalsh(h.T @ h)[-1]))(
        np.tril(np.ones((s["n"], s["n"]))) / np.arange(1, s["n"] + 1)[:, None]
    ),
    lambda i, s: (jnp.sum((jnp.cumsum(i["x"]) / jnp.arange(1, s["n"] + 1)) ** 2), i["x"] @ i["x"]),
    x="n",
)

# Polynomials: on [-1, 1], where a grid holds the extrema of Chebyshev's.
_GRID = lambda n: jnp.asarray(
    np.unique(np.concatenate([np.cos(np.pi * np.arange(n + 1) / n), np.linspace(-1, 1, 41)]))
)
_at = lambda c, x: jnp.polyval(c[::-1], x)
_derived = lambda c: c[1:] * jnp.arange(1, len(c))
for _n in (2, 3, 4, 5):
    _add(
        f"markov-{_n}",
        "Markov (1889); BE 5.1",
        "polynomials",
        (_n,),
        _n**2,
        lambda i, s: (jnp.abs(_at(_derived(i["c"]), 1.0)), _inf(_at(i["c"], _GRID(s["n"])))),
        c=str(_n + 1),
    )
for _n in (3, 4):
    _add(
        f"chebyshev-leading-{_n}",
        "Chebyshev (1854); BE 2.1",
        "polynomials",
        (_n,),
        2 ** (_n - 1),
        lambda i, s: (jnp.abs(i["c"][-1]), _inf(_at(i["c"], _GRID(s["n"])))),
        c=str(_n + 1),
    )
_add(
    "chebyshev-outside",
    "BE 5.1",
    "polynomials",
    (2,),
    7.0,
    lambda i, s: (jnp.abs(_at(i["c"], 2.0)), _inf(_at(i["c"], _GRID(s["n"])))),
    c="3",
)
_add(
    "markov-second",
    "V. Markov (1892)",
    "polynomials",
    (3,),
    24.0,
    lambda i, s: (jnp.abs(_at(_derived(_derived(i["c"])), 1.0)), _inf(_at(i["c"], _GRID(s["n"])))),
    c="4",
)
_add(
    "bernstein-trigonometric",
    "Bernstein (1912); BE 5.1",
    "polynomials",
    (1, 2),
    lambda s: s["n"],
    lambda i, s: (
        lambda k, t: (
            jnp.abs(jnp.sum(k * i["b"])),
            _inf(jnp.cos(jnp.outer(t, k)) @ i["a"] + jnp.sin(jnp.outer(t, k)) @ i["b"]),
        )
    )(jnp.arange(1.0, s["n"] + 1), jnp.asarray(np.arange(48) * np.pi / 24)),
    a="n",
    b="n",
)

# Limits.
_add(
    "tanh-over-x",
    "calculus",
    "limit",
    (1, 2),
    1,
    lambda i, s: (_one(jnp.tanh(i["x"])), _one(i["x"])),
    x="n",
)
_add(
    "log-ratio",
    "calculus",
    "limit",
    (1,),
    1,
    lambda i, s: (lambda x: (jnp.sum(jnp.log1p(x)), jnp.sum(1 + jnp.log1p(x))))(jnp.abs(i["x"])),
    x="n",
)
_add(
    "power-ratio",
    "calculus",
    "limit",
    (1,),
    1,
    lambda i, s: (lambda x: (jnp.sum(x**0.3), jnp.sum(1 + x**0.3)))(jnp.abs(i["x"])),
    x="n",
)
_add(
    "bump-and-rise",
    "search.md, A6",
    "limit",
    (1,),
    1,
    lambda i, s: (lambda x: (jnp.sum(0.9 * jnp.exp(-((x - 1) ** 2)) + x / (100 + x)), 1.0))(
        jnp.abs(i["x"])
    ),
    x="n",
)
_add(
    "log1p",
    "calculus",
    "limit",
    (1, 2),
    1,
    lambda i, s: (jnp.sum(jnp.log1p(i["x"] ** 2)), jnp.sum(i["x"] ** 2)),
    x="n",
)
_add(
    "bernoulli-root",
    "HLP 2.16",
    "limit",
    (1,),
    0.5,
    lambda i, s: (lambda x: (jnp.sum(jnp.sqrt(1 + x) - 1), jnp.sum(x)))(jnp.abs(i["x"])),
    x="n",
)
_add(
    "gelu-slope",
    "Hendrycks, Gimpel (2016)",
    "smooth",
    (1,),
    lambda s: float(scipy.stats.norm.cdf(2**0.5) + 2**0.5 * scipy.stats.norm.pdf(2**0.5)),
    lambda i, s: (
        lambda x: (jnp.sum(jax.scipy.stats.norm.cdf(x) + x * jax.scipy.stats.norm.pdf(x)), 1.0)
    )(i["x"]),
    x="n",
)


# Enumerated.
def _signs(n: int) -> np.ndarray:
    return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def _enumerate(
    name: str, source: str, values: Sequence[int], constant: Any, sides: Any, cases: Any
):
    sizes = tuple({"n": v} for v in values)
    fixed = constant if callable(constant) else lambda size: float(constant)
    CLASSICS.append(Classic(name, source, "enumerated", sizes, fixed, sides, lambda s: {}, cases))


_enumerate(
    "discrepancy-of-signs",
    "counting",
    (3, 4),
    lambda s: s["n"],
    lambda i, s: (jnp.abs(jnp.sum(i["e"])), 1.0),
    lambda s: {"e": _signs(s["n"])},
)
_enumerate(
    "hadamard-signs",
    "Hadamard (1893)",
    (2, 3),
    lambda s: {2: 2.0, 3: 4.0}[s["n"]],
    lambda i, s: (jnp.abs(jnp.linalg.det(i["e"].reshape(s["n"], s["n"]))), 1.0),
    lambda s: {"e": _signs(s["n"] ** 2)},
)
_enumerate(
    "merit",
    "Barker (1953)",
    (4, 5),
    lambda s: {4: 4.0, 5: 6.25}[s["n"]],
    lambda i, s: (
        s["n"] ** 2 / 2.0,
        sum((i["e"][k:] @ i["e"][: s["n"] - k]) ** 2 for k in range(1, s["n"])),
    ),
    lambda s: {"e": _signs(s["n"])},
)
_enumerate(
    "binary-mean",
    "counting",
    (3, 5),
    lambda s: s["n"] / (s["n"] + 1),
    lambda i, s: (jnp.sum((i["e"] + 1) / 2), s["n"] + 1.0),
    lambda s: {"e": _signs(s["n"])},
)
