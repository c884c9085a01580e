"""Every notebook runs, and is the pair of its text source."""

import base64
import importlib.metadata
import importlib.util
import io
import os
import re
import runpy
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import jax
import jupytext
import nbformat
import numpy as np
import pytest

SOURCES = sorted((Path(__file__).parents[1] / "colab").glob("*.py"))
WITH_SOURCE = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
QUICK = ("01", "05", "07")
"""Those that run by default; all of them run in full with the slow tests."""


def _run(source, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    # Colab's defaults, not those of the tests.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        runpy.run_path(str(source))


@pytest.mark.slow_cases("01_tour_in_ten_minutes", "07_is_your_network_weakly_convex")
@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.stem[:2] in QUICK], ids=lambda path: path.stem
)
def test_notebook_runs_in_fast_mode(source, monkeypatch, capsys):
    monkeypatch.setenv("JAXBOUNDS_FAST", "1")
    _run(source, monkeypatch)
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.timeout(900)
@WITH_SOURCE
def test_notebook_runs_in_full(source, monkeypatch):
    monkeypatch.delenv("JAXBOUNDS_FAST", raising=False)
    _run(source, monkeypatch)


@WITH_SOURCE
def test_notebook_is_the_pair_of_its_source(source):
    text, paired = jupytext.read(source), jupytext.read(source.with_suffix(".ipynb"))
    cells = lambda book: [(cell.cell_type, cell.source) for cell in book.cells]
    assert cells(text) == cells(paired), "run: jupytext --update --to notebook colab/*.py"


OUTPUTS = runpy.run_path(str(Path(__file__).parents[1] / ".github" / "outputs.py"))
SHOWN = ("01", "02", "03", "04", "05", "06", "07", "08")
"""Notebooks that show their outputs where they lie; `.github/outputs.py FILE ...` makes them."""


def _outputs(book):
    return [o for cell in book.cells for o in cell.get("outputs", ())]


@WITH_SOURCE
def test_stored_outputs_belong_to_the_code_and_are_small(source):
    book = jupytext.read(source.with_suffix(".ipynb"))
    outputs, stored = _outputs(book), book.metadata.get("jaxbounds", {}).get("outputs_of")
    assert bool(outputs) == (stored is not None) and (outputs or source.stem[:2] not in SHOWN)
    if outputs:
        assert stored == OUTPUTS["digest"](book), "run: .github/outputs.py"
    pictures = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert all(len(base64.b64decode(png)) <= OUTPUTS["MOST_PICTURE"] for png in pictures)
    assert not any(o.output_type == "error" or o.get("name") == "stderr" for o in outputs)
    # Paths of one machine, such as a warning has.
    assert not re.search(r"/(root|home|Users|site-packages)/|/tmp/tmp", str(outputs))
    assert source.with_suffix(".ipynb").stat().st_size < 150_000


def test_the_command_keeps_small_pictures_and_the_digest_of_the_code():
    image = pytest.importorskip("PIL.Image")
    noise, file = np.random.default_rng(0).integers(0, 255, (450, 600, 3), np.uint8), io.BytesIO()
    image.fromarray(noise).save(file, "PNG")
    smooth = np.broadcast_to(np.linspace(0, 255, 1200).astype(np.uint8)[:, None], (900, 1200, 3))
    plain = io.BytesIO()
    image.fromarray(smooth).save(plain, "PNG")
    new, encoded = nbformat.v4, base64.b64encode(plain.getvalue()).decode()
    outputs = [
        new.new_output("stream", name="stderr", text="10/20 steps"),
        new.new_output(
            "stream",
            name="stdout",
            text=f"\x1b[1mheld\x1b[0m <f at 0x7f1a> {tempfile.gettempdir()}/tmp7_a/b.py"
            + "x" * 30_000,
        ),
        new.new_output("display_data", data={"image/png": encoded, "text/plain": "<Figure>"}),
        new.new_output(
            "display_data",
            data={"application/vnd.jupyter.widget-view+json": {}, "text/plain": "Output()"},
        ),
        new.new_output("display_data", data={"text/html": "<pre></pre>", "text/plain": ""}),
    ]
    book = new.new_notebook(cells=[new.new_code_cell("a = 1", outputs=outputs)])
    OUTPUTS["keep"](book)
    text, picture = book.cells[0].outputs
    assert text.text.startswith("held <f> FOLDER/b.pyx") and text.text.endswith("more characters\n")
    assert list(picture.data) == ["image/png"] and "stderr" not in str(book)
    small = base64.b64decode(picture.data["image/png"])
    assert len(small) <= 60_000 and image.open(io.BytesIO(small)).width == 1200
    assert book.metadata["jaxbounds"]["outputs_of"] == OUTPUTS["digest"](book)
    book.cells[0].source = "a = 2"
    assert book.metadata["jaxbounds"]["outputs_of"] != OUTPUTS["digest"](book)
    with pytest.raises(ValueError, match=r"expected at most 60000\. Try a simpler picture"):
        OUTPUTS["small"](file.getvalue())
    book.cells[0].outputs = [new.new_output("error", ename="E", evalue="why", traceback=[])]
    with pytest.raises(ValueError, match="a cell raised E: why"):
        OUTPUTS["keep"](book)


def test_there_are_at_least_six():
    assert len(SOURCES) >= 6


def _first_cell(source):
    return next(cell.source for cell in jupytext.read(source).cells if cell.cell_type == "code")


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A machine without the library: the requests that pip gets, and the answers of the machine."""
    asked, answers = [], {"jax": "0.12.0", "jaxlib": "0.12.0", "numpy": "2.1.0", "pip": ""}
    ours = ("jaxbounds", "jax", "jaxlib", "libtpu", "jax_cuda13_plugin")
    find, exists = importlib.util.find_spec, os.path.exists

    def there(name, package=None):
        return answers.get(name) if name in ours else find(name, package)

    def pip(command, **how):
        asked.append(command[command.index("install") + 2 :])
        return subprocess.CompletedProcess(command, bool(answers["pip"]), "", answers["pip"])

    def file_exists(path):
        return "nvidia" in answers if path == "/dev/nvidia0" else exists(path)

    monkeypatch.setattr(importlib.util, "find_spec", there)
    monkeypatch.setattr(importlib.metadata, "version", answers.__getitem__)
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os.path, "exists", file_exists)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.chdir(tmp_path)
    return asked, answers


WHEEL = "jaxbounds-0.2.0-py3-none-any.whl"
PINS = ["jax==0.12.0", "jaxlib==0.12.0", "numpy==2.1.0"]


def _start(**settings):
    """Run the first cell with other settings."""
    cell = _first_cell(SOURCES[0])
    for name, value in settings.items():
        before = {"SOURCE": 'SOURCE = ""', "NEWER_JAX": "NEWER_JAX = False"}[name]
        assert cell.count(f"{before}\n") == 1
        cell = cell.replace(f"{before}\n", f"{name} = {value!r}\n")
    exec(cell, {})


def test_every_notebook_begins_with_the_same_cell():
    assert len({_first_cell(source) for source in SOURCES}) == 1


def test_the_first_cell_installs_the_newest_wheel_beside_the_jax_that_is_there(elsewhere, tmp_path):
    asked, answers = elsewhere
    (tmp_path / "jaxbounds-0.10.0-py3-none-any.whl").touch()
    os.utime(tmp_path / "jaxbounds-0.10.0-py3-none-any.whl", (0, 0))
    (tmp_path / WHEEL).touch()
    _start()
    assert asked == [[f"./{WHEEL}[plots]", *PINS]]
    answers["jaxbounds"] = "there"
    _start()
    assert len(asked) == 1


def test_the_first_cell_installs_from_an_address(elsewhere):
    asked, answers = elsewhere
    _start(SOURCE="https://example.org/jaxbounds.whl")
    assert asked == [["jaxbounds[plots] @ https://example.org/jaxbounds.whl", *PINS]]
    del answers["jax"], answers["jaxlib"]
    _start(SOURCE="git+https://example.org/jaxbounds")
    assert asked[1] == ["jaxbounds[plots] @ git+https://example.org/jaxbounds", "numpy==2.1.0"]


def test_the_first_cell_never_asks_an_index_for_the_library(elsewhere):
    asked, _ = elsewhere
    with pytest.raises(SystemExit, match=r"Upload a wheel .* set SOURCE"):
        _start()
    assert not asked


def test_the_first_cell_gives_the_last_line_of_pip(elsewhere, tmp_path):
    _, answers = elsewhere
    (tmp_path / WHEEL).touch()
    answers["pip"] = "Looking.\nERROR: No matching distribution found\n"
    with pytest.raises(SystemExit, match=r"Upload a wheel .* set SOURCE.* No matching") as ended:
        _start()
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize("device, extra", [
    ((), "jax"), (("nvidia",), "jax[cuda12]"), (("libtpu",), "jax[tpu]"),
    (("nvidia", "jax_cuda13_plugin"), "jax[cuda13]"),
])  # fmt: skip
def test_the_first_cell_replaces_jax_as_a_whole_or_not_at_all(elsewhere, device, extra):
    asked, answers = elsewhere
    answers |= dict.fromkeys(device, "there")
    project = tomllib.loads((SOURCES[0].parents[1] / "pyproject.toml").read_text())["project"]
    (floor,) = (d.split(">=")[1] for d in project["dependencies"] if d.startswith("jax>="))
    major, minor, patch = map(int, floor.split("."))
    answers["jax"] = f"{major}.{minor}.{patch - 1}"
    with pytest.raises(SystemExit) as ended:
        _start()
    assert f"jaxbounds needs jax>={floor}" in str(ended.value) and extra in str(ended.value)
    assert not asked  # before pip has tried
    with pytest.raises(SystemExit, match="restart the session"):  # JAX runs in this process
        _start(NEWER_JAX=True)
    assert asked == [["-U", extra]]


@pytest.mark.parametrize("device", ["nvidia", "libtpu"])
def test_the_first_cell_leaves_nobody_on_the_cpu_unaware(elsewhere, monkeypatch, device):
    _, answers = elsewhere
    answers |= {"jaxbounds": "there", device: "there"}
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    with pytest.raises(SystemExit, match=r"runs on the CPU, but .* -U 'jax\[(cuda12|tpu)\]"):
        _start()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    _start()
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    _start()


@WITH_SOURCE
def test_it_opens_with_its_result_and_its_duration(source):
    first = jupytext.read(source).cells[0].source
    words = " ".join(first.split())
    assert re.search(
        r" \*Result: .+\. The cells take about \w+ (sec|min)\w+ on two cores\.\*", words
    )
