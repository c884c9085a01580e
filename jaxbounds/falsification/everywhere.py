"""Search for the worst instances: special points, the search, and points beside both."""

from jaxbounds.claims.statements import Budget
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.beside_jumps import look_beside_jumps
from jaxbounds.falsification.compared import look_at_compared_constants
from jaxbounds.falsification.explore import Searched, search
from jaxbounds.falsification.far_away import look_far_away
from jaxbounds.falsification.snapped import look_at_readable_points, look_at_zeros
from jaxbounds.falsification.special import look_at_special_points


def search_everywhere(bench: Bench, pool: Pool, budget: Budget, seed: int, /) -> Searched:
    """Add the results of all searches to the pool, which holds random draws."""
    if budget.restarts:
        look_at_special_points(bench, pool, seed)
    searched = search(bench, pool, budget, seed)
    if budget.restarts:
        look_at_readable_points(bench, pool)
        look_at_zeros(bench, pool)
        look_far_away(bench, pool)
        look_at_compared_constants(bench, pool, seed)
        look_beside_jumps(bench, pool, seed)
    return searched
