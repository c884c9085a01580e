"""The claims of the paper, in its order; each `evaluate` is right above its declaration."""

import jax
import jax.numpy as jnp

import jaxbounds as jb

from . import model


def _scores(key, size):
    return {"scores": 3 * jax.random.normal(key, (size["T"],))}


def _equation_1(instance, size):
    closed = model.softmax_jacobian(instance["scores"])
    derivative = jax.jacobian(jax.nn.softmax)(instance["scores"])
    return jb.Sides(lhs=closed, rhs={"printed": derivative, "control": 1.01 * derivative})


EQUATION_1 = jb.Statement(
    id="room.eq1",
    label="eq. (1)",
    formula="d softmax(a) / da = diag(p) - p p^T",
    tex=r"\frac{\partial\,\mathrm{softmax}(a)}{\partial a} = \mathrm{diag}(p) - p p^\top",
    kind="identity",
    judges=(model.softmax_jacobian,),
    sample=_scores,
    evaluate=_equation_1,
    sizes=({"T": 2}, {"T": 5}),
    forms=(jb.Form(name="printed", cites="eq. (1)"),),
    control="one percent more",
    source="Section 1",
)


def _lemma_1(instance, size):
    norm = jnp.linalg.norm(model.softmax_jacobian(instance["scores"]), ord=2)
    return jb.Sides(lhs=norm, rhs={"printed": 1.0, "sharpened": 0.5, "control": 0.4})


LEMMA_1 = jb.Statement(
    id="room.lemma1",
    label="Lemma 1",
    formula="|diag(p) - p p^T|_2 <= 1",
    tex=r"\|\mathrm{diag}(p) - p p^\top\|_2 \le 1",
    kind="inequality",
    judges=(model.softmax_jacobian,),
    sample=_scores,
    cases=lambda size: {"scores": jnp.where(jnp.arange(size["T"]) < 2, 0.0, -1e3)[None]},
    evaluate=_lemma_1,
    sizes=({"T": 2}, {"T": 5}),
    forms=(
        jb.Form(name="printed", cites="Lemma 1"),
        jb.Form(
            name="sharpened",
            note="x^T (diag(p) - p p^T) x is the variance of x under p, and a variance is at most "
            "(max x - min x)^2 / 4 <= |x|^2 / 2 (Popoviciu).",
            equality="two equal scores, the others far below",
        ),
    ),
    control="0.4",
    source="Section 1",
)


def _attention(key, size):
    scores, values = jax.random.split(key)
    drawn = jax.random.normal(values, (size["T"], size["d"]))
    return {"scores": jax.random.normal(scores, (size["T"],)), "values": drawn}


def _lemma_2(instance, size):
    output = jnp.linalg.norm(model.attend(instance["scores"], instance["values"]))
    largest = model.largest_norm(instance["values"])
    mean = jnp.mean(jnp.linalg.norm(instance["values"], axis=-1))
    rhs = {"printed": mean, "corrected": largest, "control": largest / 2}
    return jb.Sides(lhs=output, rhs=rhs)


LEMMA_2 = jb.Statement(
    id="room.lemma2",
    label="Lemma 2",
    formula="|sum_t p_t v_t|_2 <= (1/T) sum_t |v_t|_2",
    tex=r"\Big\|\sum_t p_t v_t\Big\|_2 \le \frac1T \sum_t \|v_t\|_2",
    kind="inequality",
    judges=(model.attend, model.largest_norm),
    sample=_attention,
    cases=lambda size: {
        "scores": jnp.zeros((1, size["T"])),
        "values": jnp.ones((1, size["T"], size["d"])),
    },
    evaluate=_lemma_2,
    sizes=({"T": 2, "d": 2}, {"T": 4, "d": 3}),
    forms=(
        jb.Form(
            name="printed",
            cites="Lemma 2",
            expected="fails",
            erratum="E1",
            note="Softmax may give a value of large norm a weight above 1/T.",
            counterexample=jb.Counterexample(
                instance={"scores": [0.0, -1e3], "values": [[1.0], [0.0]]},
                size={"T": 2, "d": 1},
                ratio=2.0,
            ),
        ),
        jb.Form(
            name="corrected",
            note="The triangle inequality gives the bound, since the weights add up to one.",
            equality="all values equal",
        ),
    ),
    control="half of the largest norm",
    source="Section 2",
)

PAPER = jb.Paper(
    id="room",
    title="A paper that you read",
    citation="Its authors, where it appeared",
    statements=(EQUATION_1, LEMMA_1, LEMMA_2),
    errata=(
        jb.Erratum(
            id="E1",
            where="Lemma 2",
            kind="false",  # or "gap", "reading", "typo", "undecidable"
            quote="|sum_t p_t v_t| <= (1/T) sum_t |v_t|",
            text="If all scores are equal, the mean norm of the values bounds the output. The "
            "largest norm of the values always bounds the output.",
            consequence="A result that uses Lemma 2 needs the largest norm in place of the mean.",
            main="survive",
            evidence="room.lemma2",
        ),
    ),
    survives="All but Lemma 2, which holds with the largest norm.",
    unchecked={"Remark 1": "it claims nothing that can be measured"},
)
