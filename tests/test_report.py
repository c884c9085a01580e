"""The page that `verify` leaves: its text, its drawings, and how it behaves in a real browser."""

import html.parser
import json
import re
from collections import Counter
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from hypothesis import given
from hypothesis import strategies as st

from jaxbounds.claims.statements import Counterexample, Erratum, Form, Paper, Sides, Statement
from jaxbounds.constants import constants_on_record
from jaxbounds.falsification import Verdict, save_instance
from jaxbounds.papers import load_papers
from jaxbounds.report import html_page
from jaxbounds.report.columns import number
from jaxbounds.report.constants import looseness_rows
from jaxbounds.report.formula import formula
from jaxbounds.report.headline import fails_as_printed, headline, in_brief, weights_in_words
from jaxbounds.report.histogram import Axis, histogram, shares
from jaxbounds.report.rows import certificate_words
from jaxbounds.report.terminal import paper_rows
from jaxbounds.report.tex import plain
from jaxbounds.report.worst import worst_known

HOSTILE = '<script>document.title = "broken"</script> <img src=x onerror=alert(1)> "&amp;'
COUNTEREXAMPLE = Counterexample(instance={"x": [1.0, 0.0]}, size={"d": 2}, ratio=1.4)


def _statement(name, forms, **options):
    return Statement(
        id=name,
        label="Lemma 1",
        forms=forms,
        sample=lambda key, size: {"x": jnp.zeros(size["d"])},
        hypotheses=lambda instance, size: {"|x| <= 1": instance["x"] @ instance["x"] <= 1},
        evaluate=lambda instance, size: Sides(lhs=0.0, rhs={}),
        control="half of it",
        sizes=({"d": 2},),
        **({"kind": "inequality", "formula": "||x||_2 <= sqrt(d) ||x||_inf"} | options),
    )


STATEMENTS = (
    _statement(
        "first.lemma1",
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E1",
                note="the factor <= is missing",
                counterexample=COUNTEREXAMPLE,
            ),
            Form(name="corrected", note="by Cauchy-Schwarz"),
        ),
    ),
    _statement("first.lemma10", (Form(name="printed"),), kind="identity", formula="a = b"),
    _statement("second.rate", (Form(name="printed", sense="at most"),), kind="rate"),
    _statement("second.hostile", (Form(name="printed", note=HOSTILE),), formula=HOSTILE),
)
PAPERS = (
    Paper(
        id="first",
        title="First",
        edition="the third edition.",
        links={"arXiv": "https://arxiv.org/abs/1", "bad": "javascript:alert(1)"},
        bibtex="@book{first, title = {<b>}}",
        statements=STATEMENTS[:2],
        errata=(
            Erratum(
                id="E1",
                where="Lemma 1",
                kind="false",
                quote="|x| <= |x|_inf",
                text="sqrt(d) is missing.",
                consequence="None.",
                main="survive it",
                evidence="first.lemma1, not first.lemma11",
            ),
        ),
        survives="Everything else.",
        remarks={"Remark 1": HOSTILE},
        unchecked={"Remark 2": HOSTILE},
    ),
    Paper(id="second", title=HOSTILE, statements=STATEMENTS[2:]),
)


def _verdict(index, form, status, ratio, quantiles=(), **options):
    statement = STATEMENTS[index]
    given = {
        "id": statement.id,
        "paper": statement.paper,
        "label": statement.label,
        "kind": statement.kind,
        "relation": statement.relation,
        "form": form,
        "expected": statement.form(form).expected,
        "status": status,
        "reason": "because",
        "worst_ratio": ratio,
        "instances": 40,
        "searches": 2,
        "quantiles": tuple(quantiles),
        "sources": {"sample": {"instances": 40, "worst_ratio": ratio}},
        "control": {"status": "fails", "worst_ratio": 2.0},
        "tolerance": statement.tolerance,
        "checked": ("|x| <= 1",),
        "recorded": True,
    }
    return Verdict(**(given | options))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about two papers, with a stored instance and text that would like to be a script."""
    out = tmp_path_factory.mktemp("a folder")
    save_instance(
        out / "worst/a.npz", {"x": np.array([1 / 3, -0.0])}, id="a", form="b", ratio="1.4"
    )
    spread = np.geomspace(0.01, 1.4, 21)
    verdicts = (
        _verdict(0, "printed", "fails", 1.4, spread, worst_file="worst/a.npz", size={"d": 2}),
        _verdict(0, "corrected", "holds", 0.7, spread / 2),
        _verdict(1, "printed", "holds", 0.0, [0.0] * 21, instances=5),
        _verdict(2, "printed", "consistent", 0.9, spread),
        _verdict(3, "printed", "inconclusive", float("nan")),
    )
    page = html_page(verdicts, PAPERS, {"jaxbounds": "1 <b>"}, out, ("my claims.py",))
    path = out / "report.html"
    path.write_text(page, encoding="utf8")
    return path


class _Reader(html.parser.HTMLParser):
    """Tags, ids and links; refuses what is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.ids, self.links, self.text = [], Counter(), [], [], ""

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.seen[tag] += 1
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        assert not [name for name in given if name.startswith("on")]
        assert "src" not in given
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text):
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page):
    reader = read(page.read_text(encoding="utf8"))
    assert not [name for name, count in Counter(reader.ids).items() if count > 1]
    inner = [link for link in reader.links if link.startswith("#")]
    assert {link[1:] for link in inner} <= set(reader.ids)
    others = [link for link in reader.links if link not in inner]
    assert others == ["data:,", "https://arxiv.org/abs/1"]
    assert "#erratum.first.E1" in inner and inner.count("#first.lemma1") >= 2
    # One style, one script, both written here: what the statements say is text.
    assert (reader.seen["script"], reader.seen["style"], reader.seen["img"]) == (1, 1, 0)
    assert 'document.title = "broken"' in reader.text


def test_the_page_tells_what_it_must(page):
    text = re.sub(r"\s+", " ", read(page.read_text(encoding="utf8")).text)
    for words in (
        "5 forms: 1 fails, 2 holds, 1 consistent, 1 inconclusive; 1 NOT as recorded",
        "recorded: holds",
        "by Cauchy-Schwarz",
        "0.333333, 0]",
        f"jaxbounds replay '{page.parent / 'worst/a.npz'}' --import 'my claims.py'",
        "|x| <= 1",
        "Everything else.",
        "Main theorems: survive it",
        "x1.4 over",
        "Remark 1",
        "half of it (measured alike: fails, 2.000)",
        "40 draws: median 0.118, 95% quantile 1.09, largest 1.4.",
        "Consequence. None.",
        "Remark 2",
        "jaxbounds 1 <b>",
        "1 erratum: 1 false; no erratum changes a main theorem.",
        "first21 (1 false)0-",
        "Read: the third edition.",
        "@book{first, title = {<b>}}",
        "bad: javascript:alert(1)",
        '"First": first.lemma1 (printed) fails; seed 0, digest ',
    ):
        assert words in text, words


def _erratum(name, kind, main="survive"):
    return Erratum(
        id=name, where=f"Lemma {name}; elsewhere", kind=kind, quote="q", text="t", main=main,
        readings=("a", "b") if kind == "reading" else (), consequence="c", evidence="e",
    )  # fmt: skip


def test_the_headline_says_which_errata_matter():
    paper = lambda name, *errata: Paper(
        id=name, title=name, statements=(), errata=errata, survives="s"
    )
    one = paper("one", _erratum("E1", "typo"), _erratum("E2", "gap", "changed to 2 for 1"))
    two = paper("two", _erratum("E1", "typo"), _erratum("E3", "false", "changed to 3 for 1"))
    none = paper("none", _erratum("E1", "reading"))
    assert headline([one, none, two]) == (
        "5 errata: 1 false, 1 gap, 1 reading, 2 typos; 2 change a main theorem: one E2; two E3"
    )
    assert headline([two]).endswith("; 1 changes a main theorem: two E3")
    assert headline([none]) == "1 erratum: 1 reading; no erratum changes a main theorem"
    assert headline([paper("empty")]) == headline([]) == "no errata"
    lines = list(in_brief([one, none, two], 80))
    assert lines[0] == headline([one, none, two])
    assert lines[1:] == [
        "  one E2 (gap)    Lemma E2: 2 for 1",
        "  two E3 (false)  Lemma E3: 3 for 1",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_headline_of_the_papers_is_their_data(width):
    papers = load_papers()
    head, *lines = in_brief(papers, width)
    every = [e for paper in papers for e in paper.errata]
    changed = [f"{p.id} {e.id}" for p in papers for e in p.by_weight if e.main[:7] != "survive"]
    assert head.startswith(f"{len(every)} errata: {sum(e.kind == 'false' for e in every)} false, ")
    assert f"; {len(changed)} change a main theorem: " in head
    assert [line.split(" (")[0].strip() for line in lines] == changed
    assert max(map(len, lines)) <= width


def test_what_fails_is_split_by_weight_and_early_versions_stand_apart():
    form = lambda name, erratum="": Form(
        name=name, expected="fails", erratum=erratum, note="n", counterexample=COUNTEREXAMPLE
    )
    statements = tuple(
        _statement(f"own.s{i}", tuple(forms))
        for i, forms in enumerate(
            (
                [form("printed", "E1"), form("printed, (2)", "E2")],  # counts once, as the heavier
                [form("printed", "E1")],
                [form("printed, early version"), form("derived")],
                [form("printed")],
                [form("derived", "E2")],  # the paper does not print it
            )
        )
    )
    errata = (_erratum("E1", "typo"), _erratum("E2", "false"))
    paper = Paper(id="own", title="Own", statements=statements, errata=errata, survives="s")
    failing = [_own(s, f, "fails") for s in statements for f in s.forms]
    counts = fails_as_printed(paper, failing)
    assert counts == {"false": 1, "typo": 1, "no erratum": 1, "early version": 1}
    said = "3 (1 false, 1 typo, 1 no erratum); 1 early version"
    assert weights_in_words(counts) == said
    assert next(paper_rows([paper], failing))[2] == said
    holding = [_own(s, f, "holds") for s in statements for f in s.forms]
    assert next(paper_rows([paper], holding))[2] == "0"


def _own(statement, form, status):
    about = {"id": statement.id, "paper": statement.paper, "form": form.name}
    return replace(_verdict(0, "printed", status, 0.5), expected=status, **about)


def _contradictions(constants, worst):
    """Rows below a ratio that is known, or that call a form sharp, attained or loose that fails."""
    for row, constant in zip(looseness_rows(constants, worst), constants):
        known = worst.get((constant.id, constant.form), 0.0)
        fails = max(known, constant.largest.ratio) > 1 + 1e-9
        larger = known > constant.largest.ratio * (1 + 1e-6)
        if (
            (larger and row[2] != number(known))
            or (fails and row[3] != "fails")
            or (larger and (row[4] in ("attained", "every instance", "enumerated") or row[5]))
            or (larger and row[3] == "sharp")
        ):
            yield row


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_no_constant_contradicts_a_ratio_on_record(paper):
    constants, worst = constants_on_record(paper), worst_known([paper])
    expected = {(s.id, f.name): f.expected for s in paper.statements for f in s.forms}
    assert constants and worst
    assert list(_contradictions(constants, worst)) == []
    for row, constant in zip(looseness_rows(constants, worst), constants):
        assert (row[3] == "fails") == (expected[constant.id, constant.form] == "fails"), row


OWN = {"id": "first.lemma1", "label": "1", "formula": "a <= b"}


def _on_record(folder, ratios, **of_form):
    folder.mkdir(exist_ok=True)
    size = {"size": {"d": 2}, "closed": None, "where": "attained"}
    stored = [
        {**OWN, "form": form, "law": "sqrt(d)", "sizes": [{**size, "ratio": ratio}],
         "dependence": []}
        for form, ratio in of_form.items()
    ]  # fmt: skip
    (folder / "constants.json").write_text(json.dumps({"first.lemma1": stored}))
    known = {form: {"worst": ratio} for form, ratio in ratios.items()}
    (folder / "ratios.json").write_text(json.dumps({"first.lemma1": known}))


def test_a_user_s_constants_and_verdicts_agree_on_the_page(tmp_path):
    paper = replace(PAPERS[0], folder=tmp_path / "records")
    _on_record(paper.folder, {"printed": 1.25, "corrected": 0.5}, printed=1.0, corrected=0.6)
    rows = lambda *verdicts: [
        row[2:] for row in looseness_rows(
            constants_on_record(paper), worst_known([paper], verdicts)
        )
    ]  # fmt: skip
    kept = ("0.600", "x1.667", "attained", "sqrt(d)")
    assert rows() == [("1.250", "fails", "verify", ""), kept]
    worse = _verdict(0, "printed", "fails", 1.5), _verdict(0, "corrected", "holds", 0.8)
    better = _verdict(0, "printed", "holds", 0.2), _verdict(0, "corrected", "holds", float("nan"))
    assert rows(*worse) == [
        ("1.500", "fails", "verify", ""),
        ("0.800", "at most x1.25", "verify", ""),
    ]
    assert rows(*better) == rows()
    constants = constants_on_record(paper)
    assert list(_contradictions(constants, worst_known([paper], worse))) == []
    # Without what verify knows the table would say "sharp" of a form that fails.
    assert looseness_rows(constants)[0][3:5] == ("sharp", "attained")
    page = read(html_page(worse, (paper,), {}, tmp_path)).text
    assert "printed1.500failsverify" in page and "corrected0.800at most x1.25verify" in page


def _with_tex(tex):
    return _statement("first.tex", (Form(name="printed"),), tex=tex, formula="plain")


def test_a_formula_is_set_as_mathml():
    text = formula(_with_tex(r"\|x\|_2 \le \sqrt{d} < \frac{1}{n}"))
    reader = read(text)
    assert reader.seen["msqrt"] == reader.seen["mfrac"] == reader.seen["msub"] == 1
    assert reader.text == "‖x‖2≤d<1n"
    assert formula(_statement("first.none", (Form(name="printed"),), formula="a < b")) == (
        "<code>a &lt; b</code>"
    )
    with pytest.raises(ValueError, match=r"first\.tex: tex cannot be read"):
        formula(_with_tex("a_1_2"))


def _spaces(tex):
    """(symbol, space before, space after) of all symbols that say so; in em/18, as TeX counts."""
    found = re.findall(
        r'<mo[^>]* lspace="([\d.]+)(?:em)?" rspace="([\d.]+)(?:em)?">(.*?)<',
        formula(_with_tex(tex)),
    )
    return [
        (sign, round(18 * float(left)), round(18 * float(right))) for left, right, sign in found
    ]


def test_symbols_stand_as_far_apart_as_in_tex():
    # TeXbook, chapter 18: names of functions have thin spaces (3) to what is no delimiter,
    # relations thick ones (5), signs and bars none, and indices have neither.
    assert _spaces(r"2 \ln n") == [("ln", 3, 3)]
    assert _spaces(r"\log(n) \max_i |x_i|") == [
        ("log", 0, 0),
        ("max", 3, 3),
        ("|", 0, 0),
        ("|", 0, 0),
    ]
    assert _spaces(r"\{x : x = -1\}") == [(":", 5, 5), ("−", 0, 0)]
    assert _spaces(r"a - b") == []
    assert _spaces(r"\|x\|_{2, \infty} \implies y") == [
        ("‖", 0, 0),
        ("‖", 0, 0),
        (",", 0, 0),
        ("⟹", 5, 5),
    ]
    assert "<mi>∞</mi>" in formula(_with_tex(r"\infty"))


def test_a_formula_is_said_in_one_line():
    for tex, said in (
        (r"\left\| f \right\|_2^2 \le \frac{\gamma^2 b^2}{k}", "||f||_2^2 <= (γ^2 b^2)/k"),
        (r"\delta = \frac{\sqrt{C}}{m} + \hat{W}_{QK}", "δ = sqrt(C)/m + W_hat_{QK}"),
        (r"Let $q \in \mathbb{R}_{>0}$, and so on", "Let q in ℝ_{>0}, and so on"),
        (r"\max_{j \in [d]} |e_j u|", "max_{j in [d]}|e_j u|"),
        ("costs $5 and $6 for |x|_{2,inf}", "costs $5 and $6 for |x|_{2,inf}"),
        (r"a_1_2 \le b", r"a_1_2 \le b"),  # no LaTeX: it stays as it is
    ):
        assert plain(tex) == said


@given(st.text(alphabet=st.sampled_from("ab<>&\"' 12x/=;"), max_size=30))
def test_no_text_in_a_formula_becomes_an_element(text):
    reader = read(formula(_with_tex(r"a \text{<script>" + text + "}")))
    assert set(reader.seen) <= {"math", "mrow", "mi", "mtext"}


def test_shares_agree_with_counting():
    # Counting many draws shares no code with the interpolation between quantiles.
    draws = np.exp(np.random.default_rng(0).normal(-2.0, 1.0, 40_000))
    found = shares(np.quantile(draws, np.linspace(0, 1, 21)).tolist(), -1.5, 0.0, 6)
    edges = np.concatenate([[-np.inf], np.linspace(-1.5, 0.0, 7), [np.inf]])
    counted = np.histogram(np.log10(draws), edges)[0] / len(draws)
    # Half of a twentieth: within one interval between quantiles the spread is unknown.
    np.testing.assert_allclose(found, counted, rtol=0, atol=0.025)
    # By hand: a quarter at zero, one spread over each of two decades, one at exactly one.
    found = shares([0.0, 0.0, 0.1, 1.0, 1.0], -2.0, 0.5, 5)
    np.testing.assert_allclose(found, [0.25, 0.125, 0.125, 0.125, 0.125, 0.25, 0], atol=1e-12)


def test_what_lies_outside_the_axis_stands_there_with_its_number():
    ax = Axis(-2.0, 0.15, 0.0)
    near = [0.1] * 21
    reader = read(histogram(_verdict(0, "printed", "holds", 0.1, near), ax, 0.1, 21))
    assert "more" not in reader.text and "less" not in reader.text and "0.100" not in reader.text
    # By hand: above lie four of twenty spaces and 4.85 of the 6 decades of one, below five and
    # four of the 5 decades of one.
    far = [1e-6] * 6 + [0.1] * 10 + [1e5] * 5
    reader = read(histogram(_verdict(0, "printed", "fails", 2.8e17, far), ax, 2.8e17, 21))
    assert "2.8e+17" in reader.text and "24% more" in reader.text and "29%less" in reader.text


ADDRESSES = {
    "paper=first&verdict=fails": ["first.lemma1"],
    "kind=identity": ["first.lemma10"],
    "form=corrected": ["first.lemma1"],
    "verdict=unexpected": ["second.hostile"],
    "q=cauchy": ["first.lemma1"],
    "q=nowhere": [],
    "paper=nowhere": ["first.lemma1", "first.lemma10", "second.rate", "second.hostile"],
    # A statement stands where its least form stands.
    "sort=verdict": ["first.lemma1", "second.hostile", "second.rate", "first.lemma10"],
    # Numbers in names count as numbers.
    "sort=name": ["first.lemma1", "first.lemma10", "second.hostile", "second.rate"],
}


SHOWN = """() => [...document.querySelectorAll("#verdicts tbody")]
  .filter((part) => part.getClientRects().length > 0).map(({ id }) => id)"""


def test_the_address_filters_and_sorts(page, visit):
    with visit(page, width=360) as tab:
        for address, expected in ADDRESSES.items():
            tab.evaluate("(address) => { location.hash = address; }", address)
            assert tab.evaluate(SHOWN) == expected, address


def test_an_address_is_followed_at_once(page, visit):
    with visit(page, "#kind=identity&paper=first") as tab:
        assert tab.evaluate(SHOWN) == ["first.lemma10"]
        assert tab.title() == "jaxbounds: verdicts"  # no script among the statements' text has run


def test_columns_sort_upwards_downwards_and_back(page, visit):
    with visit(page) as tab:
        samples = tab.get_by_role("columnheader", name="Samples")
        seen = []
        for _ in range(4):
            seen.append((samples.get_attribute("aria-sort"), tab.evaluate(SHOWN)[0]))
            samples.get_by_role("button").click()
        assert seen == [
            ("none", "first.lemma1"),
            ("ascending", "first.lemma10"),
            ("descending", "first.lemma1"),
            ("none", "first.lemma1"),
        ]


def test_choices_are_kept_in_the_address_and_links_clear_them(page, visit):
    with visit(page) as tab:
        tab.get_by_label("Verdict").select_option("consistent")
        assert (tab.evaluate("location.hash"), tab.evaluate(SHOWN)) == (
            "#verdict=consistent",
            ["second.rate"],
        )
        tab.locator(".card a").first.click()
        assert tab.evaluate("location.hash") == "#first.lemma1"
        assert len(tab.evaluate(SHOWN)) == 4
        assert tab.locator("details[open]").count() == 1
        assert tab.locator("[id='first.lemma1'] details[open]").count() == 1
        tab.get_by_label("Search").fill("cauchy nowhere")
        assert tab.evaluate(SHOWN) == []
        tab.get_by_role("button", name="Clear").click()
        tab.wait_for_function("() => location.hash === ''")
        assert len(tab.evaluate(SHOWN)) == 4


def test_everything_opens_and_closes_and_the_theme_is_kept(page, visit):
    with visit(page) as tab:
        shut = tab.locator("details:not([open])").count()
        tab.get_by_role("button", name="Open all").click()
        assert shut > 0 and tab.locator("details:not([open])").count() == 0
        tab.get_by_role("button", name="Close all").click()
        assert tab.locator("details[open]").count() == 0
        for name in ("light", "dark"):
            tab.get_by_role("button", name="Theme").click()
            assert tab.locator("html").get_attribute("data-theme") == name
        assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(227, 225, 220)"
        tab.reload()
        assert tab.locator("html").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize("width, scheme", [(360, "dark"), (1100, "light")])
def test_everyone_can_read_it(page, visit, width, scheme):
    # Contrasts, names, headings in order, sizes of targets: by a checker of others.
    with visit(page, width=width, scheme=scheme) as tab:
        tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        found = Axe().run(tab).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []


def test_it_is_readable_without_scripts(page):
    # The filters need the script and are hidden without it; everything else is in the page.
    reader = read(re.sub(r"<script>.*</script>", "", page.read_text(encoding="utf8")))
    assert re.search(r'<form id="controls" hidden>', page.read_text(encoding="utf8"))
    assert reader.seen["tbody"] == len(STATEMENTS) + 1 and reader.seen["button"] == 3


def test_a_certificate_keeps_its_exponents_and_says_the_ratio():
    sides = {"lhs": ("2.770750305456123e-87",) * 2, "rhs": ("1.325687787871456e-89",) * 2}
    about = {"word": "disproved", "reason": "", "hypotheses": {}, "bits": 448, "ways": 1}
    said = lambda relation: certificate_words(
        _verdict(0, "printed", "fails", 210.0, certificate=about | sides, relation=relation)
    )
    assert "2.77075030545e-87 ... 2.77075030546e-87 against 1.32568778787e-89" in said("<=")
    assert "ratio at least 209.00" in said("<=")
    sides |= {"lhs": ("25000000000000001419835645621.3",) * 2, "rhs": ("4e-3",) * 2}
    assert "disproved; 2.5e+28 ... 2.50000000001e+28 against 0.004 ... 0.004" in said("<=")
    assert "ratio" not in said("=")  # which of the sides is the larger says nothing there
