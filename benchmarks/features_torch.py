"""Tries of features of the libraries for PyTorch."""

import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from features_case import (
    DENSE,
    FISHER,
    GGN,
    SHIFT,
    VALUES,
    A,
    Again,
    B,
    Try,
    V,
    X,
    Y,
    by_hand,
    check,
    truth_of,
    within,
)


def torch_case() -> tuple[Any, Any, list, Any]:
    """The network, its loss function, one batch, and batches of 8 and 4 examples."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (torch.nn.Parameter(torch.tensor(w)) for w in (A, B))

        def forward(self, x: Any) -> Any:
            return torch.tanh(x @ self.a) @ self.b

    x, y = torch.tensor(X), torch.tensor(Y)
    halves = [(x[:8], y[:8]), (x[8:], y[8:])]
    return Network(), torch.nn.CrossEntropyLoss(), [(x, y)], halves


def torch_tied() -> tuple[Any, list, np.ndarray]:
    """A network with one weight in two places, its batch, and its dense Hessian."""
    import torch

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(torch.tensor(A[:, :3].copy()))
            self.last = self.first

        def forward(self, x: Any) -> Any:
            return torch.tanh(x @ self.first) @ self.last.T

    square = lambda w: jnp.mean((jnp.tanh(X @ w) @ w.T) ** 2)
    truth = np.asarray(jax.hessian(square)(jnp.asarray(A[:, :3]))).reshape(9, 9)
    return Tied(), [(torch.tensor(X), torch.zeros(12, 3))], truth


def curvlinops() -> dict[str, Try]:
    import curvlinops as c
    import torch
    from scipy.sparse.linalg import eigsh

    model, criterion, whole, halves = torch_case()
    params, v, eye = list(model.parameters()), torch.tensor(V), torch.eye(20)
    make = lambda data, kind=c.HessianLinearOperator, ps=None, f=criterion, **more: kind(
        model, f, params if ps is None else ps, data, **more
    )
    H = make(whole)
    numpy = lambda x: x.detach().numpy()

    def tied() -> tuple[str, str]:
        other, data, truth = torch_tied()
        found = c.HessianLinearOperator(other, torch.nn.MSELoss(), list(other.parameters()), data)
        return check(numpy(found @ torch.eye(9)), truth)

    class Nan(torch.nn.CrossEntropyLoss):
        def forward(self, z: Any, y: Any) -> Any:
            return super().forward(z, y) * float("nan")

    class Identity(c.CGInverseLinearOperator.__mro__[2]):  # the base of all operators
        SELF_ADJOINT, dtype, device = True, torch.float32, torch.device("cpu")

        def _matmat(self, X: Any) -> Any:
            return X

    def nothing() -> tuple[str, str]:
        try:
            return "wrong", f"no error: {float((make(whole, f=Nan()) @ v)[0])}"
        except RuntimeError as problem:
            return "works", str(problem).splitlines()[-1]

    def density() -> tuple[str, str]:
        torch.manual_seed(0)
        grid, found = c.lanczos_approximate_spectrum(H, 19, num_points=4096, num_repeats=30)
        share = float(found[grid < 0].sum() / found.sum())
        return check(share, np.mean(VALUES < 0), tolerance=0.3)[0], f"share below 0 {share:.2f}"

    def once() -> tuple[str, str]:
        found = make(batch for batch in halves)
        return check([numpy(found @ v), numpy(found @ v)], [DENSE @ V] * 2)

    def sampled() -> tuple[str, str]:
        found = make(whole, c.FisherMCLinearOperator, mc_samples=4000)
        return check(numpy(found @ eye), GGN, tolerance=0.1)

    def inverse() -> tuple[str, str]:
        shapes = [tuple(p.shape) for p in params]
        found = c.CGInverseLinearOperator(H + SHIFT * Identity(shapes, shapes))
        state, said = check(numpy(found @ v), truth_of(lambda x: 1 / x) @ V)
        return ("inverse" if state == "works" else state), f"{said}; no other function"

    def kfac() -> Any:
        net = torch.nn.Sequential(torch.nn.Linear(3, 2))
        return c.KFACLinearOperator(net, criterion, list(net.parameters()), whole)

    torch.manual_seed(0)
    return {
        "tied weights": tied,
        "batches of 8 and 4 examples": lambda: check(numpy(make(halves) @ v), DENSE @ V),
        "a DataLoader, read again": lambda: check(numpy(make(Again(halves)) @ v), DENSE @ V),
        "a generator, read once": once,
        "greatest eigenvalues, residuals, flag": lambda: (
            "no residual", "SciPy's eigsh: " + check(
                eigsh(H.to_scipy(), k=3, which="LA")[0], VALUES[-3:])[1]),
        "both ends from one call": lambda: check(
            eigsh(H.to_scipy(), k=2, which="BE")[0], VALUES[[0, -1]]),
        "density": density,
        "trace with its error": lambda: (
            "no error", check(c.xtrace(H, 18), VALUES.sum())[1]),
        "diagonal with its error": lambda: (
            "no error", check(c.xdiag(H, 18), np.diag(DENSE))[1]),
        "f(H) v": inverse,
        "Gauss-Newton matrix": lambda: check(numpy(make(whole, c.GGNLinearOperator) @ eye), GGN),
        "empirical Fisher matrix": lambda: check(
            numpy(make(whole, c.EFLinearOperator) @ eye), FISHER),
        "Fisher by sampling": sampled,
        "log-determinant with its error": lambda: (
            "of KFAC", f"{float(kfac().logdet):.3g}: of its approximation alone"),
        "KFAC": lambda: ("works", f"shape {tuple((kfac() @ torch.ones(8)).shape)}"),
        "block of a layer": lambda: check(
            numpy(make(whole, ps=params[1:]) @ torch.eye(8)), DENSE[12:, 12:]),
        "SciPy operator": lambda: check(H.to_scipy() @ V, DENSE @ V),
        "several vectors at once": lambda: check(numpy(H @ eye), DENSE),
        "sums of operators": lambda: check(numpy((H + H) @ v), 2 * DENSE @ V),
        "an error where the loss is NaN": nothing,
        "Jacobian and its singular values": lambda: (
            "works", f"shape {c.JacobianLinearOperator(model, params, whole).shape}, by SciPy"),
    }  # fmt: skip


def eigenthings() -> dict[str, Try]:
    import hessian_eigenthings as h
    import torch
    from scipy.sparse.linalg import aslinearoperator

    model, criterion, whole, halves = torch_case()
    v, supervised = torch.tensor(V), h.supervised_loss(criterion)
    make = lambda data, **more: h.HessianOperator(model, data, supervised, **more)
    H = make(whole)
    numpy = lambda x: x.detach().numpy()
    dense = lambda operator: np.stack([numpy(operator.matvec(e)) for e in torch.eye(operator.size)])

    def tied() -> tuple[str, str]:
        other, data, truth = torch_tied()
        loss = h.supervised_loss(torch.nn.MSELoss())
        return check(dense(h.HessianOperator(other, data, loss)), truth)

    def once() -> tuple[str, str]:
        found = make(batch for batch in halves)
        return check([numpy(found.matvec(v)), numpy(found.matvec(v))], [DENSE @ V] * 2)

    def flags() -> tuple[str, str]:
        top = h.lanczos(H, k=3, max_iter=20, which="LA", seed=0)
        state, said = check(top.eigenvalues, VALUES[::-1][:3])
        return state, f"{said}, estimates of residuals {float(top.residuals.max()):.0e}, flags"

    def ends() -> tuple[str, str]:
        found = h.lanczos(H, k=20, max_iter=20, which="LA", seed=0)
        return by_hand(check(found.eigenvalues[[-1, 0]], VALUES[[0, -1]]))

    def density() -> tuple[str, str]:
        found = h.spectral_density(H, num_runs=30, lanczos_steps=20, seed=0)
        weights = torch.where(found.raw_eigenvalues < 0, found.raw_weights, 0).sum(1)
        error = float(weights.std() / 30**0.5)
        return within(float(weights.mean()), error, float(np.mean(VALUES < 0)))

    def gauss() -> tuple[str, str]:
        found = h.GGNOperator(model, whole, h.supervised_forward, h.supervised_loss_of_output(
            criterion))  # fmt: skip
        return check(dense(found), GGN)

    def fisher() -> tuple[str, str]:
        one = lambda m, batch: criterion(m(batch[0][None]), batch[1][None])
        return check(dense(h.EmpiricalFisherOperator(model, whole, one)), FISHER)

    def spread() -> tuple[str, str]:
        with tempfile.NamedTemporaryFile() as file:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{file.name}2", rank=0, world_size=1
            )
            found = h.DDPHessianOperator(model, whole, supervised).matvec(v)
            torch.distributed.destroy_process_group()
        return check(numpy(found), DENSE @ V)[0], "one rank tried"

    def bad() -> tuple[str, str]:
        nan = h.HessianOperator(model, whole, lambda m, b: supervised(m, b) * float("nan"))
        return "wrong", f"no error: {float(nan.matvec(v)[0])}"

    def trace() -> tuple[str, str]:
        found = h.trace(H, num_matvecs=18, seed=0)
        return within(found.estimate, found.stderr, VALUES.sum())

    return {
        "tied weights": tied,
        "batches of 8 and 4 examples": lambda: check(numpy(make(halves).matvec(v)), DENSE @ V),
        "a DataLoader, read again": lambda: check(
            numpy(make(Again(halves[:1] * 2)).matvec(v)), numpy(make(halves[:1]).matvec(v))),
        "a generator, read once": once,
        "greatest eigenvalues, residuals, flag": flags,
        "both ends from one call": ends,
        "density": density,
        "trace with its error": trace,
        "Gauss-Newton matrix": gauss,
        "empirical Fisher matrix": fisher,
        "block of a layer": lambda: check(
            dense(make(whole, param_filter=h.match_names("b"))), DENSE[12:, 12:]),
        "SciPy operator": lambda: check(aslinearoperator(H) @ V, DENSE @ V),
        "several vectors at once": lambda: check(
            numpy(H.matvec(torch.stack([v, v], 1))), DENSE @ np.c_[V, V]),
        "sums of operators": lambda: check(numpy((H + H).matvec(v)), 2 * DENSE @ V),
        "several devices": spread,
        "an error where the loss is NaN": bad,
        "product without a second derivative": lambda: check(
            numpy(make(whole, method="finite_difference").matvec(v)), DENSE @ V, tolerance=0.05),
    }  # fmt: skip
