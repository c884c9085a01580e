"""Figure 6: head counts on text, with pretrained weights or from scratch.

The paper fine-tunes `roberta-base` on SST-2 (AdamW, 5e-6, 5 epochs, batches of 32) "with varying
number of heads". The paper does not state the numbers of heads, or how the authors varied them. An
arm is one way to vary the heads. A result records the arm:

- `split`: trained from scratch; H heads divide the width, d / H columns each;
- `fixed`: trained from scratch; H heads of a fixed width, summed and divided by sqrt(H), the
  paper's scaling;
- `recut`: pretrained weights; the pretrained matrices are divided anew among H heads;
- `prune`: pretrained weights; H of the heads are kept at random.

The default runs from scratch on sentences of this library's own grammar and fetches nothing.
"""

from jaxbounds.multihead.experiments.fig6.config import Figure6
from jaxbounds.multihead.experiments.fig6.experiment import EXPERIMENT, run

__all__ = ["EXPERIMENT", "Figure6", "run"]
