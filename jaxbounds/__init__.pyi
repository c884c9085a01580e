# The public face by theme: each name a user needs. The package reads this file when it runs.
# ruff: noqa: I001 - grouped by theme, not by module

# Declare a claim, and the paper that makes it.
from .claims.statements.claim import claim as claim
from .claims.statements.statement import Statement as Statement
from .claims.statements.form import Form as Form
from .claims.statements.sides import Sides as Sides
from .claims.statements.form import Counterexample as Counterexample
from .claims.statements.domain import Domain as Domain
from .claims.statements.statement import Budget as Budget
from .claims.statements.paper import Paper as Paper
from .claims.statements.paper import Erratum as Erratum
from .claims.statements.item import Item as Item
from .claims.statements.item import Items as Items

# Sets for `over=`: the arguments of a claim.
from .claims.sets.vectors import Reals as Reals
from .claims.sets.vectors import Box as Box
from .claims.sets.vectors import Ball as Ball
from .claims.sets.vectors import Sphere as Sphere
from .claims.sets.vectors import Signs as Signs
from .claims.sets.matrices import Matrices as Matrices
from .claims.sets.matrices import OperatorNorm as OperatorNorm
from .claims.sets.matrices import PSD as PSD
from .claims.sets.matrices import Symmetric as Symmetric
from .claims.sets.matrices import Orthogonal as Orthogonal
from .claims.sets.simplex import Simplex as Simplex
from .claims.sets.simplex import SubSimplex as SubSimplex
from .claims.sets.finite import Integers as Integers
from .claims.sets.finite import OneOf as OneOf
from .claims.sets.each import Each as Each
from .claims.sets.inner import infimum as infimum
from .claims.sets.inner import supremum as supremum

# Find a declared claim or experiment.
from .papers.loading import load_paper as load_paper
from .papers.lookup import find_statement as find_statement
from .papers.lookup import find_experiment as find_experiment

# Judge: from a claim to a verdict.
from .runs.verify_api import verify as verify
from .runs.falsify import falsify as falsify
from .runs.violation import find_violation as find_violation
from .runs.falsify import replay as replay
from .falsification.verdict import Verdict as Verdict
from .runs.verdicts import Verdicts as Verdicts
from .runs.violation import Violation as Violation
from .falsification.statuses import Status as Status
from .falsification.storage import StoredInstance as StoredInstance
from .falsification.storage import load_instance as load_instance

# Check a declaration of your own.
from .falsification.rules import problems_of as problems_of
from .falsification.binding import is_bound_to as is_bound_to
from .falsification.measure import float64_on_cpu as float64_on_cpu

# Prove and disprove, in ball arithmetic.
from .certification.proof import prove as prove
from .certification.proof import Proof as Proof
from .certification.disproof import disprove as disprove
from .runs.certify import certify as certify
from .programs.balls.certificate import Certificate as Certificate
from .runs.certify import Certificates as Certificates
from .programs.balls.interpreter import enclose as enclose
from .programs.balls.interpreter import Enclosed as Enclosed

# Sharp constants.
from .constants.constant import sharp_constant as sharp_constant
from .runs.constants import constants_of as constants_of
from .constants.result import SharpConstant as SharpConstant

# Bounds and curvature of your own network.
from .bounds.network import bounds_for as bounds_for
from .bounds.result import Bounds as Bounds
from .networks.curvature.operator import Curvature as Curvature
from .networks.curvature.functions import hessian_extremes as hessian_extremes
from .networks.curvature.functions import spectrum as spectrum
from .networks.curvature.functions import trace as trace
from .networks.curvature.functions import weak_convexity as weak_convexity
from .networks.curvature.products import Composite as Composite
from .networks.curvature.lanczos import Extremes as Extremes
from .networks.curvature.spectrum import Spectrum as Spectrum
from .networks.curvature.trace import Trace as Trace
from .networks.curvature.top import Top as Top
from .networks.curvature.convexity import WeakConvexity as WeakConvexity
from .networks.curvature.monitor import CurvatureMonitor as CurvatureMonitor

# Experiments and sweeps.
from .runs.experiment import run as run
from .experiments.experiment import Experiment as Experiment
from .experiments.experiment import Finding as Finding
from .experiments.sweeps.sweep import sweep as sweep
from .experiments.sweeps.swept import lanes_of as lanes_of

# A report for the authors of a paper.
from .runs.audit import audit as audit
from .report.audit import Audit as Audit

# The exception of a refused input, and the two reasons for which ball arithmetic gives up.
from .ground.exceptions import Refused as Refused
from .ground.exceptions import Undecided as Undecided
from .ground.exceptions import NotSupported as NotSupported
