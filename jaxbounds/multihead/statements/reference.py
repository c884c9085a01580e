"""The paper's address and citation, and the functions of this folder that no statement uses."""

EDITION = (
    "Transactions on Machine Learning Research, April 2024; where the early version is spoken of, "
    "the anonymous manuscript under double-blind review"
)

LINKS = {
    "TMLR": "https://openreview.net/forum?id=wTGjn7JvYK",
    "arXiv": "https://arxiv.org/abs/2310.12680",
}

BIBTEX = """@article{deora2024multihead,
  title   = {On the Optimization and Generalization of Multi-head Attention},
  author  = {Deora, Puneesh and Ghaderi, Rouzbeh and Taheri, Hossein and Thrampoulidis, Christos},
  journal = {Transactions on Machine Learning Research},
  year    = {2024},
  url     = {https://openreview.net/forum?id=wTGjn7JvYK}
}"""

UNJUDGED = {
    "part of judged functions, whose checks run it": (
        "bounds.two_block_norm",
        "calculus.cumulants",
        "calculus.third_cumulant",
        "calculus.loss_hessian_parts",
        "derivatives.network",
        "derivatives.one_head",
        "derivatives.network_risk",
        "derivatives.flatten",
        "derivatives.unflatten",
        "derivatives.risk_gradient",
        "derivatives.risk_hessian_product",
        "derivatives.network_gradient",
        "certificate.realized_step",
        "descent.reach",
        "descent.largest_step",
        "descent.short_steps",
        "model.head_norm",
        "runs.training_set",
        "runs.start_of",
        "runs.target_of",
        "runs.horizon",
        "runs.head_sizes",
        "runs.setting",
        "runs.gradient_descent",
        "runs.sizes_along",
        "runs.within",
        "runs.average_over",
        "runs.largest_until",
        "stability.leave_one_out_masks",
        "model.entries",
        "tied.tied_margins",
        "tied.tie",
        "tied.tied",
    ),
    "draws or enumerates data, and the judged functions take any data": ("grammar.draw_sentences",),
    "reads or writes files, or looks up names": (
        "roberta_files.hugging_face_name",
        "roberta_files.read_shape",
        "roberta_files.load_roberta",
        "roberta_files.draw_classifier",
        "roberta_files.save_roberta",
        "text.read_tsv",
        "text.read_parquet",
        "text.read_snippets",
        "text.read_text",
        "tokens.words_of",
        "tokens.word_table",
        "tokens.byte_pairs",
        "tokens.stored_tokenizer",
        "tokens.to_arrays",
    ),
    "refuses bad input; its tests say what it raises": ("data.validate_data",),
    "training, not a claim of the paper; tested against an independent oracle": (
        "roberta.init_roberta",
        "roberta.recut_heads",
        "roberta.prune_heads",
    ),
}
