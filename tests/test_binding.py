"""Verdicts are about the functions that people call: plant a mistake in one, and a verdict changes.

The replaced function is the one that users import, wherever the package holds it.
"""

import importlib
import inspect
import pkgutil

import jax
import numpy as np
import pytest

import jaxbounds
from jaxbounds.falsification import bindings, is_bound_to, planted
from jaxbounds.falsification.binding import off
from jaxbounds.papers import PAPERS, load_papers
from jaxbounds.statements import Form, Sides, Statement, full_name

STATEMENTS = [statement for paper in load_papers() for statement in paper.statements]


JUDGED = {full_name(f): f for statement in STATEMENTS for f in statement.judges}


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory):
    """Compiled programs on disk: planting drops those in memory, each time."""
    names = ("compilation_cache_dir", "persistent_cache_min_compile_time_secs")
    before = {f"jax_{name}": jax.config.values[f"jax_{name}"] for name in names}
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("programs")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a statement with fits over long runs takes minutes for each function
@pytest.mark.parametrize("factor", [1.25, 0.8])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_a_mistake_in_a_judged_function_is_noticed(statement, factor):
    """By the statement itself; a factor leaves a rate as it is, so another statement may see it."""
    answers = bindings(statement, statement.judges, factor=factor)
    for function in [f for f, seen in zip(statement.judges, answers) if not seen]:
        others = [s for s in STATEMENTS if s is not statement and function in s.judges]
        assert any(is_bound_to(s, function, factor=factor) for s in others), full_name(function)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_every_statement_judges_something(statement):
    assert statement.judges


def length(x):
    """A function of this module's own, for the statement below."""
    return np.sqrt(2.0) * 0.0 + (x @ x) ** 0.5


def other(x):
    """Of no consequence below."""
    return (x @ x) ** 0.5


def count(d):
    """A Python number."""
    return d - 1


def _mine(evaluate, **options):
    return Statement(
        id="mine.one", label="1", formula="|x| <= 2 |x|", kind="inequality", evaluate=evaluate,
        judges=(length,), sample=lambda key, size: {"x": jax.random.normal(key, (size["d"],))},
        sizes=({"d": 3},), forms=(Form(name="printed"),), control="half", **options,
    )  # fmt: skip


def test_a_statement_that_calls_its_function_notices_and_one_with_a_copy_does_not():
    def calls(instance, size):
        x = instance["x"]
        return Sides((x @ x) ** 0.5, {"printed": 2 * length(x), "control": length(x) / 2})

    def copies(instance, size):
        x = instance["x"]
        norm = (x @ x) ** 0.5
        return Sides(norm, {"printed": 2 * norm, "control": norm / 2})

    kept = length
    assert is_bound_to(_mine(calls), length) and is_bound_to(_mine(calls), length, factor=0.8)
    assert not is_bound_to(_mine(copies), length)
    assert length is kept
    with planted(length, 1.25):
        assert length is not kept and length(np.array([3.0, 4.0])) == 6.25
    assert length is kept


def test_functions_off_side_by_side_are_told_apart():
    def calls(instance, size):
        x = instance["x"]
        bound = length(x) * (2 + 0 * other(x))
        return Sides((x @ x) ** 0.5, {"printed": bound, "control": bound / 4})

    assert bindings(_mine(calls), [length, other]) == [True, False]


def test_a_function_whose_value_the_trace_needs_is_planted_alone():
    def calls(instance, size):
        x = instance["x"]
        bound = count(size["d"]) * length(x)
        return Sides((x @ x) ** 0.5, {"printed": bound, "control": bound / 10 ** len(range(2))})

    assert bindings(_mine(calls), [length, count]) == [True, True]


def test_on_the_host():
    def calls(instance, size):
        x = np.asarray(instance["x"])
        return Sides(length(x), {"printed": 2 * np.linalg.norm(x), "control": 0.0})

    assert is_bound_to(_mine(calls, host=True), length)


def test_what_is_off():
    assert off(2.0, 1.25) == 2.5 and off(3, 1.25) == 4 and off(True, 1.25) is False
    assert off({"a": 2.0, "n": 3}, 1.25) == {"a": 2.5, "n": 3}
    assert off(lambda x: 2.0 * x, 0.8)(5.0) == 8.0
    with pytest.raises(TypeError, match="nothing in a str"):
        off("words", 1.25)


PART = "a part of functions that are judged, run with them"
DRAWN = "draws or enumerates data: what is judged takes any"
READ = "reads, writes or looks up"
SHOWN = "presentation"
REFUSES = "refuses bad input; its tests say what it raises"
LEARNING = "training, not a claim of the paper; tested against an independent oracle"
REASONS = {
    PART: """
        multihead.bounds: two_block_norm
        multihead.calculus: cumulants third_cumulant loss_hessian_parts loss_hessian_extremes
        multihead.certificate: realized_step
        multihead.descent: reach largest_step short_steps
        multihead.model: head_norm
        multihead.runs: training_set start_of target_of horizon head_sizes setting gradient_descent
        multihead.runs: sizes_along within average_over largest_until
        multihead.stability: kept
        multihead.tied: tied_margins per_head tied tied_norm tied_distance
        seqlength.network_bound: map_coverings
        smapprox.attack: along_ray blocks_by_layer
        smapprox.certified_machine: layer_norms slack state_error
        smapprox.correction: THIRDS DYADIC
        smapprox.execute: encode simulated decide memory_needed exact_states
        smapprox.structure: read blocks
        smapprox.look_up: number matches input_table in_input through run
        smapprox.teacher_forcing: every_step every_step_by_look_up last_visits verify
        smapprox.feedforward: straight_through_feedforward circuit_layer network_depth
        smapprox.machines: total
        smapprox.straight_through: relu maximisers hard_max
        smapprox.transformer: HARD
        qstr.code_rnn: lloyd_max
        qstr.gated: gru_cell lstm_cell
        qstr.heads: revealed_images
        qstr.interpolator: balance
        qstr.layers: uniform uniform_fan_in dense
        qstr.relu_networks: layer
        qstr.transformer: multi_head_attention
    """,
    DRAWN: """
        multihead.grammar: draw_sentences
        seqlength.sparse_majority: draw_task draw_bits
        smapprox.circuits: all_inputs random_circuit identity_chain
        smapprox.finite_classes: draw
        smapprox.machine_library: parity equal_blocks palindrome increment unary_addition
        smapprox.machine_library: divisible_by_three balanced_parentheses busy_beaver two_way_walker
        smapprox.machines: words
        qstr.data: sample_positions
        qstr.encodings: published_encoding_dimension rademacher_encodings greedy_signs
        qstr.encodings: greedy_encodings
        qstr.links: sphere
    """,
    READ: """
        multihead.roberta_files: hugging_face_name read_shape load_roberta draw_classifier
        multihead.roberta_files: save_roberta
        multihead.text: read_tsv read_parquet read_snippets read_text
        multihead.tokens: words_of word_table byte_pairs stored_tokenizer to_arrays
        seqlength.extract_norms: from_nnx
        smapprox.machine_formats: load_machine
        qstr.architectures: register build
        qstr.links: find_link
    """,
    SHOWN: """
        seqlength.certificate: certificate_text
        seqlength.comparisons: compare
        smapprox.readout: show layer_equations side_by_side
        qstr.architectures: outline
    """,
    REFUSES: """
        multihead.data: validate_data
        seqlength.norms: require_norm
        qstr.architectures: refuse_unknown
    """,
    LEARNING: """
        multihead.roberta: init_roberta recut_heads prune_heads
        smapprox.learned_table: task outputs places soft_table read_table outputs_by_look_up
    """,
}
NOT_JUDGED = {
    f"jaxbounds.{module}.{name}": reason
    for reason, lines in REASONS.items()
    for module, names in (line.split(":") for line in lines.split("\n") if line.strip())
    for module, name in ((module.strip(), name) for name in names.split())
}
"""Public names of the papers' rooms that no statement judges, each with the reason."""


def _public_functions():
    for paper in PAPERS:
        room = importlib.import_module(f"jaxbounds.{paper}")
        for found in pkgutil.walk_packages(room.__path__, f"jaxbounds.{paper}."):
            if found.name.split(".")[2] in ("statements", "experiments"):
                continue
            module = importlib.import_module(found.name)
            for name, function in vars(module).items():
                if name.startswith("_") or not callable(function) or inspect.isclass(function):
                    continue
                if getattr(function, "__module__", "") == module.__name__:
                    yield f"{module.__name__}.{name}"


def test_every_public_function_is_judged_or_says_why_not():
    free = {name for name in _public_functions() if name not in JUDGED}
    assert sorted(free - set(NOT_JUDGED)) == []
    assert sorted(set(NOT_JUDGED) - free) == []


def test_the_public_face_is_lazy_and_complete():
    for name in jaxbounds.__all__:
        assert callable(getattr(jaxbounds, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jaxbounds.nothing  # noqa: B018
    assert (
        jaxbounds.falsification.falsify
        is importlib.import_module("jaxbounds.falsification.engine").falsify
    )
    assert set(jaxbounds.__all__) <= set(dir(jaxbounds))
