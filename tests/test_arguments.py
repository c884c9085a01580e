"""Any list of arguments is answered: by what was asked for, or by a sentence and its exit status.

What would compute for long is left out: `verify` judges nothing here, `certify` is not called, and
of the experiments only `smapprox.machine`, whose numbers set its size, is really run. `pytest -m
slow` tries 300 lists.
"""

import contextlib
import dataclasses
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxbounds.cli import COMMANDS, main
from jaxbounds.cli import run as run_command
from jaxbounds.falsification import save_instance
from jaxbounds.runs import request
from jaxbounds.runs.statement_run import Verification

NAMES = (
    "multihead", "multihead.cor1.3", "qstr.*", "*", "[", "[!", "smapprox.machine", "multihead.fig2",
    "seqlength.comparison", "multihead Corollary 1", "Theorem", "quick",
)  # fmt: skip
FILES = (
    "one.npz", "plain.npy", "text.txt", "empty.json", "claims.py", "broken.py", "folder",
    "folder/new", "text.txt/new", "json.py", "with.dot.py", "no.such.module", "gs://bucket/x", ".",
)  # fmt: skip
FLAGS = (
    "--seed", "--out", "--jobs", "--import", "--judging", "--code", "--preset", "--resume",
    "--help", "--thorough", "--traceback", "--verbose", "--T", "--limit", "--input", "--machine",
    "--adder", "--heads", "--version", "--no-such-flag", "-", "--", "---", "-x", "--seed=",
    "--out=", "--json", "--kind", "--shard", "--engine", "--last-failed", "--durations",
)  # fmt: skip
VALUES = (
    "", " ", "-1", "0", "3", "1.5", "99999999999999999999", "1e400", "nan", "None", "True", "\n",
    "3/16", "é", "a" * 300, "a/" * 200, "[/x]", "{", "aabb", "☃", "%s", "$(x)", "\x1b[31m",
)  # fmt: skip
SLOW = ("certify", "constant")
COMMAND = st.sampled_from((*(c for c in COMMANDS if c not in SLOW), "", "no-such-command"))
LISTS = st.builds(
    lambda command, rest: [command, *rest],
    COMMAND,
    st.lists(st.sampled_from((*NAMES, *FILES, *FLAGS, *VALUES)), max_size=5),
)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with files of all sorts, where nothing computes for long."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    place = tmp_path / "work"
    (place / "folder").mkdir(parents=True)
    monkeypatch.chdir(place)
    save_instance(place / "one.npz", {"x": np.zeros(2)}, id="qstr.prop3", form="printed")
    np.save(place / "plain.npy", np.zeros(3))
    for name, text in {
        "text.txt": "nothing", "empty.json": "{}", "claims.py": "PAPER = 3", "broken.py": "x = (",
        "json.py": "EXPERIMENTS = ()", "with.dot.py": "raise ValueError('no')",
    }.items():  # fmt: skip
        (place / name).write_text(text, encoding="utf8")
    monkeypatch.setattr(Verification, "_verdicts", lambda run, statements: iter(()))
    find = request.find_experiment

    def named(name, **more):
        found = find(name, **more)
        return found if found.id == "smapprox.machine" else dataclasses.replace(found, run=_refuse)

    for module in (request, run_command):
        monkeypatch.setattr(module, "find_experiment", named)
    return place


def _refuse(config, key, folder=None, resume=False):
    raise ValueError("not in this test")


@pytest.mark.parametrize("count", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_every_list_of_arguments_is_answered(count, workplace):
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(arguments=LISTS)
    def check(arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(arguments)
            except SystemExit as ended:  # the parser's
                status = ended.code
        assert status in (0, 1, 2, 3), (arguments, status)
        said = out.getvalue() + err.getvalue()
        assert said.strip() and "Traceback" not in said, arguments
        assert not list(workplace.rglob("*.partial")), arguments

    check()
