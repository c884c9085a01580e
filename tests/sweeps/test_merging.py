"""Checkpoints of shares put together, and what is refused; small arrays in a folder."""

import numpy as np
import pytest

from jaxbounds.cli import main
from jaxbounds.experiments.sweeps import merge_sweeps, sweep
from jaxbounds.experiments.sweeps.checkpoint import Checkpoints, leaves_of, with_leaves
from jaxbounds.experiments.sweeps.merging import _as_long_as, merge_parts


def saved(folder, part=None, step=4, mark="m", rows=None, records=2, name="sweep"):
    """One share's lanes, numbered by the lane: state, metrics of so many records."""
    first, end, _ = part or (0, rows, rows)
    lane = np.arange(first, end, dtype=float)
    kept = Checkpoints(folder / name, mark, part)
    metrics = {"loss": lane[:, None] + np.arange(records) / 10}
    kept.save(step, [lane, np.stack([lane, -lane], axis=1)], 0, metrics)
    return folder


def merged(tmp_path, *shares, mark="m"):
    merge_parts(list(shares), tmp_path / "all")
    return Checkpoints(tmp_path / "all" / "sweep", mark).load()


def test_lanes_in_their_order(tmp_path):
    one = saved(tmp_path / "1", (2, 5, 5))
    two = saved(tmp_path / "2", (0, 2, 5))
    step, state, (chunk,) = merged(tmp_path, one, two)
    assert step == 4 and list(chunk) == ["loss"]
    assert state[0].tolist() == [0, 1, 2, 3, 4] and state[1][:, 1].tolist() == [0, -1, -2, -3, -4]
    np.testing.assert_allclose(chunk["loss"], np.arange(5)[:, None] + [[0, 0.1]])


def test_lanes_that_rested_are_measured_the_same_ever_after(tmp_path):
    early = saved(tmp_path / "1", (0, 1, 2), step=2, records=1)
    late = saved(tmp_path / "2", (1, 2, 2), step=6, records=3)
    step, _, (chunk,) = merged(tmp_path, early, late)
    assert step == 6
    np.testing.assert_allclose(chunk["loss"], [[0, 0, 0], [1, 1.1, 1.2]])
    same = _as_long_as({"a": np.ones((2, 3, 4))}, 5)
    assert same["a"].shape == (2, 5, 4)


@pytest.mark.parametrize(
    "parts, words",
    [
        ([(0, 2, 5), (3, 5, 5)], "2 to 2 of 5 are in no shard"),
        ([(0, 3, 5), (2, 5, 5)], "2 to 2 of 5 are in two shards"),
        ([(1, 5, 5)], "0 to 0 of 5 are in no shard"),
        ([(0, 3, 5)], "3 to 4 of 5 are in no shard"),
        ([(0, 2, 5), (2, 5, 6)], "belong to different runs"),
    ],
)
def test_lanes_that_make_no_whole(parts, words, tmp_path):
    shares = [saved(tmp_path / str(i), part) for i, part in enumerate(parts)]
    with pytest.raises(ValueError, match=words):
        merged(tmp_path, *shares)


def test_shares_of_different_runs(tmp_path):
    one, two = saved(tmp_path / "1", (0, 2, 4)), saved(tmp_path / "2", (2, 4, 4), mark="other")
    with pytest.raises(ValueError, match="different runs"):
        merged(tmp_path, one, two)


def test_what_one_share_computed_whole_is_copied(tmp_path):
    whole = saved(tmp_path / "1", rows=3)
    np.savez(tmp_path / "1" / "alone.npz", x=np.arange(3))
    (tmp_path / "1" / "sweep" / "notes.npz").write_bytes(b"of the user")
    (tmp_path / "2").mkdir()
    step, state, _ = merged(tmp_path, whole, tmp_path / "2")
    assert step == 4 and state[0].tolist() == [0, 1, 2]
    assert np.load(tmp_path / "all" / "alone.npz")["x"].tolist() == [0, 1, 2]
    again = saved(tmp_path / "3", rows=3)
    with pytest.raises(ValueError, match="in two shards"):
        merge_parts([whole, again], tmp_path / "both")


def test_a_sweep_that_is_whole_in_one_share_and_cut_in_another(tmp_path):
    with pytest.raises(ValueError, match="in two shards"):
        merged(tmp_path, saved(tmp_path / "1", rows=3), saved(tmp_path / "2", (0, 3, 3)))


def test_an_earlier_merge_leaves_nothing_behind(tmp_path):
    place = Checkpoints(tmp_path / "all" / "sweep", "m")
    place.save(9, [np.zeros(1)], 5, {"loss": np.zeros((1, 1))})
    step, _, chunks = merged(tmp_path, saved(tmp_path / "1", (0, 2, 2)))
    assert step == 4 and len(chunks) == 1


def test_leaves_and_back():
    import jax

    tree = {"k": jax.random.split(jax.random.key(3), 2), "x": np.arange(2.0)}
    leaves = leaves_of(tree)
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves) and leaves[0].dtype == np.uint32
    back = with_leaves(tree, leaves)
    assert back["k"].dtype == tree["k"].dtype and back["x"] is leaves[1]
    assert (jax.random.key_data(back["k"]) == jax.random.key_data(tree["k"])).all()
    with pytest.raises(ValueError):
        with_leaves(tree, leaves[:1])


def chunk(start=0):
    return {"loss": np.full((2, 1), float(start))}


def written(kept, name, **entries):
    kept._write(name, {key.replace("_", "/"): np.asarray(value) for key, value in entries.items()})


def test_what_was_kept_comes_back(tmp_path):
    kept = Checkpoints(tmp_path / "s", "m", (1, 3, 9))
    assert kept.load() is None
    for first, until in ((0, 2), (2, 4)):
        kept.save(until, [np.arange(3.0), np.full(2, until)], first, chunk(first))
    step, state, chunks = kept.load()
    assert step == 4 and state[0].tolist() == [0, 1, 2] and state[1].tolist() == [4, 4]
    assert [float(c["loss"][0, 0]) for c in chunks] == [0, 2]
    for other in (None, (1, 3, 8)):
        with pytest.raises(ValueError, match="other lanes"):
            Checkpoints(tmp_path / "s", "m", other).load()
    with pytest.raises(ValueError, match="another run"):
        Checkpoints(tmp_path / "s", "n", (1, 3, 9)).load()
    kept.clear()
    assert kept.load() is None and not list((tmp_path / "s").glob("[!.]*"))


def test_more_than_eleven_leaves_keep_their_order(tmp_path):
    kept = Checkpoints(tmp_path / "s", "m")
    kept.save(1, [np.full(1, i) for i in range(12)], 0, chunk())
    assert [int(leaf[0]) for leaf in kept.load()[1]] == list(range(12))


def test_a_chunk_that_was_written_before_its_state_is_not_read(tmp_path):
    kept = Checkpoints(tmp_path / "s", "m")
    kept.save(2, [np.zeros(1)], 0, chunk())
    written(kept, "chunk-000000002.npz", metric_loss=np.zeros((2, 1)), until=4)
    assert len(kept.load()[2]) == 1
    # One that a state is said to follow, and that is not there.
    written(kept, "state.npz", leaf000000=np.zeros(1), step=6, ended=True)
    with pytest.raises(ValueError, match="lacks the metrics from step 4 to 6"):
        kept.load()
    written(kept, "chunk-000000005.npz", metric_loss=np.zeros((2, 1)), until=6)
    with pytest.raises(ValueError, match="lacks the metrics from step 4 on"):
        kept.load()


def test_of_several_processes_the_first_writes(tmp_path, monkeypatch):
    from jaxbounds.experiments.sweeps import checkpoint

    kept = Checkpoints(tmp_path / "s", "m")
    kept.save(2, [np.zeros(1)], 0, chunk())
    monkeypatch.setattr(checkpoint.jax, "process_index", lambda: 1)
    kept.save(4, [np.ones(1)], 2, chunk())
    kept.clear()
    assert kept.load()[0] == 2


LANES = {"a": np.arange(1, 8, dtype=np.float32)}


COUNT = (lambda lane: 0 * lane["a"], lambda lane, state: state + lane["a"])


def swept(**more):
    return sweep(*COUNT, lambda lane, state: {"sum": state}, LANES, 6, every=2, **more)


def test_machines_without_a_common_disk_each_keep_a_share(tmp_path, capsys):
    for index in (1, 2, 3):
        part = swept(folder=tmp_path / str(index), share=f"{index}/3", chunk=2)
        assert np.count_nonzero(part.state) in (2, 3)
    folders = [str(tmp_path / str(index)) for index in (3, 1, 2)]
    foreign = tmp_path / "1" / "mine.npz"
    np.savez(foreign, a=np.ones(2))
    for missing in (folders[:2], folders[1:], [*folders, folders[0]]):
        assert main(["merge", *missing, "--out", str(tmp_path / "all")]) == 2
        assert "shard" in capsys.readouterr().err and not (tmp_path / "all").exists()
    assert main(["merge", *folders, "--out", str(tmp_path / "all")]) == 0
    assert "up to step 6" in capsys.readouterr().out
    whole, merged_ = swept(), swept(folder=tmp_path / "all", resume=True)
    assert merged_.state.tobytes() == np.asarray(whole.state).tobytes()
    assert merged_.metrics["sum"].tobytes() == whole.metrics["sum"].tobytes()
    assert not (tmp_path / "all" / "mine.npz").exists() and foreign.exists()
    assert main(["merge", *folders, "--out", str(tmp_path / "all")]) == 2
    assert "holds a sweep" in capsys.readouterr().err


def test_shares_of_other_sweeps_and_shares_that_are_none(tmp_path):
    swept(folder=tmp_path / "1", share="1/2")
    sweep(*COUNT, lambda lane, state: {"sum": state}, LANES, 4, folder=tmp_path / "2", share="2/2")
    with pytest.raises(ValueError, match="belong to different runs"):
        merge_sweeps([tmp_path / "1", tmp_path / "2"], tmp_path / "all")
    swept(folder=tmp_path / "whole")
    with pytest.raises(ValueError, match="holds no share of a sweep"):
        merge_sweeps([tmp_path / "whole"], tmp_path / "all")
    for share in ("0/2", "3/2", "half", "1/0", "/"):
        with pytest.raises(ValueError, match="1 <= I <= N"):
            swept(share=share)
