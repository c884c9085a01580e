"""The cache is its user's alone, or is not used; without a home runs go on without it."""

import hashlib
import os
import pickle
import stat
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.cli import main
from jaxbounds.falsification import UNKEPT, Programs
from jaxbounds.falsification.program_cache import StoredProgram, read_program, store_program
from jaxbounds.ground.private import KEY, key_of, private
from jaxbounds.papers import load_paper
from jaxbounds.runs import cache
from jaxbounds.runs.digest import cache_folder, folder_for_jax, refusal

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
OWNED = pytest.mark.skipif(not ROOT, reason="only root gives files away")
STRANGER = 54321
ALWAYS = 10**6


CLAIM = """
import jaxbounds as jb

def evaluate(instance, size):
    return jb.Sides(lhs=0.0 * instance["x"], rhs={"printed": 1.0, "control": -1.0})

CLAIM = jb.Statement(
    id="mine.a", label="LABEL", formula="0 <= 1", kind="inequality", evaluate=evaluate,
    control="-1", over={"x": jb.Reals()}, sizes=({},), forms=(jb.Form(name="printed"),),
)
PAPER = jb.Paper(id="mine", title="My notes", statements=(CLAIM,))
"""


class Ran:
    """A pickle that leaves a mark."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def masked():
    """Umask 000, under which all that is made carelessly is everybody's."""
    before = os.umask(0)
    yield
    os.umask(before)


def _forged(file, mark, sign):
    """A file with a program of somebody else's."""
    content = b'{"seen": {}, "result": 0}\n' + pickle.dumps(Ran(mark))
    file.write_bytes(sign(content) + content)


def test_a_program_without_the_folder_s_key_is_not_loaded(tmp_path):
    folder, mark = tmp_path / "kept", tmp_path / "ran"
    run = lambda: Programs(folder)(lambda x: jnp.sin(x) + 1, "mine", calls=ALWAYS)(np.ones((2, 3)))
    wanted = run()
    (file,) = folder.glob("[!.]*")
    assert read_program(file) is not None
    for sign in (lambda content: hashlib.sha256(content).digest(), lambda content: b"\0" * 32):
        _forged(file, mark, sign)
        assert read_program(file) is None
        np.testing.assert_array_equal(run(), wanted)
        assert read_program(file) is not None and not mark.exists()


def test_a_program_is_of_its_file_in_its_folder(tmp_path):
    one, other = private(tmp_path / "one"), private(tmp_path / "other")
    store_program(one / "a", jax.jit(jnp.sin).lower(1.0).compile(), {})
    assert read_program(one / "a") is not None
    (one / "b").write_bytes((one / "a").read_bytes())
    (other / "a").write_bytes((one / "a").read_bytes())
    assert key_of(one) != key_of(other)
    assert read_program(one / "b") is None and read_program(other / "a") is None
    (other / KEY).write_bytes((one / KEY).read_bytes())  # an old folder under a new name
    assert read_program(other / "a") is None


@pytest.mark.usefixtures("masked")
def test_folders_and_keys_are_made_for_their_owner(tmp_path):
    folder = private(tmp_path / "a" / "b")
    key = key_of(folder)
    assert len(key) == 32 and key == key_of(folder)
    assert _mode(folder) == _mode(folder.parent) == 0o700 and _mode(folder / KEY) == 0o600


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o775])
def test_a_folder_that_others_write_is_not_used(mode, tmp_path):
    folder, kept = tmp_path / "folder", private(tmp_path / "folder")
    key = key_of(kept)
    program = StoredProgram({}, 0, b"program")
    (folder / "a").write_bytes(program.written(folder / "a", key))
    assert read_program(folder / "a") == program
    folder.chmod(mode)
    assert private(folder) is None and key_of(folder) is None and read_program(folder / "a") is None
    Programs(folder)(lambda x: jnp.sin(x) + 1, "mine", calls=ALWAYS)(np.ones((2, 3)))
    assert sorted(file.name for file in folder.iterdir()) == [KEY, "a"]


@OWNED
def test_a_folder_of_another_user_is_not_used(tmp_path):
    folder = private(tmp_path / "folder")
    (folder / "a").write_bytes(
        StoredProgram({}, 0, b"program").written(folder / "a", key_of(folder))
    )
    os.chown(folder, STRANGER, STRANGER)
    assert private(folder) is None and read_program(folder / "a") is None


@pytest.mark.parametrize("damage", [
    lambda key: key.chmod(0o644),
    lambda key: key.write_bytes(b"short"),
    lambda key: key.write_bytes(b"1" * 100),
    pytest.param(lambda key: os.chown(key, STRANGER, STRANGER), marks=OWNED),
    lambda key: (key.rename(key.with_name("key")), key.symlink_to("key")),
])  # fmt: skip
def test_a_key_that_others_know_is_replaced(damage, tmp_path):
    folder = private(tmp_path / "folder")
    before = key_of(folder)
    damage(folder / KEY)
    after = key_of(folder)
    assert len(after) == 32 and after not in (before, b"1" * 32) and after == key_of(folder)
    assert _mode(folder / KEY) == 0o600 and not (folder / KEY).is_symlink()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder to be in, and no variable that names a place."""
    for name in ("JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def _homeless():
    raise RuntimeError("Could not determine home directory.")


def _without_home(monkeypatch, variables):
    monkeypatch.setattr(Path, "home", _homeless)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


HOMELESS = [
    {}, {"XDG_CACHE_HOME": ""}, {"JAX_COMPILATION_CACHE_DIR": ""}, {"XDG_CACHE_HOME": "relative"},
    {"XDG_CACHE_HOME": "", "JAX_COMPILATION_CACHE_DIR": ""},
    {"JAX_COMPILATION_CACHE_DIR": "gs://bucket/cache"},
]  # fmt: skip


@pytest.mark.parametrize("variables", HOMELESS)
def test_without_a_home_there_is_no_cache_and_nothing_is_written_here(variables, home, monkeypatch):
    _without_home(monkeypatch, variables)
    assert cache_folder() is None and folder_for_jax() is None and refusal() == ""
    cache._program_store.cache_clear()
    before = jax.config.jax_compilation_cache_dir
    try:
        assert cache.programs_for(load_paper("multihead").statements[0]) is UNKEPT
        assert cache.examples(True).folder is None
        cache.prepare_jax()
        assert jax.config.jax_compilation_cache_dir == before
        assert main(["list", "multihead.cor1.3"]) == 0
    finally:
        cache._program_store.cache_clear()
    assert not list(home.iterdir())


@pytest.mark.parametrize("where", ["", "/", "relative"])
def test_a_home_that_is_none_counts_as_none(where, home, monkeypatch):
    monkeypatch.setenv("HOME", where)
    assert cache_folder() is None and not list(home.iterdir())


def test_variables_name_the_place(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for empty in ("JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(empty, "")
    assert cache_folder() == folder_for_jax() == tmp_path / "user/.cache/jaxbounds/xla"
    monkeypatch.setattr(Path, "home", _homeless)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/jaxbounds/xla"
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    assert cache_folder() == folder_for_jax() == tmp_path / "jax"


def test_a_cache_that_others_write_is_not_used_and_the_command_says_so(
    home, tmp_path, monkeypatch, capsys
):
    place = tmp_path / "jax"
    place.mkdir()
    place.chmod(0o777)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(place))
    assert cache_folder() is None and folder_for_jax() == place  # the user told JAX to
    text = place / "jaxbounds-texts"
    assert main(["list", "multihead.cor1.3"]) == 0
    assert not text.exists()
    assert "other users can write there" in refusal() and "chmod 700" in refusal()
    assert main(["verify", "multihead.nothing"]) == 2
    assert refusal() in capsys.readouterr().err


def test_a_cut_or_changed_text_is_printed_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["list", "multihead.cor1"]) == 0
    printed = capsys.readouterr().out
    (file,) = tmp_path.rglob("jaxbounds-texts/*/*.txt")
    whole = file.read_bytes()
    damaged = (b"", whole[:40], whole[:-20], whole[:-1] + b"?", b"\0" * 32 + whole[32:])
    for content in (whole, *damaged):
        file.write_bytes(content)
        assert main(["list", "multihead.cor1"]) == 0
        assert capsys.readouterr().out == printed and "cor1.3" in printed


def test_what_a_file_of_the_user_s_holds_is_read_each_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for label in ("Inequality 1", "Inequality 2"):
        (tmp_path / "mine.py").write_text(CLAIM.replace("LABEL", label))
        for where in ("mine.py", "./mine.py", str(tmp_path / "mine.py")):
            assert main(["list", where]) == 0 and label in capsys.readouterr().out
