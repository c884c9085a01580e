"""What a sweep leaves behind: steps, divergence, and shares among zeros."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import shares
from jaxbounds.experiments.sweeps.programs import advancing, starting
from jaxbounds.experiments.sweeps.shares import OnlyAShare, Share, dealt, mine, only, own, whole
from jaxbounds.experiments.sweeps.swept import among, joined, lanes_of, nothing, swept_of

NAN, INF = np.nan, np.inf


def records(*values, **more):
    return {"loss": np.array(values, float)} | more


def test_records_one_after_the_other():
    parts = [records([1, 2], [3, 4]), records([5], [6])]
    found = joined(parts)
    assert found["loss"].tolist() == [[1, 2, 5], [3, 4, 6]] and list(found) == ["loss"]
    assert joined([]) == {}


def test_the_first_step_with_a_metric_that_is_not_finite():
    loss = [[1, 2, 3], [NAN, 2, 3], [1, INF, NAN], [1, 2, -INF]]
    count = np.ones((4, 3), int)
    found = swept_of({"w": np.zeros((4, 2))}, [records(*loss, count=count)], 2, 6)
    assert found.steps.tolist() == [2, 4, 6] and found.diverged.tolist() == [-1, 2, 4, 6]
    # Of several metrics the earliest, of several entries any.
    wide = np.ones((4, 3, 2))
    wide[0, 1, 1] = NAN
    wide[3, 0, 0] = INF
    found = swept_of({"w": np.zeros((4, 2))}, [records(*loss, wide=wide)], 2, 6)
    assert found.diverged.tolist() == [4, 2, 4, 2]
    none = swept_of({"w": np.zeros((4, 2))}, [], 2, 0)
    assert none.steps.tolist() == [] and none.diverged.tolist() == [-1] * 4 and none.metrics == {}


def test_lanes_of_a_share_stand_among_zeros():
    part = swept_of({"w": np.ones((2, 3))}, [records([1, NAN], [2, 3])], 1, 2)
    found = among(part, range(1, 3), 5)
    assert found.state["w"].tolist() == np.outer([0, 1, 1, 0, 0], np.ones(3)).tolist()
    assert found.metrics["loss"][:, 0].tolist() == [0, 1, 2, 0, 0]
    assert found.diverged.tolist() == [0, 2, -1, 0, 0] and found.steps.tolist() == [1, 2]


def test_a_share_without_lanes_has_the_shapes_of_a_sweep():
    start = lambda lane: {"w": jnp.zeros((2, 3)), "key": lane["key"]}
    measure = lambda lane, state: {"loss": jnp.sum(state["w"]), "w": state["w"][0]}
    lanes, lengths = lanes_of(jax.random.split(jax.random.key(0), 4), rate=np.ones(2, np.float32))
    assert lengths == {"rate": 2, "seed": 4} and lanes["rate"].tolist() == [1] * 8
    found = nothing(start, measure, lanes, 7, 2)
    assert found.steps.tolist() == [2, 4, 6] and found.diverged.tolist() == [-1] * 8
    assert found.metrics["loss"].shape == (8, 3) and found.metrics["w"].shape == (8, 3, 3)
    assert found.state["w"].shape == (8, 2, 3) and found.state["key"].dtype == lanes["key"].dtype
    assert all(float(np.sum(leaf)) == 0 for leaf in jax.tree.leaves(found.metrics))


START = lambda lane: jnp.float32(0) * lane
STEP = lambda lane, state: state + lane
MEASURE = lambda lane, state: {"now": state, "twice": jnp.stack([state, 2 * state])}
LANES = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize("every", [1, 2])
def test_records_are_taken_every_so_many_steps(every):
    carry = starting(START, None)(LANES)
    assert carry[1] == ()
    run = advancing(STEP, MEASURE, None, every, 4)
    (state, over), found = run(LANES, carry, np.int32(3))
    assert state.tolist() == (3 * every * LANES).tolist() and over == ()
    # Lanes first, then records; there is room for four, and the last is empty.
    now = np.outer(LANES, every * np.array([1, 2, 3, 0]))
    assert found["now"].tolist() == now.tolist()
    assert found["twice"][:, :, 1].tolist() == (2 * now).tolist()


def test_finished_lanes_are_frozen():
    finished = lambda state: state >= 4
    carry = starting(START, finished)(LANES)
    assert carry[1].tolist() == [False] * 3
    run = advancing(STEP, MEASURE, finished, 1, 5)
    (state, over), found = run(LANES, carry, np.int32(5))
    # By ones to 4, by twos to 4, by threes to 6, and then no farther.
    assert state.tolist() == [4, 4, 6] and over.tolist() == [True] * 3
    assert found["now"].tolist() == [[1, 2, 3, 4, 4], [2, 4, 4, 4, 4], [3, 6, 6, 6, 6]]
    (again, _), _ = run(LANES, (state, over), np.int32(2))
    assert again.tolist() == [4, 4, 6]
    # Once finished it stays so, whatever its state would say.
    held, _ = run(LANES, (jnp.zeros(3), jnp.array([True, False, False])), np.int32(1))
    assert held[0].tolist() == [0, 2, 3] and held[1].tolist() == [True, False, False]


@pytest.mark.parametrize("text, share", [("3/16", (3, 16)), ("1/1", (1, 1)), ("2/2", (2, 2))])
def test_shares_in_words(text, share):
    found = Share.read(text)
    assert (found.index, found.count) == share and str(found) == text


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/", "/2", "a/2", "1/b", "-1/2", "1/0", ""])
def test_what_is_no_share(text):
    with pytest.raises(ValueError, match="a shard is I/N"):
        Share.read(text)


def test_shares_are_ordered_and_do_not_change():
    assert Share(1, 3) < Share(2, 3)
    with pytest.raises(AttributeError):
        Share(1, 3).index = 2


def dealt_to(index, count, *lanes):
    with only(Share(index, count)):
        assert dealt()
        return [(r.start, r.stop) for r in (own(n) for n in lanes)]


def test_lanes_are_dealt_out_by_hand():
    assert own(5) == range(5) and not dealt()
    # Seven lanes over three shares, as 2, 2 and 3; then one lane, to one of those that got two.
    assert [dealt_to(i, 3, 7, 1) for i in (1, 2, 3)] == [
        [(0, 2), (0, 1)], [(2, 4), (0, 0)], [(4, 7), (0, 0)],
    ]  # fmt: skip
    # One lane after the other goes round.
    assert [dealt_to(i, 2, 1, 1, 1) for i in (1, 2)] == [
        [(0, 0), (0, 1), (0, 0)], [(0, 1), (0, 0), (0, 1)],
    ]  # fmt: skip


def test_pieces_that_are_no_lanes():
    assert mine() and whole() is None
    with only(Share(1, 2)):
        assert [mine() for _ in range(4)] == [False, True, False, True]
        with pytest.raises(OnlyAShare):
            whole()
    assert not dealt()


def test_processes_share_lanes_alone(monkeypatch):
    monkeypatch.setattr(shares.jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="--shards"):
        mine()
