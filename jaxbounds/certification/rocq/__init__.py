"""Disproofs and proofs on boxes as files for Rocq, whose kernel checks them (guide: `kernel`).

A statement's program on an exact instance becomes scalar operations, each a definition and a lemma
that encloses it; the hypotheses and the violated claim are theorems about them.
"""

from collections.abc import Mapping
from typing import Any

from jaxbounds.certification.rocq.boxes import box_file
from jaxbounds.certification.rocq.file import RocqFile, file_of
from jaxbounds.certification.rocq.theorem import READINGS, theorem_of
from jaxbounds.claims.statements import Domain, Form, Instance, Statement
from jaxbounds.programs.balls.boxes import MARGIN
from jaxbounds.programs.balls.values import NotSupported, Undecided

OPERATIONS = 5000
"""Above which a file is refused unless more are asked for."""


def disproof_file(
    statement: Statement,
    form: str,
    instance: Instance,
    size: Mapping[str, float],
    /,
    *,
    as_coded: bool = False,
    citation: str = "",
    operations: int = OPERATIONS,
    margin: float = MARGIN,
    seconds: float | None = None,
) -> RocqFile:
    """The file of a disproof.

    Args:
        statement: whose form is false.
        form: its name.
        instance: on which it is.
        size: its static part.
        as_coded: whether the program's constants are read as the floats that they are; else any
            numbers near those that may have been rounded will do, where that can be proved.
        citation: the paper's title.
        operations: scalar operations above which it is refused.
        margin: by how much, relative to the larger side, the sides must be apart.
        seconds: after which the translation is given up.

    Raises:
        ValueError: in one sentence: if an operation has no translation, if the bounds leave the
            claim open, or if there are too many operations.
    """
    name = f"{statement.id} ({form})"
    try:
        about = theorem_of(
            statement, statement.form(form), instance, size,
            readings=("exact",) if as_coded else READINGS, margin=margin, seconds=seconds,
        )  # fmt: skip
        file = file_of(about, citation=citation, margin=margin)
    except (NotSupported, Undecided) as problem:
        raise ValueError(f"{name} has no file for a kernel: {problem}") from problem
    return _of_size(file, name, operations)


def proof_file(
    statement: Statement,
    form: Form,
    domain: Domain,
    /,
    *,
    as_coded: bool = False,
    citation: str = "",
    operations: int = OPERATIONS,
    boxes: int = 0,
) -> RocqFile:
    """The file of a form that was proved on a box; whether a kernel proves it, it has to say.

    Args:
        statement: whose form it is.
        form: the form.
        domain: the box and its slack.
        as_coded: whether the program's constants are the floats that they are.
        citation: the paper's title.
        operations: scalar operations above which it is refused; never more than 400.
        boxes: that our own proof took.

    Raises:
        ValueError: as `disproof_file`.
    """
    name = f"{statement.id} ({form.name}; D: {domain.name})"
    options: Any = {"as_coded": as_coded, "citation": citation, "boxes": boxes}
    try:
        file = box_file(statement, form, domain, **options)
    except (NotSupported, Undecided) as problem:
        raise ValueError(f"{name} has no file for a kernel: {problem}") from problem
    return _of_size(file, name, operations)


def _of_size(file: RocqFile, name: str, operations: int) -> RocqFile:
    """The file, or a refusal with its number of operations and the time to expect."""
    if file.operations > operations:
        raise ValueError(
            f"{name} has no file for a kernel: it has {file.operations} operations, which may take "
            f"{file.seconds:.0f} s, and --operations allows {operations}"
        )
    return file


__all__ = ["OPERATIONS", "RocqFile", "disproof_file", "proof_file"]
