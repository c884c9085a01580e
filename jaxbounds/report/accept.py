"""Write the Python file of `verify --accept`, which declares new errata for a person to review."""

import pprint
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification import StoredInstance, Verdict
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import write_text
from jaxbounds.report.describe import number_code

FILE = "accepted.py"
HEAD = '''"""Errata found by `jaxbounds verify --accept`, for review. No program reads this file.

If a claim is wrong, and not the code: replace the form of that name in its statement by the form
here, and add each erratum to PAPER.errata. Write into PAPER.survives which results of the paper
stay true, and into the notes why the form fails. Then remove this file.
"""

import jaxbounds as jb
'''


def accepted(paper: Paper, found: Iterable[tuple[Verdict, StoredInstance]], /) -> str:
    """Return Python code that declares each unexpectedly failing form, with an erratum to fill in.

    A form is one version of a claim: printed, corrected or sharpened.
    """
    known = {erratum.id for erratum in paper.errata}
    free = (f"E{n}" for n in range(1, 10_000) if f"E{n}" not in known)
    parts = [HEAD]
    for verdict, stored in found:
        number, name = next(free), f"{verdict.id}.{verdict.form}"
        about = {s.id: s for s in paper.statements}[verdict.id]
        constant = "".join(c if c.isalnum() else "_" for c in name).upper()
        plain = {
            key: np.asarray(value).tolist() for key, value in _flat(stored).items() if key != ALONE
        }
        instance = pprint.pformat(plain, width=80, sort_dicts=False).replace("\n", "\n" + " " * 17)
        parts.append(
            f"# {name}, {verdict.label}: {verdict.reason}\n"
            f"{constant} = jb.Form(\n"
            f"    name={verdict.form!r},\n"
            f'    expected="fails",\n'
            f"    erratum={number!r},\n"
            f'    note="TODO: why it fails.",\n'
            f"    counterexample=jb.Counterexample(\n"
            f"        instance={instance},\n"
            f"        size={dict(stored.meta['size'])!r},\n"
            f"        ratio={number_code(stored.meta['ratio'])},\n"
            f"    ),\n"
            f")\n"
            f"{constant}_ERRATUM = jb.Erratum(\n"
            f"    id={number!r},\n"
            f"    where={verdict.label!r},\n"
            f'    kind="false",  # or "gap", "reading", "typo", "undecidable"\n'
            f"    quote={about.formula!r},\n"
            f'    text="TODO: what is wrong.",\n'
            f'    consequence="TODO: what follows.",\n'
            f'    main="survive",  # TODO: or what becomes of the main theorems\n'
            f"    evidence={verdict.id!r},\n"
            f")\n"
        )
    return "\n".join(parts)


def _flat(stored: StoredInstance) -> dict[str, object]:
    return dict(stored.instance)


def write_accepted(paper: Paper, text: str, /) -> Path:
    """Write the declarations beside the paper's claims; never replace an earlier file.

    Raises:
        Refused: if the paper is defined in no file, or the file with the declarations exists
            already.
    """
    if paper.folder is None:
        raise Refused(
            f"paper={paper.id!r} is not defined in a file, so no file can take its errata. Try a "
            f"paper that is defined in a file"
        )
    file = paper.folder / FILE
    if file.exists():
        raise Refused(
            f"file={str(file)!r} exists already. Try to move its errata into the paper, and "
            "remove it first"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, text)
    return file
