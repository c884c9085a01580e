"""Sets that instances come from, as objects: `jb.Ball(1, "d")`, `jb.OperatorNorm(1, ("m", "n"))`.

A set draws its points, projects arrays onto itself, and tests membership. A set also lists extreme
points and proposes nearby points for a search, and has coordinates for a proof. Shapes and radii
may be expressions with names of sizes: "d", ("n", "2*d"), "sqrt(d)".
"""

from jaxbounds.claims.sets.base import Chart, Set
from jaxbounds.claims.sets.each import Each
from jaxbounds.claims.sets.expressions import number_of, shape_of
from jaxbounds.claims.sets.finite import Integers, OneOf
from jaxbounds.claims.sets.matrices import (
    PSD,
    Matrices,
    OperatorNorm,
    Orthogonal,
    Symmetric,
)
from jaxbounds.claims.sets.over import Over
from jaxbounds.claims.sets.simplex import Simplex, SubSimplex
from jaxbounds.claims.sets.vectors import Ball, Box, Reals, Signs, Sphere

__all__ = [
    "PSD",
    "Ball",
    "Box",
    "Chart",
    "Each",
    "Integers",
    "Matrices",
    "OneOf",
    "OperatorNorm",
    "Orthogonal",
    "Over",
    "Reals",
    "Set",
    "Signs",
    "Simplex",
    "Sphere",
    "SubSimplex",
    "Symmetric",
    "number_of",
    "shape_of",
]
