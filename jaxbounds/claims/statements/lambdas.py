"""Find the text of a lambda in its file, among all lambdas on the same lines."""

import ast
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any

Spot = tuple[int, int]
"""A place in a source file: the line, counted from 1, and the column in bytes, counted from 0."""


def lambda_of(function: Any, /) -> tuple[str, str]:
    """Return the text of a lambda and the text of its body, each on one line.

    The source positions of the compiled instructions tell the lambda apart from other lambdas on
    its line. Python also compiles the file again, and the lambda's instructions must be equal in
    both compilations.

    The function may be wrapped in `jax.jit`.

    Raises:
        OSError: if the file has no such lambda, or several lambdas fit.
    """
    plain = same_function(function)
    code = getattr(plain, "__code__", None)
    if plain is None or code is None:
        raise OSError(f"function={function!r:.60} wraps another function. Try to write it with def")
    texts = dict.fromkeys(
        (_line(text, node), _line(text, node.body)) for text, node in _fitting(code)
    )
    if len(texts) != 1:
        raise OSError(
            f"code={code}: the file of this code holds lambdas={len(texts)} that fit the code, "
            f"expected one. Try to write the lambda with def"
        )
    (found,) = texts
    return found


def same_function(function: Any, /) -> Any:
    """Return the Python function inside of `jax.jit`; None inside of another wrapper.

    A function wrapped by `jax.jit` computes what the Python function computes. Other wrappers, for
    example `jax.vmap`, may compute another function.
    """
    while hasattr(function, "__wrapped__"):
        if type(function).__name__ != "PjitFunction":
            return None
        function = function.__wrapped__
    return function


def _fitting(code: types.CodeType) -> list[tuple[str, ast.Lambda]]:
    linecache.checkcache(code.co_filename)
    text = "".join(inspect.findsource(code)[0])
    try:
        known = _lambdas(text)
    except (SyntaxError, ValueError, RecursionError) as problem:
        raise OSError(
            f"file={code.co_filename} is not Python. Try to write the lambda with def"
        ) from problem
    near = [
        node for line, node, made in known if line == code.co_firstlineno and _alike(made, code)
    ]
    spans = list(_spans(code))
    around = [node for node in near if all(_holds(node.body, span) for span in spans)]
    # Instructions without places leave the choice to the equal codes.
    chosen = [max(around, key=_start)] if spans and around else near
    return [(text, node) for node in chosen]


@functools.lru_cache(maxsize=8)
def _lambdas(text: str) -> list[tuple[int, ast.Lambda, types.CodeType]]:
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    lines = [node.lineno for node in nodes]
    # Own lines tell the codes of two lambdas apart; a body keeps its place in the lambda.
    apart = text.count("\n") + 2
    own = [_BEYOND + number * apart for number in range(len(nodes))]
    for line, node in zip(own, nodes):
        ast.increment_lineno(node, line - node.lineno)
    awaits = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # a cell of a notebook may await
    codes = _within(compile(tree, "", "exec", flags=awaits, dont_inherit=True))
    by_line = {code.co_firstlineno: code for code in codes if code.co_name == "<lambda>"}
    as_written = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)]
    found = zip(lines, as_written, own)
    return [(line, node, by_line[at]) for line, node, at in found if at in by_line]


_BEYOND = 10_000_000
"""All lines of a file have numbers below this number; a larger number has no effect."""


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _within(const)


def _start(node: ast.expr) -> Spot:
    return node.lineno, node.col_offset


def _spans(code: types.CodeType) -> Iterator[tuple[Spot, Spot]]:
    for first, last, left, right in code.co_positions():
        if first is None or last is None or left is None or right is None:
            continue
        if (first, left) < (last, right):
            yield (first, left), (last, right)


def _holds(node: ast.expr, span: tuple[Spot, Spot]) -> bool:
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    return _start(node) <= span[0] and span[1] <= end


def _alike(one: types.CodeType, other: types.CodeType) -> bool:
    names = ("co_varnames", "co_names", "co_freevars", "co_cellvars", "co_argcount", "co_code")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _alike(a, b)
        if isinstance(a, types.CodeType) and isinstance(b, types.CodeType)
        else (type(a), repr(a)) == (type(b), repr(b))
        for a, b in zip(one.co_consts, other.co_consts)
    )


def _line(text: str, node: ast.expr) -> str:
    piece = ast.get_source_segment(text, node) or ""
    return piece if piece and "\n" not in piece else ast.unparse(node)
