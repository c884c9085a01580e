"""No stale verdict: whatever a verdict depends on is changed, and the statement is measured again.

`KINDS` is the list of changes. Each is made after a run that was cut, after a whole run of which a
pattern is judged again, and between two calls in one Python process. Before the change C is 2 and
`mine.a` and `mine.b` (x + x = C x) hold; after it C is 3 and they fail. A change that does not
matter leaves C at 2, and the verdict that is continued is the one that a new folder gives.
"""

import importlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.ground import recording
from jaxbounds.runs import statement_run

CLAIM = """
import numpy as np
import jaxbounds as jb
{imports}

def read(name):
    with open(name) as file:
        return file.read()

def cases(size):
    return {{"x": np.arange(1.0, 5.0)}}

def evaluate(instance, size):
    x = instance["x"]
    {before}
    return jb.Sides(lhs=x + x, rhs={{"printed": ({c}) * x, "control": 5 * x}})

def claim(name):
    return jb.Statement(
        id=name, label="1", formula="x + x = C x", kind="identity", judges=(), cases=cases,
        evaluate=evaluate, host=True, sizes=({{"n": 4}},), forms=(jb.Form(name="printed"),),
        control="5 x",{depends}
    )

PAPER = jb.Paper(id="mine", title="Mine", statements=(claim("mine.a"), claim("mine.b")))
"""


def claim(c="C", *, imports="", before="pass", depends="", file="mine.py"):
    """Write the file of the claims; `c` is the factor as an expression."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    text = CLAIM.format(c=c, imports=imports, before=before, depends=depends)
    Path(file).write_text(text)


class Kind(NamedTuple):
    """A kind of change.

    Attributes:
        prepare: writes the claims and what they depend on, with C = 2.
        change: makes C = 3, or changes what does not matter.
        where: the file, folder or module of the claims.
        matters: whether the verdict changes with it.
    """

    prepare: Callable[[], Any]
    change: Callable[[], Any]
    where: str = "mine.py"
    matters: bool = True

    @property
    def all(self):
        """The words that ask for both statements."""
        return [self.where] if self.where.endswith(".py") else ["mine", "--import", self.where]

    @property
    def second(self):
        """The words that ask for one of them."""
        return ["mine.b", "--import", self.where]


def same_stamp(path, text):
    """Write a text of the length of the old one, with the times of the old one."""
    old = os.stat(path)
    assert len(text) == old.st_size
    Path(path).write_text(text)
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


def write(**files):
    """Files by name, with __ for / and an ending after the last _."""
    for name, text in files.items():
        path = Path(name.replace("__", "/").rpartition("_")[0] + "." + name.rpartition("_")[2])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def text(path, content):
    """A step that writes a file."""

    def step():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)

    return step


def steps(*parts):
    """Steps one after the other."""

    def step():
        for part in parts:
            part()

    return step


def of_claim(*parts, **given):
    """A step that writes the claims, after other steps."""
    return steps(*parts, lambda: claim(**given))


def variable(name, value):
    """A step that sets a variable of the environment."""
    return lambda: os.environ.__setitem__(name, value)


def link(target, name="link"):
    """A step that points a link at a target."""

    def step():
        Path(name).unlink(missing_ok=True)
        Path(name).symlink_to(target)

    return step


def array(path, value):
    """A step that saves an array."""
    return lambda: np.save(path, np.full(3, float(value)))


def table(value):
    """A step that writes a data base."""

    def step():
        Path("data.db").unlink(missing_ok=True)
        with sqlite3.connect("data.db") as base:
            base.execute("create table t (c real)")
            base.execute("insert into t values (?)", (value,))
        base.close()

    return step


def bytecode(value):
    """A step that leaves a module as bytecode alone."""

    def step():
        import py_compile

        Path("source.txt").write_text(f"C = {value}.0")
        py_compile.compile("source.txt", cfile="compiled.pyc", doraise=True)

    return step


def archive(value):
    """A step that writes a module into an archive."""

    def step():
        with zipfile.ZipFile("lib.zip", "w") as file:
            file.writestr("zipped.py", f"C = {value}")
        sys.path_importer_cache.pop(str(Path("lib.zip").absolute()), None)
        import zipimport

        zipimport._zip_directory_cache.clear()

    return step


def distribution(version):
    """A step that installs a package of that version."""

    def step():
        for old in Path("site").glob("*.dist-info"):
            shutil.rmtree(old)
        folder = Path(f"site/dep-{version}.dist-info")
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dep\nVersion: {version}\n")

    return step


def search_path(*names):
    """A step that puts folders first on the search path."""
    return lambda: sys.path.__setitem__(slice(0, 0), [str(Path(n).absolute()) for n in names])


def git(*words):
    """A step that runs git here."""
    identity = ["-c", "user.name=u", "-c", "user.email=u@localhost"]
    return lambda: subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def kinds() -> dict[str, Kind]:
    """The kinds of change by name; the first 19 are those of which a verdict was found stale."""
    helper = of_claim(text("helper.py", "C = 2.0"), imports="from helper import C")
    data = "json.loads(read('data.json'))['C']"
    package = {"imports": "from pack.model import C"}
    return {
        "claim file": Kind(of_claim(c="2.0"), of_claim(c="3.0")),
        "claim file, equal size and mtime": Kind(
            of_claim(c="2.0"),
            lambda: same_stamp("mine.py", Path("mine.py").read_text().replace("(2.0)", "(3.0)")),
        ),
        "module of the folder": Kind(
            of_claim(text("mine/__init__.py", ""), text("mine/model.py", "C = 2.0"),
                     file="mine/statements.py", imports="from mine.model import C"),
            text("mine/model.py", "C = 3.0"), "mine"),
        "target of a link": Kind(
            of_claim(text("there.py", "C = 2.0"), link("there.py", "helper.py"),
                     imports="from helper import C"), text("there.py", "C = 3.0")),
        "library": Kind(of_claim(c="2.0"), lambda: None, matters=False),
        "helper beside the file": Kind(helper, text("helper.py", "C = 3.0")),
        "function in a sub-package": Kind(
            of_claim(text("sub/__init__.py", ""), text("sub/deep.py", "def c(): return 2.0"),
                     imports="import sub.deep", c="sub.deep.c()"),
            text("sub/deep.py", "def c(): return 3.0")),
        "helper on the search path": Kind(
            of_claim(text("else/far.py", "C = 2.0"), search_path("else"),
                     imports="import far", c="far.C"), text("else/far.py", "C = 3.0")),
        "import of all names": Kind(
            of_claim(text("helper.py", "C = 2.0"), imports="from helper import *"),
            text("helper.py", "C = 3.0")),
        "file of a package with its model": Kind(
            of_claim(text("mine/__init__.py", ""), text("mine/model.py", "C = 2.0"),
                     file="mine/statements.py", imports="from mine.model import C"),
            text("mine/model.py", "C = 3.0"), "mine/statements.py"),
        "sibling package": Kind(
            of_claim(text("mine/__init__.py", ""), text("pack/__init__.py", ""),
                     text("pack/model.py", "C = 2.0"), file="mine/statements.py", **package),
            text("pack/model.py", "C = 3.0"), "mine"),
        "--import of a module": Kind(
            of_claim(c="2.0"), of_claim(c="3.0"), "mine"),
        "JSON": Kind(of_claim(text("data.json", '{"C": 2.0}'), imports="import json", c=data),
                     text("data.json", '{"C": 3.0}')),
        "array": Kind(of_claim(array("c.npy", 2), c="np.load('c.npy')[0]"), array("c.npy", 3)),
        "data in the folder": Kind(
            of_claim(text("mine/__init__.py", ""), text("mine/c.txt", "2"),
                     file="mine/statements.py", imports="from pathlib import Path",
                     c="float(Path(__file__).with_name('c.txt').read_text())"),
            text("mine/c.txt", "3"), "mine"),
        "variable of the environment": Kind(
            of_claim(variable("OF_MINE", "2"), imports="import os",
                     c="float(os.environ['OF_MINE'])"),
            variable("OF_MINE", "3")),
        "existence of a file": Kind(
            of_claim(imports="import os", c="3.0 if os.path.exists('flag') else 2.0"),
            text("flag", "")),
        "JAX_DEFAULT_PRNG_IMPL": Kind(
            of_claim(imports="import os",
                     c="3.0 if os.environ.get('JAX_DEFAULT_PRNG_IMPL') else 2.0"),
            variable("JAX_DEFAULT_PRNG_IMPL", "rbg")),
        "PYTHONOPTIMIZE": Kind(
            of_claim(imports="import os", c="3.0 if os.environ.get('PYTHONOPTIMIZE') else 2.0"),
            variable("PYTHONOPTIMIZE", "1")),
        # From here on our own.
        "helper, equal size and mtime": Kind(helper, lambda: same_stamp("helper.py", "C = 3.0")),
        "data, equal size and mtime": Kind(
            of_claim(text("data.json", '{"C": 2.0}'), imports="import json", c=data),
            lambda: same_stamp("data.json", '{"C": 3.0}')),
        "importlib.resources": Kind(
            of_claim(text("res/__init__.py", ""), text("res/c.txt", "2"),
                     imports="from importlib.resources import files",
                     c="float((files('res') / 'c.txt').read_text())"), text("res/c.txt", "3")),
        "new part of a namespace package": Kind(
            of_claim(text("one/space/first.py", ""), text("two/other.py", ""),
                     search_path("one", "two"),
                     imports="import space, pkgutil, space.first\nC = float(len(list("
                             "pkgutil.iter_modules(space.__path__))) + 1)"),
            text("two/space/second.py", "")),
        "bytecode without a source": Kind(
            of_claim(bytecode(2), imports="from compiled import C"), bytecode(3)),
        "mapped array": Kind(
            of_claim(array("c.npy", 2), c="float(np.load('c.npy', mmap_mode='r')[0])"),
            array("c.npy", 3)),
        "pathlib": Kind(
            of_claim(text("c.txt", "2"), imports="from pathlib import Path",
                     c="float(Path('c.txt').read_text())"), text("c.txt", "3")),
        "import inside evaluate": Kind(
            of_claim(text("late.py", "C = 2.0"), before="from late import C"),
            text("late.py", "C = 3.0")),
        "new module that shadows": Kind(
            of_claim(text("last/shade.py", "C = 2.0"), text("first/x.txt", ""),
                     search_path("first", "last"), imports="from shade import C"),
            text("first/shade.py", "C = 3.0")),
        "optional module that appears": Kind(
            of_claim(imports="try:\n    from maybe_there import C\nexcept ImportError:\n    C = 2"),
            text("maybe_there.py", "C = 3")),
        "link to another target": Kind(
            of_claim(text("c2", "2"), text("c3", "3"), link("c2"), c="float(read('link'))"),
            link("c3")),
        "name of a link's target": Kind(
            of_claim(text("c2", ""), text("c3", ""), link("c2"), imports="import os",
                     c="float(os.readlink('link')[1:])"), link("c3")),
        "names in a folder": Kind(
            of_claim(text("parts/1", ""), text("parts/2", ""), imports="import os",
                     c="float(len(os.listdir('parts')))"), text("parts/3", "")),
        "pattern over a folder": Kind(
            of_claim(text("parts/1.c", ""), text("parts/2.c", ""),
                     imports="from pathlib import Path",
                     c="float(len(list(Path('parts').glob('*.c'))))"), text("parts/3.c", "")),
        "deleted file": Kind(
            of_claim(text("c.txt", "2"), before="try: C = float(read('c.txt'))\n"
                     "    except OSError: C = 3.0"), lambda: Path("c.txt").unlink()),
        "older file": Kind(
            helper, steps(text("helper.py", "C = 3.0"), lambda: os.utime("helper.py", (1e9, 1e9)))),
        "git checkout": Kind(
            steps(git("init", "-q"), text("helper.py", "C = 3.0"), git("add", "."),
                  git("commit", "-qm", "three"), git("branch", "three"), helper, git("add", "."),
                  git("commit", "-qm", "two")), git("checkout", "-q", "three", "--", "helper.py")),
        "version of a package": Kind(
            of_claim(distribution(2), search_path("site"), imports="import importlib.metadata",
                     c="float(importlib.metadata.version('dep'))"), distribution(3)),
        "time zone": Kind(
            of_claim(steps(variable("TZ", "UTC-2"), time.tzset), imports="import time",
                     c="-time.timezone / 3600"), steps(variable("TZ", "UTC-3"), time.tzset)),
        "working folder": Kind(
            of_claim(text("c.txt", "2"), text("deep/c.txt", "3"),
                     link("../mine.py", "deep/mine.py"),
                     c="float(read('c.txt'))"), lambda: os.chdir("deep")),
        "JAX_ENABLE_X64": Kind(
            of_claim(imports="import os", c="3.0 if os.environ.get('JAX_ENABLE_X64') else 2.0"),
            variable("JAX_ENABLE_X64", "1")),
        "a setting of JAX by code": Kind(
            of_claim(imports="import jax",
                     c="3.0 if jax.config.values['jax_log_compiles'] else 2.0"),
            lambda: jax.config.update("jax_log_compiles", True)),
        "size of a file": Kind(
            of_claim(text("c.txt", "22"), imports="import os", c="float(os.path.getsize('c.txt'))"),
            text("c.txt", "333")),
        "time of a file": Kind(
            of_claim(text("c.txt", ""), lambda: os.utime("c.txt", (2, 2)), imports="import os",
                     c="os.path.getmtime('c.txt')"), lambda: os.utime("c.txt", (3, 3))),
        "data base": Kind(
            of_claim(table(2.0), imports="import sqlite3",
                     before="base = sqlite3.connect('data.db'); "
                     "kept = base.execute('select c from t').fetchone()[0]; base.close()",
                     c="kept"), table(3.0)),
        "data read once": Kind(
            of_claim(text("c.txt", "2"), imports="import functools\n@functools.cache\n"
                     "def constant():\n    return float(read('c.txt'))", c="constant()"),
            text("c.txt", "3")),
        "output of a program": Kind(
            of_claim(text("c.txt", "2"), imports="import subprocess",
                     c="float(subprocess.run(['cat', 'c.txt'], capture_output=True).stdout)"),
            text("c.txt", "3")),
        "module in an archive": Kind(
            of_claim(archive(2), search_path("lib.zip"), imports="from zipped import C"),
            archive(3)),
        "settings in a home": Kind(
            of_claim(text("home/.mine", "2"),
                     lambda: os.environ.update(HOME=os.path.abspath("home")),
                     imports="import os", c="float(read(os.path.expanduser('~/.mine')))"),
            text("home/.mine", "3")),
        "declared file": Kind(
            of_claim(text("c.txt", "2"), imports=UNSEEN, c="unseen('c.txt')",
                     depends='depends=("c.txt",),'), text("c.txt", "3")),
        "declared folder": Kind(
            of_claim(text("parts/c.txt", "2"), imports=UNSEEN, c="unseen('parts/c.txt')",
                     depends='depends=("parts",),'), text("parts/c.txt", "3")),
        "times of all files": Kind(
            helper, lambda: [os.utime(f, (1e9, 1e9)) for f in Path().glob("*.py")], matters=False),
        "file that nothing reads": Kind(helper, text("notes.txt", "3"), matters=False),
        "module that nothing imports": Kind(helper, text("unused.py", "C = 3"), matters=False),
        "variable of the terminal": Kind(helper, variable("COLUMNS", "77"), matters=False),
        "kept bytecode": Kind(
            helper, lambda: shutil.rmtree("__pycache__", ignore_errors=True), matters=False),
    }  # fmt: skip


UNSEEN = """
import ctypes
def unseen(name):
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file, got = libc.fopen(name.encode(), b"r"), ctypes.create_string_buffer(8)
    libc.fgets(got, 8, ctypes.c_void_p(file))
    libc.fclose(ctypes.c_void_p(file))
    return float(got.value)
"""
"""A file read by C code, of which Python is told nothing."""
KINDS = kinds()


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """An empty folder, and a process whose search path, environment and modules come back."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before, path, modules = dict(os.environ), [*sys.path], set(sys.modules)
    log = jax.config.values["jax_log_compiles"]
    another_process()
    yield here
    os.environ.clear()
    os.environ.update(before)
    time.tzset()
    sys.path[:] = path
    jax.config.update("jax_log_compiles", log)
    another_process()
    for name in set(sys.modules) - modules:
        if not recording.is_installed(getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def another_process():
    """Forget the user's modules, as a process that starts knows none of them."""
    for name in recording.forget():
        sys.modules.pop(name, None)


def prepared(kind):
    """Write the files of a kind, so that the next import sees each of them.

    Python lists a folder again if the folder's time changed, and files that are written within a
    few milliseconds have one time.
    """
    kind.prepare()
    importlib.invalidate_caches()


def statuses(target, out, *more):
    """The status of each statement that a command shows, and its exit status."""
    main(["verify", *target, "--jobs", "1", "--out", str(out), "--json", *more])


def judged(target, out, capsys, *more):
    """The verdicts of a command by id, and what it said."""
    capsys.readouterr()
    statuses(target, out, *more)
    printed = capsys.readouterr()
    return {v["id"]: v["status"] for v in json.loads(printed.out)}, printed.err


def cut(target, out, monkeypatch, capsys):
    """A run that ends after its first statement; its journal stays."""
    with monkeypatch.context() as patch:
        patch.setattr(statement_run.Verification, "_is_over", lambda run: len(run.done) > 0)
        patch.setattr(statement_run.Verification, "publish", lambda run, **_: run.folder.release())
        statuses(target, out)
    assert (Path(out) / "unfinished/judged.jsonl").is_file()
    capsys.readouterr()


def expected(kind):
    return "fails" if kind.matters else "holds"


@pytest.mark.default_cases(
    "claim file",
    "helper, equal size and mtime",
    "data in the folder",
    "variable of the environment",
    "optional module that appears",
    "existence of a file",
    "names in a folder",
    "deleted file",
    "declared file",
    "file that nothing reads",
)
@pytest.mark.parametrize("name", KINDS)
def test_after_a_cut_run_and_a_pattern(name, alone, monkeypatch, capsys):
    kind = KINDS[name]
    prepared(kind)
    out, whole = alone.parent / "cut", alone.parent / "whole"
    cut(kind.all, out, monkeypatch, capsys)
    another_process()
    first, _ = judged(kind.all, whole, capsys)
    assert first == {"mine.a": "holds", "mine.b": "holds"}
    kind.change()
    another_process()
    found, said = judged(kind.all, out, capsys)
    assert found == {"mine.a": expected(kind), "mine.b": expected(kind)}
    if not kind.matters:
        assert "1 statement was judged in the unfinished run" in said and "mine.a" in said
        fresh, _ = judged(kind.all, alone.parent / "new", capsys)
        assert fresh == found
    another_process()
    judged(kind.second, whole, capsys)
    shown = json.loads((whole / "verdicts.json").read_text())
    beside = alone.parent.glob("whole-*/verdicts.json")
    new = [v for file in beside for v in json.loads(file.read_text())]
    if kind.matters:
        # The old verdict on mine.a never stands beside the new one on mine.b.
        assert {(v["id"], v["status"]) for v in new} == {("mine.b", "fails")}
        assert {v["status"] for v in shown} == {"holds"}
    else:
        assert new == [] and len(shown) == 2


@pytest.mark.default_cases(
    "claim file",
    "helper beside the file",
    "helper on the search path",
    "JSON",
    "variable of the environment",
    "helper, equal size and mtime",
    "importlib.resources",
    "new part of a namespace package",
    "bytecode without a source",
    "import inside evaluate",
    "new module that shadows",
    "optional module that appears",
    "working folder",
    "data read once",
    "module in an archive",
    "file that nothing reads",
)
@pytest.mark.parametrize("name", KINDS)
def test_in_one_process(name, alone):
    kind = KINDS[name]
    prepared(kind)
    what, imports = ("mine", ["mine"]) if kind.where == "mine" else (kind.where, [])
    out = alone.parent / "out"
    before = jb.verify(what, imports=imports, jobs=1, out=out)
    assert [(v.status, v.reason) for v in before if v.status != "holds"] == []
    kind.change()
    after = jb.verify(what, imports=imports, jobs=1, out=out)
    assert [(v.status, v.reason) for v in after if v.status != expected(kind)] == []
    assert after.continued == {}


def command(*words, **given):
    """A `verify` of a real process."""
    program = [sys.executable, "-m", "jaxbounds", "verify", *words]
    return subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given
    )


@pytest.mark.slow
def test_a_killed_run_of_two_processes_keeps_no_stale_verdict(alone):
    """A false claim passed: judged with the old helper, killed, continued with the new one."""
    text("helper.py", "C = 2.0")()
    claim(imports="import time\nfrom helper import C",
          before="time.sleep(3 * (size['n'] == 5))")  # fmt: skip
    source = Path("mine.py").read_text().replace('claim("mine.b")', "SLOW")
    slow = 'import dataclasses\nSLOW = dataclasses.replace(claim("mine.b"), sizes=({"n": 5},))\n'
    Path("mine.py").write_text(source.replace("PAPER =", f"{slow}PAPER ="))
    running = command("mine.py", "--jobs", "2", "--out", "o", start_new_session=True)
    journal = Path("o/unfinished/judged.jsonl")
    for _ in range(1200):
        if journal.is_file() and "mine.a" in journal.read_text():
            break
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    shutil.copytree("o", "same")
    _, said = command("mine.py", "--jobs", "2", "--out", "same").communicate()
    assert "1 statement was judged in the unfinished run" in said
    assert "UTC, and nothing changed" in said
    text("helper.py", "C = 3.0")()
    changed = command("mine.py", "--jobs", "2", "--out", "o", "-x")
    _, said = changed.communicate()
    assert changed.returncode == 1 and "mine.a: printed: fails" in said
    assert (
        "mine.a is judged again, because this dependency changed: file: " in said
        and "helper.py" in said
    )
    text("helper.py", "C = 2.0")()
    repaired = command("mine.py", "--jobs", "2", "--out", "o")
    out, said = repaired.communicate()
    assert repaired.returncode == 0 and "2 holds; all as recorded" in out


def test_workers_record_what_they_read(alone):
    """A file that a worker alone reads, while it judges."""
    text("c.txt", "2")()
    claim("float(read('c.txt'))")
    out = alone.parent / "out"
    before = jb.verify("mine.py", jobs=2, out=out)
    about = json.loads((out / "run.json").read_text())
    for judged_then in about["judged"].values():
        assert f"file: {Path('c.txt').absolute()}" in about["records"][judged_then["record"]]
    text("c.txt", "3")()
    after = jb.verify("mine.b", imports=["mine.py"], jobs=1, out=out)
    assert {v.status for v in before} == {"holds"} and [v.id for v in after] == ["mine.b"]
    assert after[0].status == "fails" and after.folder != out


def test_a_verdict_that_stands_beside_says_so(alone, capsys):
    claim("2.0")
    judged(["mine.py"], "out", capsys)
    main(["verify", "mine.b", "--import", "mine.py", "--jobs", "1", "--out", "out"])
    printed = capsys.readouterr().out
    assert (
        "the files also hold 1 statement of an earlier run, 20" in printed and "mine.a" in printed
    )


def test_texts_of_a_users_file_are_not_kept(alone, capsys):
    """`list` and `show` printed what a file said before it was edited."""
    claim("2.0")
    main(["list", "mine.py"])
    Path("mine.py").write_text(Path("mine.py").read_text().replace("mine.b", "mine.other"))
    another_process()
    capsys.readouterr()
    main(["list", "mine.py"])
    assert "mine.other" in capsys.readouterr().out


def test_a_journal_of_the_version_before_is_not_continued(alone, capsys):
    claim("3.0")
    Path("out/unfinished").mkdir(parents=True)
    Path("out/unfinished/judged.jsonl").write_text('{"sha256": "0", "value": {"format": "1"}}\n')
    found, _ = judged(["mine.py"], "out", capsys)
    assert set(found.values()) == {"fails"}


def test_a_record_that_was_edited_is_not_believed(alone, monkeypatch, capsys):
    """The record of what verdicts depend on belongs to run.json, and is checked like them."""
    helper = text("helper.py", "C = 2.0")
    helper()
    claim(imports="from helper import C")
    judged(["mine.py"], "out", capsys)
    about = json.loads(Path("out/run.json").read_text())
    (name,) = about["records"]
    about["records"][name] = {}
    Path("out/run.json").write_text(json.dumps(about))
    text("helper.py", "C = 3.0")()
    another_process()
    judged(["mine.b", "--import", "mine.py"], "out", capsys)
    for file in Path().glob("out*/verdicts.json"):
        statuses_there = {v["id"]: v["status"] for v in json.loads(file.read_text())}
        assert statuses_there.get("mine.b") != "fails" or statuses_there.get("mine.a") != "holds"


def test_depends_takes_paths_and_texts_only(alone):
    with pytest.raises(TypeError, match="depends must be a tuple"):
        jb.Statement(
            id="mine.a", label="1", formula="f", kind="identity", evaluate=print, control="c",
            forms=(jb.Form(name="printed"),), sizes=({},), over={}, depends="data.h5",
        )  # fmt: skip
