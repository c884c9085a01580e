"""Request of a run: an experiment with its configuration and seed, and the command for it."""

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
    """A run that was asked for.

    Attributes:
        experiment: what is run.
        config: its configuration.
        seed: of all draws.
        precision: of products of matrices; "" leaves it to the experiment.
        imports: modules or files of the user's that it needs.
        flags: the words of `jaxbounds run` that ask for the same again.
    """

    experiment: Experiment
    config: Any
    seed: int
    precision: str
    imports: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def key(self) -> jax.Array:
        """Return the key of all draws."""
        return jax.random.key(self.seed)

    @property
    def about(self) -> dict[str, Any]:
        """Return everything on which the result depends."""
        with asked_for(self.precision):
            return provenance(self.config, self.key) | {"experiment": self.experiment.id}

    def absolute_flags(self) -> tuple[str, ...]:
        """Return `flags` with absolute paths, as another process may have another folder."""
        whole = lambda name: str(Path(name).resolve()) if Path(name).exists() else name
        return tuple(
            whole(word) if before == "--import" else word
            for before, word in zip(("", *self.flags), self.flags)
        )

    def identity(self) -> dict[str, Any]:
        """Return everything that the numbers depend on; the shards of one run share it."""
        about = self.about | {"source": digest_of(self.imports)}
        del about["git"]  # the source is known better
        return about


def configured(experiment: Experiment, preset: str, words: Iterable[str], **more: Any) -> Any:
    """Return a preset with some fields changed.

    Args:
        experiment: whose.
        preset: its name.
        words: fields as flags: "--steps", "100".
        **more: of `tyro.cli`.

    Raises:
        Refused: if there is no such preset.
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
    """Return the request that the words of a command make.

    Args:
        experiment: its id.
        words: fields of the configuration as flags.
        preset: the configuration to start from.
        seed: of all draws.
        precision: of products of matrices.
        imports: modules or files of the user's.

    Raises:
        Refused: if there is no such experiment, preset or precision, or the seed is none.
    """
    words, imports = tuple(words), tuple(imports)
    chosen = find_experiment(experiment, imports=imports)
    config = configured(chosen, preset, words)
    refuse_other_seeds(seed)
    if precision not in ("", *PRECISIONS):
        raise Refused(
            f"--precision is of products of matrices: {', '.join(PRECISIONS)}; got {precision!r}. "
            "Parameters stay in float32 (--dtype float64 where an experiment has that field): in "
            "bfloat16 a step below 1/256 of a parameter is lost, and the curves would not say so"
        )
    same = ["--preset", preset, "--seed", str(seed)]
    same += ["--precision", precision] * bool(precision)
    same += [word for module in imports for word in ("--import", module)]
    return Request(chosen, config, seed, precision, imports, (*same, *words))


class _Flags(NamedTuple):
    """`Request.flags` by their meaning."""

    words: tuple[str, ...]
    given: dict[str, Any]
    imports: tuple[str, ...]


def _parsed(flags: Iterable[str]) -> _Flags:
    words, imports, given = list(flags), list[str](), dict[str, Any]()
    while words and words[0] in ("--preset", "--seed", "--precision", "--import"):
        if len(words) == 1:
            raise Refused(f"the flag {words[0]} has no value")
        name, value, *words = words
        if name == "--import":
            imports.append(value)
        else:
            given[name[2:]] = int(value) if name == "--seed" else value
    return _Flags(tuple(words), given, tuple(imports))


def again(experiment: str, flags: Iterable[str], /) -> Request:
    """Return the request with some `Request.flags` of this process or its parent.

    Raises:
        Refused: as `requested`.
    """
    words, given, imports = _parsed(flags)
    return requested(experiment, words, **given, imports=imports)


def from_file(
    experiment: str, flags: Iterable[str], /, *, imports: Iterable[str], file: object
) -> Request:
    """Return the request with the flags in a file; the caller names the code to import.

    Args:
        experiment: its id.
        flags: of the file.
        imports: modules or files of the user's, from the command line.
        file: where the flags stand, for messages.

    Raises:
        Refused: if the flags name imports and the caller names none, or the flags ask for
            anything else than fields of the configuration; or as `requested`.
    """
    imports, flags = tuple(imports), tuple(flags)
    try:
        if not all(isinstance(word, str) for word in (experiment, *flags)):
            raise Refused("its experiment and flags are no words. Try to compute it again")
        words, given, named = _parsed(flags)
        if named and not imports:
            again = " ".join(f"--import {name}" for name in named)
            raise Refused(
                f"the file asks for {again}, and a file of results never runs code. Try to add "
                f"{again} to the command, if you trust that code"
            )
        _refuse_commands(words)
        with _parser_refuses():
            return requested(experiment, words, **given, imports=imports)
    except ValueError as problem:
        raise Refused(f"{file}: {problem}") from problem


def _refuse_commands(words: Iterable[str]) -> None:
    """Refuse words that the parser of flags would obey: it prints help, or writes completions."""
    for word in words:
        if word in ("-h", "--help") or word.replace("_", "-").startswith("--tyro-"):
            raise Refused(
                f"the flag {word} is no field of a configuration. Try to compute this shard again"
            )


@contextlib.contextmanager
def _parser_refuses() -> Iterator[None]:
    """Turn the parser's refusal into one of the library, with the parser's words."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            yield
    except SystemExit as refused:
        raise Refused(f"the fields cannot be taken: {said.getvalue()}") from refused


def _words(fields: Mapping[str, Any]) -> Iterator[str]:
    """Return the fields of a configuration as flags."""
    for name, value in fields.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
            continue
        yield f"--{flag}"
        yield from map(str, value if isinstance(value, list | tuple) else [value])


def with_fields(experiment: str, fields: Mapping[str, Any], /, **given: Any) -> Request:
    """Return a request with fields of its configuration by name.

    Args:
        experiment: its id.
        fields: values in place of the preset's.
        **given: of `requested`.

    Raises:
        Refused: as `requested`, and if there is no such field or it cannot have such a value.
    """
    config = find_experiment(experiment, imports=given.get("imports", ())).config
    known = [field.name for field in dataclasses.fields(config)]
    for name in fields:
        if name not in known:
            raise Refused(f"{experiment} has no field={name!r}. Try one of: {', '.join(known)}")
    with _parser_refuses():
        return requested(experiment, _words(fields), **given)
