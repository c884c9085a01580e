"""Disproofs and proofs as files for Rocq; with `coqc` the kernel itself is asked."""

import functools
import json
import pickle
import re
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.numerics.norms import spectral_norm

SIZE = {"n": 2}
INSTANCE = {"A": [[3.0, 1.0], [0.0, 1.0]], "x": [0.6, 0.8], "logits": [0.5, -0.25]}


@functools.cache
def _has_coqc():
    """Whether the kernel and the library Interval are installed, on which the files rest."""
    if shutil.which("coqc") is None:
        return False
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True).stdout.strip()
    return (Path(where) / "user-contrib" / "Interval" / "Tactic.vo").is_file()


needs_coqc = pytest.mark.skipif(not _has_coqc(), reason="no coqc with coq-interval here")


def statement(evaluate, hypotheses=None, relation="<=", **form):
    """One with a form that is not known to fail."""
    return jb.Statement(
        id="mine.claim", label="Lemma 1", formula="|A x| <= ||A||_2 / 2", tex="", relation=relation,
        kind="inequality" if relation == "<=" else "identity", evaluate=evaluate,
        sample=lambda key, size: {n: jnp.asarray(v) for n, v in INSTANCE.items()}, sizes=(SIZE,),
        forms=(jb.Form(name="printed", **form),), control="no", hypotheses=hypotheses,
    )  # fmt: skip


def both_sides(i, size):
    """A weighted norm against half the spectral norm and a third, which floats round."""
    weights = jax.nn.softmax(i["logits"])
    left = jnp.sqrt(jnp.sum((i["A"] @ i["x"]) ** 2)) * jnp.sum(weights)
    right = spectral_norm(i["A"]) / 2 + 0.1
    return jb.Sides(left, {"printed": right, "control": 0 * right})


def on_sphere(i, size):
    """What a paper would assume."""
    return {"||x|| <= 1": jnp.sum(i["x"] ** 2) <= 1 + 1e-9, "x >= 0": jnp.all(i["x"] >= 0)}


CLAIM = statement(both_sides, on_sphere)


@pytest.fixture(scope="module")
def text():
    """The file of a claim of one's own."""
    certificate = jb.disprove(CLAIM, "printed", INSTANCE, SIZE)
    assert certificate.word == "disproved"
    return certificate.rocq()


def defined(text):
    """Names in the order in which they come to be, and those that each line needs."""
    known = set()
    for line in re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL).split(".\n"):
        found = re.match(r"\s*(Definition|Variable|Lemma|Hypothesis) (\w+)", line)
        if found and found[1] in ("Definition", "Variable"):
            yield found[2], line, frozenset(known)
            known.add(found[2])


def test_the_parts_of_a_file_stand_in_order(text):
    heads = [text.index(f"(* {k}. ") for k in (1, 2, 3, 4)]
    assert heads == sorted(heads)
    assert "Definition A_0_0 : R := 3." in text
    assert "Definition x_0 : R := 5404319552844595 / 9007199254740992." in text
    assert text.count("Lemma hypothesis_") == 2
    assert "Variable constant_1 : R." in text  # 0.1, which nobody means to the last digit
    assert "test_rocq.py" in text and "right = spectral_norm" in text
    assert text.rstrip().endswith("Print Assumptions claim_is_false.")
    assert re.search(r"Theorem claim_is_false : lhs > rhs\.\nProof\..*Qed\.\n\nEnd", text)


def test_every_name_is_defined_before_it_is_used(text):
    names = [name for name, _, _ in defined(text)]
    assert len(names) == len(set(names))
    for name, line, known in defined(text):
        used = set(re.findall(r"\b\w+\b", line)) & set(names)
        assert used - {name} <= known


def test_it_says_how_large_it_is(text):
    assert text.operations > 10 and text.lemmas > 10 and text.seconds > 1
    assert f"{text.operations} operations, {text.lemmas} lemmas" in text


def test_bounds_hold_what_the_program_computes(text):
    """By hand: float64 of NumPy, none of the rules of this package."""
    import numpy as np

    A, x = np.array(INSTANCE["A"]), np.array(INSTANCE["x"])
    low, high = re.search(r"Lemma spectral_norm_1_in : (\S+) <= \w+ <= (\S+)\.", text).groups()
    assert float(low) <= np.linalg.norm(A, 2) <= float(high)
    square = re.findall(r"(\S+) <= both_sides_\d+ <= (\S+)\.\n", text)
    left = np.linalg.norm(A @ x)
    assert any(float(a) <= left + 1e-12 and left - 1e-12 <= float(b) for a, b in square)


def test_zeros_and_ones_of_the_program_are_no_operations():
    def sides(i, size):
        left = jnp.sum(i["x"] * jnp.array([1.0, 0.0]) + jnp.zeros(2))
        return jb.Sides(left, {"printed": jnp.zeros(()), "control": 0.0})

    text = jb.disprove(statement(sides), "printed", INSTANCE, SIZE).rocq()
    assert "Definition lhs : R := x_0." in text
    assert text.operations == 0


def test_a_choice_is_proved():
    def sides(i, size):
        left = jnp.where(i["x"][0] < i["x"][1], jnp.exp(i["x"][1]), -5.0)
        return jb.Sides(left, {"printed": i["x"][0], "control": 0.0})

    text = jb.disprove(statement(sides), "printed", INSTANCE, SIZE).rocq()
    assert re.search(r"Lemma way_\d+ : x_0 < x_1\.", text)


def test_names_of_functions_and_of_entries_stay_apart():
    def x(i):
        return jnp.exp(i["x"][0])

    def way(i):
        return jnp.where(x(i) < 7, x(i) + 1, 0.0)

    sides = lambda i, size: jb.Sides(way(i), {"printed": i["x"][1], "control": 0.0})
    text = jb.disprove(statement(sides), "printed", INSTANCE, SIZE).rocq()
    names = re.findall(r"^(?:Definition|Lemma) (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert "Definition x_1 : R := 3602879701896397" in text


def test_what_has_no_translation_is_named():
    def sides(i, size):
        return jb.Sides(jax.scipy.special.erf(i["x"][0]), {"printed": -1.0, "control": 0.0})

    certificate = jb.disprove(statement(sides), "printed", INSTANCE, SIZE)
    assert certificate.word == "disproved"
    says = r"no Rocq file for form='printed' in mine.claim: .*'erf'"
    with pytest.raises(ValueError, match=says):
        certificate.rocq()


def test_too_many_operations_are_refused_with_both_numbers():
    certificate = jb.disprove(CLAIM, "printed", INSTANCE, SIZE)
    with pytest.raises(ValueError, match=r"would have \d+ operations .*operations=3 is the limit"):
        certificate.rocq(operations=3)


def test_what_is_not_disproved_has_no_file():
    true = statement(lambda i, size: jb.Sides(0.0, {"printed": i["x"][0], "control": -1.0}))
    certificate = jb.disprove(true, "printed", INSTANCE, SIZE)
    with pytest.raises(ValueError, match=r"expected .disproved"):
        certificate.rocq()


def test_a_certificate_travels_without_its_statement():
    certificate = jb.disprove(CLAIM, "printed", INSTANCE, SIZE)
    assert "theorem" not in certificate.to_json()
    there = pickle.loads(pickle.dumps(certificate))
    assert there == certificate
    with pytest.raises(ValueError, match="contains no instance"):
        there.rocq()


def test_the_stated_error_is_part_of_the_claim():
    def sides(i, size):
        return jb.Sides(i["x"][1], {"printed": i["x"][0], "control": 0.0}, error=0.125)

    text = jb.disprove(statement(sides), "printed", INSTANCE, SIZE).rocq()
    assert "Definition error : R := 1 / 8." in text
    assert "Theorem claim_is_false : lhs > rhs + error." in text


OWN = """
import jax.numpy as jnp, jaxbounds as jb

def evaluate(i, size):
    return jb.Sides(jnp.sum(jnp.exp(i["x"])), {"printed": jnp.exp(jnp.sum(i["x"])), "control": 0.0})

def below(i, size):
    left = 1 / (1 + jnp.exp(-i["x"][0]))
    return jb.Sides(left, {"printed": jnp.ones(()), "control": 0.0})

BAD = jb.Counterexample(instance={"x": [0.0, 0.5]}, size={"n": 2}, ratio=1.6065306597126334)
BOX = jb.Domain(name="|t| <= 4", size={"n": 1}, lower=(-4.0,), upper=(4.0,),
                chart=lambda p, size: {"x": p})
KEYS = {"kind": "inequality", "sample": lambda key, size: {"x": jnp.zeros(size["n"])},
        "control": "0"}
PAPER = jb.Paper(id="own", title="A title of my own", statements=(
    jb.Statement(id="own.sum", label="Lemma 1", formula="sum exp x <= exp sum x", **KEYS,
        evaluate=evaluate, sizes=({"n": 2},),
        forms=(jb.Form(name="printed", expected="fails", note="Two terms.", counterexample=BAD),)),
    jb.Statement(id="own.one", label="Lemma 2", formula="sigmoid <= 1", evaluate=below, **KEYS,
        sizes=({"n": 1},), forms=(jb.Form(name="printed", domains=(BOX,)),)),
))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the command writes of one's own paper: a disproof and a proof on a box."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(OWN)
    given = ["--import", str(folder / "own.py"), "--out", str(folder / "out"), "--jobs", "1"]
    assert main(["certify", "own", *given, "--rocq", str(folder / "rocq")]) == 0
    return {file.name: file.read_text() for file in sorted((folder / "rocq").glob("*.v"))}


def test_the_command_writes_a_file_for_each(files):
    assert list(files) == ["own_one_printed_t_4.v", "own_sum_printed.v"]
    assert "A title of my own; Lemma 1" in files["own_sum_printed.v"]
    assert "Hypothesis t0_in : -4 <= t0 <= 4." in files["own_one_printed_t_4.v"]


def test_refusals_are_printed(tmp_path, capsys):
    (tmp_path / "own.py").write_text(OWN)
    given = ["--import", str(tmp_path / "own.py"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    options = ["--rocq", str(tmp_path / "rocq"), "--operations", "2"]
    assert main(["certify", "own.sum", *given, *options]) == 0
    assert "operations=2 is the limit" in " ".join(capsys.readouterr().out.split())
    assert main(["certify", "own.sum", *given, "--rocq", "x", "--operations", "0"]) == 2


def test_it_stands_beside_the_witness(tmp_path, capsys):
    (tmp_path / "own.py").write_text(OWN)
    given = ["--import", str(tmp_path / "own.py"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    main(["verify", "own.sum", *given, "--certify"])
    folder = next(p.parent for p in tmp_path.rglob("verdicts.json"))
    (verdict,) = json.loads((folder / "verdicts.json").read_text())
    assert verdict["evidence"] == "disproved"
    assert (folder / "counterexamples" / "own_sum_printed.v").is_file()
    assert 'href="counterexamples/own_sum_printed.v"' in (folder / "report.html").read_text()


# With the kernel


def accepted(text, folder):
    """Whether `coqc` accepts a file, and what it prints."""
    (folder / "claim.v").write_text(text)
    run = subprocess.run(
        ["coqc", "claim.v"], cwd=folder, capture_output=True, text=True, check=False
    )
    return run.returncode == 0, run.stdout + run.stderr


KNOWN = (
    "ClassicalDedekindReals.", "Classical_Prop.classic", "FunctionalExtensionality.",
    "PrimInt63.", "Uint63.", "PrimFloat.", "FloatAxioms.",
)  # fmt: skip
"""The axioms of the reals, and of primitive integers and floats."""


def without_assumptions(text):
    """Printing them takes longer than all else."""
    return re.sub(r"Print Assumptions \w+\.", "", text)


@needs_coqc
def test_the_kernel_accepts_it_and_says_on_what_it_rests(text, tmp_path):
    good, said = accepted(text, tmp_path)
    assert good, said
    axioms = re.findall(r"^([\w.]+)\s*:", said, re.MULTILINE)
    named = [a for a in axioms if a != "Axioms"]
    assert named and all(a.startswith(KNOWN) for a in named)


@needs_coqc
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Definition A_0_0 : R := 3.", "Definition A_0_0 : R := -3."),
        ("Definition A_1_1 : R := 1.", "Definition A_1_1 : R := 2."),
        ("claim_is_false : lhs > rhs", "claim_is_false : rhs > lhs"),
        ("Definition lhs : R := ", "Definition lhs : R := - "),
        ("_low : ", "_low : 1 + "),
        ("x_1 >= 0", "x_1 <= 0"),
    ],
)
def test_the_kernel_rejects_what_was_altered(before, after, text, tmp_path):
    altered = without_assumptions(text).replace(before, after)
    assert altered != without_assumptions(text)
    good, said = accepted(altered, tmp_path)
    assert not good
    assert "Error" in said


@needs_coqc
def test_the_kernel_accepts_what_the_command_wrote(files, tmp_path):
    for text in files.values():
        good, said = accepted(without_assumptions(text), tmp_path)
        assert good, said


@needs_coqc
def test_the_kernel_rejects_a_box_on_which_it_is_false(files, tmp_path):
    box = without_assumptions(files["own_one_printed_t_4.v"])
    worse = box.replace("<= 1.", "<= 1 / 2.")
    assert worse != box
    assert not accepted(worse, tmp_path)[0]
