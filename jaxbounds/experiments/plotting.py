"""Give all figures one style: colours for colour-blind readers, plain axes, vector graphics."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours of Okabe and Ito's palette, without the yellow, which vanishes on white."""


def grid_ticks(axis: Any, values: Iterable[Any], /) -> None:
    """Put the ticks of a matplotlib axis (`axes.xaxis`) at a grid's values, as plain numbers."""
    values = [float(value) for value in values]
    axis.set_ticks(values, [f"{value:.12g}" for value in values])
    axis.set_ticks([], minor=True)


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Use the library's matplotlib settings inside a `with` block."""
    import matplotlib
    from cycler import cycler

    settings: Any = {
        "axes.prop_cycle": cycler(color=OKABE_ITO),
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "axes.titlelocation": "left",
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": "small",
        "lines.linewidth": 1.6,
        "lines.markersize": 4.5,
        "image.cmap": "cividis",
        "figure.dpi": 110,
        "savefig.dpi": 160,
        "savefig.bbox": "tight",
        "pdf.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "jaxbounds",
    }
    with matplotlib.rc_context(settings):
        yield
