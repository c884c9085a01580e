"""Curvature one can trust: Hessian-vector products, dense Hessians, extreme eigenvalues."""

from jaxbounds.curvature.lanczos import Extremes, dense_extremes, lanczos_extremes
from jaxbounds.curvature.products import dense_hessian, hessian_extremes, hessian_vector_product
from jaxbounds.curvature.structured import CertifiedExtremes, structured_extremes

__all__ = [
    "CertifiedExtremes",
    "Extremes",
    "dense_extremes",
    "dense_hessian",
    "hessian_extremes",
    "hessian_vector_product",
    "lanczos_extremes",
    "structured_extremes",
]
