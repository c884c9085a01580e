"""The page that `verify` leaves: its text, its drawings, and how it behaves in a real browser."""

import html.parser
import re
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from hypothesis import given
from hypothesis import strategies as st

from jaxbounds.falsification import Verdict, save_instance
from jaxbounds.report import html_page
from jaxbounds.report.formula import formula
from jaxbounds.report.histogram import Axis, histogram, shares
from jaxbounds.report.rows import certificate_words
from jaxbounds.statements import Counterexample, Erratum, Form, Paper, Sides, Statement

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
    assert [link for link in reader.links if link not in inner] == ["data:,"]
    assert "#erratum.first.E1" in inner and inner.count("#first.lemma1") >= 2
    # One style, one script, both written here: what the statements say is text.
    assert (reader.seen["script"], reader.seen["style"], reader.seen["img"]) == (1, 1, 0)
    assert 'document.title = "broken"' in reader.text


def test_the_page_tells_what_it_must(page):
    text = re.sub(r"\s+", " ", read(page.read_text(encoding="utf8")).text)
    for words in (
        "5 forms: 1 fails, 2 holds, 1 consistent, 1 inconclusive; 1 NOT as recorded",
        "recorded holds",
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
    ):
        assert words in text, words


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


@pytest.mark.parametrize("width", [360, 1100])
def test_the_address_filters_and_sorts(page, visit, width):
    with visit(page, width=width) as tab:
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1100])
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
    assert "2.770750305456e-87 ... 2.770750305456e-87 against 1.325687787871e-89" in said("<=")
    assert "ratio at least 209.00" in said("<=")
    assert "ratio" not in said("=")  # which of the sides is the larger says nothing there
