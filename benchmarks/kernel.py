"""Which recorded disproofs does a kernel accept, and how long does it take?

    python benchmarks/kernel.py
    python benchmarks/kernel.py "seqlength.*" --out results/kernel

Writes the file of every form that stores a counterexample, says its number of operations, and
compiles them one after the other, the smallest first (`coqc` must be there). Each result is a line
of kernel.jsonl; what is there already, of the same text, is not compiled again. In the end one more
file prints all that the theorems rest on. Exits with 1 if a file is rejected.
"""

import hashlib
import json
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

import jaxbounds as jb
from jaxbounds.certification.failing import stored
from jaxbounds.papers import selected

ASSUMPTIONS = "Print Assumptions claim_is_false.\n"


def user_seconds() -> float:
    """Of all processes that were waited for."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def compiled(file: Path) -> dict[str, object]:
    """What `coqc` says of a file."""
    before, started = user_seconds(), time.time()
    run = subprocess.run(
        ["coqc", "-Q", ".", "Kernel", file.name],
        check=False, capture_output=True, text=True, cwd=file.parent,
    )  # fmt: skip
    return {
        "accepted": run.returncode == 0,
        "user_seconds": round(user_seconds() - before, 2),
        "wall_seconds": round(time.time() - started, 2),
        "said": run.stderr.strip()[:300],
    }


def written(patterns: tuple[str, ...]) -> Iterator[dict]:
    """Every disproof with its file, or why it has none."""
    for statement in selected(patterns).statements:
        for failing in stored(statement):
            made: dict = {"id": statement.id, "form": failing.form}
            certificate = jb.disprove(statement, *failing)
            made["word"] = certificate.word
            try:
                file = certificate.rocq()
                made |= {"text": file, **vars(file)}
            except ValueError as problem:
                made |= {"text": "", "operations": 0, "why": str(problem)}
            yield made


def assumptions(modules: list[str], out: Path) -> str:
    """What the theorems of all these files rest on, together."""
    lines = [f"From Kernel Require {name}." for name in modules]
    pairs = ", ".join(f"{name}.claim_is_false" for name in modules)
    lines += [f"Definition everything := ({pairs}).", "Print Assumptions everything."]
    (out / "everything.v").write_text("\n".join(lines) + "\n")
    run = subprocess.run(
        ["coqc", "-Q", ".", "Kernel", "everything.v"],
        check=False, capture_output=True, text=True, cwd=out,
    )  # fmt: skip
    return run.stdout + run.stderr


def main(
    patterns: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    *,
    out: Path = Path("results/kernel"),
) -> int:
    """Compile the files of all disproofs.

    Args:
        patterns: ids, or shell patterns.
        out: folder for the files and kernel.jsonl.
    """
    if shutil.which("coqc") is None:
        raise SystemExit("there is no coqc here: see `jaxbounds guide kernel`")
    out.mkdir(parents=True, exist_ok=True)
    results = out / "kernel.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    known = {one["digest"]: one for one in map(json.loads, lines) if "digest" in one}
    accepted, rejected = [], 0
    for one in sorted(written(patterns), key=lambda made: made["operations"]):
        text = one.pop("text")
        if not text:
            print(f"{one['id']} ({one['form']}): {one['word']}; {one['why']}", flush=True)
            continue
        one["digest"] = hashlib.sha256(text.encode()).hexdigest()
        module = re.sub(r"\W+", "_", f"{one['id']}.{one['form']}").strip("_")
        if one["digest"] not in known or not (out / f"{module}.vo").exists():
            # That of each would read the whole library anew: they are printed together in the end.
            (out / f"{module}.v").write_text(text.replace(ASSUMPTIONS, ""))
            one |= compiled(out / f"{module}.v")
            with results.open("a") as stream:
                stream.write(json.dumps(one) + "\n")
        else:
            one = known[one["digest"]]
        print(
            f"{one['id']} ({one['form']}): {one['word']}; {one['operations']} operations, "
            f"{one['lemmas']} lemmas, {one['seconds']:.1f} s expected, {one['user_seconds']} s: "
            f"{'accepted' if one['accepted'] else one['said']}",
            flush=True,
        )
        accepted += [module] if one["accepted"] else []
        rejected += not one["accepted"]
    print(f"{len(accepted)} accepted, {rejected} rejected")
    said = assumptions(accepted, out)
    (out / "assumptions.txt").write_text(said)
    axioms = re.findall(r"^(\S+)\s*:", said, re.MULTILINE)
    print("they rest on: " + ", ".join(sorted(axioms)))
    return int(bool(rejected))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
