"""The paper's statements, in its order.

Sections and appendices, and where they are:

* 2, 3 (data, risks, assumptions, encodings): `model`; (Assumption 2): `links`
* 3.1, A.2 (Propositions 3 and 21): `heads`; Theorem 1's head count: `few_heads`
* 3.2 (after Theorem 4: the limit Omega(qd)): `label_limits`
* 4, B (Definition 5, Theorem 6): `feedforward`
* 5, C.2 (projection, Lemmas 29 and 30, (C.1), (C.2)): `recurrent`
* 5.2, C.3 (Propositions 8 and 35): `recurrent_norms`; C.4 (Theorem 9): `memorising`, `minimisers`
* 6 and the public code (Figure 1): `networks`
* A.1 (Lemma 11): `retrieval`; (Lemma 12): `tails`; (Lemmas 13, 15): `covers`; the rest (Lemmas 15
  to 20, Proposition 17, Theorem 10): `transformers`; the same, with Corollaries 19 to 33 and
  Lemmas 32 and 34, with constants: `cover_sizes`, `lipschitz`, `gaps`, `truncation`; Theorems 4, 7
  and 10: `explicit_samples`; all orders that these print: `printed_orders`
* C.1 (Lemma 22, Proposition 26): `construction`; (Lemmas 22 to 25): `gates`, `gate_norms`;
  (Corollary 27, Proposition 28): `simple`
* C.4 (Lemmas 36 to 38): `interpolation`
* D (Lemmas 39 to 41): `auxiliary`; (Lemma 42): `gates`, `ridge`
* what is wrong or not checked: `errata.toml`; every numbered item and display: `items`; the edition
  read, how to cite it, and the functions that no statement judges: `reference`
"""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.qstr.statements import (
    auxiliary,
    construction,
    cover_sizes,
    covers,
    explicit_samples,
    feedforward,
    few_heads,
    gaps,
    gate_norms,
    gates,
    heads,
    interpolation,
    label_limits,
    links,
    lipschitz,
    memorising,
    minimisers,
    model,
    networks,
    printed_orders,
    recurrent,
    recurrent_norms,
    retrieval,
    ridge,
    simple,
    tails,
    transformers,
    truncation,
)
from jaxbounds.qstr.statements.codes import CODES
from jaxbounds.qstr.statements.items import ITEMS
from jaxbounds.qstr.statements.reference import BIBTEX, CITATION, EDITION, LINKS, UNJUDGED

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="qstr",
    title="When Do Transformers Outperform Feedforward and Recurrent Networks?",
    citation=CITATION,
    statements=(
        *model.STATEMENTS,
        *links.STATEMENTS,
        *few_heads.STATEMENTS,
        *heads.STATEMENTS,
        *few_heads.REMARKS,
        *label_limits.STATEMENTS,
        *feedforward.STATEMENTS,
        *recurrent.MAIN,
        *recurrent_norms.STATEMENTS,
        *memorising.STATEMENTS,
        *minimisers.STATEMENTS,
        *networks.STATEMENTS,
        *retrieval.STATEMENTS,
        *tails.STATEMENTS,
        *covers.STATEMENTS,
        *transformers.STATEMENTS,
        *cover_sizes.STATEMENTS,
        *lipschitz.STATEMENTS,
        *gaps.STATEMENTS,
        *truncation.STATEMENTS,
        *printed_orders.STATEMENTS,
        *explicit_samples.STATEMENTS,
        *heads.APPENDIX,
        *construction.STATEMENTS,
        *gates.STATEMENTS,
        *gate_norms.STATEMENTS,
        *simple.STATEMENTS,
        *recurrent.APPENDIX,
        *interpolation.STATEMENTS,
        *auxiliary.STATEMENTS,
        *ridge.STATEMENTS,
        *gates.AUXILIARY,
    ),
    errata=_ERRATA.errata,
    survives=_ERRATA.survives,
    remarks=_ERRATA.remarks,
    unchecked=_ERRATA.unchecked,
    items=ITEMS,
    codes=CODES,
    unjudged=UNJUDGED,
    edition=EDITION,
    links=LINKS,
    bibtex=BIBTEX,
)
