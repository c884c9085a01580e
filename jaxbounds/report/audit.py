"""The audit of a paper for its authors, as one Markdown text."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from jaxbounds.claims.statements import Erratum, Form, Paper, Statement
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.falsification import Verdict, load_instance
from jaxbounds.ground.tables import Table, with_table
from jaxbounds.report.cite import RECOMPUTED, digest, finding, is_address
from jaxbounds.report.columns import BRIEF, closeness, number
from jaxbounds.report.describe import instance_text, sides_text
from jaxbounds.report.headline import fails_as_printed, headline, plural, weights_in_words
from jaxbounds.report.items import coverage, in_short
from jaxbounds.report.markdown import anchor, block, bullets, code, link, quoted, table, text
from jaxbounds.report.quantifiers import checked, in_one_line, quantifiers
from jaxbounds.report.rows import certificate_words, evidence_words
from jaxbounds.report.sections import EVIDENCE, MEANING
from jaxbounds.report.terminal import grouped

WEIGHTS: Mapping[Weight, str] = {
    "false": "false as printed, under all hypotheses of the paper and on every sensible reading",
    "gap": "a step of a proof does not follow; the statement may stand",
    "reading": "false on one reading, true on another",
    "typo": "a slip of the pen",
    "undecidable": "depends on one unclear character of the available text, which may be a "
    "misprint",
}
PROOFS = {
    "disproved": "ball arithmetic encloses both sides on one instance. Every hypothesis is certain "
    "there, and the sides violate the claim by a margin for any rounding of the constants.",
    "disproved as coded": "disproved, if the floats in the program, and numbers that Python "
    "computed outside of it, count as exact.",
    "proved on D": "branch and bound in ball arithmetic covered the box D, up to a slack.",
}


@with_table
class Audit(NamedTuple):
    """The data from which the audit of a paper is written.

    Attributes:
        paper: the paper.
        verdicts: the verdicts on all statements of the paper.
        settings: all that the verdicts depend on: package versions, the digest of the source code,
            the seed, and further settings.
        out: the folder that holds the stored instances and witnesses.
        imports: the arguments of the command's option `--import`.
    """

    paper: Paper
    verdicts: tuple[Verdict, ...]
    settings: Mapping[str, Any]
    out: Path
    imports: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return the digest of the findings; `cite.digest` ignores the machine and the run time."""
        return digest(self.verdicts)

    def _table(self) -> Table:
        title = f"{self.paper.title}: {self.out}, digest {self.digest[:16]}"
        rows = [[column.text(v) for column in BRIEF] for v in self.verdicts]
        return Table(title, [column.name for column in BRIEF], rows)

    def command(self, *words: str) -> str:
        """Return a command line that computes a finding of the audit again."""
        own = [word for where in self.imports for word in ("--import", where)]
        return f"jaxbounds {shlex.join([*words, *own])}"


def markdown(audit: Audit, /) -> str:
    """Return the audit as Markdown: summary, errors, all claims, unchecked items, and commands.

    The commands let anyone repeat the audit.
    """
    paper, parts = audit.paper, list[str]()
    parts += [f"# {text(paper.title)}: its claims, measured"]
    parts += [text(paper.citation)] if paper.citation else []
    parts += [f"Read: {_sentence(paper.edition)}"] if paper.edition else []
    parts += [", ".join(map(_named, paper.links, paper.links.values()))] if paper.links else []
    parts += _incomplete(audit)
    made = f"jaxbounds {audit.settings['jaxbounds']}, seed {audit.settings['seed']}"
    parts += [f"*Measured with {made}; digest* {code(audit.digest[:16])}"]
    parts += _in_short(audit)
    parts += _errata(audit)
    parts += _sharper(audit)
    parts += ["## Every claim", "In the paper's order, each with its measurements."]
    statements = {s.id: s for s in paper.statements}
    for name, verdicts in grouped(audit.verdicts).items():
        parts += _claim(statements[name], verdicts, audit)
    parts += _items(audit)
    parts += _by_place("Remarks", "Observations that are no errata.", paper.remarks, audit)
    parts += _by_place("Not checked", "Each item has the reason.", paper.unchecked, audit)
    parts += _by_place("Short names", "Forms and notes use these names.", paper.codes, audit)
    parts += _by_place(
        "Numbered items", "Each has its statement, or why there is none.", paper.items, audit
    )
    return "\n\n".join([*parts, *_reading(audit), *_again(audit)]) + "\n"


def _incomplete(audit: Audit) -> Iterator[str]:
    """Yield a warning that names the statements without a verdict, if there are such statements."""
    judged, every = {v.id for v in audit.verdicts}, audit.paper.statements
    left = [s.id for s in every if s.id not in judged]
    if left:
        yield (
            f"**Incomplete**: the run stopped before it judged {len(left)} of "
            f"{plural(len(every), 'statement')}: {', '.join(map(code, left))}. The command under "
            '"How to repeat it" judges these statements.'
        )


def _sentence(words: str) -> str:
    return f"{text(words.rstrip('. '))}."


def _named(name: str, target: str) -> str:
    return link(name, target) if is_address(target) else text(f"{name}: {target}")


def _in_short(audit: Audit) -> Iterator[str]:
    paper, verdicts = audit.paper, audit.verdicts
    yield "## In short"
    if paper.survives:
        yield text(paper.survives)
    judged = len({v.id for v in verdicts})
    printed = Counter[str](v.status for v in verdicts if v.form.startswith("printed"))
    twins = Counter[str](v.status for v in verdicts if v.is_twin)
    others = Counter[str](v.status for v in verdicts if not v.form.startswith("printed")) - twins
    beside = f", and {plural(twins.total(), 'false twin')}" if twins else ""
    forms = plural(len(verdicts) - twins.total(), "form")
    yield (
        f"{plural(judged, 'statement')} of the paper in {forms} were measured: as printed, and as "
        f"derived, corrected or sharpened{beside}."
    )
    names = [name for name in MEANING if printed[name] or others[name] or twins[name]]
    rows = [["printed", *(str(printed[n]) for n in names)]]
    rows.append(["derived, corrected, sharpened", *(str(others[n]) for n in names)])
    if twins:
        rows.append(["false twins, which must fail", *(str(twins[n]) for n in names)])
    yield table(["forms", *names], rows)
    moved = [v for v in verdicts if not v.as_expected and v.recorded]
    if moved:
        said = (f"{code(v.id)} ({text(v.form)}): {v.status}, recorded {v.expected}" for v in moved)
        yield f"**Not as recorded**, please check before you send this: {'; '.join(said)}."
    others_moved = [v for v in verdicts if not v.as_expected and not v.recorded]
    if others_moved:
        said = (f"{code(v.id)} ({text(v.form)}): {v.status}" for v in others_moved)
        yield f"**Not shown to hold, or a false twin not refuted**: {'; '.join(said)}."
    wrong = weights_in_words(fails_as_printed(paper, verdicts))
    yield f"Statements whose printed form is false, by the weight of the erratum: {wrong}."
    if paper.errata:
        yield f"**{text(headline([paper]))}.**"
        of = {k: [_to(e.id) for e in paper.errata if e.kind == k] for k in get_args(Weight)}
        yield bullets(
            [f"{len(of[k])} *{k}* ({WEIGHTS[k]}): {', '.join(of[k])}" for k in of if of[k]]
        )


def _errata(audit: Audit) -> Iterator[str]:
    if audit.paper.errata:
        yield "## Errata"
        yield "The weightiest erratum comes first."
    for e in audit.paper.by_weight:
        yield f"### {text(e.id)}"
        yield f"**{text(e.where)}** ({e.kind})"
        yield quoted(e.quote)
        yield text(e.text)
        if e.detail:
            yield text(e.detail)
        for words, reading in zip(("False if read so", "True if read so"), e.readings):
            yield f"*{words}:* {text(reading)}"
        yield f"*Consequence.* {text(e.consequence)}"
        yield f"*Main theorems:* {_sentence(e.main)}"
        yield f"*Evidence:* {_linked(e.evidence, audit)}"
        cited = {(s.id, f.name) for s in audit.paper.statements for f in s.forms if _shows(f, e)}
        shown = [v for v in audit.verdicts if (v.id, v.form) in cited]
        if shown:
            yield bullets([f"{_to(v.id)} ({text(v.form)}): {_found(v, audit)}" for v in shown])


def _shows(form: Form, erratum: Erratum) -> bool:
    return form.erratum == erratum.id


def _to(name: str) -> str:
    return link(name, f"#{anchor(name)}")


def _linked(words: str, audit: Audit) -> str:
    known = {v.id for v in audit.verdicts} | {e.id for e in audit.paper.errata}
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    return re.sub(rf"(?<![\w.])({names})(?![\w-]|\.\w)", lambda m: _to(m[0]), text(words))


def _shown(out: Path) -> str:
    return out.name if out.is_absolute() else out.as_posix()


def _found(verdict: Verdict, audit: Audit) -> str:
    lines = [f"**{verdict.status}**, {closeness(verdict)}; {_sentence(verdict.reason)}"]
    if verdict.shrunk_file:
        stored = load_instance(audit.out / verdict.shrunk_file)
        size = ", ".join(f"{k} = {v}" for k, v in stored.meta["size"].items())
        where = f" ({text(size)})" if size else ""
        at = code(instance_text(stored.instance))
        ratio = f"ratio {number(float(stored.meta['ratio']))}"
        sides = sides_text(verdict.relation, stored.meta)
        lines.append(f"Counterexample{where}, {sides or ratio}: {at}.")
    if verdict.certificate:
        lines.append(f"Certificate: {_sentence(certificate_words(verdict))}")
    if verdict.witness_file:
        lines.append(f"Witness: {link(verdict.witness_file, verdict.witness_file)}.")
        if (audit.out / verdict.theorem_file).is_file():
            theorem = link(verdict.theorem_file, verdict.theorem_file)
            lines.append(f"A file that the kernel of Rocq checks: {theorem}.")
    if verdict.shrunk_file:
        file = f"{_shown(audit.out)}/{verdict.shrunk_file}"
        lines.append(f"Again: {code(audit.command('replay', file))}")
    return "\\\n".join(lines)


def _sharper(audit: Audit) -> Iterator[str]:
    by_id = grouped(audit.verdicts)
    rows = []
    for verdicts in by_id.values():
        printed = next((v for v in verdicts if v.form.startswith("printed")), None)
        for v in verdicts:
            before, now = closeness(printed) if printed else "-", closeness(v)
            sharper = v.form.startswith("sharpened") and v.status == "holds" and before != now
            if sharper and v.relation in ("<=", ">="):
                rows.append([_to(v.id), text(v.label), before, text(v.form), now])
    if rows:
        yield "## Sharper forms"
        yield "These forms hold with a smaller right side. The proof stands with each claim."
        yield table(["statement", "in the paper", "printed", "sharper", "how close"], rows)


def _claim(statement: Statement, verdicts: Sequence[Verdict], audit: Audit) -> Iterator[str]:
    yield f"### {text(statement.id)}"
    where = f"; {text(statement.source)}" if statement.source else ""
    yield f"**{text(statement.label)}** ({statement.kind}{where})"
    yield block(statement.tex, "math") if statement.tex else block(in_one_line(statement))
    for title, words in quantifiers(statement):
        yield f"*{title.capitalize()}:* {text(words)}"
    if statement.assumptions:
        yield f"*Assumes:* {text(statement.assumptions)}"
    hypotheses = [name for name in verdicts[0].checked if all(name in v.checked for v in verdicts)]
    for title, names in checked(statement, hypotheses):
        yield f"*{title.capitalize()}:* {text(', '.join(names))}"
    yield bullets([_form(statement.form(v.form), v, audit) for v in verdicts])
    if excluded := verdicts[0].excluded:
        said = (f"{count} for {text(reason)}" for reason, count in excluded.items())
        yield f"*Draws left out:* {'; '.join(said)}"
    seed, thorough = ["--seed", str(audit.settings["seed"])], audit.settings["thorough"]
    again = audit.command("verify", statement.id, *seed, *["--thorough"] * thorough)
    control = verdicts[0].control.get("status")
    rejected = control in ("fails", "inconsistent")
    status = f" ({'rejected, as it must be' if rejected else control})" if control else ""
    yield (
        f"*Control*{status}: {_sentence(statement.control_in_words)} {verdicts[0].precision}, "
        f"tolerance {statement.tolerance:g}. Again: {code(again)}"
    )


def _form(form: Form, verdict: Verdict, audit: Audit) -> str:
    head = text(f"{form.name}; {form.cites}" if form.cites else form.name)
    head += f" ({_to(form.erratum)})" if form.erratum else ""
    if verdict.status in ("fails", "inconsistent"):
        lines = [f"{head}: {_found(verdict, audit)}"]
    else:
        said = f"**{verdict.status}**, {closeness(verdict)}; {_sentence(verdict.reason)}"
        lines = [f"{head}: {said}"]
        if verdict.certificate:
            lines.append(f"Certificate: {_sentence(certificate_words(verdict))}")
    lines.append(f"Evidence: {_sentence(evidence_words(verdict))}")
    if form.note:
        lines.append(
            f"{'Why' if verdict.status != 'holds' else 'Proof or reason'}: {text(form.note)}"
        )
    if form.equality:
        lines.append(f"Equality: {_sentence(form.equality)}")
    return "\\\n".join(lines)


def _by_place(title: str, about: str, entries: Mapping[str, str], audit: Audit) -> Iterator[str]:
    if entries:
        yield f"## {title}"
        yield about
        yield bullets([f"**{text(k)}**: {_linked(v, audit)}" for k, v in entries.items()])


def _items(audit: Audit) -> Iterator[str]:
    found = coverage(audit.paper, audit.verdicts)
    if not found:
        return
    yield "## Items of the source"
    yield f"{in_short(found)}."
    rows = [
        [text(c.item.printed), text(c.item.label), text(c.item.place),
         ", ".join(map(_to, c.ids)), text(c.words)]
        for c in found
    ]  # fmt: skip
    yield table(["item", "label", "place", "statement", "verdict"], rows)


def _reading(audit: Audit) -> Iterator[str]:
    statuses = {v.status for v in audit.verdicts}
    evidence = {v.evidence for v in audit.verdicts}
    yield "## How to read it"
    yield bullets([f"*{name}*: {MEANING[name]}" for name in MEANING if name in statuses])
    words = EVIDENCE | PROOFS
    yield "Evidence, from weak to strong:"
    yield bullets([f"*{name}*: {words[name]}" for name in words if name in evidence])
    yield (
        '"x3 loose" means that the right side was at least three times the left side on every '
        'instance, and "attained" that an instance reached the right side. "loose by 0.3%" is a '
        'factor below 1.005. "loose by 2" and "over by 2" give the difference of the sides, if a '
        "side is negative or zero. A worst ratio found by search is a lower estimate of the "
        "supremum. A control is a false variant "
        "of a claim: the author of the statement or the library made the control false on purpose. "
        "The library judges the control like the claim, and must reject the control. The library "
        "also makes each form stronger: the larger side becomes 1% smaller (for an identity, one "
        "side moves by a millionth). If no instance refutes the stronger form, the form may be "
        "loose by more than that. An audit is evidence "
        "about the formulas as code states them. The paper's authors judge best whether the code "
        "states them rightly."
    )


def _again(audit: Audit) -> Iterator[str]:
    version, paper = audit.settings["jaxbounds"], audit.paper
    yield "## How to repeat it"
    wanted = ["audit", paper.id, "--seed", str(audit.settings["seed"]), "--out", _shown(audit.out)]
    certified = [] if audit.settings["certify"] else ["--no-certify"]
    yield f"With jaxbounds {version} installed, and python-flint for certificates:"
    yield block(audit.command(*wanted, *certified))
    yield (
        "Draws are equal on all machines. Last digits, and so the results of a search, can differ "
        "between processors and versions. This run used:"
    )
    shown = {k: v for k, v in audit.settings.items() if k != "imports"}
    yield bullets([f"{text(k)}: {code(v)}" for k, v in shown.items()])
    yield f"Digest of the findings (SHA-256): {code(audit.digest)}"
    yield (
        "The digest covers the ids, forms, statuses, evidence and ratios to three digits, and not "
        "the machine, versions and seconds. The command above prints it. This program prints it "
        f"without jaxbounds, from {code('verdicts.json')}. If two digests differ, "
        f"{code('jaxbounds diff')} of the two folders names the verdict or ratio that differs."
    )
    yield block(RECOMPUTED.rstrip(), "python")
    yield "## Cite this"
    if paper.bibtex:
        yield "The paper:"
        yield block(paper.bibtex.strip(), "bibtex")
    if audit.verdicts:
        yield "One finding (replace the statement to cite another finding):"
        yield block(finding(paper, audit.verdicts, audit.settings))
