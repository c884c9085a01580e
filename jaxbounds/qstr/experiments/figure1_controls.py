"""False results, which test that the claims about Figure 1 can fail."""

from collections.abc import Callable

import xarray as xr

from jaxbounds.experiments.controls import scaled
from jaxbounds.experiments.experiment import Control

MANY = 50.0
"""A false result multiplies numbers of samples by this factor. A larger factor makes more claims
false.
"""


def _named(start: str) -> Callable[[xr.DataArray], xr.DataArray]:
    return lambda names: names.str.startswith(start)


def _times(factor: float, start: str) -> Control:
    return scaled(factor, "samples", architecture=_named(start))


def _linear(start: str) -> Control:
    def control(dataset: xr.Dataset) -> xr.Dataset:
        first = dataset.samples.isel(N=0) * dataset.N / dataset.N[0]
        other = dataset.samples.where(~_named(start)(dataset.architecture), first)
        return dataset.assign(samples=other.transpose(*dataset.samples.dims))

    return control


def _exchanged(one: str, other: str) -> Control:
    def control(dataset: xr.Dataset) -> xr.Dataset:
        names = dataset.architecture.values.tolist()
        order = list(range(len(names)))
        i, j = (next(k for k in order if names[k].startswith(start)) for start in (one, other))
        order[i], order[j] = j, i
        samples = dataset.samples.isel(architecture=order).data
        return dataset.assign(samples=(dataset.samples.dims, samples))

    return control


CONTROLS: dict[str, Control] = {
    "Transformer grows less than linearly": _linear("transformer"),
    "FFN grows much": _linear("feedforward"),
    "FFN needs more than Transformer": _times(1 / MANY, "feedforward"),
    "RNN needs more than Transformer": _times(1 / MANY, "gru"),
    "FFN needs more than RNN": _times(MANY, "gru"),
    "FFN's exponent above": _exchanged("feedforward", "transformer"),
    "RNN stays close": _times(MANY, "gru"),
    "RNN is closer": _times(MANY, "gru"),
    "RNN depends on N": _exchanged("feedforward", "gru"),
    "within 15% of the published": scaled(MANY, "samples"),
    "within the spread over tasks": scaled(MANY, "samples"),
    "with an honest test set": scaled(MANY, "samples_honest"),
}
"""A dictionary from words in a claim's text to a function that makes results on which the claim is
false."""
