"""Describe a run: its experiment, configuration and seed, and the command that starts it."""

import contextlib
import dataclasses
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import tyro

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.provenance import PRECISIONS, asked_for, provenance
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.papers import find_experiment
from jaxbounds.runs.digest import digest_of


class Request(NamedTuple):
    """The request of a run: the experiment with all settings on which its results depend.

    An empty `precision` lets the experiment choose JAX's precision of matrix products. The `flags`
    are options with which `jaxbounds run` makes an equal request.
    """

    experiment: Experiment
    config: Any
    seed: int
    precision: str
    imports: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def key(self) -> jax.Array:
        """Return the random key from which the run derives all random numbers."""
        return jax.random.key(self.seed)

    @property
    def about(self) -> dict[str, Any]:
        """Return the settings that the result of the run depends on."""
        with asked_for(self.precision):
            return provenance(self.config, self.key) | {"experiment": self.experiment.id}

    def absolute_flags(self) -> tuple[str, ...]:
        """Return `flags` with absolute paths, for a process in another working directory."""
        whole = lambda name: str(Path(name).resolve()) if Path(name).exists() else name
        return tuple(
            whole(word) if before == "--import" else word
            for before, word in zip(("", *self.flags), self.flags)
        )

    def identity(self) -> dict[str, Any]:
        """Return `about` and the digest of the code; all shards of a run have an equal identity."""
        about = self.about | {"source": digest_of(self.imports)}
        del about["git"]  # the digest of the source replaces it
        return about


def configured(experiment: Experiment, preset: str, words: Iterable[str], **more: Any) -> Any:
    """Return a preset with some fields changed by options, for example "--steps", "100".

    Raises:
        Refused: if the experiment has no preset of the given name.
    """
    presets = {"default": experiment.config, **experiment.presets}
    if preset not in presets:
        raise Refused(f"{experiment.id} has no {preset=}. Try one of: {', '.join(presets)}")
    prog, default = f"jaxbounds run {experiment.id}", presets[preset]
    return tyro.cli(type(default), default=default, args=[*words], prog=prog, **more)


def requested(
    experiment: str,
    words: Iterable[str] = (),
    /,
    *,
    preset: str = "default",
    seed: int = 0,
    precision: str = "",
    imports: Iterable[str] = (),
) -> Request:
    """Return the request of an experiment; the options `words` set fields of its configuration.

    Raises:
        Refused: if the experiment, the preset or the precision is unknown, or the seed is invalid.
    """
    words, imports = tuple(words), tuple(imports)
    chosen = find_experiment(experiment, imports=imports)
    config = configured(chosen, preset, words)
    refuse_other_seeds(seed)
    if precision not in ("", *PRECISIONS):
        raise Refused(
            f"precision={precision!r}, expected a precision of matrix products. Try one of: "
            f"{', '.join(PRECISIONS)}. Parameters stay in float32, or in float64 if the experiment "
            "has the field --dtype. In bfloat16 a step below 1/256 of a parameter would be lost"
        )
    same = ["--preset", preset, "--seed", str(seed)]
    same += ["--precision", precision] * bool(precision)
    same += [word for module in imports for word in ("--import", module)]
    return Request(chosen, config, seed, precision, imports, (*same, *words))


class _Flags(NamedTuple):
    words: tuple[str, ...]
    given: dict[str, Any]
    imports: tuple[str, ...]


def _parsed(flags: Iterable[str]) -> _Flags:
    words, imports, given = list(flags), list[str](), dict[str, Any]()
    while words and words[0] in ("--preset", "--seed", "--precision", "--import"):
        if len(words) == 1:
            raise Refused(f"the flag={words[0]} has no value. Try to add a value behind it")
        name, value, *words = words
        if name == "--import":
            imports.append(value)
        else:
            given[name[2:]] = int(value) if name == "--seed" else value
    return _Flags(tuple(words), given, tuple(imports))


def again(experiment: str, flags: Iterable[str], /) -> Request:
    """Return the request that a list of flags (as in `Request.flags`) describes.

    The flags must come from this process or its parent, because a flag may name code that Python
    then imports and executes.

    Raises:
        Refused: in the cases that `requested` lists.
    """
    words, given, imports = _parsed(flags)
    return requested(experiment, words, **given, imports=imports)


def from_file(
    experiment: str, flags: Iterable[str], /, *, imports: Iterable[str], file: object
) -> Request:
    """Return the request that a file describes by its flags, without executing code.

    Raises:
        Refused: if the flags name imports but `imports` is empty, if a flag is not a field of the
            configuration, or in the cases that `requested` lists.
    """
    imports, flags = tuple(imports), tuple(flags)
    try:
        if not all(isinstance(word, str) for word in (experiment, *flags)):
            raise Refused(
                f"experiment={experiment!r:.40} or one of flags={flags!r:.60} is not a text. Try "
                "to compute the file again"
            )
        words, given, named = _parsed(flags)
        if named and not imports:
            again = " ".join(f"--import {name}" for name in named)
            raise Refused(
                f"the run needs imports={named!r}, but the library executes no code that a file "
                f"of results names. Try to add {again} to the command, if you trust that code"
            )
        _refuse_commands(words)
        with _parser_refuses():
            return requested(experiment, words, **given, imports=imports)
    except ValueError as problem:
        raise Refused(f"file={file} describes no run of this library: {problem}") from problem


def _refuse_commands(words: Iterable[str]) -> None:
    for word in words:
        if word in ("-h", "--help") or word.replace("_", "-").startswith("--tyro-"):
            raise Refused(
                f"flag={word!r} is not a setting of an experiment. Try to compute this shard again"
            )


@contextlib.contextmanager
def _parser_refuses() -> Iterator[None]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            yield
    except SystemExit as refused:
        raise Refused(
            f"the parser of the configuration's fields ended with status={refused.code}: "
            f"{said.getvalue()}. Try the fields that --help lists"
        ) from refused


def _words(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
            continue
        yield f"--{flag}"
        yield from map(str, value if isinstance(value, list | tuple) else [value])


def with_fields(experiment: str, fields: Mapping[str, Any], /, **given: Any) -> Request:
    """Return a request to run an experiment, with changed fields of the configuration.

    Raises:
        Refused: in the cases that `requested` lists, and if a field is unknown or a value has a
            wrong type.
    """
    config = find_experiment(experiment, imports=given.get("imports", ())).config
    known = [field.name for field in dataclasses.fields(config)]
    for name in fields:
        if name not in known:
            raise Refused(f"{experiment} has no field={name!r}. Try one of: {', '.join(known)}")
    with _parser_refuses():
        return requested(experiment, _words(fields), **given)
