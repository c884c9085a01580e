"""`jaxbounds.certify`: what fails is disproved, and what names domains is proved on them."""

import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, overload

from jaxbounds.certification import Certificate, Proof, disprove, proofs, witness_of
from jaxbounds.certification.crosscheck import Crosscheck, crosscheck
from jaxbounds.certification.failing import failing_forms, stored
from jaxbounds.files import Place, try_to_write, write_text
from jaxbounds.papers import PAPERS, Catalogue, Named, Selection, origin, selected
from jaxbounds.runs.driver import drive
from jaxbounds.runs.earlier import with_earlier
from jaxbounds.runs.engines import HERE, On, Where, engine_of
from jaxbounds.runs.workers import Died
from jaxbounds.shown import Table, shown
from jaxbounds.statements import Domain, Statement

SECONDS = 120.0
"""Of processor time, after which a form is undecided."""
SETTLED = ("disproved", "disproved as coded", "proved on D")


class Certified(NamedTuple):
    """A certificate with its witness, if it has one; or a proof."""

    certificate: Certificate | Proof
    witness: dict[str, Any] | None = None


def _without(name: str, form: str, reason: str) -> Certified:
    return Certified(Certificate(id=name, form=form, word="undecided", reason=reason))


def _certified(
    statement: Statement, seconds: float, title: str, slack: str = ""
) -> list[Certified]:
    made: list[Certified] = []
    known = any(form.domains for form in statement.forms)
    for failing in stored(statement) if known else failing_forms(statement):
        try:
            certificate = disprove(statement, *failing, seconds=seconds)
        except Exception as problem:  # one broken statement must not cost the others
            made.append(_without(statement.id, failing.form, origin(problem)))
            continue
        decided = certificate.word != "undecided"
        witness = witness_of(statement, failing.instance, certificate, title) if decided else None
        made.append(Certified(certificate, witness))
    return made + [Certified(proof) for proof in proofs(statement, seconds=seconds, slack=slack)]


def _certified_somewhere(
    slack: str, seconds: float, catalogue: Catalogue, name: str
) -> list[Certified]:
    statement = catalogue.statement(name)
    return _certified(statement, seconds, catalogue.paper(statement.paper).title, slack)


def worth_certifying(selection: Selection, /) -> Selection:
    """Where nothing was named: what stores a counterexample, names domains, or is one's own."""
    if selection.parts:
        return selection
    own = {s.id for p in selection.papers if p.id not in PAPERS for s in p.statements}
    domains = lambda s: any(form.domains for form in s.forms)
    statements = (s for s in selection.statements if stored(s) or domains(s) or s.id in own)
    return selection._replace(statements=tuple(statements))


def _driven(work: Any, selection: Selection, seconds: float, **given: Any) -> Iterator[Any]:
    """By statement; those that exist in this process alone are worked on here."""
    if not 0 < seconds < 1e6 or given["jobs"] < 0:
        raise ValueError(f"--jobs or --seconds make no sense: {given['jobs']}, {seconds}")
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
    slack: str = "",
) -> Iterator[list[Certified]]:
    """What is certified, a statement at a time, as it comes."""
    given = {"on": on, "jobs": jobs, "folder": folder}
    work = functools.partial(_certified_somewhere, known_slack(slack))
    for name, made in _driven(work, selection, seconds, **given):
        yield [_without(name, "", str(made))] if isinstance(made, Died) else made


def known_slack(slack: str, /) -> str:
    """The words of a slack, refused at once where they are none.

    Raises:
        ValueError: as `Domain.with_slack`.
    """
    if slack:
        Domain(
            name="any", chart=lambda point, size: {}, size={}, lower=(0.0,), upper=(1.0,)
        ).with_slack(slack)
    return slack


def in_order(made: Iterable[Certified], selection: Selection, /) -> list[Certified]:
    """As the papers have the statements."""
    order = {s.id: i for i, s in enumerate(selection.statements)}
    return sorted(made, key=lambda one: order[one.certificate.id])


def write_certificates(made: Sequence[Certified], selection: Selection, out: Path, /) -> None:
    """certificates.json, which keeps what it has of other statements, and the witnesses."""
    form = {s.id: s.form for s in selection.statements}
    for certificate, witness in made:
        if witness is not None:
            file = f"{certificate.id}.{form[certificate.id](certificate.form).file_name}.json"
            write_text(out / "witnesses" / file, json.dumps(witness, indent=1) + "\n")
    done = [certificate.to_json() for certificate, _ in made]
    write_text(
        out / "certificates.json", with_earlier(out / "certificates.json", done, instead=set(form))
    )


@shown
class Certificates(Sequence[Certificate | Proof]):
    """Certificates and proofs.

    Args:
        made: each with its witness.

    Attributes:
        witnesses: by (id, form): what an independent checker reads.
    """

    def __init__(self, made: Iterable[Certified]) -> None:
        self._made = tuple(made)
        self.witnesses = {(c.id, c.form): w for c, w in self._made if w is not None}

    @overload
    def __getitem__(self, index: int) -> Certificate | Proof: ...
    @overload
    def __getitem__(self, index: slice) -> "Certificates": ...
    def __getitem__(self, index: Any) -> Any:
        """One of them, or some."""
        found = self._made[index]
        return Certificates(found) if isinstance(index, slice) else found.certificate

    def __len__(self) -> int:
        return len(self._made)

    @property
    def status(self) -> int:
        """The exit status of the command: 0 where everything is disproved or proved, else 1."""
        return int(any(c.word not in SETTLED for c in self))

    def _table(self) -> Table:
        place = lambda c: f"{c.form}; D: {c.domain}" if isinstance(c, Proof) else c.form
        rows = [(c.id, place(c), c.word, c.reason) for c in self]
        return Table(f"{len(rows)} certificates", ("statement", "form", "word", "reason"), rows)


def certify(
    what: Named | Iterable[Named] = (),
    *,
    imports: Iterable[str] = (),
    out: str | Path | None = None,
    seconds: float = SECONDS,
    slack: str = "",
    on: Where = HERE,
    jobs: int = 0,
) -> Certificates:
    """Disprove the forms that fail, and prove those that name domains, as `jaxbounds certify` does.

    Args:
        what: as for `verify`; unless given, every form that stores a counterexample or names
            domains. A statement that is named and stores none is searched first.
        imports: further modules or files that hold a PAPER of your own.
        out: folder for certificates.json and witnesses/; nothing is written unless given.
        seconds: of processor time, after which a form is undecided.
        slack: up to which forms are proved, instead of their domains': absolute ("1e-9") or
            relative ("1e-9 relative").
        on: where, as for `verify`.
        jobs: processes, where it is those; 0 means one for each core, 1 this one.

    Raises:
        ValueError: as `verify`.
    """
    selection = worth_certifying(selected(what, imports=imports))
    if out is not None:
        try_to_write(Path(out))
    with tempfile.TemporaryDirectory() as scratch:
        given = {"on": engine_of(on), "jobs": jobs, "folder": Path(out or scratch)}
        found = [
            one
            for made in certifying(selection, seconds=seconds, slack=slack, **given)
            for one in made
        ]  # type: ignore[arg-type]
    found = in_order(found, selection)
    if out is not None:
        write_certificates(found, selection, Path(out))
    return Certificates(found)


def _crosschecked(seconds: float, catalogue: Catalogue, name: str) -> list[Crosscheck]:
    try:
        return crosscheck(catalogue.statement(name), seconds=seconds)
    except Exception as problem:  # one broken statement must not cost the others
        return [Crosscheck(id=name, form="", finding="not run", reason=origin(problem))]


def crosschecking(
    selection: Selection, /, *, seconds: float, on: On, jobs: int, folder: Place | Path
) -> Iterator[tuple[str, list[Crosscheck]]]:
    """What float64 measures against ball arithmetic, a statement at a time."""
    given = {"on": on, "jobs": jobs, "folder": folder}
    for name, found in _driven(_crosschecked, selection, seconds, **given):
        if isinstance(found, Died):
            found = [Crosscheck(id=name, form="", finding="not run", reason=str(found))]
        yield name, found


def write_crosschecks(found: Sequence[Crosscheck], out: Path, /) -> None:
    """crosscheck.json."""
    write_text(out / "crosscheck.json", json.dumps([asdict(one) for one in found], indent=1))
