"""Figure 6: head counts on text, with pretrained weights or from scratch.

The paper fine-tunes `roberta-base` on SST-2 (AdamW, 5e-6, 5 epochs, batches of 32) "with varying
number of heads". The paper does not state the numbers of heads, or how the authors varied them. An
arm is one way to vary the number of heads. A result records the arm:

- `split`: training from scratch; the H heads divide the width, with d / H columns for each head;
- `fixed`: training from scratch; the H heads have a fixed width, and their sum is divided by
  sqrt(H), as in the paper;
- `recut`: pretrained weights; the columns of the pretrained matrices are divided among H heads;
- `prune`: pretrained weights; the run chooses H of the pretrained heads at random and removes the
  other heads.

The default runs from scratch on sentences of this library's own grammar and fetches nothing.
"""

from jaxbounds.multihead.experiments.fig6.config import Figure6
from jaxbounds.multihead.experiments.fig6.experiment import EXPERIMENT, run

__all__ = ["EXPERIMENT", "Figure6", "run"]
