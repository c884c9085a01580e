"""The edition of the paper that we read, and the functions that no statement tests."""

CITATION = "Wei, Chen, Ma, NeurIPS 2022 (arXiv 2021)"

EDITION = (
    "arXiv:2107.13163 as HTML. The text names no version (the last is 3, of 30 March 2023); its "
    "abstract is word for word that of NeurIPS 2022."
)

LINKS = {
    "arXiv": "https://arxiv.org/abs/2107.13163",
    "DOI": "https://doi.org/10.48550/arXiv.2107.13163",
    "NeurIPS": "https://papers.nips.cc/paper_files/paper/2022/hash/"
    "4ebf1d74f53ece08512a23309d58df89-Abstract-Conference.html",
}

BIBTEX = r"""@inproceedings{wei2022statistically,
  title = {Statistically Meaningful Approximation: a Case Study on Approximating {Turing} Machines
           with Transformers},
  author = {Wei, Colin and Chen, Yining and Ma, Tengyu},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {35},
  year = {2022},
  eprint = {2107.13163},
  archivePrefix = {arXiv},
  primaryClass = {cs.LG}
}"""

UNJUDGED = {
    "part of judged functions, whose checks run it": (
        "attack.along_ray",
        "attack.blocks_by_layer",
        "certified_machine.layer_norms",
        "certified_machine.slack",
        "certified_machine.state_error",
        "correction.DYADIC",
        "correction.THIRDS",
        "execute.decide",
        "execute.encode",
        "execute.exact_states",
        "execute.memory_needed",
        "execute.simulated",
        "feedforward.circuit_layer",
        "feedforward.network_depth",
        "feedforward.straight_through_feedforward",
        "look_up.in_input",
        "look_up.input_table",
        "look_up.matches",
        "look_up.number",
        "look_up.run",
        "look_up.through",
        "machines.total",
        "straight_through.hard_max",
        "straight_through.maximisers",
        "straight_through.relu",
        "structure.blocks",
        "structure.read",
        "teacher_forcing.every_step",
        "teacher_forcing.every_step_by_look_up",
        "teacher_forcing.last_visits",
        "teacher_forcing.verify",
        "transformer.HARD",
    ),
    "draws or enumerates data, and the judged functions take any data": (
        "circuits.all_inputs",
        "circuits.identity_chain",
        "circuits.random_circuit",
        "finite_classes.draw",
        "machine_library.balanced_parentheses",
        "machine_library.busy_beaver",
        "machine_library.divisible_by_three",
        "machine_library.equal_blocks",
        "machine_library.increment",
        "machine_library.palindrome",
        "machine_library.parity",
        "machine_library.two_way_walker",
        "machine_library.unary_addition",
        "machines.words",
    ),
    "reads or writes files, or looks up names": ("machine_formats.load_machine",),
    "only presents results": ("readout.layer_equations", "readout.show", "readout.side_by_side"),
    "training, not a claim of the paper; tested against an independent oracle": (
        "learned_table.outputs",
        "learned_table.outputs_by_look_up",
        "learned_table.places",
        "learned_table.read_table",
        "learned_table.soft_table",
        "learned_table.task",
    ),
}
"""The functions that no statement tests, by the reason."""
