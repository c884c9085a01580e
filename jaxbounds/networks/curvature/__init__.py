"""Measure the curvature of any network's loss: eigenpairs, spectra, traces and weak convexity.

The class `Curvature` is the Hessian as an operator. Each function of the module `functions`
computes one property of the Hessian.
"""

from jaxbounds.networks.curvature.bias import minibatch_bias
from jaxbounds.networks.curvature.convexity import (
    ConvexityCertificate,
    WeakConvexity,
    convexity_certificate,
)
from jaxbounds.networks.curvature.diagonal import Applied, Diagonal
from jaxbounds.networks.curvature.extremes import DENSE_LIMIT
from jaxbounds.networks.curvature.functions import (
    block_extremes,
    dense_hessian,
    extremes_memory,
    hessian_extremes,
    spectrum,
    trace,
    weak_convexity,
)
from jaxbounds.networks.curvature.lanczos import Extremes, dense_extremes, lanczos_extremes
from jaxbounds.networks.curvature.monitor import CurvatureMonitor
from jaxbounds.networks.curvature.neighbourhood import Sharpness, sharpness
from jaxbounds.networks.curvature.noise import GradientNoise, gradient_noise
from jaxbounds.networks.curvature.operator import Curvature
from jaxbounds.networks.curvature.products import (
    Composite,
    ggn_vector_product,
    hessian_vector_product,
)
from jaxbounds.networks.curvature.shares import head_axes, head_shares, shares
from jaxbounds.networks.curvature.spectrum import Spectrum
from jaxbounds.networks.curvature.structured import CertifiedExtremes, structured_extremes
from jaxbounds.networks.curvature.top import Top
from jaxbounds.networks.curvature.trace import Trace
from jaxbounds.networks.curvature.variants import empirical_fisher, preconditioned

__all__ = [
    "DENSE_LIMIT",
    "Applied",
    "CertifiedExtremes",
    "Composite",
    "ConvexityCertificate",
    "Curvature",
    "CurvatureMonitor",
    "Diagonal",
    "Extremes",
    "GradientNoise",
    "Sharpness",
    "Spectrum",
    "Top",
    "Trace",
    "WeakConvexity",
    "block_extremes",
    "convexity_certificate",
    "dense_extremes",
    "dense_hessian",
    "empirical_fisher",
    "extremes_memory",
    "ggn_vector_product",
    "gradient_noise",
    "head_axes",
    "head_shares",
    "hessian_extremes",
    "hessian_vector_product",
    "lanczos_extremes",
    "minibatch_bias",
    "preconditioned",
    "shares",
    "sharpness",
    "spectrum",
    "structured_extremes",
    "trace",
    "weak_convexity",
]
