"""Try `there_is` entries that suit one instance at the instances at which the search failed."""

import numpy as np

from jaxbounds.claims.statements import Size
from jaxbounds.falsification.bench import Bench, Column, Pool, spread
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.measure import Measured

DONORS = 32
"""The entries of at most this many instances are tried. A larger number finds more entries and
takes longer."""


def with_shared_entries(bench: Bench, pool: Pool, columns: list[Column], /) -> list[Column]:
    """Measure the instances without suitable `there_is` entries with the entries of others.

    The measurements of other claims, and of claims whose entries are all tried, stay unchanged.
    """
    statement = bench.statement
    if statement.there_is is None or statement.host:
        return columns
    found = list(columns)
    for at, size in enumerate(map(Size, statement.sizes)):
        if at not in pool.sizes or bench.promises(size).every is not None:
            continue
        batch, _ = pool.of_size(at)
        for index in range(len(statement.forms)):
            here = np.flatnonzero(found[index].sizes == at)
            m = found[index].measured
            fails = m.counted[here] & ~(m.value[here] <= edge(statement))
            suits = np.flatnonzero(m.counted[here] & (m.value[here] <= edge(statement)))
            if not np.any(fails) or not len(suits):
                continue
            rows = np.flatnonzero(fails)
            new = bench.promises(size).share(batch, index, rows, spread(suits, DONORS))
            fields = [np.array(field) for field in m]
            for field, values in zip(fields, new):
                field[here[rows]] = values
            found[index] = found[index]._replace(measured=Measured(*fields))
    return found
