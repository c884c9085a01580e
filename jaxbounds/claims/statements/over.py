"""Join the sets of a statement with its own sampler, projection and hypotheses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxbounds.claims.sets import Over
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size
from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Drawn:
    """A sampler that draws an entry from its set if the statement's own sampler omits the entry.

    If `law` is true, the claim is about a frequency or a mean, so the statement's own sampler must
    draw every entry.
    """

    over: Over
    own: Sampler | None = None
    law: bool = False

    def __call__(self, key: jax.Array, size: Size) -> dict[str, Any]:
        """Draw one instance.

        Raises:
            Refused: if the distribution matters (`law`), and the statement's own sampler does not
                draw every entry.
        """
        if self.own is None:
            return self.over.draw(key, size)
        of_sets, of_own = jax.random.split(key)
        drawn = dict(self.own(of_own, size))
        missing = [name for name in self.over if name not in drawn]
        if self.law and missing:
            raise Refused(
                f"missing={missing}: `sample` must draw these entries. The claim is about a "
                f"frequency or a mean, and the sets in `over` give no probability distribution. "
                f"Try to draw {', '.join(missing)}"
            )
        return (self.over.draw(of_sets, size) if missing else {}) | drawn


@dataclass(frozen=True)
class Projected:
    """A projection onto sets, followed by the statement's own projection."""

    over: Over
    own: Callable[[Instance, Size], Instance] | None = None

    def __call__(self, instance: Instance, size: Size) -> Instance:
        """Return a nearby instance that satisfies the hypotheses."""
        near = self.over.project(instance, size)
        return near if self.own is None else self.own(near, size)


@dataclass(frozen=True)
class Within:
    """The hypotheses of sets, joined with the statement's own hypotheses."""

    over: Over
    own: Hypotheses | None = None

    def __call__(self, instance: Instance, size: Size) -> Mapping[str, Any]:
        """Test all hypotheses on an instance; return {hypothesis: bool}.

        Raises:
            TypeError: if the statement's own hypotheses return no dict.
        """
        own = self.own(instance, size) if self.own else {}
        if not isinstance(own, Mapping):
            given = "k" if hasattr(self.own, "__wrapped__") else "i, size"
            entry = "k" if given == "k" else 'i["k"]'
            raise TypeError(
                f"hypotheses returned {_kind(own)}, expected a dict from names to booleans. "
                f'Try hypotheses=lambda {given}: {{"k > 0": jnp.all({entry} > 0)}}'
            )
        return self.over.meets(instance, size) | dict(own)


def _kind(value: Any) -> str:
    return "an array" if hasattr(value, "dtype") else f"{value!r:.40}"
