"""Define `jaxbounds.certify`, which disproves failing forms and proves forms on boxes of instances.

A form is one version of a claim: printed, corrected or sharpened.
"""

import functools
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, overload

from jaxbounds.certification import Certificate, Proof, disprove, proofs, witness_of
from jaxbounds.certification.crosscheck import Crosscheck, crosscheck
from jaxbounds.certification.failing import failing_forms, stored
from jaxbounds.certification.rocq import OPERATIONS, RocqFile, proof_file
from jaxbounds.claims.statements import Domain, Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, try_to_write
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.occupied import Held
from jaxbounds.ground.states import Depends
from jaxbounds.ground.tables import Table, with_table
from jaxbounds.ground.text import shortened
from jaxbounds.ground.to_json import to_json
from jaxbounds.papers import PAPERS, Catalogue, Named, Selection, origin, selected
from jaxbounds.runs.cache import examples, restoring
from jaxbounds.runs.driver import drive
from jaxbounds.runs.engines import On, Where, engine_of
from jaxbounds.runs.interruption import look
from jaxbounds.runs.merged_files import add_to, taken
from jaxbounds.runs.watched import watched
from jaxbounds.runs.workers import Died

SECONDS = 120.0
"""The default limit, in seconds of processor time, for one form (one version of a claim). If the
limit is larger, fewer forms stay undecided."""
CERTIFICATES = "certificates.json"
SETTLED = ("disproved", "disproved as coded", "proved on D")


class Certified(NamedTuple):
    """The certificate of a disproof, or a proof on a box of instances, with its files.

    Attributes:
        witness: the data with which an independent checker confirms a disproof.
        theorem: the text of the file for the proof assistant Rocq; None if there is no file.
        refused: the reason why the file for Rocq is missing.
        depends: the files and modules that the user's code read for the result; None if unknown.
    """

    certificate: Certificate | Proof
    witness: dict[str, Any] | None = None
    theorem: RocqFile | None = None
    refused: str = ""
    depends: Depends | None = None


def _without(name: str, form: str, reason: str) -> Certified:
    return Certified(Certificate(id=name, form=form, word="undecided", reason=reason))


def _certified(
    statement: Statement, seconds: float, title: str, operations: int, slack: str = ""
) -> list[Certified]:
    made: list[Certified] = []
    known = any(form.domains for form in statement.forms)
    for failing in (
        stored(statement) if known else failing_forms(statement, examples=examples(False))
    ):
        try:
            certificate = disprove(statement, *failing, seconds=seconds)
        except Exception as problem:  # an error of one statement must not end the run
            made.append(_without(statement.id, failing.form, origin(problem)))
            continue
        decided = certificate.word != "undecided"
        witness = witness_of(statement, failing.instance, certificate, title) if decided else None
        text: Callable[[], Any] = functools.partial(
            certificate.rocq, operations=operations, citation=title
        )
        made.append(_with_theorem(Certified(certificate, witness), text, operations))
    boxes = [(form, domain) for form in statement.forms for domain in form.domains]
    found = proofs(statement, seconds=seconds, slack=slack)
    for (form, domain), proof in zip(boxes, found, strict=True):
        box = domain.with_slack(slack) if slack else domain
        text = functools.partial(
            proof_file, statement, form, box, boxes=proof.boxes, citation=title,
            as_coded=proof.word == "proved on D as coded", operations=operations,
        )  # fmt: skip
        made.append(_with_theorem(Certified(proof), text, operations))
    return made


def _with_theorem(made: Certified, text: Callable[[], Any], operations: int) -> Certified:
    if not operations or made.certificate.word in ("undecided", "false on D"):
        return made
    try:
        return made._replace(theorem=text())
    except ValueError as problem:
        return made._replace(refused=str(problem))


def _certified_somewhere(
    operations: int, slack: str, seconds: float, catalogue: Catalogue, name: str
) -> list[Certified]:
    def work() -> list[Certified]:
        statement = catalogue.statement(name)
        title = catalogue.paper(statement.paper).title
        return _certified(statement, seconds, title, operations, slack)

    made, depends = watched(work, own=bool(catalogue.imports))
    return [one._replace(depends=None if catalogue.own else depends) for one in made]


def worth_certifying(selection: Selection, /) -> Selection:
    """Return the statements of a selection on which `certify` works.

    The function returns all statements that the user named. If the user named no statements, the
    function returns the user's own statements, and each shipped statement that stores a
    counterexample or names a box of instances for a proof.
    """
    if selection.parts:
        return selection
    own = {s.id for p in selection.papers if p.id not in PAPERS for s in p.statements}
    domains = lambda s: any(form.domains for form in s.forms)
    statements = (s for s in selection.statements if stored(s) or domains(s) or s.id in own)
    return selection._replace(statements=tuple(statements))


def _driven(work: Any, selection: Selection, seconds: float, **given: Any) -> Iterator[Any]:
    """Yield the results of `work`; this process does all work if no file defines the paper."""
    if not 0 < seconds < 1e6 or given["jobs"] < 0:
        raise Refused(
            f"jobs={given['jobs']}, seconds={seconds}, expected jobs >= 0 and 0 < seconds < 1e6. "
            "Try without these two options"
        )
    catalogue = selection.catalogue
    if catalogue.own:
        given["jobs"] = 1
    else:
        catalogue = catalogue.absolute()
    ids = [s.id for s in selection.statements]
    yield from drive(functools.partial(work, seconds, catalogue), ids, **given)


def certifying(
    selection: Selection,
    /,
    *,
    seconds: float,
    on: On,
    jobs: int,
    folder: Place | Path,
    operations: int = 0,
    slack: str = "",
) -> Iterator[list[Certified]]:
    """Yield, for each statement, the list of its certified forms (versions of the claim).

    The function writes a file for the proof assistant Rocq if a form has at most `operations`
    scalar operations; for 0 it writes no files.
    """
    given = {"on": on, "jobs": jobs, "folder": folder}
    work = functools.partial(_certified_somewhere, operations, known_slack(slack))
    for name, made in _driven(work, selection, seconds, **given):
        yield [_without(name, "", str(made))] if isinstance(made, Died) else made


def known_slack(slack: str, /) -> str:
    """Return `slack` (a text such as "1e-9 relative") unchanged if `Domain.with_slack` can read it.

    Raises:
        Refused: in the cases that `Domain.with_slack` lists.
    """
    if slack:
        Domain(
            name="any", chart=lambda point, size: {}, size={}, lower=(0.0,), upper=(1.0,)
        ).with_slack(slack)
    return slack


def in_order(made: Iterable[Certified], selection: Selection, /) -> list[Certified]:
    """Sort certified forms (versions of a claim) in the order of the papers' statements."""
    order = {s.id: i for i, s in enumerate(selection.statements)}
    return sorted(made, key=lambda one: order[one.certificate.id])


def place_for(out: Path, imports: tuple[str, ...], /) -> Held:
    """Lock a folder of certificates, so that no other run writes there."""
    held = taken(out, "certify", (CERTIFICATES,), imports, look)
    try_to_write(held.path)
    return held


def write_certificates(made: Sequence[Certified], selection: Selection, out: Path, /) -> None:
    """Write the witnesses, and add the certificates to certificates.json.

    A witness is the data with which an independent checker confirms a disproof. The file
    certificates.json keeps its entries of other statements.
    """
    form = {s.id: s.form for s in selection.statements}
    for certificate, witness, *_ in made:
        if witness is not None:
            file = f"{certificate.id}.{form[certificate.id](certificate.form).file_name}.json"
            Marked(out).write(f"witnesses/{file}", json.dumps(witness, indent=1) + "\n")
    found = [(one.certificate.to_json(), one.depends) for one in made]
    add_to(out, CERTIFICATES, found, instead=set(form))


def write_theorems(
    made: Sequence[Certified], selection: Selection, folder: Path, /
) -> Iterator[str]:
    """Write a file for the proof assistant Rocq for each form (version of a claim).

    Yield the file's path and size, or the reason why there is no file.
    """
    form = {s.id: s.form for s in selection.statements}
    for one in made:
        c = one.certificate
        if one.refused:
            yield one.refused
        if one.theorem is None:
            continue
        domain = f".{c.domain}" if isinstance(c, Proof) else ""
        name = re.sub(r"\W+", "_", f"{c.id}.{form[c.id](c.form).file_name}{domain}", flags=re.ASCII)
        path = folder / f"{shortened(name.strip('_'), 240)}.v"
        Marked(folder).write(path.name, one.theorem)
        yield (
            f"{path}: {one.theorem.operations} operations, {one.theorem.lemmas} lemmas; coqc may "
            f"take {one.theorem.seconds:.0f} s"
        )


@with_table
class Certificates(Sequence[Certificate | Proof]):
    """A sequence of certificates and proofs.

    A form is one version of a claim: printed, corrected or sharpened.

    Args:
        made: the certificates and proofs; each certificate has its witness (data for an independent
            checker).

    Attributes:
        witnesses: a dictionary from (id, form) to the witness of the disproof.
    """

    def __init__(self, made: Iterable[Certified]) -> None:
        self._made = tuple(made)
        self.witnesses = {
            (one.certificate.id, one.certificate.form): one.witness
            for one in self._made
            if one.witness is not None
        }

    @overload
    def __getitem__(self, index: int) -> Certificate | Proof: ...
    @overload
    def __getitem__(self, index: slice) -> "Certificates": ...
    def __getitem__(self, index: Any) -> Any:
        found = self._made[index]
        return Certificates(found) if isinstance(index, slice) else found.certificate

    def __len__(self) -> int:
        return len(self._made)

    @property
    def status(self) -> int:
        """Return the exit status: 0 if each form (version) is disproved or proved, else 1."""
        return int(any(c.word not in SETTLED for c in self))

    def _table(self) -> Table:
        place = lambda c: f"{c.form}; D: {c.domain}" if isinstance(c, Proof) else c.form
        rows = [(c.id, place(c), c.word, c.reason) for c in self]
        return Table(f"{len(rows)} certificates", ("statement", "form", "word", "reason"), rows)


@restoring
def certify(
    what: Named | Iterable[Named] = (),
    *,
    imports: Iterable[str] = (),
    out: str | Path | None = None,
    seconds: float = SECONDS,
    rocq: str | Path | None = None,
    operations: int = OPERATIONS,
    slack: str = "",
    on: Where | None = None,
    jobs: int = 0,
) -> Certificates:
    """Disprove forms that fail, and prove forms that name domains, as `jaxbounds certify` does.

    A form is one version of a claim: printed, corrected or sharpened. A domain is a box of
    instances on which a form is to be proved.

    Args:
        what: ids of statements, or patterns, as in `verify`. The default is every form that stores
            a counterexample or names domains. If a named statement stores no counterexample,
            `certify` first searches for a counterexample.
        imports: further modules or files that define `PAPER`, a `jb.Paper` of your own.
        out: the folder for certificates.json and witnesses/; without `out` nothing is written.
        seconds: seconds of processor time for a form, after which the form is undecided.
        rocq: the folder for files that the kernel of the proof assistant Rocq checks, one for each
            disproof and proof.
        operations: the largest number of scalar operations that a form may have. The library writes
            no file for Rocq about a form with more operations.
        slack: the slack of every proof, which replaces the slack that the domain states. A proof
            shows lhs <= rhs + slack. The slack is absolute ("1e-9") or relative ("1e-9 relative").
        on: the engine that does the work, as for `verify`.
        jobs: the number of processes, as for `verify`.

    Raises:
        Refused: if `verify` would refuse the same arguments.
    """
    imports = tuple(imports)
    selection = worth_certifying(selected(what, imports=imports))
    held = None if out is None else place_for(Path(out), imports)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if held is None else Marked(held.path).scratch("jobs")
        given: Any = {"on": engine_of(on), "jobs": jobs, "folder": folder}
        given |= {"operations": operations if rocq is not None else 0, "slack": slack}
        found = [one for made in certifying(selection, seconds=seconds, **given) for one in made]
    found = in_order(found, selection)
    if held is not None:
        write_certificates(found, selection, held.path)
        held.release()
    if rocq is not None:
        list(write_theorems(found, selection, Path(rocq)))
    return Certificates(found)


def _crosschecked(seconds: float, catalogue: Catalogue, name: str) -> list[Crosscheck]:
    try:
        return crosscheck(catalogue.statement(name), seconds=seconds)
    except Exception as problem:  # an error of one statement must not end the run
        return [Crosscheck(id=name, form="", finding="not run", reason=origin(problem))]


def crosschecking(
    selection: Selection, /, *, seconds: float, on: On, jobs: int, folder: Place | Path
) -> Iterator[tuple[str, list[Crosscheck]]]:
    """Yield for each statement a comparison of its values in float64 and in ball arithmetic."""
    given = {"on": on, "jobs": jobs, "folder": folder}
    for name, found in _driven(_crosschecked, selection, seconds, **given):
        if isinstance(found, Died):
            found = [Crosscheck(id=name, form="", finding="not run", reason=str(found))]
        yield name, found


def write_crosschecks(found: Sequence[Crosscheck], out: Path, /) -> None:
    """Write the comparisons of float64 with ball arithmetic into crosscheck.json."""
    checks = to_json([asdict(one) for one in found])
    Marked(out).write("crosscheck.json", json.dumps(checks, indent=1, allow_nan=False))
