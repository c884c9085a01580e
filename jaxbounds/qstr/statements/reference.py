"""The edition of the paper that the statements follow, its links and its citation."""

CITATION = (
    "Mousavi-Hosseini, Sanford, Wu, Erdogdu: When Do Transformers Outperform Feedforward and "
    "Recurrent Networks? A Statistical Perspective, arXiv 2025 (a later version: NeurIPS 2025)"
)

EDITION = (
    "arXiv:2503.11272: the text names no version; its abstract is word for word that of version 1 "
    "(14 March 2025), not that of NeurIPS 2025. Read by optical character recognition: glyphs may "
    "be wrong."
)

LINKS = {
    "arXiv": "https://arxiv.org/abs/2503.11272",
    "DOI": "https://doi.org/10.48550/arXiv.2503.11272",
    "code": "https://github.com/mousavih/transformers-separation",
}

BIBTEX = r"""@misc{mousavihosseini2025transformers,
  title = {When Do Transformers Outperform Feedforward and Recurrent Networks? A Statistical
           Perspective},
  author = {Mousavi-Hosseini, Alireza and Sanford, Clayton and Wu, Denny and Erdogdu, Murat A.},
  year = {2025},
  eprint = {2503.11272},
  archivePrefix = {arXiv},
  primaryClass = {stat.ML},
  doi = {10.48550/arXiv.2503.11272}
}"""

UNJUDGED = {
    "part of judged functions, whose checks run it": (
        "code_rnn.lloyd_max",
        "gated.gru_cell",
        "gated.lstm_cell",
        "heads.revealed_images",
        "interpolator.balance",
        "layers.dense",
        "layers.uniform",
        "layers.uniform_fan_in",
        "relu_networks.layer",
        "transformer.multi_head_attention",
    ),
    "draws or enumerates data, and the judged functions take any data": (
        "data.sample_positions",
        "encodings.greedy_encodings",
        "encodings.greedy_signs",
        "encodings.published_encoding_dimension",
        "encodings.rademacher_encodings",
        "links.sphere",
    ),
    "reads or writes files, or looks up names": (
        "architectures.build",
        "architectures.register",
        "links.find_link",
        "own_network.beside",
        "own_network.first_layer",
        "own_network.weights_of",
        "span.applicable",
    ),
    "only presents results": ("architectures.outline",),
    "refuses bad input; its tests say what it raises": ("architectures.refuse_unknown",),
}
"""The public functions that no statement checks, grouped by the reason."""
