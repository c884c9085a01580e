"""Draw the tiny network of `tiny_roberta/` and what transformers computes with it.

Run where torch, transformers and tokenizers are: python tests/multihead/make_roberta_fixture.py
"""

import json
from pathlib import Path

import jax
import numpy as np
import tokenizers
import torch
import transformers

from jaxbounds.multihead.grammar import Grammar, draw_sentences

FOLDER = Path(__file__).parent / "tiny_roberta"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LENGTH = 14


def main() -> None:
    sentences = draw_sentences(Grammar(), jax.random.key(7), 300).texts
    code = tokenizers.ByteLevelBPETokenizer()
    code.train_from_iterator(sentences, vocab_size=330, special_tokens=SPECIAL, show_progress=False)
    code._tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    FOLDER.mkdir(exist_ok=True)
    code.save(str(FOLDER / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(FOLDER / "tokenizer.json"), pad_token="<pad>"
    )
    batch = fast(list(sentences[:4]), padding="max_length", truncation=True, max_length=LENGTH)
    config = transformers.RobertaConfig(
        vocab_size=330,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=18,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        num_labels=3,
    )
    torch.manual_seed(0)
    network = transformers.RobertaForSequenceClassification(config).eval()
    with torch.no_grad():
        for leaf in network.parameters():  # large, so that attention is far from uniform
            leaf.add_(0.4 * torch.randn_like(leaf))
    network.save_pretrained(FOLDER)
    logits = {}
    for heads in (1, 2, 4, 8):
        config.num_attention_heads = heads
        cut = transformers.RobertaForSequenceClassification(config).double().eval()
        cut.load_state_dict(network.double().state_dict())
        with torch.no_grad():
            rows = {k: torch.tensor(batch[k]) for k in ("input_ids", "attention_mask")}
            logits[heads] = cut(**rows).logits.numpy().tolist()
    expected = {
        "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "sentences": sentences[:4],
        "tokens": batch["input_ids"],
        "mask": batch["attention_mask"],
        "logits": logits,
    }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(np.asarray(logits[4]).round(3), np.asarray(logits[8]).round(3))


if __name__ == "__main__":
    main()
