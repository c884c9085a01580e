"""Compute the identity of a sweep, which describes the sweep's program and its lanes (runs).

All checkpoints in a folder have one identity. The module traces and hashes programs, with the
values of the arrays that they close over. JAX does not trace a function that a program calls on the
host. The user's argument `fingerprint` must describe this function.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbounds.experiments.provenance import products_used, versions
from jaxbounds.experiments.sweeps.checkpoint import ABOUT, plain
from jaxbounds.experiments.sweeps.inputs import by_path
from jaxbounds.experiments.sweeps.work import like
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, is_there
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.readers import Damaged, fits, parsed
from jaxbounds.programs.traces import bytes_of, equations, program_text

Identity = dict[str, str]
"""A dict from the name of each part of a sweep, such as "lanes['rate'], values", to a digest or a
text."""
SETTINGS = ("jax_threefry_partitionable", "jax_default_prng_impl", "jax_random_seed_offset")
"""JAX settings that change random numbers, although a traced program does not show the settings."""
PACKAGES = ("jaxbounds", "jax", "jaxlib", "numpy", "machine")
"""The entries of `versions` on which the bits of a program's results depend."""


def _sha(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


def _values(name: str, tree: Any) -> Identity:
    found = {}
    for path, leaf in by_path(tree).items():
        found[f"{name}{path}, type and shape"] = f"{leaf.dtype} {tuple(leaf.shape)}"
        data = np.require(np.asarray(plain(leaf)), requirements="C")
        found[f"{name}{path}, values"] = _sha(data.tobytes())
    return found


def _traced(name: str, function: Callable, *shapes: Any) -> tuple[Identity, Any]:
    closed, returned = jax.make_jaxpr(function, return_shape=True)(*shapes)
    literals = [
        bytes_of(atom.val)
        for eqn in equations(closed.jaxpr)
        for atom in eqn.invars
        if hasattr(atom, "val")
    ]
    tree = str(jax.tree.structure(shapes)).encode()
    found = {
        f"{name}, the program": _sha(program_text(closed).encode(), tree, *literals),
        f"{name}, values that it closes over": _sha(*map(bytes_of, closed.consts)),
    }
    return found, returned


def identity_of(
    start: Callable,
    step: Callable,
    measure: Callable,
    lanes: Any,
    shared: tuple,
    /,
    *,
    deciding: dict[str, Callable | None],
    about: dict[str, Any],
    device: Any,
) -> tuple[Identity, str]:
    """Return the identity of a sweep, and a digest (mark) of its programs, settings and shapes.

    The identity describes the sweep's compiled program and its lanes (runs). The dict `deciding`
    holds the functions "finished" (of a state) and "enough" (of the metrics of a lane at one step).
    """
    one = lambda tree: jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape[1:], s.dtype), tree)
    lane, common = one(like(lanes, 1)), jax.tree.map(_shape, shared)
    begin = lambda lane, shared: start(lane, *shared)
    look = lambda lane, state, shared: measure(lane, state, *shared)
    programs, state = _traced("start", begin, lane, common)
    programs |= _traced("step", lambda a, b, c: step(a, b, *c), lane, state, common)[0]
    measured, found = _traced("measure", look, lane, state, common)
    programs |= measured
    arguments = {"finished": state, "enough": found}
    for name, function in deciding.items():
        programs |= {f"{name}, the program": "none"}
        if function is not None:
            programs |= _traced(name, function, arguments[name])[0]
    config = {name: str(jax.config.values.get(name)) for name in SETTINGS}
    used = {name: text for name, text in versions().items() if name in PACKAGES}
    programs |= used | config | {"precision of products": products_used()}
    programs |= {"kind of device": f"{device.platform} {device.device_kind}"}
    programs |= {name: json.dumps(value) for name, value in about.items()}
    shapes = [(path, str(leaf.dtype), leaf.shape[1:]) for path, leaf in by_path(lanes).items()]
    shapes += [(path, str(leaf.dtype), leaf.shape) for path, leaf in by_path(shared).items()]
    mark = _sha(json.dumps([programs, shapes], sort_keys=True, default=str).encode())
    return programs | _values("lanes", lanes) | _values("shared", shared), mark


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype)


def digest_of(identity: Identity, /) -> str:
    """Return a digest (one word) of a sweep's identity."""
    return _sha(json.dumps(identity, sort_keys=True).encode())


def write_identity(marked: Marked, identity: Identity, group: int, /) -> None:
    """Write a sweep's identity (digests of code and inputs) and runs per group into the folder."""
    about = {"identity": identity, "group": group}
    marked.write(ABOUT, json.dumps(about, indent=1, sort_keys=True) + "\n")


def read_identity(marked: Marked, /) -> tuple[Identity, int] | None:
    """Read a sweep's identity, and the number of runs in each group; None without a sweep.

    Raises:
        Damaged: if the sweep's file is damaged.
    """
    path: Place = marked.place(ABOUT)
    if not is_there(path):
        return None
    try:
        stored = parsed(path.read_bytes())
        if not fits(stored["identity"], dict[str, str]) or not fits(stored["group"], int):
            raise Refused(
                f"{ABOUT} has identity={stored['identity']!r:.40} and "
                f"group={stored['group']!r:.40}, expected a dictionary of texts and a whole "
                f"number. Try another folder"
            )
        marked.refuse_changed(ABOUT)
    except (ValueError, KeyError, TypeError) as problem:
        raise Damaged(
            f"{path} is damaged ({problem}). Try fresh=True, which renames the file"
        ) from problem
    return stored["identity"], stored["group"]


def differences(there: Identity, here: Identity, /) -> list[str]:
    """Describe each difference between the identities of two sweeps in a few words."""
    short = lambda text: text if len(text) < 40 else f"{text[:8]}..."
    return [
        f"{name} ({short(there.get(name, 'nothing'))} there, {short(here.get(name, 'nothing'))})"
        for name in sorted(there | here)
        if there.get(name) != here.get(name)
    ]
