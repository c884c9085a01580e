"""Readers look at structure and size before they allocate."""

import io
import os
import resource
import zipfile
from typing import Any, Literal

import h5py
import ml_dtypes
import numpy as np
import pytest

from jaxbounds.experiments import results
from jaxbounds.ground import readers
from jaxbounds.ground.files import load_arrays, save_arrays
from jaxbounds.ground.readers import (
    Damaged,
    arrays_in,
    bytes_in,
    fits,
    is_inside,
    json_in,
    lines_in,
)


def archive(path, **entries):
    """An archive with entries as given: the bytes of an array, or an array."""
    with zipfile.ZipFile(path, "w") as parts:
        for name, entry in entries.items():
            if not isinstance(entry, bytes):
                inside = io.BytesIO()
                np.save(inside, entry)
                entry = inside.getvalue()
            parts.writestr(f"{name}.npy", entry)
    return path


def head(shape, descr="<f8"):
    """The header of an array."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_arrays_come_back(tmp_path):
    given = {
        "a": np.arange(6.0).reshape(2, 3).T, "b": np.array("word"), "c": np.zeros((0, 3), ">i4"),
        "d": np.array([True, False]), "e": np.array([1 + 2j], np.complex64),
    }  # fmt: skip
    found = arrays_in(archive(tmp_path / "a.npz", **given), limit=10**6)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].tolist() == array.tolist()


@pytest.mark.parametrize(
    "entry",
    [
        head((10**12,)), head((10**9, 10**9)), head((-1,)), head((3,)) + bytes(23),
        head((3,)) + bytes(25), head((3,), "|O") + bytes(24), head((2**40,), "|V0"), b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{" + b"[" * 65534, head((3,))[:20],
    ],
)  # fmt: skip
def test_an_array_that_claims_more_or_less_than_is_there(entry, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Exception):  # noqa: B017 - `load_arrays` turns all of them into one
        arrays_in(archive(tmp_path / "a.npz", x=entry), limit=2**40)
    stamp = np.array(["f", "", "0"])
    with pytest.raises(ValueError, match="damaged"):
        load_arrays(archive(tmp_path / "a.npz", stamp=stamp, x=entry), form="f", limit=2**40)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**18


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint2"]
)
def test_types_that_numpy_has_no_word_for_come_back_bit_for_bit(name, tmp_path):
    kind = getattr(ml_dtypes, name)
    for shape in ((), (3,), (0, 2), (2, 3)):
        given = {"x": np.ones(shape, kind), "y": np.zeros(shape, np.float32)}
        save_arrays(tmp_path / "a.npz", given, form="f")
        found, _ = load_arrays(tmp_path / "a.npz", form="f")
        assert found["x"].dtype == kind and found["x"].shape == shape
        assert found["x"].tobytes() == given["x"].tobytes()
        assert found["y"].dtype == np.float32


def test_a_result_that_names_more_than_it_holds(tmp_path):
    path = tmp_path / "result.nc"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (500_000_000,), dtype="f8", chunks=(100_000,))
    assert path.stat().st_size < 10_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"result\.nc' is no result or is damaged"):
        results.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**18  # KiB


def test_a_variable_that_lies_in_another_file(tmp_path):
    (tmp_path / "secret").write_bytes(b"12345678")
    with h5py.File(tmp_path / "result.nc", "w") as file:
        file.create_dataset("x", (1,), dtype="f8", external=str(tmp_path / "secret"))
    with pytest.raises(ValueError, match="damaged"):
        results.load(tmp_path / "result.nc")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[" * 10**5, b"\xff", b"[" + b"1," * 10**7 + b"1]", b"{}" * 3, b'"\\ud800"x',
     b"[" + b"[]," * 3 * 10**6 + b"1]", b"1" * 5000],
)  # fmt: skip
def test_what_is_no_json_of_ours(text, tmp_path):
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(Damaged, match=r"a\.json is damaged"):
        json_in(tmp_path / "a.json", of=lambda value: value)


def test_a_file_that_never_ends_is_none(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        before = os.open(os.devnull, os.O_RDONLY)
        os.close(before)
        with pytest.raises(Damaged, match="no plain file"):
            bytes_in(path)
        after = os.open(os.devnull, os.O_RDONLY)
        os.close(after)
        assert after == before  # no descriptor stays open
    (tmp_path / "large").write_bytes(bytes(11))
    with pytest.raises(Damaged, match="more than limit=10 bytes"):
        bytes_in(tmp_path / "large", limit=10)


def test_lines_without_a_torn_last_one(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\ntwo\nthr")
    assert list(lines_in(tmp_path / "a")) == [(1, b"one"), (3, b"two")]


@pytest.mark.parametrize(
    "value, hint, yes",
    [
        (1, int, True), (True, int, False), (1, float, True), ("inf", float, True),
        ("x", float, False), (None, float, True), ([], float, False), ("a", str, True),
        ([1, "a"], tuple[int, str], True), ([1], tuple[int, str], False), ({}, Any, True),
        ([1, 2], tuple[int, ...], True), ([1, "a"], tuple[int, ...], False), (3, list[int], False),
        ({"a": [1, 2]}, dict[str, tuple[int, int]], True), ({"a": 1}, dict[str, str], False),
        ("holds", Literal["holds", "fails"], True), ({}, Literal["holds"], False),
        (None, int | None, True), ("a", int | None, False),
    ],
)  # fmt: skip
def test_values_against_types(value, hint, yes):
    assert fits(value, hint) is yes


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "a\\b", "a\0b"])
def test_names_that_leave_a_folder(name):
    assert not is_inside(name) and is_inside("worst/a.npz") and readers.is_inside("")
