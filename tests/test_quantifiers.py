"""The entries that a claim says exist, and its limit, in the audit, on the page and in `show`."""

import html
import math
import re
import sys

import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.report.quantifiers import checked, in_one_line, last_size, quantifiers

PAPER = """import jax.numpy as jnp
import jaxbounds as jb

def left(k, lam):
    return jnp.sum(k / (k + lam))

def half(n):
    return n / 2

def near(h):
    return 1 / (1 + h)

SMALL = jb.Budget(samples=16, restarts=2, steps=10)
PAPER = jb.Paper(id="quant", title="Quantifiers", statements=(
    jb.claim("quant.some", left, "=", half, over={"k": jb.Box(0.1, 2, "n")}, budget=SMALL,
             there_is={"lam": jb.Box(0, 10)}, sizes={"n": (2,)}),
    jb.claim("quant.end", near, "->", 1.0, over={}, budget=SMALL,
             sizes={"h": tuple(10.0**-j for j in range(1, 7))}),
))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "quantified.py").write_text(PAPER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("quantified", None)


def test_the_audit_the_page_and_show_name_the_promise_and_the_limit(own, capsys):
    told = ["--import", "quantified"]
    assert main(["audit", "quant", *told, "--no-certify", "--jobs", "1", "--out", "out"]) == 0
    capsys.readouterr()
    page = html.unescape(re.sub(r"<[^>]+>", " ", (own / "out/report.html").read_text()))
    audit = (own / "out/audit.md").read_text()
    shown = ""
    for name in ("quant.some", "quant.end"):
        assert main(["show", name, *told]) == 0
        shown += capsys.readouterr().out
    for text in (audit, page, shown):
        assert "for each k there is lam such that left = half" in text
        assert re.search(r"[Tt]here is\W+lam in Box\(lo=0, hi=10, shape=\(\)\)", text)
        assert re.search(r"[Ll]imit\W+as h -> 0", text) and "near -> 1.0 as h -> 0" in text
        every, promised = re.search(
            r"(?:Checked on every instance|hypotheses)(.*?)"
            r"(?:on the entries that the claim says exist|promised)(.*? >= 0)", text, re.DOTALL,
        ).groups()  # fmt: skip
        assert "lam" not in every and "k <= 2" in every
        assert "lam <= 10, lam >= 0" in promised
    words = " ".join(page.split())
    assert "Size closest to h -> 0 h=1e-06" in words and "Largest size h" not in words


def test_a_limit_at_infinity_and_a_plain_claim():
    end = jb.claim("t.end", lambda n: 1 / n, "->", 0.0, over={}, sizes={"n": (1, 10, 100)})
    assert quantifiers(end) == [("limit", "as n -> infinity")]
    assert last_size(end, "") == ("Size closest to n -> infinity", "n=100")
    assert end.towards == {"n": math.inf}
    plain = jb.claim("t.plain", lambda x: x, "<=", 2, over={"x": jb.Box(0, 1)})
    assert in_one_line(plain) == "x <= 2" and last_size(plain, "n=3") == ("Largest size", "n=3")
    assert checked(plain, ["x <= 1"]) == [("checked on every instance", ["x <= 1"])]
    said = jb.claim("t.said", lambda x, y: x, "<=", lambda y: y, over={"x": jb.Box(0, 1)},
                    there_is={"y": jb.Box(0, 1)}, formula="There is y >= x")  # fmt: skip
    assert in_one_line(said) == "There is y >= x"


def test_the_verdict_on_a_limit_names_no_largest_size():
    end = jb.claim("t.end", lambda h: 1 / (1 + h), "->", 1.0, over={},
                   sizes={"h": tuple(10.0**-j for j in range(1, 7))})  # fmt: skip
    (verdict,) = jb.falsify(end)
    assert verdict.largest_size == "" and "distance at the last size" in repr(verdict)
