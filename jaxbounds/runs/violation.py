"""Define `jaxbounds.find_violation`, which searches for a violation of an inequality on sets."""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Budget
from jaxbounds.claims.statements.instance import Hypotheses
from jaxbounds.claims.statements.kinds import Relation
from jaxbounds.claims.statements.line import Axes, Sets, Side, line_of
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification import load_instance, verdicts_on
from jaxbounds.falsification.deadline import TIMEOUT, refuse_other_limits
from jaxbounds.falsification.decide import NAME_EQUALITY
from jaxbounds.ground.files import write_text
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.ground.to_json import to_json
from jaxbounds.runs.falsify import by_balls


@with_table
@dataclass(frozen=True, kw_only=True)
class Violation:
    """The result of a search for a violation; its truth value is `found`.

    Attributes:
        found: whether an instance violates the claim, beyond rounding.
        ratio: the largest lhs/rhs (for `>=`: rhs/lhs) of all measured instances; a ratio above 1
            violates the claim.
        instance: the worst instance, with the largest violation or ratio of the sides. If the worst
            instance violates the claim, `instance` is a simpler violating instance instead.
        instance_ratio: the ratio lhs/rhs at `instance`.
        size: the sizes of the arrays in `instance`.
        instances: the number of instances that the search measured.
        reason: a sentence that explains the result of the search.
        by_size: a dictionary from each size, as text, to the largest ratio of the sides found at
            this size.
        line: the claim as text, which `jaxbounds new --from` reads.
    """

    found: bool
    ratio: float
    instance: dict[str, Any]
    instance_ratio: float
    size: dict[str, float]
    instances: int
    reason: str
    by_size: dict[str, float] = field(default_factory=dict)
    line: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.found

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON, for `jaxbounds new FOLDER --from FILE`; return the path."""
        import json

        write_text(Path(path), json.dumps(to_json(self), indent=1) + "\n")
        return Path(path)

    def _shown(self) -> dict[str, str]:
        size = ", ".join(f"{name}={value}" for name, value in self.size.items())
        instance = f"{self.instance!r:.300}"
        if math.isclose(self.ratio, self.instance_ratio, rel_tol=1e-9) or not self.instance:
            return {"at": size, "instance": instance}
        own = {"ratio of the simpler": number(self.instance_ratio)}
        return {"simpler instance": instance, "its size": size} | own

    def _table(self) -> Table:
        about = {
            "largest ratio": number(self.ratio),
            **self._shown(),
            "instances": str(self.instances),
            "because": self.reason,
        }
        title = "violated" if self.found else "no violation found (which proves nothing)"
        return Table(title, ("", ""), [(name, value) for name, value in about.items() if value])


def find_violation(
    lhs: Side,
    rhs: Side,
    *,
    over: Sets,
    sizes: Axes | None = None,
    relation: Relation = "<=",
    error: Side = 0.0,
    hypotheses: Hypotheses | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    timeout: float = TIMEOUT,
) -> Violation:
    """Search for an instance that violates lhs <= rhs.

    Args:
        lhs: the left side: a number, or a function. The names of the function's arguments are keys
            of `over` or of `sizes`.
        rhs: the right side: a function or a number, like `lhs`.
        over: a dictionary from an argument's name to its set, for example {"x": jb.Ball(1, "d")}.
        sizes: a dictionary from the name of each size to its values, for example {"d": (2, 4)}. The
            search runs at each combination of the sizes' values.
        relation: the relation between the sides, "<=" or ">=".
        error: the numerical error of lhs - rhs, for example of a Monte-Carlo mean or of a Lanczos
            residual. The error is a number, or a function with arguments like those of `lhs`. A
            violation counts only if it exceeds the numerical error.
        hypotheses: further conditions on an instance, as in `jb.claim`: a function that returns a
            dict of booleans, lambda x: {"x > 0": jnp.all(x > 0)}. `jaxbounds new --from` cannot
            write a claim with hypotheses.
        seed: the seed of the random instances.
        budget: the numbers of random instances (draws) and of searches; the default budget unless
            given.
        timeout: the time limit in seconds; after this time the search ends with its result so far.

    Raises:
        Refused: if an argument is neither an entry of `over` nor a size, or a side is not a number.
        TypeError: if a side is neither a function nor a number.
    """
    refuse_other_limits(timeout)
    refuse_other_seeds(seed)
    line = line_of(lhs, rhs, over, sizes, relation, error, hypotheses)
    with tempfile.TemporaryDirectory() as folder:
        (verdict,) = verdicts_on(
            line.statement(budget), seed=seed, store=folder, referee=by_balls, timeout=timeout
        )
        file = verdict.shrunk_file or verdict.worst_file
        stored = load_instance(Path(folder) / file) if file else None
    meta: Mapping[str, Any] = stored.meta if stored else {}
    return Violation(
        found=verdict.status == "fails",
        ratio=verdict.worst_ratio,
        instance_ratio=float(meta.get("ratio", "nan")),
        instance=_listed(stored.instance) if stored else {},
        size=dict(meta.get("size", {})),
        instances=verdict.instances,
        reason=verdict.reason.removesuffix(NAME_EQUALITY),
        by_size=verdict.by_size,
        line=line.to_json(),
    )


def _listed(instance: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: leaf for name, leaf in instance.items() if name != ALONE}
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), shown)
