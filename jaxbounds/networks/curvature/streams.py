"""Read all batches again for each Hessian-vector product, if the data exceed the memory."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tracing_errors import users_line
from jaxbounds.networks.curvature.batches import Listed
from jaxbounds.networks.curvature.paths import leaves_of


class Stream:
    """Batches from a re-iterable (a Dataset, a DataLoader), or a function that makes an iterator.

    Attributes:
        first: the first batch of the stream, in NumPy.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self.first = next(iter(self), None)
        if self.first is None:
            raise Refused(
                f"data={type(source).__name__} yields no batch, expected at least one. Try data "
                "with one or more batches"
            )

    def __iter__(self) -> Iterator[Any]:
        source = self._made() if callable(self._source) else self._source
        if not hasattr(source, "__iter__"):
            raise Refused(
                "the function that supplies the batches must return an iterator, got "
                f"type={type(source).__name__}. Try lambda: iter(batches)"
            )
        for batch in source:
            yield jax.tree.map(np.asarray, batch)

    def _made(self) -> Any:
        try:
            return self._source()
        except Exception as problem:
            first = (str(problem).splitlines() or ["no message"])[0]
            raise Refused(
                f"batches={type(self._source).__name__} raised an error{users_line(problem)}: "
                f"{type(problem).__name__}: {first}. Try a function without arguments that returns "
                "an iterator"
            ) from problem


def stream_of(data: Any, /) -> Stream | None:
    """Return the data as a stream; None if they are a pytree of arrays, or a list of batches."""
    if isinstance(data, Stream):
        return data
    listed = isinstance(data, str | bytes | Iterator | Listed)
    if data is None or listed or hasattr(data, "dtype"):
        return None
    alone = all(path == "" for path, _, _ in leaves_of(data)) and jax.tree.leaves(data) == [data]
    if alone and (callable(data) or hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        return Stream(data)
    return None


def examples(batch: Any, /) -> int:
    """Return the number of examples of a batch: the length that all its arrays share, else 1."""
    lengths = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(batch)}
    (n,) = lengths if len(lengths) == 1 else (1,)
    return n or 1


def shape_of(batch: Any, /) -> Any:
    """Return the structure, shapes and dtypes of a batch; the compiled program depends on them."""
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


Part = Callable[[Any, Any], tuple[Any, Any]]
"""A function `part(batch, vector)` that returns two values: the batch's curvature matrix times the
vector, and the batch's loss."""


class StreamedProduct:
    """The product of a vector with a stream's mean matrix; a batch weighs its number of examples.

    Attributes:
        value: the mean loss of the first pass over the stream.
    """

    def __init__(self, stream: Stream, part: Part, zero: Any) -> None:
        self._stream, self._part = stream, part
        self.value: Any = None
        self.value = self._pass(zero)[1]

    def __call__(self, vector: Any) -> Any:
        """Return the matrix times a vector, in one pass over the stream."""
        return self._pass(vector)[0]

    def _pass(self, vector: Any) -> tuple[Any, Any]:
        total, loss, count = None, 0.0, 0
        for batch in self._stream:
            n = examples(batch)
            image, value = self._part(batch, vector)
            total = n * image if total is None else total + n * image
            loss, count = loss + n * value, count + n
        if total is None:
            raise Refused(
                f"batches={type(self._stream).__name__} gave no batch in a second pass, expected "
                "an object that can be read again. Try a function that makes a new iterator: "
                "lambda: iter(...)"
            )
        mean = loss / count
        if self.value is not None and not np.isclose(mean, self.value, rtol=1e-3, equal_nan=True):
            raise Refused(
                f"the mean loss over all batches was {float(self.value):.6g} in the first pass and "
                f"is {float(mean):.6g} now, expected equal values. Try the same batches in every "
                "pass, without augmentation"
            )
        return total / count, mean
