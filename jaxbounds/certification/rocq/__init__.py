"""Write disproofs, and proofs on boxes, as files that Rocq's kernel can check (guide: `kernel`).

The translation turns the statement's program into scalar operations. The file defines each
operation, and proves bounds on its value.
"""

from collections.abc import Mapping
from typing import Any

from jaxbounds.certification.rocq.boxes import box_file
from jaxbounds.certification.rocq.file import RocqFile, file_of
from jaxbounds.certification.rocq.theorem import READINGS, theorem_of
from jaxbounds.claims.statements import Domain, Form, Instance, Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.programs.balls.boxes import MARGIN
from jaxbounds.programs.balls.values import NotSupported, Undecided

OPERATIONS = 5000
"""A file has at most this many scalar operations, unless the caller allows more. Rocq needs longer
to check a larger file."""


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
    """Write the Rocq file of a disproof.

    Args:
        statement: the statement whose form is false.
        form: the name of the form (version of the claim).
        instance: the instance on which the form is false.
        size: the static part of the instance (its shapes and other Python numbers, by name).
        as_coded: if True, each constant of the program means exactly its float. If False, a
            constant that may have been rounded means any number near its float.
        citation: the paper's title.
        operations: the largest number of scalar operations in the file.
        margin: the file proves that the sides differ by at least this share of the larger side.
        seconds: the time in seconds after which the translation stops.

    Raises:
        Refused: if an operation has no translation, if the enclosures are too wide to refute the
            claim, or if the program has too many operations.
    """
    name = f"{statement.id} ({form})"
    try:
        about = theorem_of(
            statement, statement.form(form), instance, size,
            readings=("exact",) if as_coded else READINGS, margin=margin, seconds=seconds,
        )  # fmt: skip
        file = file_of(about, citation=citation, margin=margin)
    except (NotSupported, Undecided) as problem:
        raise Refused(
            f"no Rocq file for form={form!r} in {statement.id}: {problem}. Try its witness, "
            "which `jaxbounds certify` writes"
        ) from problem
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
    """Write the Rocq file of a claim on a box; the claim is proved once Rocq's kernel accepts it.

    Args:
        statement: the statement that has the form.
        form: the form (version of the claim) to write.
        domain: the box of parameters, and its slack (the amount by which the proved claim is
            weaker).
        as_coded: if True, each constant of the program means exactly its float.
        citation: the paper's title.
        operations: the largest number of scalar operations in the file, at most 400.
        boxes: the number of boxes in this library's own proof, from which the file estimates Rocq's
            time.

    Raises:
        Refused: if an operation has no translation, or if the program has too many operations.
    """
    name = f"{statement.id} ({form.name}; D: {domain.name})"
    options: Any = {"as_coded": as_coded, "citation": citation, "boxes": boxes}
    try:
        file = box_file(statement, form, domain, **options)
    except (NotSupported, Undecided) as problem:
        raise Refused(
            f"no Rocq file for form={form.name!r} in {statement.id}: {problem}. "
            "Try a smaller formula"
        ) from problem
    return _of_size(file, name, operations)


def _of_size(file: RocqFile, name: str, operations: int) -> RocqFile:
    if file.operations > operations:
        raise Refused(
            f"{name} gets no Rocq file: the file would have {file.operations} operations "
            f"and may take {file.seconds:.0f} s, and operations={operations} is the limit. Try "
            f"--operations {file.operations}"
        )
    return file


__all__ = ["OPERATIONS", "RocqFile", "disproof_file", "proof_file"]
