"""How many small mistakes in the rules of ball arithmetic the tests of the rules notice.

One mistake at a time is planted in a module of `jaxbounds.certify`, in a copy of the package, and
the default tests of `tests/certify` that call the function are run there, the quickest first, until
one fails. A mistake makes an enclosure wrong (an end taken for the other, a radius or a term
dropped, the first of two instead of their union, a sign, <= for <, min for max) or a decision (any
for all, a case left out).

    python benchmarks/rule_mutants.py --count 200 --seed 1 --out rule_mutants.jsonl

What was done is kept line by line in `--out`; the same command goes on from there. Survivors are
printed with their lines: whether one is equivalent, only looser, or a hole, a person has to say.
"""

import ast
import collections
import copy
import functools
import importlib
import json
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import tyro

ROOT = Path(__file__).parents[1]
MODULES = (
    "functions", "values", "elementwise", "movement", "reductions", "linear_algebra", "control",
    "concrete", "interpreter", "disproof", "certificate", "witness",
)  # fmt: skip

SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
COMPARED: dict[type, tuple[type, ...]] = {
    ast.LtE: (ast.Lt, ast.GtE), ast.Lt: (ast.LtE, ast.Gt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Gt: (ast.GtE, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
PAIRS = (
    ("lower", "upper"), ("floor", "ceil"), ("min", "max"), ("minimum", "maximum"),
    ("greater", "less"), ("any", "all"), ("tril", "triu"), ("ZERO", "ONE"),
    ("lt", "le"), ("gt", "ge"), ("ROUND_FLOOR", "ROUND_CEILING"), ("argmin", "argmax"),
)  # fmt: skip
RENAMED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])} | {"NAN": "ZERO", "OPEN": "ZERO"}
RENAMED |= {"abs_upper": "abs_lower"}


@dataclass(frozen=True)
class Mutant:
    """One mistake: which node of which module becomes what.

    `scope` is the line of the function or lambda that holds it; 0 for the module itself.
    """

    module: str
    line: int
    scope: int
    kind: str
    which: int
    before: str
    after: str


Change = Callable[[Any], ast.AST]


def _name(node: ast.AST) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _set(node: Any, field: str, value: Any) -> Any:
    setattr(node, field, value)
    return node


def _rename(node: Any) -> Any:
    return _set(node, "attr" if isinstance(node, ast.Attribute) else "id", RENAMED[_name(node)])


def _wrong(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The mistakes one could make at a node: (kind, what makes a copy of it wrong)."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            yield "sign or factor", lambda n: _set(n, "op", SWAPPED[type(n.op)]())
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            yield "a term dropped", lambda n: n.left
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign or not dropped", lambda n: n.operand
    if isinstance(node, ast.Compare):
        for other in COMPARED.get(type(node.ops[0]), ()):
            yield "comparison", lambda n, to=other: _set(n, "ops", [to(), *n.ops[1:]])
    if isinstance(node, ast.BoolOp):
        other = ast.And if isinstance(node.op, ast.Or) else ast.Or
        yield "and, or", lambda n, to=other: _set(n, "op", to())
        yield "a condition dropped", lambda n: _set(n, "values", n.values[:-1])
    named = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    if named and _name(node) in RENAMED:
        yield "one for another", _rename
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name in ("union", "hull"):
            first = lambda n: n.func.value if isinstance(n.func, ast.Attribute) else n.args[0]
            yield "union to first", first
            yield "union to second", lambda n: n.args[-1]
        if name == "arb" and len(node.args) == 2:
            yield "radius dropped", lambda n: _set(n, "args", n.args[:1])
        if name in ("abs", "sqrt", "lower", "upper", "flip", "square_root", "copy"):
            if isinstance(node.func, ast.Attribute) and not node.args:
                yield "a function dropped", lambda n: n.func.value
            elif node.args:
                yield "a function dropped", lambda n: n.args[0]
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield "a transpose dropped", lambda n: n.value
    if isinstance(node, ast.IfExp):
        yield "a choice dropped", lambda n: n.body
        yield "a choice dropped", lambda n: n.orelse
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "a number", lambda n: _set(n, "value", n.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "a number", lambda n: _set(n, "value", not n.value)
    if isinstance(node, ast.If):
        yield "a case left out", lambda n: _set(n, "test", ast.Constant(False))
        yield "a case taken always", lambda n: _set(n, "test", ast.Constant(True))


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All but annotations, texts of errors, imports and what only types read."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            skipped |= {id(n) for n in ast.walk(node.annotation)}
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            skipped |= {id(n) for n in ast.walk(node.returns)}
        if isinstance(node, ast.Raise) and node.exc is not None:
            skipped |= {id(n) for n in ast.walk(node.exc)}
        if id(node) not in skipped:
            yield node


def _mistakes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Change]]:
    for node in _nodes(tree):
        for kind, change in _wrong(node):
            yield node, kind, change


class _At(ast.NodeTransformer):
    """Exchanges one node."""

    def __init__(self, target: ast.AST, by: ast.AST) -> None:
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> Any:
        return self._by if node is self._target else self.generic_visit(node)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:70]


def planted(source: str, which: int) -> str:
    """The module with the mistake of that number."""
    tree = ast.parse(source)
    node, _, change = list(_mistakes(tree))[which]
    _At(node, change(copy.deepcopy(node))).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def _scopes(tree: ast.Module) -> dict[int, int]:
    """The line of the innermost function or lambda around each node, by id."""
    scopes: dict[int, int] = {}
    for node in ast.walk(tree):  # outer functions come before inner ones
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            scopes |= {id(inner): node.lineno for inner in ast.walk(node)}
    return scopes


def mutants(package: Path, modules: tuple[str, ...]) -> list[Mutant]:
    """All mistakes that could be planted."""
    found = []
    for module in modules:
        tree = ast.parse((package / f"{module}.py").read_text())
        scopes = _scopes(tree)
        for which, (node, kind, change) in enumerate(_mistakes(tree)):
            wrong = change(copy.deepcopy(node))
            line, scope = int(getattr(node, "lineno", 0)), scopes.get(id(node), 0)
            found.append(Mutant(module, line, scope, kind, which, _text(node), _text(wrong)))
    return found


class _Watch:
    """Notes which functions of the rules each test calls, and how long it takes."""

    def __init__(self, package: Path) -> None:
        self.package = str(package)
        self.calls: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Around a test and its fixtures."""
        called = self.calls[item.nodeid] = set()

        def note(frame: Any, event: str, _: Any) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(self.package):
                called.add((Path(code.co_filename).stem, code.co_firstlineno))

        started = time.perf_counter()
        sys.setprofile(note)
        yield
        sys.setprofile(None)
        self.seconds[item.nodeid] = time.perf_counter() - started

    def guards(self, mutant: Mutant) -> list[str]:
        """The tests that run the mistake, the quickest first; all where it is the module's."""
        place = (mutant.module, mutant.scope)
        able = [test for test in self.calls if not mutant.scope or place in self.calls[test]]
        return sorted(able, key=lambda test: self.seconds[test])


def _tests(copied: Path, tests: list[str], watch: _Watch | None = None) -> int:
    """Tests in this process; 0 if all pass."""
    os.chdir(copied)
    sys.path.insert(0, str(copied))
    sys.dont_write_bytecode = True  # modules change within one tick of a file's clock
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what is warm was imported
    options += ["-o", "addopts=--import-mode=importlib -m 'not slow'"]
    return int(pytest.main([*options, *tests], plugins=[watch] if watch else []))


def _apart(copied: Path, work: Callable[[], int], seconds: float) -> tuple[str, str]:
    """In a process of its own, split off after the slow imports and before any backend starts.

    What it failed by: "a test", "the time", or "" where it did not; and what it said last.
    """
    log = copied / "log.txt"
    child = os.fork()
    if child == 0:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            code = 1
            try:
                code = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            lines = log.read_text(errors="replace").splitlines()
            said = [line for line in lines if line.startswith(("FAILED", "ERROR"))] or lines[-3:]
            by = "a test" if os.waitstatus_to_exitcode(status) else ""
            return by, " ".join(said)[-300:]
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the time", ""


def _watched(copied: Path, package: Path, seconds: float) -> _Watch:
    """All tests, without a mistake: they must pass, and it is noted what they call."""
    watch, notes = _Watch(package), copied / "watched.pickle"

    def work() -> int:
        code = _tests(copied, ["tests/certify"], watch)
        notes.write_bytes(pickle.dumps((watch.calls, watch.seconds)))
        return code

    by, said = _apart(copied, work, seconds)
    if by:
        raise SystemExit(f"the tests do not pass without a mistake ({by}): {said}")
    watch.calls, watch.seconds = pickle.loads(notes.read_bytes())
    return watch


def _warm() -> None:
    """Import what is slow; nothing of `jaxbounds`, of which each process takes its own copy."""
    for name in ("flint", "jax.extend.core", "jax.numpy", "mpmath", "scipy.special"):
        importlib.import_module(name)


def main(
    count: int = 200,
    seed: int = 1,
    out: Path = Path("rule_mutants.jsonl"),
    seconds: float = 600.0,
    modules: tuple[str, ...] = MODULES,
) -> None:
    """Plant `count` mistakes, drawn with `seed`, each judged for at most so many seconds."""
    _warm()
    done = {}
    if out.is_file():
        done = {tuple(r["mutant"].values()): r for r in map(json.loads, out.open())}
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder)
        kept = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "jaxbounds", copied / "jaxbounds", ignore=kept)
        for part in ("certify", "witnesses"):
            shutil.copytree(ROOT / "tests" / part, copied / "tests" / part, ignore=kept)
        shutil.copy(ROOT / "tests" / "conftest.py", copied / "tests")
        shutil.copy(ROOT / "pyproject.toml", copied)
        package = copied / "jaxbounds" / "certify"
        everything = mutants(package, modules)
        drawn = random.Random(seed).sample(everything, min(count, len(everything)))
        watch = _watched(copied, package, seconds)
        for mutant in drawn:
            if tuple(asdict(mutant).values()) in done:
                continue
            path = package / f"{mutant.module}.py"
            source = path.read_text()
            path.write_text(planted(source, mutant.which))
            guards = watch.guards(mutant)
            run = functools.partial(_tests, copied, guards)
            by, why = _apart(copied, run, seconds) if guards else ("", "no test runs it")
            path.write_text(source)
            record = {"mutant": asdict(mutant), "guards": len(guards), "by": by, "why": why}
            done[tuple(asdict(mutant).values())] = record
            with out.open("a") as file:
                file.write(json.dumps(record) + "\n")
    _report(len(everything), [done[tuple(asdict(m).values())] for m in drawn])


def _report(possible: int, records: list[dict[str, Any]]) -> None:
    kinds: dict[str, collections.Counter[bool]] = collections.defaultdict(collections.Counter)
    for record in records:
        kinds[record["mutant"]["kind"]][bool(record["by"])] += 1
    for kind, counts in sorted(kinds.items()):
        print(f"{kind:24} killed {counts[True]:3}, survived {counts[False]:3}")
    killed = sum(bool(record["by"]) for record in records)
    print(f"all: {killed} of {len(records)} killed, of {possible} that could be planted")
    for record in records:
        if not record["by"]:
            m = record["mutant"]
            print(
                f"survived: {m['module']}:{m['line']} ({m['kind']}) {m['before']} -> {m['after']}"
            )


if __name__ == "__main__":
    tyro.cli(main)
