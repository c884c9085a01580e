"""Figure 6: head counts on text, with pretrained weights or from scratch.

The paper fine-tunes `roberta-base` on SST-2 (AdamW, 5e-6, 5 epochs, batches of 32) "with varying
number of heads". It does not state which numbers, or how it varied the heads. A result records its
arm:

- `split`: from scratch; H heads divide the width, d / H columns each;
- `fixed`: from scratch; H heads of one width, summed and divided by sqrt(H), the paper's scaling;
- `recut`: pretrained weights; H heads read the same matrices;
- `prune`: pretrained weights; H heads are kept at random.

The default runs from scratch on sentences of this library's own grammar and fetches nothing.
"""

from jaxbounds.multihead.experiments.fig6.config import Figure6
from jaxbounds.multihead.experiments.fig6.experiment import EXPERIMENT, run

__all__ = ["EXPERIMENT", "Figure6", "run"]
