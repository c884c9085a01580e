"""Sampler, projection and hypotheses of a statement that names sets, with what no set says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxbounds.claims.sets import Over
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Drawn:
    """Draws from sets, then what the statement's own sampler draws, which has the last word.

    Attributes:
        over: the sets.
        own: the sampler of entries that no set is given for, or of any law of those.
        law: a frequency or a mean is claimed, so that the sampler must draw everything.
    """

    over: Over
    own: Sampler | None = None
    law: bool = False

    def __call__(self, key: jax.Array, size: Size) -> dict[str, Any]:
        """One instance.

        Raises:
            Refused: where a law is needed that only the sets could give.
        """
        if self.own is None:
            return self.over.draw(key, size)
        of_sets, of_own = jax.random.split(key)
        drawn = dict(self.own(of_own, size))
        missing = [name for name in self.over if name not in drawn]
        if self.law and missing:
            raise Refused(
                f"a set has no law: what is claimed of a frequency or a mean needs `sample` to "
                f"draw {', '.join(missing)}"
            )
        return (self.over.draw(of_sets, size) if missing else {}) | drawn


@dataclass(frozen=True)
class Projected:
    """Projects onto sets, then as the statement says."""

    over: Over
    own: Callable[[Instance, Size], Instance] | None = None

    def __call__(self, instance: Instance, size: Size) -> Instance:
        """The instance nearby."""
        near = self.over.project(instance, size)
        return near if self.own is None else self.own(near, size)


@dataclass(frozen=True)
class Within:
    """The hypotheses of sets, and those that the statement has besides."""

    over: Over
    own: Hypotheses | None = None

    def __call__(self, instance: Instance, size: Size) -> Mapping[str, Any]:
        """Each by name."""
        own = self.own(instance, size) if self.own else {}
        return self.over.meets(instance, size) | dict(own)
