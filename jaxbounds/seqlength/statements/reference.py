"""The paper's citation, the edition that we read, and functions that no statement tests."""

EDITION = (
    "AISTATS 2024, PMLR volume 238, pages 1405 to 1413, with Appendices A to G; not v1 of the"
    " preprint (19 October 2023)"
)
"""The edition that the errata are about. Its abstract says "bounded linear mappings"; v1 of the
preprint says "bounded linear transformations"."""

LINKS = {
    "PMLR": "https://proceedings.mlr.press/v238/trauger24a.html",
    "arXiv": "https://arxiv.org/abs/2310.13088",
    "code": "https://github.com/traugerjacob/Transformer-Gen-Bounds",
}

BIBTEX = """\
@inproceedings{trauger2024sequence,
  title = {Sequence Length Independent Norm-Based Generalization Bounds for {T}ransformers},
  author = {Trauger, Jacob and Tewari, Ambuj},
  booktitle = {Proceedings of The 27th International Conference on Artificial Intelligence and
               Statistics},
  series = {Proceedings of Machine Learning Research},
  volume = {238},
  pages = {1405--1413},
  publisher = {PMLR},
  year = {2024},
  url = {https://proceedings.mlr.press/v238/trauger24a.html},
  eprint = {2310.13088},
  archiveprefix = {arXiv},
}
"""

UNJUDGED = {
    "part of judged functions, whose checks run it": ("network_bound.map_coverings",),
    "draws or enumerates data, and the judged functions take any data": (
        "sparse_majority.draw_task",
        "sparse_majority.draw_bits",
    ),
    "reads or writes files, or looks up names": (
        "extract_norms.from_nnx",
        "parameters.read_layers",
        "fold.fold",
        "certificate.applicable",
    ),
    "only presents results": ("certificate.certificate_text", "comparisons.compare"),
    "refuses bad input; its tests say what it raises": ("norms.require_norm",),
}
