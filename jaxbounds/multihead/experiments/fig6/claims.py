"""The paper's claims about Figure 6, decided on its data."""

import numpy as np
import xarray as xr

from jaxbounds.experiments.controls import scaled
from jaxbounds.experiments.experiment import Control, Finding
from jaxbounds.experiments.settings import Settings
from jaxbounds.multihead.experiments.fig6.config import PRETRAINED
from jaxbounds.multihead.experiments.ordering import (
    combine,
    decide,
    interval,
    shown,
    what_would_decide,
)

TRAIN_DROP, TEST_DROP, ACCURACY_RISE = 0.02, 0.005, 0.005
"""The least drop of the training loss and of the test loss, and the least rise of the accuracy,
from the fewest to the most heads. A larger number makes a claim harder to confirm.
"""

SETTINGS = Settings(
    exact={"step_size": 5e-6, "epochs": 5, "batch": 32, "source": "file", "n": 0, "test": 0},
    others="Appendix G states neither H nor how heads were varied. The 95% interval over trials "
    "decides, so that few trials leave a claim open.",
    decides="--preset published with --data SST-2 and --weights roberta-base",
)
"""The settings of Appendix G's Figure 6 on SST-2."""
SST2, BASE = 67_349, (12, 768)
"""The number of training sentences of SST-2, and the layers and the width of roberta-base."""

CONTROLS: dict[str, Control] = {
    "falls with H": scaled(-1.0, "train_loss", "test_loss"),
    "rises with H": scaled(-1.0, "test_accuracy"),
}
"""For each claim, a function that reverses the sign of a quantity in the data, so that the claim is
false.
"""


def _elsewhere(dataset: xr.Dataset, arm: str) -> list[str]:
    sentences, shape = dataset.attrs.get("sentences"), dataset.attrs.get("shape")
    words = [f"sentences = {sentences}, not the {SST2} of SST-2"] * (sentences != SST2)
    pretrained = arm in PRETRAINED and tuple(shape or ()) == BASE
    return words + [f"arm {arm} of {shape}, not pretrained roberta-base"] * (not pretrained)


def _slopes(heads: np.ndarray, values: np.ndarray) -> np.ndarray:
    place = np.log2(heads) - np.mean(np.log2(heads))
    return place @ values / np.sum(place**2)


def judge(
    heads: np.ndarray, values: np.ndarray, /, *, rising: bool, least: float
) -> tuple[bool | None, str]:
    """Decide whether a quantity rises (falls) with H, and return the decision with a text.

    True requires a 95% interval of the slope in log2 H on the claimed side of zero. True also
    requires a mean change of at least `least` from the fewest to the most heads. False requires an
    interval on the opposite side of zero; the decision is None in all other cases.

    `values` has the shape (heads, trials). If `rising` is False, the claim says that the quantity
    falls.
    """
    slopes, change = _slopes(heads, values), values[-1] - values[0]
    trend = decide(np.zeros_like(slopes), slopes, rising=rising)
    enough = float(np.mean(change)) * (1 if rising else -1) >= least
    means = ", ".join(shown(row) for row in values)
    number = (
        f"{means}; from H = {heads[0]} to {heads[-1]} {interval(change)}; slope in log2 H "
        f"{interval(slopes)}"
    )
    if trend and not enough:
        return None, f"{number}: the sign is as claimed, but the change is less than {least}"
    if trend is None:
        return None, f"{number}: the slope's sign is unclear, {what_would_decide(slopes)}"
    return trend, number if trend else f"{number}: the slope has the other sign"


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide whether more heads "speed up the optimization and generalization".

    Each arm (way to vary the number of heads) has three claims.
    """
    found: list[Finding] = []
    if dataset.sizes["H"] < 2:
        return ()
    for arm in dataset.panel.values.tolist():
        part = dataset.sel(panel=arm)
        prefix = f"{arm} ({dataset.attrs['confounds'][arm]}): "
        found += SETTINGS.judged(dataset, _of_arm(part, prefix), more=_elsewhere(dataset, arm))
    return tuple(found)


def _of_arm(part: xr.Dataset, prefix: str) -> list[Finding]:
    heads = part.H.values
    epochs = part.epoch.values
    wanted = sorted({1.0, 2.0, float(epochs[-1])} & set(np.round(epochs, 9).tolist()))
    sizes = f"H = {', '.join(map(str, heads.tolist()))}: "

    def at(name: str, epoch: float) -> np.ndarray:
        index = int(np.argmin(np.abs(epochs - epoch)))
        return part[name].isel(step=index).transpose("H", "trial").values.astype(float)

    judged = {
        epoch: judge(heads, at("train_loss", epoch), rising=False, least=TRAIN_DROP)
        for epoch in wanted
    }
    names = ", ".join(f"{epoch:g}" for epoch in wanted)
    rows = "; ".join(f"epoch {epoch:g}: {number}" for epoch, (_, number) in judged.items())
    first = Finding(
        f"{prefix}the train loss falls with H at epochs {names}, by {TRAIN_DROP} or more",
        combine([decision for decision, _ in judged.values()]),
        sizes + rows,
    )
    speed, number = judge(heads, at("test_loss", wanted[0]), rising=False, least=TEST_DROP)
    second = Finding(
        f"{prefix}the test loss at epoch {wanted[0]:g} falls with H, by {TEST_DROP} or more",
        speed,
        sizes + number,
    )
    best = part.test_accuracy.max("step").transpose("H", "trial").values.astype(float)
    rises, number = judge(heads, best, rising=True, least=ACCURACY_RISE)
    third = Finding(
        f"{prefix}the best test accuracy rises with H, by {ACCURACY_RISE} or more",
        rises,
        sizes + number,
    )
    return [first, second, third]
