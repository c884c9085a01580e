"""Slack figures: one for every verified statement, told by curves, axes and words."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaxbounds.cli import main
from jaxbounds.experiments.plotting import style
from jaxbounds.falsification import Verdict
from jaxbounds.papers import load_papers
from jaxbounds.report import slack_figure

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

OF_KIND = {s.kind: s for paper in load_papers() for s in paper.statements}


def verdict(statement, form, **more):
    about = {"id": statement.id, "paper": statement.paper, "label": statement.label}
    judged = {"kind": statement.kind, "relation": statement.relation}
    judged |= {"form": form.name, "expected": form.expected}
    ratios = {"worst_ratio": 2.0, "quantiles": tuple(np.logspace(-9, 0, 21))}
    counts = {"status": "holds", "reason": "", "instances": 20, "searches": 0}
    return Verdict(**about, **judged, **counts, **ratios | more)


@pytest.mark.parametrize("kind", sorted(OF_KIND))
def test_every_kind_has_a_figure_with_named_axes(kind):
    import matplotlib.pyplot as plt

    statement = OF_KIND[kind]
    verdicts = [verdict(statement, form) for form in statement.forms]
    with style():
        figure = slack_figure(statement, verdicts)
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    names = [f"{form.name}: holds" for form in statement.forms]
    assert [label.split(",")[0] for label in labels] == [name.split(",")[0] for name in names]
    assert axes.get_xscale() == "log" and axes.get_xlabel() and axes.get_ylabel()
    limits = [line for line in axes.lines if line.get_color() == "#444444"]
    assert len(limits) == (0 if kind == "rate" else 1)
    plt.close(figure)


def test_what_lies_outside_is_named_with_its_number():
    """The axis shows five decades, one of them left of the limit at least; the rest is said."""
    import matplotlib.pyplot as plt

    statement = next(s for s in load_papers()[0].statements if s.id == "multihead.cor1.3")
    inside = tuple(np.logspace(-1, -0.1, 21))
    far = (*[1e-30] * 7, *[0.5] * 14)  # a third lies left of every axis that shows the limit
    verdicts = [
        verdict(statement, statement.forms[0], worst_ratio=0.9, quantiles=inside),
        verdict(statement, statement.forms[1], worst_ratio=2.8e17, quantiles=inside),
        verdict(statement, statement.forms[2], worst_ratio=0.5, quantiles=far),
    ]
    figure = slack_figure(statement, verdicts)
    axes = figure.axes[0]
    first, second, third = (text.get_text() for text in axes.get_legend().get_texts())
    assert "\N{RIGHTWARDS ARROW}" not in first and "\N{LEFTWARDS ARROW}" not in first
    assert second.endswith("up to 2.8e+17 \N{RIGHTWARDS ARROW}")
    assert third.endswith("\N{LEFTWARDS ARROW} 33% of the draws")
    markers = [line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1]
    assert markers == ["v", ">", "v"]
    plt.close(figure)


@pytest.mark.parametrize("more", [{"quantiles": ()}, {"worst_ratio": float("nan")}])
def test_a_form_without_numbers_is_named_all_the_same(more):
    import matplotlib.pyplot as plt

    statement = OF_KIND["inequality"]
    figure = slack_figure(statement, [verdict(statement, form, **more) for form in statement.forms])
    assert len(figure.axes[0].get_legend().get_texts()) == len(statement.forms)
    plt.close(figure)


def test_verdicts_survive_json():
    statement = OF_KIND["inequality"]
    for ratio in (1.5, float("inf")):
        before = verdict(statement, statement.forms[0], worst_ratio=ratio)
        assert Verdict.from_json(json.loads(json.dumps(before.to_json()))) == before
    with pytest.raises(ValueError, match="the fields of this version"):
        Verdict.from_json({"id": "multihead.cor1.3"})


def test_plot_draws_what_verify_left(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    chosen = ["multihead.eq1", "seqlength.lemma3.6.size"]
    assert main(["verify", *chosen, "--jobs", "1"]) == 0
    assert main(["plot", "results/verify", chosen[0]]) == 0
    assert "slack: 1 figure\n" in capsys.readouterr().out
    assert main(["plot", "results/verify"]) == 0
    drawn = sorted(path.name for path in Path("results/verify/slack").iterdir())
    assert drawn == sorted(f"{name}.svg" for name in chosen)
    assert "share of the draws below" in Path(f"results/verify/slack/{drawn[0]}").read_text()
    assert main(["plot", "results/verify", "qstr.thm1"]) == 2
    assert "no statement matches" in capsys.readouterr().err
