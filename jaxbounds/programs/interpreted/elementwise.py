"""Define the rules that run entrywise primitives in NumPy: `exp`, `div`, `select_n`, ..."""

from typing import Any

import numpy as np
from scipy import special

from jaxbounds.programs.interpreted.values import NotInterpreted, Rule


def _whole(*xs: Any) -> bool:
    return all(np.issubdtype(np.asarray(x).dtype, np.integer) for x in xs)


def _refuse_zero(x: Any) -> None:
    if np.any(np.asarray(x) == 0):
        raise NotInterpreted("an integer is divided by zero")


def _div(x: Any, y: Any, **_: Any) -> Any:
    if not _whole(x, y):
        return x / y
    _refuse_zero(y)
    return (x - np.fmod(x, y)) // y  # towards zero


def _rem(x: Any, y: Any, **_: Any) -> Any:
    if _whole(x, y):
        _refuse_zero(y)
    return np.fmod(x, y)


def _converted(x: Any, *, new_dtype: Any, **_: Any) -> Any:
    x = np.asarray(x)
    if np.issubdtype(x.dtype, np.floating) and np.issubdtype(new_dtype, np.integer):
        limits = np.iinfo(new_dtype)
        if not np.all((x >= limits.min) & (x < float(limits.max))):
            raise NotInterpreted(
                "a float that is NaN or beyond an integer type's range is converted to the type"
            )
    return x.astype(new_dtype)


def _shifted(by: Any) -> Rule:
    def rule(x: Any, y: Any, **_: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        if np.any((y < 0) | (y >= 8 * x.dtype.itemsize)):
            raise NotInterpreted("an integer is shifted by more bits than there are in its type")
        bits = x.view(f"u{x.dtype.itemsize}")
        return by(bits, y.astype(bits.dtype)).view(x.dtype)

    return rule


def _shifted_with_sign(x: Any, y: Any, **_: Any) -> Any:
    if np.any((y < 0) | (y >= 8 * np.asarray(x).dtype.itemsize)):
        raise NotInterpreted("an integer is shifted by more bits than there are in its type")
    return np.right_shift(x, y)


def _bits_of(x: Any) -> Any:
    x = np.asarray(x)
    words = x.view(f"u{x.dtype.itemsize}")[..., None]
    places = np.arange(8 * x.dtype.itemsize).astype(words.dtype)
    return (words >> places) & words.dtype.type(1)


def _count_bits(x: Any, **_: Any) -> Any:
    return np.sum(_bits_of(x), axis=-1).astype(np.asarray(x).dtype)


def _count_leading_zeros(x: Any, **_: Any) -> Any:
    below = np.maximum.accumulate(_bits_of(x)[..., ::-1], axis=-1)
    return np.sum(below == 0, axis=-1).astype(np.asarray(x).dtype)


def _select(which: Any, *cases: Any, **_: Any) -> Any:
    if np.asarray(which).dtype == bool:
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases)


def _rounded(x: Any, *, rounding_method: Any, **_: Any) -> Any:
    if rounding_method.name == "TO_NEAREST_EVEN":
        return np.rint(x)
    away = np.trunc(x) + np.sign(x)
    return np.where(np.abs(x - np.trunc(x)) >= 0.5, away, np.trunc(x))


def _log_gamma(x: Any, **_: Any) -> Any:
    if np.any(np.isneginf(x)):
        raise NotInterpreted("the gamma function is taken at minus infinity")
    return special.gammaln(x)


def _digamma(x: Any, **_: Any) -> Any:
    if np.any((x <= 0) & (x == np.floor(x))):
        raise NotInterpreted("the digamma function is taken at a pole")
    return special.digamma(x)


def _several(*xs: Any, **_: Any) -> list[Any]:
    return list(xs)


def _clamp(low: Any, x: Any, high: Any, **_: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _same(x: Any, **_: Any) -> Any:
    return x


def _ordered(x: Any) -> Any:
    """Map floats to integers in their total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _plain(function: Any) -> Rule:
    return lambda *xs, **_: function(*xs)


RULES: dict[str, Rule] = {
    **{name: _plain(getattr(np, name)) for name in (
        "abs", "sign", "floor", "ceil", "sqrt", "cbrt", "square", "exp", "exp2", "expm1", "log",
        "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "nextafter",
    )},
    **{name: _plain(getattr(special, function)) for name, function in (
        ("erf", "erf"), ("erfc", "erfc"), ("erf_inv", "erfinv"), ("logistic", "expit"),
    )},
    **{name: _plain(function) for name, function in (
        ("add", np.add), ("add_any", np.add), ("sub", np.subtract), ("mul", np.multiply),
        ("neg", np.negative), ("max", np.maximum), ("min", np.minimum), ("pow", np.power),
        ("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor),
        ("not", np.invert), ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less),
        ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal),
        ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("atan2", np.arctan2),
        ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh),
        ("is_finite", np.isfinite), ("rsqrt", lambda x: 1 / np.sqrt(x)),
    )},
    "le_to": lambda x, y, **_: _ordered(x) <= _ordered(y),
    "lt_to": lambda x, y, **_: _ordered(x) < _ordered(y),
    **dict.fromkeys(("device_put", "optimization_barrier"), _several),
    "lgamma": _log_gamma,
    "digamma": _digamma,
    "integer_pow": lambda x, *, y, **_: 1 / x**-y if y < 0 else x**y,
    "div": _div,
    "rem": _rem,
    "convert_element_type": _converted,
    "bitcast_convert_type": lambda x, *, new_dtype, **_: np.ascontiguousarray(x).view(new_dtype),
    "shift_left": _shifted(np.left_shift),
    "shift_right_logical": _shifted(np.right_shift),
    "shift_right_arithmetic": _shifted_with_sign,
    "population_count": _count_bits,
    "clz": _count_leading_zeros,
    "select_n": _select,
    "round": _rounded,
    "clamp": _clamp,
    **dict.fromkeys(("stop_gradient", "copy"), _same),
}  # fmt: skip
