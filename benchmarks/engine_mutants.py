"""How many small mistakes in the engine the tests that concern it notice.

One mistake at a time is planted in a room of the engine, in a copy of the package, and the default
tests of the room (see `ROOMS`) are run there until one fails: those that call the function first,
the quickest of them at the head, then the others of their files. A mistake makes an enclosure wrong
(an end taken for the other, a radius or a term dropped, the first of two instead of their union), a
number (a sign, a factor, a power, a constant by 10%, a root dropped, an axis) or a decision (<= for
<, min for max, any for all, a condition dropped, a case left out).

    python benchmarks/engine_mutants.py --room falsification --count 60 --seed 1 2 --out f.jsonl

Once, before, the tests run without a mistake, which takes about twice their time; then a mistake
takes from seconds to `--seconds`, by which it must show. `--jobs` works on so many at a time. What
was done is kept line by line in `--out`; the same command goes on from there. Survivors are printed
with their lines: whether one is equivalent, only looser, or a hole, a person has to say.
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
ROOMS = {
    "certification": ("certify", "test_words.py"),
    "programs/balls": ("certify", "test_words.py"),
    "constants": (
        "constants", "test_certified_digits.py", "test_constants.py", "test_constants_worst.py",
        "test_engine_by_hand.py",
    ),
    "networks/curvature": ("curvature", "test_curvature*.py", "test_engine_by_hand.py"),
    "falsification": (
        "falsification", "test_intervals.py", "test_decisions.py", "test_falsify.py",
        "test_evidence.py", "test_programs.py", "test_binding.py", "test_fuzz.py",
        "test_engine_by_hand.py", "test_words.py", "test_moves.py", "test_relations.py",
        "test_noise.py", "test_one_store.py",
    ),
    "experiments/sweeps": ("sweeps", "test_sweeps.py", "test_shards.py", "test_engine_by_hand.py"),
}  # fmt: skip
"""The rooms of the engine, each with the tests that concern it."""

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
    ("sum", "mean"), ("nanmin", "nanmax"), ("zeros", "ones"), ("isnan", "isfinite"),
)  # fmt: skip
RENAMED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])} | {"NAN": "ZERO", "OPEN": "ZERO"}
RENAMED |= {"abs_upper": "abs_lower"}
DROPPED = (
    "abs", "sqrt", "lower", "upper", "flip", "square_root", "copy", "log", "exp", "sort", "argsort",
    "diag", "mid", "conj", "cumsum", "isfinite",
)  # fmt: skip


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


def _axis(call: Any, *, index: int, to: int) -> Any:
    call.keywords[index].value = ast.Constant(to)
    return call


def _wrong(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The mistakes one could make at a node: (kind, what makes a copy of it wrong)."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            yield "sign or factor", lambda n: _set(n, "op", SWAPPED[type(n.op)]())
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow):
            yield "a term dropped", lambda n: n.left
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            yield "a condition dropped", lambda n: n.left
            yield "a condition dropped", lambda n: n.right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "sign or not dropped", lambda n: n.operand
    if isinstance(node, ast.Compare):
        for other in COMPARED.get(type(node.ops[0]), ()):
            yield "comparison", lambda n, to=other: _set(n, "ops", [to(), *n.ops[1:]])
    if isinstance(node, ast.BoolOp):
        other = ast.And if isinstance(node.op, ast.Or) else ast.Or
        yield "and, or", lambda n, to=other: _set(n, "op", to())
        for kept in (slice(1, None), slice(-1)):
            yield "a condition dropped", lambda n, of=kept: _set(n, "values", n.values[of])
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
        for index, keyword in enumerate(node.keywords):
            if keyword.arg == "axis" and isinstance(keyword.value, ast.Constant):
                changed = {0: 1, 1: 0}.get(keyword.value.value, 0)
                yield "an axis", functools.partial(_axis, index=index, to=changed)
        if name in DROPPED:
            if isinstance(node.func, ast.Attribute) and not node.args:
                yield "a function dropped", lambda n: n.func.value
            elif node.args:
                yield "a function dropped", lambda n: n.args[0]
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield "a transpose dropped", lambda n: n.value
    if isinstance(node, ast.IfExp):
        yield "a choice dropped", lambda n: n.body
        yield "a choice dropped", lambda n: n.orelse
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "a number", lambda n: _set(n, "value", n.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is float and node.value:
        for factor in (0.9, 1.1):
            yield "a number", lambda n, by=factor: _set(n, "value", n.value * by)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "a number", lambda n: _set(n, "value", not n.value)
    if isinstance(node, ast.If):
        yield "a case left out", lambda n: _set(n, "test", ast.Constant(False))
        yield "a case taken always", lambda n: _set(n, "test", ast.Constant(True))


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All but annotations, texts, imports and what only types read."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            skipped |= {id(n) for n in ast.walk(node.annotation)}
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            skipped |= {id(n) for n in ast.walk(node.returns)}
        if isinstance(node, ast.Raise) and node.exc is not None:
            skipped |= {id(n) for n in ast.walk(node.exc)}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(n) for n in ast.walk(node)}
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
    return " ".join(ast.unparse(node).split())[:120]


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
            # Where its code starts, for Python: at the first decorator.
            first = min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))
            scopes |= {id(inner): first for inner in ast.walk(node)}
    return scopes


def mutants(package: Path) -> list[Mutant]:
    """All mistakes that could be planted."""
    found = []
    for module in sorted(path.stem for path in package.glob("*.py") if path.stem != "__init__"):
        tree = ast.parse((package / f"{module}.py").read_text())
        scopes = _scopes(tree)
        for which, (node, kind, change) in enumerate(_mistakes(tree)):
            wrong = change(copy.deepcopy(node))
            line, scope = int(getattr(node, "lineno", 0)), scopes.get(id(node), 0)
            found.append(Mutant(module, line, scope, kind, which, _text(node), _text(wrong)))
    return found


class _Watch:
    """Notes which functions of the room each test calls, and how long it takes."""

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
        """The tests that run the mistake, the quickest first; all where it is the module's.

        Then the others of their files: what was compiled for one test may serve the next, which
        then calls nothing.
        """
        place = (mutant.module, mutant.scope)
        able = {test for test in self.calls if not mutant.scope or place in self.calls[test]}
        files = {test.split("::")[0] for test in able}
        near = [test for test in self.calls if test.split("::")[0] in files]
        return sorted(near, key=lambda test: (test not in able, self.seconds[test]))


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


def _watched(copied: Path, package: Path, tests: list[str], seconds: float) -> _Watch:
    """All tests, without a mistake: they must pass, and it is noted what they call."""
    watch, notes = _Watch(package), copied / "watched.pickle"

    def work() -> int:
        code = _tests(copied, tests, watch)
        notes.write_bytes(pickle.dumps((watch.calls, watch.seconds)))
        return code

    by, said = _apart(copied, work, seconds)
    if by:
        raise SystemExit(f"the tests do not pass without a mistake ({by}): {said}")
    watch.calls, watch.seconds = pickle.loads(notes.read_bytes())
    return watch


def _warm() -> None:
    """Import what is slow; nothing of `jaxbounds`, of which each process takes its own copy."""
    names = ("flax", "flint", "jax.extend.core", "jax.numpy", "mpmath", "optax", "scipy.optimize")
    for name in (*names, "scipy.special", "scipy.stats", "xarray"):
        importlib.import_module(name)


def _copied(folder: str, room: str) -> tuple[Path, Path]:
    """A copy of the package, its tests and what they import, and the room in it."""
    copied, kept = Path(folder), shutil.ignore_patterns("__pycache__")
    for part in ("jaxbounds", "tests", "benchmarks"):
        shutil.copytree(ROOT / part, copied / part, ignore=kept)
    shutil.copy(ROOT / "pyproject.toml", copied)
    return copied, copied / "jaxbounds" / room


def _judged(room: str, left: list[Mutant], watch: _Watch, out: Path, seconds: float) -> None:
    """Plant these, one after the other, and keep what came of each."""
    with tempfile.TemporaryDirectory() as folder:
        copied, package = _copied(folder, room)
        for mutant in left:
            path = package / f"{mutant.module}.py"
            source = path.read_text()
            path.write_text(planted(source, mutant.which))
            guards, started = watch.guards(mutant), time.perf_counter()
            run = functools.partial(_tests, copied, guards)
            by, why = _apart(copied, run, seconds) if guards else ("", "no test runs it")
            path.write_text(source)
            record = {"mutant": asdict(mutant), "guards": len(guards), "by": by, "why": why}
            record["seconds"] = round(time.perf_counter() - started, 1)
            with out.open("a") as file:
                file.write(json.dumps(record) + "\n")


def _done(out: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    records = map(json.loads, out.open()) if out.is_file() else ()
    return {tuple(record["mutant"].values()): record for record in records}


def main(
    room: str = "falsification",
    count: int = 60,
    seed: tuple[int, ...] = (1,),
    out: Path | None = None,
    seconds: float = 300.0,
    jobs: int = 1,
) -> None:
    """Plant `count` mistakes for each `seed`, each judged for at most so many seconds.

    `out` is ROOM_mutants.jsonl unless given.
    """
    if room not in ROOMS:
        raise SystemExit(f"no room {room!r}; there are: {', '.join(ROOMS)}")
    _warm()
    out = (out or Path(f"{Path(room).name}_mutants.jsonl")).resolve()
    everything = mutants(ROOT / "jaxbounds" / room)
    count = min(count, len(everything))
    drawn = list(dict.fromkeys(m for s in seed for m in random.Random(s).sample(everything, count)))
    done = _done(out)
    left = [mutant for mutant in drawn if tuple(asdict(mutant).values()) not in done]
    if left:
        tests = [str(path) for name in ROOMS[room] for path in sorted((ROOT / "tests").glob(name))]
        with tempfile.TemporaryDirectory() as folder:
            copied, package = _copied(folder, room)
            own = [str(Path(test).relative_to(ROOT)) for test in tests]
            watch = _watched(copied, package, own, 10 * seconds)
        alone = sum(watch.seconds.values())
        print(f"{len(watch.calls)} tests pass without a mistake, in {alone:.0f} s", flush=True)
        children = []
        for part in (left[job::jobs] for job in range(jobs)):
            children.append(os.fork())
            if not children[-1]:
                code = 1
                try:
                    _judged(room, part, watch, out, seconds)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
        for child in children:
            os.waitpid(child, 0)
    done = _done(out)
    names = [tuple(asdict(mutant).values()) for mutant in drawn]
    _report(room, len(everything), [done[name] for name in names if name in done])


def _report(room: str, possible: int, records: list[dict[str, Any]]) -> None:
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
            place = f"jaxbounds/{room}/{m['module']}.py:{m['line']}"
            print(f"survived: {place} ({m['kind']}; {record['guards']} tests)")
            print(f"  - {m['before']}\n  + {m['after']}")


if __name__ == "__main__":
    tyro.cli(main)
