"""Map old ids of statements and old names of forms, accepted for one release, to current ones.

A form is one version of a statement's claim.
"""

from collections.abc import Mapping
from types import MappingProxyType

STATEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "multihead.sec2-qk": "multihead.sec2.qk",
        "multihead.lemma1.1-u": "multihead.lemma1.1.u",
        "multihead.lemma1.1-w": "multihead.lemma1.1.w",
        "multihead.lemma1.2-uw": "multihead.lemma1.2.uw",
        "multihead.lemma1.2-ww": "multihead.lemma1.2.ww",
        "multihead.sec5.2-phi0": "multihead.sec5.2.phi0",
        "multihead.footnote1.pooling-w": "multihead.footnote1.pooling.w",
        "multihead.footnote1.last-w": "multihead.footnote1.last.w",
        "multihead.sec6.1-smoothness": "multihead.sec6.1.smoothness",
        "multihead.sec5.1-zero": "multihead.sec5.1.zero",
        "multihead.sec5.2-classifier": "multihead.sec5.2.classifier",
        "multihead.sec5.2-gradient": "multihead.sec5.2.gradient",
        "multihead.sec5.3-order": "multihead.sec5.3.order",
        "multihead.sec5.3-sparsity": "multihead.sec5.3.sparsity",
        "multihead.sec5.3-target": "multihead.sec5.3.target",
        "multihead.sec5.3-exponent": "multihead.sec5.3.exponent",
        "multihead.sec5.1-gain": "multihead.sec5.1.gain",
        "multihead.sec7-heads": "multihead.sec7.heads",
        "multihead.sec5.1-signal": "multihead.sec5.1.signal",
        "seqlength.sec2.1-norm": "seqlength.sec2.1.norm",
        "seqlength.sec2.1-operator": "seqlength.sec2.1.operator",
        "seqlength.sec2.1-frobenius": "seqlength.sec2.1.frobenius",
        "seqlength.sec3.4-converted": "seqlength.sec3.4.converted",
        "seqlength.sec2.3-gap": "seqlength.sec2.3.gap",
        "seqlength.sec2.3-tail": "seqlength.sec2.3.tail",
        "seqlength.sec2.3-linear": "seqlength.sec2.3.linear",
        "seqlength.sec2.3-monte-carlo": "seqlength.sec2.3.signs",
        "seqlength.sec2.4-dudley": "seqlength.sec2.4.dudley",
        "seqlength.appc-negation": "seqlength.appc.negation",
        "seqlength.appc-contraction": "seqlength.appc.contraction",
        "seqlength.appc-massart": "seqlength.appc.massart",
        "seqlength.sec2.6-block": "seqlength.sec2.6.block",
        "seqlength.sec4.1-cls": "seqlength.sec4.1.cls",
        "seqlength.sec4.2-networks": "seqlength.sec4.2.networks",
        "seqlength.lemma3.1-greedy": "seqlength.lemma3.1.greedy",
        "seqlength.lemma3.1-count": "seqlength.lemma3.1.count",
        "seqlength.lemma3.3-count": "seqlength.lemma3.3.count",
        "seqlength.lemma3.3-radius": "seqlength.lemma3.3.radius",
        "seqlength.lemma3.6-size": "seqlength.lemma3.6.size",
        "seqlength.lemma3.6-lists": "seqlength.lemma3.6.lists",
        "seqlength.appendix-a": "seqlength.appa",
        "seqlength.sec2.5-counting": "seqlength.sec2.5.counting",
        "seqlength.lemma3.4-count": "seqlength.lemma3.4.count",
        "seqlength.lemma3.4-size": "seqlength.lemma3.4.size",
        "seqlength.lemma3.5-cover": "seqlength.lemma3.5.cover",
        "seqlength.lemma3.5-count": "seqlength.lemma3.5.count",
        "seqlength.lemma3.5-size": "seqlength.lemma3.5.size",
        "seqlength.thm4.1-norms": "seqlength.thm4.1.norms",
        "seqlength.thm4.1-class": "seqlength.thm4.1.class",
        "seqlength.sec4.2-bounds": "seqlength.sec4.2.bounds",
        "seqlength.cor-d.0": "seqlength.cord.0",
        "seqlength.sec4.3-dudley": "seqlength.sec4.3.dudley",
        "seqlength.sec4.3-heads": "seqlength.sec4.3.heads",
        "seqlength.cor-f.0-shapes": "seqlength.corf.0.shapes",
        "seqlength.thm4.2-packing": "seqlength.thm4.2.packing",
        "seqlength.cor4.2.1-packing": "seqlength.cor4.2.1.packing",
        "seqlength.cor-f.0.1-packing": "seqlength.corf.0.1.packing",
        "seqlength.cor-f.0.2-packing": "seqlength.corf.0.2.packing",
        "seqlength.cor-d.0-orientation": "seqlength.cord.0.orientation",
        "seqlength.cor-f.0.1": "seqlength.corf.0.1",
        "seqlength.cor-f.0.1-one-constant": "seqlength.corf.0.1.constant",
        "seqlength.sec4.3-logarithms": "seqlength.sec4.3.logarithms",
        "seqlength.cor-d.0-logarithms": "seqlength.cord.0.logarithms",
        "seqlength.cor-d.0-class": "seqlength.cord.0.class",
        "seqlength.sec4.3-order": "seqlength.sec4.3.order",
        "seqlength.lemma-e.1": "seqlength.lemmae.1",
        "seqlength.lemma-e.1-minimiser": "seqlength.lemmae.1.minimiser",
        "seqlength.sec5-lipschitz": "seqlength.sec5.lipschitz",
        "seqlength.thm5.1-binary": "seqlength.thm5.1.binary",
        "seqlength.sec5-clipping": "seqlength.sec5.clipping",
        "seqlength.appendix-g": "seqlength.appg",
        "seqlength.thm5.1-links": "seqlength.thm5.1.links",
        "seqlength.thm5.1-constants": "seqlength.thm5.1.constants",
        "seqlength.appc-holder": "seqlength.appc.holder",
        "seqlength.appc-peeling": "seqlength.appc.peeling",
        "seqlength.appc-sign": "seqlength.appc.sign",
        "seqlength.appc-norms": "seqlength.appc.norms",
        "seqlength.appc-range": "seqlength.appc.range",
        "seqlength.lemma-c.1": "seqlength.lemmac.1",
        "seqlength.appc-cover": "seqlength.appc.cover",
        "seqlength.appc-cover-size": "seqlength.appc.cover.size",
        "seqlength.appc-optimum": "seqlength.appc.optimum",
        "seqlength.appc-dudley": "seqlength.appc.dudley",
        "seqlength.lemma-e.2": "seqlength.lemmae.2",
        "seqlength.lemma-e.2-first": "seqlength.lemmae.2.first",
        "seqlength.lemma-e.3": "seqlength.lemmae.3",
        "seqlength.appe-chain": "seqlength.appe.chain",
        "seqlength.appe-cover": "seqlength.appe.cover",
        "seqlength.thm5.1-cover": "seqlength.thm5.1.cover",
        "seqlength.sec6-network": "seqlength.sec6.network",
        "seqlength.sec6-task": "seqlength.sec6.task",
        "seqlength.sec6-trend": "seqlength.sec6.trend",
        "seqlength.certificate-norms": "seqlength.certificate.norms",
        "seqlength.certificate-complexity": "seqlength.certificate.complexity",
        "smapprox.eqa.1-tails": "smapprox.eqa.1.tails",
        "smapprox.sec2.1-positive": "smapprox.sec2.1.positive",
        "smapprox.lemma2.4-lipschitz": "smapprox.lemma2.4.lipschitz",
        "smapprox.lemma2.4-cover": "smapprox.lemma2.4.cover",
        "smapprox.lemma2.4-epsilon": "smapprox.lemma2.4.epsilon",
        "smapprox.sec3-alternatives": "smapprox.sec3.alternatives",
        "smapprox.lemma2.4-l1-cover": "smapprox.lemma2.4.cover.l1",
        "smapprox.lemma2.4-rademacher": "smapprox.lemma2.4.rademacher",
        "smapprox.lemma2.4-realizable": "smapprox.lemma2.4.realizable",
        "smapprox.lemma2.4-constants": "smapprox.lemma2.4.constants",
        "smapprox.cora.1-chain": "smapprox.cora.1.chain",
        "smapprox.cora.1-explicit": "smapprox.cora.1.explicit",
        "smapprox.sec3-layered": "smapprox.sec3.layered",
        "smapprox.lemmab.1-not": "smapprox.lemmab.1.not",
        "smapprox.lemmab.1-norm": "smapprox.lemmab.1.norm",
        "smapprox.lemma3.3-rate": "smapprox.lemma3.3.rate",
        "smapprox.claim3.5-naive": "smapprox.claim3.5.naive",
        "smapprox.thm3.1-explicit": "smapprox.thm3.1.explicit",
        "smapprox.sec3-explicit": "smapprox.sec3.explicit",
        "smapprox.sec4-descriptions": "smapprox.sec4.descriptions",
        "smapprox.thm4.1-positions": "smapprox.thm4.1.positions",
        "smapprox.claimc.6-maps": "smapprox.claimc.6.maps",
        "smapprox.thm4.1-size": "smapprox.thm4.1.size",
        "smapprox.thm4.1-width": "smapprox.thm4.1.width",
        "smapprox.thm4.1-norms": "smapprox.thm4.1.norms",
        "smapprox.thm4.1-margin": "smapprox.thm4.1.margin",
        "smapprox.thm4.1-margin-rate": "smapprox.thm4.1.margin.rate",
        "smapprox.thm4.1-softmax": "smapprox.thm4.1.softmax",
        "smapprox.thm4.1-explicit": "smapprox.thm4.1.explicit",
        "smapprox.claimc.5-case2": "smapprox.claimc.5.case2",
        "smapprox.claimc.4-gap": "smapprox.claimc.4.gap",
        "smapprox.appc-norms": "smapprox.appc.norms",
        "smapprox.condd.3-rounding": "smapprox.condd.3.rounding",
        "smapprox.condd.3-ties": "smapprox.condd.3.ties",
    }
)
"""Maps an old id to the id that replaced it."""
FORMS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("qstr.thm10.rate", "printed"): "derived",
        ("qstr.thm4.length", "printed"): "derived",
        ("qstr.thm1.length", "printed"): "derived",
        ("qstr.lem22", "derived"): "printed",
        ("qstr.lem38", "derived"): "printed",
        ("seqlength.appc.contraction", "printed"): "derived",
    }
)
"""Maps a statement and an old name of its form (claim version) to the form's current name."""
_BEFORE = {now: before for before, now in STATEMENTS.items()}


def current_id(name: str, /) -> str:
    """Return the current id of a statement, given any of its ids; an unknown id stays unchanged."""
    return STATEMENTS.get(name, name)


def current_form(statement: str, form: str, /) -> str:
    """Return the current name of a form (version of a claim); an unknown name stays unchanged."""
    return FORMS.get((statement, form), form)


def drawn_as(name: str, /) -> str:
    """Return the id that seeds a statement's random draws: the statement's oldest id."""
    return _BEFORE.get(name, name)
