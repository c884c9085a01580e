"""Every reader of files answers anything with what it read or with one sentence.

Inputs are noise, valid files with bytes changed, cut out or repeated, deep nesting, sizes that lie,
and values of types that nobody expects. `pytest -m slow tests/test_fuzz.py` tries 2,000 of each.
"""

import contextlib
import io
import json
import zipfile

import numpy as np
import pytest
import xarray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxbounds.experiments import results
from jaxbounds.falsification import Verdict, load_instance, save_instance, storage
from jaxbounds.runs.folder import Folder
from jaxbounds.smapprox import circuits, machine_formats
from jaxbounds.smapprox.aiger import from_aiger

YAML = b"""input: '1011'
blank: ' '
start state: right
table:
  right:
    [1, 0]: R
    ' ': {L: carry}
  carry:
    1: {write: 0, L}
    [0, ' ']: {write: 1, L: done}
  done:
"""
JSON = json.dumps(
    {
        "blank": " ",
        "start state": "a",
        "table": {"a": {"1": "R", " ": {"write": "1", "L": "done"}}, "done": {}},
    }
).encode()
AIGER = b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n"


def _archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as parts:
        for name in ("stamp", "array/x"):
            inside = io.BytesIO()
            np.save(inside, np.array(["jaxbounds-instance-2", "{}", "0"]))
            parts.writestr(f"{name}.npy", inside.getvalue())
    return file.getvalue()


VERDICT = Verdict(
    id="mine.one", paper="mine", label="1", kind="inequality", relation="<=", form="printed",
    expected="holds", status="holds", reason="", worst_ratio=0.5, instances=1, searches=0,
)  # fmt: skip
VERDICTS = json.dumps([VERDICT.to_json()]).encode()


@st.composite
def changed(draw, valid):
    """Noise, or a valid file after a few changes; sometimes one part many times over."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=200))
    data = bytearray(valid)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(("set", "cut", "put", "repeat")))
        if kind == "set" and data:
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == "put":
            data[at:at] = draw(
                st.sampled_from((b"9" * 30, b"[" * 3000, b"{\n", b"\0", b"-", b"&a "))
            )
        else:
            data[at:at] = bytes(data[at : at + 30]) * draw(st.integers(1, 200))
    return bytes(data)


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
NESTED = st.recursive(
    _LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner)
)
DESCRIBED = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("blank", "start state", "table", "input", "accept"), NESTED)
)


def answers(read):
    """Nothing, or one sentence."""
    try:
        read()
    except ValueError as problem:
        text = str(problem)
        assert text and len(text) < 2000, text[:200]


FAST, MANY = 60, 2000


def tried(strategy):
    """A few inputs by default, many with the slow tests."""

    def decorate(check):
        def all_of(count):
            options = {"max_examples": count, "deadline": 5000, "database": None}
            odd = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
            settled = settings(**options, derandomize=True, suppress_health_check=odd)

            def run(tmp_path):
                settled(given(data=strategy)(lambda data: check(tmp_path, data)))()

            return run

        def test(count, tmp_path):
            all_of(count)(tmp_path)

        test.__doc__ = check.__doc__
        many = pytest.param(MANY, marks=pytest.mark.slow)
        return pytest.mark.parametrize("count", [FAST, many])(test)

    return decorate


def _text(data):
    return data.decode("utf8", errors="replace")


@tried(changed(YAML))
def test_yaml(tmp_path, data):
    answers(lambda: machine_formats.from_yaml(_text(data)))


@tried(changed(JSON) | DESCRIBED.map(lambda tree: json.dumps(tree).encode()))
def test_json(tmp_path, data):
    answers(lambda: machine_formats.from_json(_text(data)))


@tried(changed(b"1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA"))
def test_compact_machines(tmp_path, data):
    answers(lambda: machine_formats.from_compact(_text(data)))


@tried(changed(AIGER))
def test_aiger(tmp_path, data):
    answers(lambda: from_aiger(_text(data)))


CIRCUIT = b'{"inputs": 2, "layers": [[{"op": "AND", "inputs": [0, 1]}]]}'
WIRED = st.fixed_dictionaries({"inputs": NESTED, "layers": NESTED})


@tried(changed(CIRCUIT) | WIRED.map(lambda tree: json.dumps(tree).encode()))
def test_circuits(tmp_path, data):
    answers(lambda: circuits.from_json(_text(data)))


@tried(changed(_archive()))
def test_instances(tmp_path, data):
    (tmp_path / "one.npz").write_bytes(data)
    answers(lambda: load_instance(tmp_path / "one.npz"))


@tried(changed(VERDICTS) | NESTED.map(lambda tree: json.dumps(tree).encode()))
def test_verdicts(tmp_path, data):
    """What cannot be read is another run's, which is not written over."""
    (tmp_path / "verdicts.json").write_bytes(data)
    (tmp_path / "run.json").write_text("{}", encoding="utf8")
    folder = Folder(tmp_path, {})
    with contextlib.suppress(ValueError):
        folder.published()
    (tmp_path / "run.json").write_bytes(data)
    answers(folder.published)


def _result(folder):
    return results.save(xarray.Dataset({"x": ("t", [1.0, 2.0])}), folder / "valid.nc").read_bytes()


@pytest.mark.parametrize("count", [30, pytest.param(MANY, marks=pytest.mark.slow)])
def test_results(count, tmp_path):
    valid = _result(tmp_path)
    options = {"max_examples": count, "deadline": 5000, "database": None, "derandomize": True}

    @settings(**options, suppress_health_check=[HealthCheck.too_slow])
    @given(data=changed(valid))
    def check(data):
        (tmp_path / "one.nc").write_bytes(data)
        answers(lambda: results.load(tmp_path / "one.nc"))

    check()


def test_an_archive_that_unpacks_to_more_than_the_limit(tmp_path, monkeypatch):
    """Its sizes are read before its content."""
    monkeypatch.setattr(storage, "LIMIT", 2**16)
    path = save_instance(tmp_path / "one.npz", {"x": np.zeros(3)})
    load_instance(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("array/y.npy", b"\0" * 2**17)
    with pytest.raises(ValueError, match="damaged") as refused:
        load_instance(path)
    reasons, problem = [], refused.value
    while problem is not None:
        reasons.append(str(problem))
        problem = problem.__cause__
    assert any("expected at most 65536" in reason for reason in reasons), reasons
