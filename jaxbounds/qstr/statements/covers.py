"""Statements about covering numbers of the Transformer's class (Lemmas 13 and 15)."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, stacked
from jaxbounds.numerics.norms import spectral_norm, vector_norm
from jaxbounds.qstr import bounds, packing
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.statements.common import cases_on_host, reals, searched
from jaxbounds.qstr.transformer import attention


def _composition(i: Instance, size: Size) -> Sides:
    f, other = TwoLayer(i["a"], i["W"], i["b"]), TwoLayer(i["a2"], i["W2"], i["b2"])
    h, h2 = i["h"][None, :], i["h2"][None, :]
    gap, moved = jnp.abs(f(h2) - other(h2)), vector_norm(i["h"] - i["h2"])
    return Sides(
        lhs=jnp.abs(f(h) - other(h2)),
        rhs={
            "derived": gap + bounds.two_layer_lipschitz(f.a, f.W) * moved,
            "sharpened": gap + bounds.two_layer_lipschitz(f.a, f.W, norm=spectral_norm) * moved,
            "control": gap + bounds.two_layer_lipschitz(f.a, f.W) * moved / 2,
        },
    )


_ACTIVE = "one active unit along which h - h' lies"
COMPOSITION = searched(
    id="qstr.lem13.pointwise",
    label="Lemma 13 (proof, at a point)",
    formula="|f(h) - f'(h')| <= |f(h') - f'(h')| + L_f |h - h'|",
    tex=r"|f(h) - \hat f(\hat h)| \le |f(\hat h) - \hat f(\hat h)| + L_f \|h - \hat h\|_2",
    judges=(bounds.two_layer_lipschitz,),
    over=reals("a: m, W: m k, b: m, h: k, a2: m, W2: m k, b2: m, h2: k"),
    evaluate=_composition,
    forms=(
        Form(
            name="derived",
            note="The Lipschitz constant of f is L_f = |a| |W|_F.",
            equality=_ACTIVE,
        ),
        Form(
            name="sharpened",
            note="The Lipschitz constant of f is L_f = |a| |W|_op.",
            equality=_ACTIVE,
        ),
    ),
    control="half of L_f",
    sizes=({"k": 3, "m": 3},),
    source="Lemma 13, proof; Proposition 17 for L_f",
    budget=Budget(samples=128, restarts=2, steps=60, batch=128),
)

_MEMBERS = 4
"""The number of networks, and of attention matrices, in a finite class. More networks make the
checks take longer."""
_GROUPS = "networks and attentions in two groups of near copies, at radii between the two distances"


def _groups_case(size: Size) -> Instance:
    n, N, De, H, m = _MEMBERS, size["N"], size["De"], size["H"], size["m"]
    rng = np.random.default_rng(5)

    def grouped(*shape: int) -> np.ndarray:
        far = np.repeat(rng.normal(size=(n // 2, *shape)), 2, axis=0)
        return far + 1e-4 * rng.normal(size=far.shape)

    case = {"z": rng.normal(size=(N, De)), "W": grouped(H, De, De)}
    return stacked([{**case, "a": grouped(m), "U": grouped(m, H * De), "b": grouped(m)}])


_heads = jax.jit(jax.vmap(lambda z, W: attention(z, W), (None, 0)))
_lipschitz = jax.jit(jax.vmap(lambda a, U: bounds.two_layer_lipschitz(a, U)))


def _covers(i: Instance, size: Size) -> Sides:
    z, W, U, n, N = i["z"], i["W"], i["U"], _MEMBERS, size["N"]
    radius = np.max(np.linalg.norm(z, axis=1))
    heads = _heads(z, W.reshape(-1, *W.shape[2:]))
    attended = np.asarray(heads).reshape(n, size["H"], N, -1).swapaxes(1, 2).reshape(n, N, -1)
    hidden = np.maximum(np.einsum("njk,fmk->nfjm", attended, U) + i["b"][:, None, :], 0.0)
    values = np.einsum("nfjm,fm->nfj", hidden, i["a"])
    apart = lambda v: np.linalg.norm(v[:, None] - v[None, :], axis=-1).max(axis=-1)
    d_attn, d_tr = apart(attended), apart(values.reshape(n * n, N, 1))
    d_qk = apart(np.einsum("nhde,jd->njhe", W, z).reshape(n, N, -1))
    d_nn = np.max(np.abs(values[:, :, None] - values[:, None, :]), axis=(0, 3))
    lipschitz = float(np.max(_lipschitz(i["a"], U)))
    cover = packing.covering_number
    some = lambda v: np.quantile(v[np.triu_indices(n, 1)], [0.2, 0.3]) * (1 + 1e-9)
    found: dict[str, list[tuple[int, int]]] = {
        name: [] for name in ("printed", "printed Lemma 15", "sharpened Lemma 15", "control")
    }
    for eps in some(d_attn):
        least = cover(d_attn, eps)
        for name, factor in (("printed Lemma 15", 2.0), ("sharpened Lemma 15", 1.0)):
            found[name].append((least, cover(d_qk, eps / (factor * radius**2))))
        for eps_n in some(d_nn):
            joint, both = eps_n + lipschitz * eps, cover(d_nn, eps_n) * least
            found["printed"].append((cover(d_tr, joint), both))
            found["control"].append((cover(d_tr, joint / 50), both))
    worst = lambda pairs: max(pairs, key=lambda pair: pair[0] / pair[1])
    return Sides.pairs({name: worst(pairs) for name, pairs in found.items()})


COVERS = cases_on_host(
    id="qstr.lem13",
    label="Lemmas 13 and 15 (covering numbers)",
    formula="log C(F_TR, e2 + L_f eA) <= log C(F_2NN, e2) + log C(F_Attn, eA), and "
    "log C(F_Attn, e) <= log C(Th_QK, e/(2 r_z^2))",
    tex=r"\log \mathcal{C}(\mathcal{F}_{\mathrm{TR}}, d_\infty^{\mathrm{TR}}, "
    r"\epsilon_{\mathrm{2NN}} + L_f \epsilon_{\mathrm{Attn}}) \le "
    r"\log \mathcal{C}(\mathcal{F}_{\mathrm{2NN}}, d_\infty^{\mathrm{2NN}}, "
    r"\epsilon_{\mathrm{2NN}}) + \log \mathcal{C}(\mathcal{F}_{\mathrm{Attn}}, "
    r"d_\infty^{\mathrm{Attn}}, \epsilon_{\mathrm{Attn}}), \quad "
    r"\log \mathcal{C}(\mathcal{F}_{\mathrm{Attn}}, d_\infty^{\mathrm{Attn}}, \epsilon) \le "
    r"\log \mathcal{C}\left(\Theta_{\mathrm{QK}}, d_\infty^{\Theta_{\mathrm{QK}}}, "
    r"\frac{\epsilon}{2 r_z^2}\right)",
    kind="inequality",
    judges=(packing.covering_number, bounds.two_layer_lipschitz, attention),
    over=reals("z: N De, W: 4 H De De, a: 4 m, U: 4 m H*De, b: 4 m"),
    cases=_groups_case,
    evaluate=_covers,
    forms=(
        Form(name="printed", cites="Lemma 13, Appendix A.1", equality=_GROUPS),
        Form(name="printed Lemma 15", cites="Lemma 15, Appendix A.1", equality=_GROUPS),
        Form(
            name="sharpened Lemma 15",
            equality=_GROUPS,
            note="The cover of the attention matrices has the scale eps/r_z^2 in place of eps/(2 "
            "r_z^2), because Lemma 15 holds with the constant 1 (qstr.lem15).",
        ),
    ),
    control="Lemma 13's left side at a fiftieth of the radius",
    sizes=({"N": 4, "De": 3, "H": 2, "m": 3},),
    assumptions="finite classes of four networks and four attentions, whose least covers are found "
    "by trying all; the networks' distance over the attended tokens instead of the whole ball, "
    "which is harder; numbers compared, not their logarithms",
    source="Lemmas 13 and 15",
    budget=Budget(samples=10),
)


STATEMENTS = (COVERS, COMPOSITION)
