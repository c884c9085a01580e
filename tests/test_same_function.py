"""The NumPy rules against the compiler: each rule, each covered type, at the edges of its range.

Integers and booleans agree bit for bit, floats up to rounding. A rule may refuse; it never differs.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.interpreted import _RULES, COVERED, NotInterpreted, interpreted
from jaxbounds.programs.primitives import is_exact
from jaxbounds.programs.traces import equations

INTEGERS = sorted((t for t in COVERED if t.kind in "iu"), key=str)
FLOATS = sorted((t for t in COVERED if t.kind == "f"), key=str)
BOOL = [np.dtype(bool)]
SIGNED = [t for t in INTEGERS if t.kind == "i"]


def _edges(kind):
    """Entries at the ends of a type and around zero, six of them, among them NaN and infinities."""
    if kind.kind == "b":
        return np.array([True, False, True, True, False, False])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        low = [limits.min, limits.min + 1, -1 if limits.min else 1]
        return np.array([*low, 3, limits.max // 2 + 3, limits.max], kind)
    limits = np.finfo(kind)
    return np.array([-np.inf, -0.0, limits.tiny, 0.5, np.nan, limits.max], kind)


def _plain(kind):
    """Entries at which no function overflows."""
    return np.array([0.25, -0.75, 0.5, 0.125, -0.25, 0.75]).astype(kind)


def _small(kind):
    return np.array([1, 0, 1, 1, 0, 1]).astype(kind) * np.array(3 if kind.kind in "iu" else 1, kind)


def _differs(one, other, small):
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return True
    if one.dtype.kind != "f":
        return not np.array_equal(one, other)
    few = 1e-12 if one.dtype == np.float64 else 2e-5
    tiny = float(np.finfo(one.dtype).tiny)  # the compiler may take a denormal number for zero
    return not np.allclose(one, other, rtol=few, atol=max(tiny, small * few), equal_nan=True)


def _compare(function, *arguments, names):
    """Whether NumPy refuses; it must not differ, and the program must hold one of the rules."""
    with float64_on_cpu(), np.errstate(all="ignore"):
        program = jax.make_jaxpr(function)(*arguments)
        assert {e.primitive.name for e in equations(program.jaxpr)} & set(names), names
        wanted = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arguments))]
        try:
            found = interpreted(program)(*arguments)
        except NotInterpreted:
            return True
    small = 1.0 if "lgamma" in names else 1e-3  # the compiler's error is absolute beside its zeros
    for one, other in zip(found, wanted, strict=True):
        assert not _differs(np.asarray(one), other, small), f"{program}: {one} for {other}"
    return False


ENTRYWISE = {
    "int bool float": ("eq", "ne", "lt", "le", "gt", "ge", "max", "min", "convert_element_type"),
    "int float": ("add", "sub", "mul", "div", "rem", "neg", "sign", "clamp", "square",
                  "integer_pow"),
    "signed float": ("abs",),
    "int bool": ("and", "or", "xor", "not"),
    "int": ("shift_left", "shift_right_arithmetic", "shift_right_logical", "population_count",
            "clz"),
    "float": ("floor", "ceil", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "sin",
              "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "erf_inv", "logistic", "lgamma",
              "digamma", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "is_finite",
              "rsqrt", "round", "nextafter", "pow"),
}  # fmt: skip
TWO = {"eq", "ne", "lt", "le", "gt", "ge", "max", "min", "add", "sub", "mul", "div", "rem", "and",
       "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "atan2", "pow",
       "nextafter"}  # fmt: skip
CALLED = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "not": lax.bitwise_not,
    "clamp": lambda x: lax.clamp(x[::-1], x, x[:1].repeat(6)),
    "integer_pow": lambda x: [lax.integer_pow(x, n) for n in (3, 7)],
    "round": lambda x: [lax.round(x, how) for how in lax.RoundingMethod],
}  # fmt: skip


SELDOM = {"int8", "int16", "uint16", "uint32", "uint64"}
"""Types that the weekly run asks about: their rules are those of uint8, int32 and int64."""


def _case(name, kind):
    marks = [pytest.mark.slow] if str(kind) in SELDOM else []
    return pytest.param(name, kind, id=f"{name}-{kind}", marks=marks)


def _cases():
    for kinds, names in ENTRYWISE.items():
        of = {"int": INTEGERS, "bool": BOOL, "float": FLOATS, "signed": SIGNED}
        types = [kind for word in kinds.split() for kind in of[word]]
        for name in names:
            for kind in types:
                yield _case(name, kind)


@pytest.mark.slow_cases("convert_element_type-int64", "convert_element_type-uint8")
@pytest.mark.parametrize("name, kind", list(_cases()))
def test_entry_by_entry(name, kind):
    function = CALLED.get(name) or getattr(lax, name, None)
    for values in (_edges, _plain, _small):
        x = values(kind)
        if name == "convert_element_type":
            for to in COVERED - {kind}:
                _compare(lambda x, to=to: lax.convert_element_type(x, to), x, names=[name, "ne"])
            continue
        pairs = [(x, np.roll(x, k)) for k in range(6)] if name in TWO else [(x,)]
        for given in pairs:
            refused = _compare(function, *given, names=[name])
            assert not (refused and values is _small and name not in REFUSES), f"{name} of {kind}"


REFUSES = {
    "digamma",
    "div",
    "rem",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "pow",
}
"""The rules that refuse a zero, a pole, a shift by too many bits, or some powers."""
AXIS = {
    "argmax": lambda x: jnp.argmax(x, 1), "argmin": lambda x: jnp.argmin(x, 0),
    "reduce_max": lambda x: jnp.max(x, 1), "reduce_min": lambda x: jnp.min(x, 0),
    "cummax": lambda x: lax.cummax(x, 1), "cummin": lambda x: lax.cummin(x, 0, reverse=True),
    "sort": lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)),
    "top_k": lambda x: lax.top_k(x, 2),
    "transpose": lambda x: x.T, "rev": lambda x: lax.rev(x, (1,)), "reshape": jnp.ravel,
    "squeeze": lambda x: lax.squeeze(x[:1], (0,)), "slice": lambda x: x[1:, ::2],
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x[0], (4, 3)),
    "concatenate": lambda x: lax.concatenate([x, x[:1]], 0),
    "pad": lambda x: lax.pad(x, x[0, 0], ((1, 0, 0), (0, 2, 0))),
    "select_n": lambda x: jnp.where(x[:1] > x, x, x[::-1]),
    "gather": lambda x: x[jnp.array([1, 0, 1])],
    "scatter": lambda x: x.at[jnp.array([1, 1])].set(x),
    "scatter-max": lambda x: x.at[jnp.array([1, 1])].max(x),
    "scatter-min": lambda x: x.at[jnp.array([0, 1])].min(x[::-1]),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0]), 7), (1, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1], (9, 0)),
    "copy": jnp.copy, "stop_gradient": lambda x: lax.stop_gradient(x),
    "optimization_barrier": lambda x: lax.optimization_barrier(x),
}  # fmt: skip
SUMS = {
    "reduce_sum": lambda x: jnp.sum(x, 1, dtype=x.dtype),
    "reduce_prod": lambda x: jnp.prod(x, 0, dtype=x.dtype),
    "cumsum": lambda x: lax.cumsum(x, 1), "cumprod": lambda x: lax.cumprod(x, 0, reverse=True),
    "scatter-add": lambda x: x.at[jnp.array([1, 1])].add(x),
    "scatter-mul": lambda x: x.at[jnp.array([1, 1])].multiply(x),
    "dot_general": lambda x: x @ x.T,
}  # fmt: skip
BITS = {
    "reduce_and": lambda x: jnp.bitwise_and.reduce(x, 1),
    "reduce_or": lambda x: jnp.bitwise_or.reduce(x, 0),
    "reduce_xor": lambda x: lax.reduce_xor(x, (1,)),
}
NUMBERS = {"cummax", "cummin", *SUMS}
"""The rules that JAX refuses for booleans."""
WHOLE = {
    **{
        name: (f, [*INTEGERS, *FLOATS, *(() if name in NUMBERS else BOOL)])
        for name, f in (AXIS | SUMS).items()
    },
    **{name: (f, [*INTEGERS, *BOOL]) for name, f in BITS.items()},
}
OTHERS = {
    "copy_p", "expand_dims", "iota", "split", "tile", "stack", "unstack", "platform_index", "eigh",
    "svd", "qr", "lu", "triangular_solve", "random_bits", "random_split", "random_fold_in",
    "random_wrap", "random_unwrap", "bitcast_convert_type", "add_any", "device_put",
    "le_to", "lt_to",
}  # fmt: skip
"""The rules that tests/test_interpreted.py compares: for floats alone, for keys, or for shapes."""


@pytest.mark.parametrize(
    "name, kind",
    [_case(name, kind) for name, (_, kinds) in WHOLE.items() for kind in kinds],
)
def test_whole_arrays(name, kind):
    function = WHOLE[name][0]
    for values in (_edges, _small):
        x = values(kind).reshape(2, 3)
        refused = _compare(function, x, names=[name])
        assert not (refused and values is _small), f"{name} of {kind}"


@pytest.mark.parametrize("name", AXIS | SUMS)
def test_a_row_of_the_table_is_exact_only_where_nothing_rounds(name):
    function = (AXIS | SUMS)[name]
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    with float64_on_cpu():
        narrow, wide = (np.asarray(function(jnp.asarray(v))) for v in (x, x.astype(np.float64)))
    assert not is_exact(name) or np.array_equal(narrow, wide)


@pytest.mark.parametrize("kind", [*INTEGERS, *BOOL, *FLOATS], ids=str)
@pytest.mark.parametrize("wide", ["int32", "int64", "float32", "float64"])
def test_products_in_another_type(kind, wide):
    x = np.concatenate([_small(kind), np.full(6, _edges(kind)[-1] if kind.kind != "f" else 2)])
    x = x.astype(kind)
    wider = np.dtype(wide)
    if (kind.kind == "f" and wider.kind != "f") or wider.itemsize < kind.itemsize:
        pytest.skip("JAX refuses a product in a narrower type")
    dot = lambda x: lax.dot(x, x, preferred_element_type=wider)
    assert not _compare(dot, x, names=["dot_general"])


def test_each_rule_is_compared():
    compared = {*WHOLE, *OTHERS, *(name for names in ENTRYWISE.values() for name in names)}
    assert compared == set(_RULES) | {"copy_p"}


@pytest.mark.parametrize(
    "kind", ["bfloat16", "float16", "complex64", "complex128", "float8_e4m3fn"]
)
def test_other_types_are_left_to_the_compiler(kind):
    with float64_on_cpu():
        program = jax.make_jaxpr(lambda x: x + x)(jnp.ones(3, kind))
    with pytest.raises(NotInterpreted, match=f"primitive=add with dtype={kind}"):
        interpreted(program)


def test_sums_and_counts_of_bytes_wrap_as_the_compiler_has_them():
    x = np.full(200, 100, np.int8)
    assert not _compare(lambda x: jnp.sum(x, dtype=jnp.int8), x, names=["reduce_sum"])
    _compare(lambda x: lax.iota(jnp.int8, 300) + x[0], x, names=["iota"])  # equal, or refused
