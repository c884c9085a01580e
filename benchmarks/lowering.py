"""Which programs of every experiment XLA's other platforms take: exported, on the CPU alone.

    python benchmarks/lowering.py                          # a row for each experiment
    python benchmarks/lowering.py --only qstr.fig1a seqlength.majority

Each experiment runs at toy size, and every program that JAX lowers on the way (initialisations,
training steps, evaluations, and single operations) is exported for each platform by `jax.export`.
A row says how many differ, how many steps of training give their memory on, in which types and
matmul precisions they compute, and what is refused. Exporting is lowering: what a compiler for a
TPU makes of it (memory, time) was not seen.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import tyro
from jax._src.interpreters import mlir  # no public door sees every program that is lowered

from jaxbounds.ground.jax_internals import as_function
from jaxbounds.multihead.experiments.fig6 import Figure6
from jaxbounds.multihead.experiments.looseness import Looseness
from jaxbounds.multihead.experiments.ntk import NTK
from jaxbounds.multihead.experiments.weakconvexity import WeakConvexityCurves
from jaxbounds.papers import experiments
from jaxbounds.qstr.experiments.constructions import Constructions
from jaxbounds.qstr.experiments.figure1 import Figure1
from jaxbounds.qstr.experiments.figure2 import Figure2
from jaxbounds.qstr.experiments.online import Protocol
from jaxbounds.qstr.experiments.phase import Phase
from jaxbounds.seqlength.experiments.config import SparseMajority
from jaxbounds.seqlength.sparse_majority import Embedding

PLATFORMS = ("tpu", "cuda")
CURVES = ("multihead.fig2", "multihead.fig3", "multihead.fig4", "multihead.fig5")
QUICK = ("smapprox.margins", "smapprox.learn")
"""Small enough as they are."""


def toys() -> dict[str, Any]:
    """Every experiment at a size at which it takes seconds."""
    toy = Protocol(d=2, check_every=5, test_prompts=64, max_samples=960, threshold=0.5)
    curves = {"heads": (1, 1000), "trials": 2, "steps": 40, "opening": 2, "n": 10, "test": 10}
    embedding = Embedding(d=8, symbols="l2", symbol_scale=3.0, position_scale=0.5)
    figure1 = Figure1(
        protocol=toy, architectures=("transformer", "feedforward"), lengths=(2, 4), seeds=2
    )
    with_gates = replace(figure1, architectures=("transformer", "feedforward", "gru128"))
    usual = {name: one.config for name, one in experiments().items()}
    return usual | {
        "qstr.fig1a": figure1,
        "qstr.fig1b": replace(with_gates, protocol=replace(toy, simple=True)),
        "qstr.fig2": Figure2(protocol=replace(toy, simple=True), N=4, samples=640),
        "qstr.phase": Phase(
            sparsities=(2,), heads=(1, 2), width=4, batch=8, steps=3, test_prompts=20, restarts=1
        ),
        "qstr.constructions": Constructions(
            attention_length=4, coherences=(0.5,), logits=(4.0, 8.0), lengths=(8,), points=(10,),
            draws=2, sparsities=(3,), tilts=(0.1, 0.01), prompts=20, code_lengths=(2,),
        ),
        "multihead.looseness": Looseness(
            heads=(4, 6, 8), tokens=(2, 4, 6), dimensions=(1, 2, 3), n=2, samples=1, seeds=1,
            steps=(0, 2), run_heads=4,
        ),
        "multihead.ntk": NTK(
            samples=(5, 10), heads=(1, 2), scales=(1.0,), first_samples=20, held_out=20, seeds=1
        ),
        "multihead.weakconvexity": WeakConvexityCurves(
            heads=(1, 2, 4), arms=("fixed",), dimension=4, tokens=4, distractors=1, n=6,
            records=(0, 2), iterations=20, seeds=1,
        ),
        "multihead.fig6": Figure6(
            heads=(1, 2), trials=2, epochs=2, batch=8, n=50, test=20, length=12, width=8,
            layers=1, inner=8, step_size=5e-3,
        ),
        **{name: replace(usual[name], **curves) for name in CURVES},
        "seqlength.majority": SparseMajority(
            lengths=(5, 6), seeds=3, sparsity=1, train=40, validation=60, epochs=30, every=5,
            chunk=6, group=2, batch=16, rate=0.02, hidden=8, embedding=embedding,
        ),
        **{name: experiments()[name].presets["quick"] for name in QUICK},
    }  # fmt: skip


@dataclass
class Found:
    """What the programs of a run are.

    Attributes:
        programs: how many differ.
        types: of their arguments, results and constants.
        precisions: of products of float32 matrices; "" where none is named.
        donating: how many have an argument that a result may overwrite.
        kept: how many of those are exported so, by platform.
        refused: what was not exported, by platform: the program's name and the reason.
    """

    programs: int = 0
    types: set[str] = field(default_factory=set)
    precisions: set[str] = field(default_factory=set)
    donating: int = 0
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PLATFORMS, 0))
    refused: dict[str, list[str]] = field(default_factory=lambda: {p: [] for p in PLATFORMS})


def _precisions(text: str) -> Iterator[str]:
    """Of products of float32 matrices in a module."""
    for line in text.splitlines():
        if ("dot_general" in line or "stablehlo.convolution" in line) and "xf32>" in line:
            named = re.search(r"precision = \[(\w+)", line)
            yield named[1].lower() if named else "default"


def look_at(name: str, jaxpr: Any, donated: tuple[int, ...], found: Found) -> None:
    """Export a program for every platform."""
    function = as_function(jaxpr)
    function.__name__ = re.sub(r"\W", "_", name)
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
    found.programs += 1
    found.donating += bool(donated)
    for platform in PLATFORMS:
        try:
            exported = jax.export.export(
                jax.jit(function, donate_argnums=donated), platforms=(platform,)
            )(*shapes)
        except Exception as problem:  # whatever lowering stumbles over is what is reported
            found.refused[platform].append(f"{name}: {str(problem).splitlines()[0][:120]}")
            continue
        text = exported.mlir_module()
        main = text[text.index("@main") :].splitlines()[0]
        found.kept[platform] += bool(donated) and (
            "jax.buffer_donor" in main or "tf.aliasing_output" in main
        )
        found.types |= set(re.findall(r"(?:x|tensor<)(bf16|f16|f32|f64|complex)", text))
        found.precisions |= set(_precisions(text))


@contextlib.contextmanager
def every_program() -> Iterator[Found]:
    """For the length of a `with` block each program that JAX lowers is looked at."""
    found, seen, usual = Found(), set[str](), mlir.lower_jaxpr_to_module
    exporting = False

    def lower(name: str, jaxpr: Any, **options: Any) -> Any:
        nonlocal exporting
        mark = f"{jaxpr} {jaxpr.in_avals}"
        if not exporting and mark not in seen:
            seen.add(mark)
            exporting = True
            donated = tuple(i for i, given in enumerate(options["donated_args"]) if given)
            try:
                look_at(str(name), jaxpr, donated, found)
            finally:
                exporting = False
        return usual(name, jaxpr, **options)

    jax.clear_caches()
    mlir.lower_jaxpr_to_module = lower
    try:
        yield found
    finally:
        mlir.lower_jaxpr_to_module = usual


def programs_of(name: str, run: Callable | None = None) -> Found:
    """Of an experiment at toy size."""
    with every_program() as found:
        (run or experiments()[name].run)(toys()[name], jax.random.key(0))
    return found


def main(only: tuple[str, ...] = ()) -> None:
    """Print a row for each experiment."""
    print(f"{'experiment':<24} {'programs':>8}   tpu  cuda donating  types; matmul precision")
    for name in only or tuple(experiments()):
        found = programs_of(name)
        taken = [found.programs - len(found.refused[platform]) for platform in PLATFORMS]
        kinds = f"{' '.join(sorted(found.types))}; {' '.join(sorted(found.precisions)) or 'none'}"
        print(
            f"{name:<24} {found.programs:>8} {taken[0]:>5} {taken[1]:>5} "
            f"{found.donating:>4} {found.kept['tpu']}/{found.kept['cuda']}  {kinds}",
            flush=True,
        )
        for platform in PLATFORMS:
            for reason in found.refused[platform]:
                print(f"    {platform} refuses {reason}")


if __name__ == "__main__":
    tyro.cli(main)
