"""Runs replace and remove only files that they wrote; two runs share no folder."""

import json
import os
import threading
import time

import pytest

from jaxbounds.ground import occupied
from jaxbounds.ground.folders import MARK, Marked, set_aside
from jaxbounds.ground.occupied import take
from jaxbounds.ground.readers import Damaged, json_in


def content(folder):
    """The bytes of each file below a folder."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_run_removes_what_it_wrote_and_nothing_else(tmp_path):
    (tmp_path / "worst").mkdir()
    (tmp_path / "worst" / "mine.npz").write_bytes(b"mine")
    run = Marked(tmp_path)
    run.write("worst/a.npz", b"a")
    run.write("b.txt", "b")
    again = Marked(tmp_path)  # another process
    assert again.owns("worst/a.npz") and not again.owns("worst/mine.npz")
    assert again.remove("worst/a.npz") and not again.remove("worst/mine.npz")
    assert not again.remove("nothing")
    assert set(content(tmp_path)) == {MARK, "b.txt", "worst/mine.npz"}


def test_a_file_that_another_run_writes_meanwhile_is_not_the_users(tmp_path):
    first, second = Marked(tmp_path), Marked(tmp_path)
    first.write("a.txt", "a")
    assert second.foreign(["a.txt", "b.txt"]) == []
    first.write("b.txt", "b")
    (tmp_path / "c.txt").write_text("mine")
    assert second.foreign(["a.txt", "b.txt", "c.txt"]) == ["c.txt"]


def test_what_was_changed_since_is_not_the_runs_any_more(tmp_path, capsys):
    run = Marked(tmp_path)
    run.write("b.txt", "b")
    (tmp_path / "b.txt").write_text("notes of mine")
    assert not run.owns("b.txt") and not run.remove("b.txt")
    run.write("b.txt", "new")
    assert (tmp_path / "b.txt").read_text() == "new"
    assert (tmp_path / "b.aside-1.txt").read_text() == "notes of mine"
    assert f"{tmp_path / 'b.txt'} was changed" in capsys.readouterr().err
    assert run.owns("b.txt") and not run.owns("b.aside-1.txt")


@pytest.mark.parametrize("where", ["file", "folder", "mark", "dangling"])
def test_links_lead_nowhere(where, tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "worst").mkdir(parents=True)
    (outside / "worst" / "a.npz").write_bytes(b"far")
    inside.mkdir()
    if where == "file":
        (inside / "worst").mkdir()
        (inside / "worst" / "a.npz").symlink_to(outside / "worst" / "a.npz")
    elif where == "folder":
        (inside / "worst").symlink_to(outside / "worst")
    elif where == "dangling":
        (inside / "worst").symlink_to(tmp_path / "nowhere")
    else:
        Marked(outside).write("x", b"x")
        (inside / MARK).symlink_to(outside / MARK)
    before = content(outside)
    run = Marked(inside)
    for act in (lambda: run.write("worst/a.npz", b"new"), lambda: run.remove("worst/a.npz")):
        try:
            act()
        except ValueError as problem:
            assert "is a link" in str(problem)
    with pytest.raises(ValueError, match="is a link"):
        Marked(inside).write("worst/a.npz", b"new")
    assert content(outside) == before and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", ""])
def test_names_stay_inside(name, tmp_path):
    with pytest.raises(ValueError, match="leads out"):
        Marked(tmp_path / "f").write(name, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_mark_of_somebody_else_is_no_mark(tmp_path):
    (tmp_path / MARK).write_text("mine")
    with pytest.raises(ValueError, match="list of a run's files"):
        Marked(tmp_path).write("a", b"a")
    assert content(tmp_path) == {MARK: b"mine"}


def test_a_mark_that_names_foreign_files_owns_none_of_them(tmp_path):
    run = Marked(tmp_path)
    run.write("a", b"a")
    (tmp_path / "b").write_bytes(b"b")
    with (tmp_path / MARK).open("a") as file:
        file.write('{"name": "b", "sha256": "0"}\n{"name": "../c", "sha256": "0"}\n[]\n{"na')
    run = Marked(tmp_path)
    assert run.owns("a") and not run.owns("b") and not run.remove("b")


def test_files_that_grow_are_known_by_their_first_line(tmp_path):
    run = Marked(tmp_path)
    run.begin_lines("j.jsonl", '{"head": 1}')
    run.add_line("j.jsonl", "1")
    assert (tmp_path / "j.jsonl").read_text() == '{"head": 1}\n1\n'
    assert Marked(tmp_path).owns("j.jsonl")
    (tmp_path / "j.jsonl").write_text("something\nelse\n")
    assert not Marked(tmp_path).owns("j.jsonl")


def test_sweeping_up_leaves_what_is_not_of_a_run(tmp_path):
    run = Marked(tmp_path)
    run.write("u/a", b"a")
    run.write("u/deep/b", b"b")
    jobs = run.scratch("u/jobs")
    jobs.mkdir()
    (jobs / "log").write_text("log")
    (tmp_path / "u" / "mine").write_bytes(b"mine")
    run.sweep_up("u")
    assert set(content(tmp_path)) == {MARK, "u/mine"}
    assert "u/" not in (tmp_path / MARK).read_text()


def test_set_aside_under_the_next_free_name(tmp_path):
    for _ in range(2):
        (tmp_path / "a.json").write_text("x")
        set_aside(tmp_path / "a.json", "is damaged")
    assert sorted(content(tmp_path)) == ["a.aside-1.json", "a.aside-2.json"]


def test_a_folder_in_the_place_of_a_file_of_the_runs_is_set_aside(tmp_path, capsys):
    run = Marked(tmp_path)
    run.write("ours.json", "[1]")
    (tmp_path / "ours.json").unlink()
    (tmp_path / "ours.json").mkdir()
    (tmp_path / "ours.json/mine").write_text("x")
    assert run.read("ours.json", lambda path: json_in(path, of=list)) is None
    assert (tmp_path / "ours.aside-1.json/mine").read_text() == "x"
    assert "no plain file" in capsys.readouterr().err


def test_a_damaged_file_is_set_aside_where_a_run_wrote_it(tmp_path, capsys):
    run = Marked(tmp_path)
    run.write("ours.json", "[1]")
    (tmp_path / "ours.json").write_text("[1")
    (tmp_path / "mine.json").write_text("[1")
    read = lambda path: json_in(path, of=list)
    assert run.read("ours.json", read) is None and run.read("mine.json", read) is None
    assert run.read("absent.json", read) is None
    assert {"ours.aside-1.json", "mine.json", MARK} == set(content(tmp_path))
    said = capsys.readouterr().err
    assert f"{tmp_path / 'ours.json'} is damaged" in said and "stays as it is" in said


def test_one_run_has_the_folder_and_an_equal_one_waits(tmp_path):
    first = take(tmp_path / "out", {"seed": 0})
    found = []
    second = threading.Thread(target=lambda: found.append(take(tmp_path / "out", {"seed": 0})))
    second.start()
    time.sleep(0.3)
    assert not found
    first.release()
    second.join(10)
    assert found[0].path == first.path == tmp_path / "out"


def test_a_run_with_other_settings_goes_beside(tmp_path, capsys):
    first = take(tmp_path / "out", {"seed": 0})
    found = []
    other = threading.Thread(target=lambda: found.append(take(tmp_path / "out", {"seed": 1})))
    other.start()
    other.join(10)
    assert found[0].path == tmp_path / "out-2" and first.path == tmp_path / "out"
    assert "out-2" in capsys.readouterr().err


def test_a_thread_that_comes_again_does_not_wait_for_itself(tmp_path):
    first = take(tmp_path / "out", {"seed": 0})
    assert take(tmp_path / "out", {"seed": 1}).path == first.path


def test_a_run_that_nobody_holds_any_more_is_over(tmp_path):
    del_me = take(tmp_path / "out", {"seed": 0})
    assert occupied._held
    del del_me
    found = []
    other = threading.Thread(target=lambda: found.append(take(tmp_path / "out", {"seed": 1})))
    other.start()
    other.join(10)
    assert found[0].path == tmp_path / "out"


def test_files_of_the_user_at_the_names_of_the_run_send_it_beside(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "verdicts.json").write_text("mine")
    (out / "unfinished").write_text("a file")
    held = take(out, {}, ("verdicts.json", "unfinished/judged.jsonl"))
    assert held.path == tmp_path / "out-2"
    assert content(out) == {"verdicts.json": b"mine", "unfinished": b"a file"}
    assert "verdicts.json, unfinished" in capsys.readouterr().err


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "far").write_text("far")
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "far", tmp_path / "out" / occupied.LOCK)
    with pytest.raises(ValueError, match="is a link"):
        take(tmp_path / "out", {})
    assert (tmp_path / "far").read_text() == "far"


def test_what_is_asked_while_waiting_ends_it(tmp_path):
    first = take(tmp_path / "out", {})

    def stop():
        raise KeyboardInterrupt

    caught = []

    def other():
        try:
            take(tmp_path / "out", {}, look=stop)
        except KeyboardInterrupt:
            caught.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(10)
    assert caught and first.path


def test_damage_names_the_file(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(Damaged, match=r"a\.json is damaged"):
        json_in(tmp_path / "a.json", of=lambda value: value["b"])
