"""Files are whole or absent, and damage is noticed."""

import numpy as np
import pytest

from jaxbounds.ground.files import digest, load_arrays, save_arrays, try_to_write, whole, write_text

ARRAYS = {"a": np.arange(3.0), "b/c": np.array(["x", "yz"])}


def test_a_write_that_breaks_leaves_what_was_there(tmp_path):
    path = write_text(tmp_path / "new" / "a.txt", "before")
    with pytest.raises(OSError, match="full"), whole(path) as file:
        file.write(b"after")
        raise OSError("disk full")
    assert path.read_text() == "before"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_arrays_come_back_and_damage_is_said(tmp_path):
    path = save_arrays(tmp_path / "a.npz", ARRAYS, form="mine-1", about="words")
    arrays, about = load_arrays(path, form="mine-1")
    assert about == "words" and arrays["b/c"].tolist() == ["x", "yz"]
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    with pytest.raises(ValueError, match="got form='mine-1', expected 'mine-2'"):
        load_arrays(path, form="mine-2")
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for damaged in (content[:40], b"", flipped):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            load_arrays(path, form="mine-1")
    stamp = np.array(["mine-1", "words", digest(ARRAYS, "mine-1", "other words")])
    np.savez(path, stamp=stamp, **{f"array/{name}": array for name, array in ARRAYS.items()})
    with pytest.raises(ValueError, match="checksum"):
        load_arrays(path, form="mine-1")
    with pytest.raises(ValueError, match="missing"):
        load_arrays(tmp_path / "none.npz", form="mine-1")
    with pytest.raises(TypeError, match="a type that no file can store"):
        save_arrays(path, {"a": np.array([{}])}, form="mine-1")


def test_the_digest_sees_names_types_shapes_and_values():
    base = digest(ARRAYS, "w")
    changed = [
        ARRAYS | {"a": np.arange(3.0) + 1e-16 * np.array([1, 0, 0])},
        ARRAYS | {"a": np.arange(3.0, dtype=np.float32)},
        ARRAYS | {"a": np.arange(3.0)[None]},
        {"d": ARRAYS["a"], "b/c": ARRAYS["b/c"]},
    ]
    assert len({base, digest(ARRAYS, "v"), *(digest(c, "w") for c in changed)}) == 6


def test_a_place_that_is_tried_is_left_as_it_was(tmp_path):
    try_to_write(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    try_to_write(tmp_path / "there")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError) as caught:
        try_to_write(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")
