"""List the primitives of JAX that the library knows, in one table for all interpreters.

A row lists the parameters of a primitive that the rules read, the parameters that change no value,
and the parameters that must be unset. An interpreter treats an equation with any other parameter
like an unknown primitive. NumPy leaves an unknown primitive to the compiler, and ball arithmetic
refuses it.
"""

from typing import NamedTuple

from jaxbounds.ground.jax_internals import JaxprEqn


class Primitive(NamedTuple):
    """A JAX primitive, as a row of the table of primitives that the library's interpreters know.

    Attributes:
        exact: whether the primitive itself computes without rounding in every floating-point type.
            A program inside an equation may still round.
        reads: the names of the parameters that an interpreter's rule reads.
        may: the names of other allowed parameters. An interpreter's rule may read these parameters;
            unread parameters do not affect the computed values.
        unset: the names of the parameters that must be None, because a value changes the result.
    """

    exact: bool
    reads: frozenset[str]
    may: frozenset[str]
    unset: frozenset[str]


PRIMITIVES: dict[str, Primitive] = {}
"""The table: a dict from a primitive's name to its row.

Code that reads the table assumes that a primitive without a row rounds.
"""


def _rows(
    names: str, /, *, exact: bool = False, reads: str = "", may: str = "", unset: str = ""
) -> None:
    row = Primitive(exact, *(frozenset(text.split()) for text in (reads, may, unset)))
    PRIMITIVES.update(dict.fromkeys(names.split(), row))


# Primitives that act entry by entry.
_rows(
    "abs and ceil clamp copy copy_p eq floor ge gt is_finite le le_to lt lt_to max min ne",
    exact=True,
)
_rows("neg not or sign select_n stop_gradient optimization_barrier xor", exact=True)
_rows("shift_left shift_right_arithmetic shift_right_logical population_count clz", exact=True)
_rows("complex imag real", exact=True)
_rows("conj", exact=True, reads="input_dtype")
_rows("round", exact=True, reads="rounding_method")
_rows("name", exact=True, may="name")
_rows("add add_any sub div pow rem square nextafter")
_rows("mul", unset="out_dtype")
_rows("integer_pow", reads="y")
_rows("cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh erfc", may="accuracy")
_rows("acos acosh asin asinh atan atan2 atanh cosh sinh erf erf_inv lgamma digamma")
_rows("igamma igammac igamma_grad_a polygamma zeta regularized_incomplete_beta")
_rows("bessel_i0e bessel_i1e")
_rows("convert_element_type", reads="new_dtype", may="weak_type sharding")
_rows("reduce_precision", reads="exponent_bits mantissa_bits")
_rows("bitcast_convert_type", exact=True, reads="new_dtype")

# Primitives that move entries.
_rows("broadcast_in_dim", exact=True, reads="shape broadcast_dimensions", may="sharding")
_rows("reshape", exact=True, reads="new_sizes", may="sharding", unset="dimensions")
_rows("squeeze expand_dims rev", exact=True, reads="dimensions")
_rows("transpose", exact=True, reads="permutation")
_rows("slice", exact=True, reads="start_indices limit_indices strides")
_rows("pad", exact=True, reads="padding_config")
_rows("iota", exact=True, reads="dtype shape dimension", may="sharding")
_rows("empty empty2", exact=True, reads="dtype", may="shape sharding memory_space")
_rows("split", exact=True, reads="sizes axis")
_rows("tile", exact=True, reads="reps")
_rows("stack unstack", exact=True, reads="axis")
_rows("concatenate", exact=True, reads="dimension")
_rows("dynamic_slice", exact=True, reads="slice_sizes")
_rows("dynamic_update_slice", exact=True)
_rows(
    "gather",
    exact=True,
    reads="dimension_numbers slice_sizes mode",
    may="fill_value indices_are_sorted unique_indices",
)
_PLACED = "indices_are_sorted unique_indices update_jaxpr update_consts"
_rows("scatter scatter-max scatter-min", exact=True, reads="dimension_numbers mode", may=_PLACED)
_rows("scatter-add scatter-sub scatter-mul", reads="dimension_numbers mode", may=_PLACED)
_rows("device_put", exact=True, may="devices srcs copy_semantics")
_rows(
    "sharding_constraint",
    exact=True,
    may="sharding context_mesh layout unconstrained_dims resource_env",
)
_rows("platform_index", exact=True, reads="platforms")

# Primitives that fold, order or multiply entries.
_rows("argmax argmin", exact=True, reads="axes index_dtype")
_rows("reduce_and reduce_or reduce_xor", exact=True, reads="axes", may="out_sharding")
_rows("reduce_max reduce_min", exact=True, reads="axes", may="out_sharding")
_rows("reduce_sum reduce_prod", reads="axes", may="out_sharding")
_rows("cummax cummin", exact=True, reads="axis reverse")
_rows("cumsum cumprod cumlogsumexp", reads="axis reverse")
_rows("sort", exact=True, reads="dimension num_keys", may="is_stable")
_rows("top_k", exact=True, reads="k", may="axis is_stable")
_rows("dot_general", reads="dimension_numbers", may="precision preferred_element_type out_sharding")
_WINDOW = "window_dimensions window_strides padding base_dilation window_dilation"
_rows("reduce_window_max reduce_window_min", exact=True, reads=_WINDOW)
_rows("reduce_window_sum", reads=_WINDOW)
_rows("reduce_window", reads=f"{_WINDOW} jaxpr", may="consts")
_rows(
    "conv_general_dilated",
    reads="window_strides padding lhs_dilation rhs_dilation dimension_numbers "
    "feature_group_count batch_group_count",
    may="precision preferred_element_type out_sharding",
)

# Linear algebra.
_rows("cholesky", may="symmetrize_input")
_rows("eigh", reads="lower", may="sort_eigenvalues", unset="subset_by_index algorithm")
_rows("svd", reads="full_matrices compute_uv", unset="subset_by_index algorithm")
_rows("qr", reads="pivoting full_matrices", may="use_magma")
_rows("lu")
_rows("triangular_solve", reads="left_side lower transpose_a conjugate_a unit_diagonal")
_rows("custom_linear_solve", reads="const_lengths jaxprs")

# Random numbers.
_rows("random_bits", exact=True, reads="bit_width shape")
_rows("random_split", exact=True, reads="shape")
_rows("random_fold_in random_unwrap", exact=True)
_rows("random_wrap random_seed", exact=True, may="impl")

# Primitives that call, choose or repeat programs.
_rows(
    "jit pjit",
    exact=True,
    reads="jaxpr",
    may="in_shardings out_shardings in_layouts out_layouts donated_invars ctx_mesh name "
    "keep_unused inline compiler_options_kvs resource_env",
)
_rows("remat remat2 checkpoint", exact=True, reads="jaxpr", may="prevent_cse differentiated policy")
_rows("closed_call core_call eval_jaxpr", exact=True, reads="call_jaxpr", may="name")
_rows(
    "custom_jvp_call",
    exact=True,
    reads="call_jaxpr",
    may="jvp_jaxpr_fun jvp_jaxpr_thunk num_consts symbolic_zeros",
)
_rows(
    "custom_vjp_call",
    exact=True,
    reads="call_jaxpr",
    may="fwd_jaxpr_thunk num_consts bwd out_trees symbolic_zeros",
)
_rows("one_minus_square", exact=True)
_rows("log2", exact=True, may="accuracy")
_rows("polynomial", exact=True, may="unroll")
_rows("call_hi_primitive", exact=True, reads="_prim")
_rows("cond", exact=True, reads="branches", may="branches_platforms")
_rows("while", exact=True, reads="cond_jaxpr cond_nconsts body_jaxpr body_nconsts")
_rows(
    "scan",
    exact=True,
    reads="jaxpr length reverse",
    may="num_consts num_carry linear unroll _split_transpose ft_in ft_out",
)


def is_exact(name: str, /) -> bool:
    """Tell whether the named primitive never rounds; False if the table lacks the primitive."""
    return name in PRIMITIVES and PRIMITIVES[name].exact


def unknown_parameters(eqn: JaxprEqn, /) -> str:
    """Return a text that names an equation's unknown or missing parameters, or an empty text.

    If the table lacks the primitive, the text is empty, because no engine has a rule for the
    primitive.
    """
    name, params = eqn.primitive.name, eqn.params
    if name not in PRIMITIVES:
        return ""
    row, names = PRIMITIVES[name], params.keys()
    strange = {*names - row.reads - row.may - row.unset, *row.reads - names}
    strange |= {name for name in row.unset & names if params[name] is not None}
    if strange:
        return f"{name} with unknown or missing parameters: {', '.join(sorted(strange))}"
    return ""
