"""The claims of Appendix G about Figures 2 and 3, decided on their data."""

import functools

import numpy as np
import xarray as xr

from jaxbounds.experiments.controls import scaled
from jaxbounds.experiments.experiment import Control, Finding
from jaxbounds.experiments.settings import Settings
from jaxbounds.multihead.experiments.ordering import along_heads, decide, shown, spread, why_not
from jaxbounds.multihead.experiments.students import EQUAL_HEADS, attributed

SETTINGS = Settings(
    exact={"tokens": 10, "relevant": 1, "signal": 2.0, "deviation": 0.1, "n": 100},
    least={"test": 300},
    others="Appendix G states neither H nor the steps nor the positions: a claim names its H and "
    "its step. The 95% interval over trials decides, so that few trials leave a claim open.",
)
"""The settings of Appendix G's figures on the data model DM1."""
STEP_SIZES = {"GD, eta": ("GD, eta = 1",), "Adam, eta": ("Adam, eta = 0.06",)}
"""The names of the panels (optimisers) whose constant step sizes the paper states.

If the step size grows as sqrt(H), the paper does not state the constant in front of sqrt(H).
"""
RANGE = 10
"""A claim about a rate 1/k stays undecided unless the last recorded step k is at least this many
times the first one. A larger factor requires longer runs.
"""

EXCHANGED = scaled(-1.0, "log10_train_loss", "log10_test_loss", "margin", "attention")
"""A function that reverses the signs of losses, margin and attention, so that claims about their
order become false.
"""


def _faster_than_one_over_k(dataset: xr.Dataset) -> xr.Dataset:
    return dataset.assign(log10_train_loss=dataset.log10_train_loss - np.log10(dataset.step))


CONTROLS: dict[str, Control] = {
    "the larger H": EXCHANGED,
    "the smaller the margin": EXCHANGED,
    "O(1/t)": _faster_than_one_over_k,
    "achieves gamma_attn": scaled(0.5, "margin"),
    "speed-up is larger with Adam": EXCHANGED,
}
"""For each claim, a function that changes the experiment's data so that the claim is false."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the claims of Appendix G about DM1 in each panel (optimiser and step size)."""
    found: list[Finding | None] = []
    for index, rule in enumerate(dataset.rule.values.tolist()):
        constant = float(dataset.exponent[index]) == 0
        if rule == "gd" and constant:
            found += _constant_step_claims(dataset, index)
        elif rule == "gd":
            found += _growing_step_claims(dataset, index)
        elif rule == "adam" and constant:
            found += _adam_claims(dataset, index)
    decided = (claim for claim in found if claim is not None)
    judged = SETTINGS.judged(dataset, decided, more=_step_sizes(dataset))
    return attributed(dataset.attrs.get("student", EQUAL_HEADS), judged)


def _step_sizes(dataset: xr.Dataset) -> list[str]:
    names = dataset.panel.values.tolist()
    return [
        f"panel {name!r}, not the paper's {wanted[0]!r}"
        for name, exponent in zip(names, dataset.exponent.values)
        for start, wanted in STEP_SIZES.items()
        if name.startswith(start) and exponent == 0 and name not in wanted
    ]


def at_steps(steps: list[int], /) -> str:
    """Return the steps in words, for example "at steps 200, 400 and 1000"."""
    *first, last = map(str, steps)
    return f"at steps {', '.join(first)} and {last}" if first else f"at step {last}"


def _constant_step_claims(dataset: xr.Dataset, panel: int) -> list[Finding | None]:
    order = functools.partial(along_heads, dataset, panel=panel)
    last = int(dataset.step[-1])
    looks = [k for k in sorted({200, 1000, last}) if k in dataset.step.values]
    text = f"GD, constant eta: the larger H, the {{}} {at_steps(looks)}"
    return [
        order("log10_train_loss", text.format("larger the train loss"), steps=looks, rising=True),
        _one_over_k(dataset, panel),
        _reaches_attention_margin(dataset, panel),
        order("margin", f"... the smaller the margin, at step {last}", steps=[last], rising=False),
        order("attention", text.format("lower the attn-score"), steps=looks, rising=False),
    ]


def _one_over_k(dataset: xr.Dataset, panel: int) -> Finding | None:
    late = dataset.isel(panel=panel).sel(step=dataset.step >= 200)
    if 1 not in dataset.H.values or late.sizes["step"] < 2:
        return None
    loss = late.log10_train_loss.sel(H=1).astype(float)
    mean = (late.step * 10.0 ** loss.mean("trial")).values
    product = late.step * 10.0**loss
    share = (product.max("step") / product.min("step")).values - 1
    first, last = late.step.values[[0, -1]]
    text = "O(1/t): k times the train loss within 10% from step 200 on, H = 1"
    number = (
        f"k loss from {mean.min():.4f} to {mean.max():.4f} over steps {first} to {last} (geometric "
        f"means over trials); single trials vary by {share.min():.1%} to {share.max():.1%}"
    )
    number += f"; the largest is {mean.max() / mean.min():.2f} times the least"
    if last < RANGE * 200:
        return Finding(text, None, f"{number}; {RANGE * 200} steps would decide (--steps)")
    return Finding(text, bool(mean.max() <= 1.1 * mean.min()), number)


def _reaches_attention_margin(dataset: xr.Dataset, panel: int) -> Finding | None:
    if "margin" not in dataset:
        return None
    limit = dataset.attrs["hypotheses"]["gamma_attn"]
    curve = dataset.margin.isel(panel=panel, H=0).transpose("step", "trial").astype(float) / limit
    share, steps = curve.values[-1], curve.step.values
    half = int(np.argmin(np.abs(steps - steps[-1] / 2)))
    text = f"for small H GD achieves gamma_attn: 90% of it at step {steps[-1]}, least H"
    reached = decide(np.full_like(share, 0.9), share, rising=True)
    number = (
        f"margin / gamma_attn at H = {int(dataset.H[0])}, step {steps[-1]}: {shown(share)}; "
        f"{spread(share)}"
    )
    if not reached:
        number += f"; it was {shown(curve.values[half])} at step {steps[half]}: "
        if np.mean(share) - np.mean(curve.values[half]) > 0.01:
            # The margin grows as the loss falls, and the paper does not state the number of steps.
            reached, number = None, number + "it still grows, more steps would tell"
        else:
            number += why_not(reached, share - 0.9, "against 0.9")
    return Finding(text, reached, number)


def _growing_step_claims(dataset: xr.Dataset, panel: int) -> list[Finding | None]:
    last = int(dataset.step[-1])
    order = functools.partial(along_heads, dataset, panel=panel, steps=[last])
    text = f"GD, eta ~ sqrt(H): the larger H, the smaller the {{}} at step {last}, {{}}"
    rows = []
    for name, word in (
        ("log10_train_loss", "train loss"),
        ("log10_test_loss", "test loss"),
        ("margin", "margin"),
    ):
        small, large = text.format(word, "H up to 64"), text.format(word, "H from 64")
        rows.append(order(name, small, rising=False, heads=(1, 64)))
        rows.append(order(name, large, rising=False, heads=(64, np.inf)))
    return rows


def _adam_claims(dataset: xr.Dataset, panel: int) -> list[Finding | None]:
    order = functools.partial(along_heads, dataset, panel=panel, rising=False)
    text = "Adam: the larger H, the smaller the {} loss at step {}, {}"
    rows = []
    for name in ("train", "test"):
        for step in (20, 400):
            for words, heads in (("H up to 16", (1, 16)), ("H from 16", (16, np.inf))):
                claim = text.format(name, step, words)
                rows.append(order(f"log10_{name}_loss", claim, steps=[step], heads=heads))
    rows.append(_adam_speeds_up_more(dataset, panel))
    return rows


def _adam_speeds_up_more(dataset: xr.Dataset, panel: int) -> Finding | None:
    growing = (dataset.rule == "gd") & (dataset.exponent > 0)
    if not growing.any() or not {1, 16} <= set(dataset.H.values) or 200 not in dataset.step.values:
        return None
    loss = dataset.log10_train_loss.sel(step=200)
    gain = (loss.sel(H=1) - loss.sel(H=16)).values.astype(float)
    gd, adam = gain[int(np.argmax(growing.values))], gain[panel]
    text = "the speed-up is larger with Adam: log10 of the loss at H = 1 over H = 16, step 200"
    more = decide(gd, adam, rising=True)
    why = why_not(more, adam - gd, "between the two", log10=True)
    number = f"means: GD {shown(gd)}, Adam {shown(adam)}"
    return Finding(text, more, "; ".join(filter(None, (number, why))))
