"""One module touches JAX's inside, and parameters that nobody knows are refused, never an error."""

import ast
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbounds as jb
from jaxbounds.certification import NotSupported, enclose
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.ground import jax_internals
from jaxbounds.ground.jax_internals import UnknownParametersError
from jaxbounds.programs.balls import coverage, interpreter
from jaxbounds.programs.interpreted import NotInterpreted, interpreted, once
from jaxbounds.programs.primitives import PRIMITIVES, is_exact, unknown_parameters
from jaxbounds.programs.traces import executed, narrow_operations

ROOT = Path(__file__).parents[1]
INNER = r"(extend|interpreters|experimental|_src|lib)\b"
INSIDE = re.compile(rf"jax\.{INNER}|from jax import (.*\W)?{INNER}|jax\.(enable_x64|ensure_comp)")
PLACE = "jaxbounds/ground/jax_internals.py"
LOOPS = ("num_consts", "num_carry", "ft_in", "ft_out", "cond_nconsts", "body_nconsts", "branches")


def _lines(*folders, names, but=(PLACE,)):
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            place = file.relative_to(ROOT).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if place not in but and names.search(line):
                    yield f"{place}:{number}: {line.strip()}"


def test_one_module_touches_what_jax_does_not_promise():
    assert not list(_lines("jaxbounds", "colab", names=INSIDE))


IMPORTS = re.compile(rf"^\s*(from|import) (jax\.{INNER}|jax import (.*\W)?{INNER})")
OTHERS = ("benchmarks/lowering.py", "tests/test_cli.py", "tests/certify/test_added_rules.py",
          "tests/curvature/test_right_or_refused.py")  # fmt: skip
"""The tests and benchmarks that import the inside of JAX themselves."""


def test_contributing_names_the_tests_that_import_the_inside_of_jax():
    assert not list(_lines("tests", "benchmarks", names=IMPORTS, but=OTHERS))
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf8")
    assert [place for place in OTHERS if f"`{place}`" not in text] == []


@pytest.mark.parametrize("line", [
    "import jax.extend", "from jax.extend import core", "from jax import extend as inner",
    "from jax import lax, _src", "from jax import (experimental, lax)", "jax.lib.xla_bridge",
])  # fmt: skip
def test_each_way_to_import_the_inside_of_jax_is_found(line):
    assert INSIDE.search(line)
    assert not INSIDE.search("from jax import lax, numpy as library, random as experimental_draws")


TEXT = r"""((jax|jaxlib)\.__version__|version\(["']jax(lib)?["']\))"""
COMPARED = re.compile(rf"{TEXT}\s*([<>]|[=!]=)|([<>]|[<>=!]=)\s*([\w.]+\.)?{TEXT}")


def test_no_version_of_jax_is_compared_as_a_text():
    """As texts 0.10 comes before 0.9; `jax.__version_info__` holds the numbers."""
    places = ("jaxbounds", "colab", "benchmarks", ".ci", ".github")
    assert not [*_lines(*places, names=COMPARED, but=())]


def _compares_a_text(source):
    """Whether a comparison reads `__version__`, also after a split or a conversion."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare))
    inner = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Attribute))
    return any(one.attr == "__version__" for one in inner)


def test_no_comparison_takes_a_text_of_a_version_apart():
    assert _compares_a_text('jax.__version__.split(".") >= ["0", "9"]')
    assert not _compares_a_text("jax.__version_info__ >= (0, 9)")
    places = [ROOT / name for name in ("jaxbounds", "colab", "benchmarks", ".ci", ".github")]
    files = [file for place in places for file in place.rglob("*.py")]
    assert [file for file in files if _compares_a_text(file.read_text(encoding="utf8"))] == []


@pytest.mark.parametrize("line, found", [
    ('if jax.__version__ >= "0.9":', True), ('NEW = jax.__version__ < "0.10"', True),
    ('if "0.9" <= jax.__version__:', True), ('if version("jax") > "0.9":', True),
    ("if jax.__version_info__ >= (0, 9):", False), ("found = jax.__version__", False),
])  # fmt: skip
def test_a_comparison_of_texts_is_seen(line, found):
    assert bool(COMPARED.search(line)) == found


def _bound(body):
    for node in body:
        for name in (*getattr(node, "names", ()), *getattr(node, "targets", ()), node):
            names = (getattr(name, key, None) for key in ("asname", "name", "id"))
            yield from [one for one in names if one][:1]


def test_both_branches_for_versions_of_jax_bind_the_same_names():
    """The installed version runs only one of them."""
    nodes = ast.parse((ROOT / PLACE).read_text(encoding="utf8")).body
    both = [({*_bound(n.body)}, {*_bound(n.orelse)}) for n in nodes if isinstance(n, ast.If)]
    assert both and [pair for pair in both if pair[0] != pair[1]] == []


def test_one_module_reads_the_parameters_of_loops_and_calls():
    read = re.compile(rf"params(\.get\(|\[)[\"']({'|'.join((*LOOPS, 'call_jaxpr', 'jaxpr'))})[\"']")
    windows = "jaxbounds/programs/balls/windows.py"  # the program of a fold over windows
    assert not [line for line in _lines("jaxbounds", names=read) if not line.startswith(windows)]


def _altered(program, name):
    """The program with one parameter of its equations of a name gone, and an unknown one there."""

    def alter(eqn):
        if eqn.primitive.name != name:
            return eqn
        gone = next(key for key in (*LOOPS, *sorted(eqn.params)) if key in eqn.params)
        params = {key: value for key, value in eqn.params.items() if key != gone}
        return eqn.replace(params=params | {"of_a_later_jax": 3})

    inner = program.jaxpr.replace(eqns=list(map(alter, program.jaxpr.eqns)))
    return program.replace(jaxpr=inner)


FUNCTIONS = {
    "scan": lambda x: lax.scan(lambda c, r: (c + r * x[0], c), x[0], x)[0],
    "while": lambda x: lax.while_loop(lambda c: c[0] < x[1], lambda c: c + 1 + 0 * x[0], x),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "jit": lambda x: jax.jit(jnp.cumsum)(x),
    "reduce_sum": lambda x: jnp.sum(x),
    "dot_general": lambda x: x @ x,
}
X = np.array([0.5, 3.0, -1.0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_parameters_go_to_the_compiler_and_are_not_certified(name):
    with float64_on_cpu():
        program = jax.make_jaxpr(FUNCTIONS[name])(jnp.asarray(X))
        altered = _altered(program, name)
        interpreted(program)(X)
        with pytest.raises(NotInterpreted, match=f"{name} with unknown .*of_a_later_jax"):
            interpreted(altered)
        with pytest.raises(NotSupported, match=f"^{name} with unknown .*of_a_later_jax") as refused:
            list(interpreter.Interpreter().ways(altered, interpreter.enclosed(X)))
    assert "\n" not in str(refused.value)
    assert executed(altered.jaxpr) > 0 and not narrow_operations(program.jaxpr, float)


@pytest.mark.parametrize("name", ["scan", "while", "cond", "jit"])
def test_a_loop_of_another_layout_is_named(name):
    """The names of the table may be there, and the operands divided in another way."""
    with float64_on_cpu():
        program = jax.make_jaxpr(FUNCTIONS[name])(jnp.asarray(X))
    (eqn,) = (e for e in program.jaxpr.eqns if e.primitive.name == name)
    bare = eqn.replace(params={"unroll": 1})
    read = {
        "scan": jax_internals.scan_of, "while": jax_internals.while_of,
        "cond": jax_internals.branches_of, "jit": jax_internals.called_program,
    }[name]  # fmt: skip
    read(eqn)
    with pytest.raises(UnknownParametersError, match=f"{name} has unknown parameters=.*unroll"):
        read(bare)


def _recurring(i, s):
    steps = lax.scan(lambda c, r: (c + r**2, c), 0.0, i["x"])[0]
    return jb.Sides(lhs=jnp.sum(i["x"]) ** 2, rhs={"printed": 3 * steps, "control": 0.3 * steps})


CLAIM = jb.Statement(
    id="mine.recurring", label="A sum", formula="(x1 + x2 + x3)^2 <= 3 |x|^2", kind="inequality",
    evaluate=_recurring, control="a factor 0.3", over={"x": jb.Box(1, 2, 3)}, sizes=({},),
    forms=(jb.Form(name="printed", equality="x constant"),),
)  # fmt: skip


def test_a_later_scan_changes_no_verdict_and_is_refused_by_certify(monkeypatch):
    """To a table that lacks some of them, the parameters of today's `scan` are a later JAX's."""
    words = lambda: [(v.status, v.evidence, v.worst_ratio) for v in jb.falsify(CLAIM)]
    usual = words()
    monkeypatch.setitem(PRIMITIVES, "scan", PRIMITIVES["scan"]._replace(may=frozenset()))
    ((status, evidence, ratio),) = words()
    assert (status, evidence) == usual[0][:2] and status == "holds"
    assert ratio == pytest.approx(usual[0][2], rel=1e-12)
    with (
        float64_on_cpu(),
        pytest.raises(NotSupported, match=r"^scan with unknown or missing parameters: [\w, ]+$"),
    ):
        enclose(FUNCTIONS["scan"], X)


def test_once_hands_over_what_numpy_has_no_rule_for():
    found = once(lambda x: jnp.fft.fft(x).real, lambda x: "the compiler")(X)
    assert found == "the compiler"


def test_every_rule_has_a_row_of_the_table():
    ruled = [row.name for row in coverage.coverage() if row.numpy or row.balls or row.slopes]
    assert len(ruled) > 100 and set(ruled) <= set(PRIMITIVES)


def test_an_unknown_primitive_rounds_and_has_no_known_parameters():
    assert not is_exact("of_a_later_jax") and is_exact("transpose") and not is_exact("add")
    with float64_on_cpu():
        narrow = jax.make_jaxpr(lambda x: jax.scipy.special.i0e(x.astype(jnp.float32)))(X)
    found = narrow_operations(narrow.jaxpr, np.dtype(float))
    assert any(operation.startswith("bessel_i0e in float32") for operation in found)


def test_a_parameter_that_must_be_unset_is_refused_where_it_is_set():
    with float64_on_cpu():
        program = jax.make_jaxpr(lambda x: lax.reshape(x, (6,), (1, 0)))(jnp.ones((2, 3)))
    assert unknown_parameters(program.jaxpr.eqns[0]).endswith("parameters: dimensions")
