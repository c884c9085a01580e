"""Witness files: their digest, and each bad file refused with one sentence."""

import hashlib
import json

import numpy as np
import pytest

from jaxbounds.certification import disprove, load_witness, save_witness, witness_of
from jaxbounds.certification.witness import digest_of
from jaxbounds.claims.statements import Form, Sides, Statement

STATEMENT = Statement(
    id="mine.double", label="Claim 2", formula="2x <= x", kind="inequality", control="zero",
    evaluate=lambda i, size: Sides(2 * i["x"].sum(), {"printed": i["x"].sum(), "control": 0.0}),
    sample=lambda key, size: {}, sizes=({"d": 1},), forms=(Form(name="printed"),),
)  # fmt: skip
INSTANCE = {"x": np.array([0.1, 1e300])}


@pytest.fixture
def witness():
    return witness_of(STATEMENT, INSTANCE, disprove(STATEMENT, "printed", INSTANCE, {"d": 1}))


def test_its_digest_can_be_computed_without_the_library(witness):
    rest = {name: value for name, value in witness.items() if name != "digest"}
    text = json.dumps(dict(reversed(rest.items())), sort_keys=True, separators=(",", ":"))
    assert witness["digest"] == hashlib.sha256(text.encode()).hexdigest()


def altered(witness, change):
    """Changed, with a digest that matches again."""
    copy = json.loads(json.dumps(witness))
    change(copy)
    return copy | {"digest": digest_of(copy)}


def written(tmp_path, text):
    path = tmp_path / "w.json"
    path.write_text(text, encoding="utf8")
    return path


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"is not a file\. Try a witness"):
        load_witness(tmp_path / "absent.json")


def test_a_folder(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        load_witness(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nope"])
def test_a_file_that_is_no_json(text, tmp_path):
    with pytest.raises(ValueError, match="is no JSON"):
        load_witness(written(tmp_path, text))


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "w.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is no JSON"):
        load_witness(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [1], "exact": ["1/0"], "type": "f"},
        {"shape": [1], "exact": ["10000000000000000000"], "type": "i"},
        {"shape": [2], "exact": ["1"], "type": "f"},
        {"shape": [1], "exact": ["1"], "type": "x"},
        {"shape": 1, "exact": ["1"], "type": "f"},
        {"shape": [1], "type": "f"},
        {"shape": [1], "exact": 3, "type": "f"},
        3,
    ],
)
def test_numbers_that_are_none(entry, witness, tmp_path):
    changed = altered(witness, lambda w: w["instance"].update(x=entry))
    with pytest.raises(ValueError, match="entry 'x' of the instance is unreadable"):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize("entry", [3, [], "x"])
def test_an_instance_that_is_none(entry, witness, tmp_path):
    changed = altered(witness, lambda w: w.update(instance=entry))
    with pytest.raises(ValueError, match=str(tmp_path)):
        load_witness(save_witness(tmp_path / "w.json", changed))


def test_names_that_exclude_each_other(witness, tmp_path):
    one = {"shape": [1], "exact": ["1"], "type": "f"}
    changed = altered(witness, lambda w: w.update(instance={"x": one, "x.y": one}))
    with pytest.raises(ValueError, match=str(tmp_path)):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize("size", [None, {"d": "1"}])
def test_a_size_that_is_none(size, witness, tmp_path):
    changed = altered(witness, lambda w: w.update(size=size))
    with pytest.raises(ValueError, match="expected a JSON object of integers"):
        load_witness(save_witness(tmp_path / "w.json", changed))
