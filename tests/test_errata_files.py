"""The files of errata: their reader, and the errors that name file, entry and field."""

import re

import pytest

from jaxbounds.claims.statements.errata import load_errata

GOOD = """
survives = \"\"\"
Theorem 1
stands.
\"\"\"

[remarks]
"Lemma 2" = "Attained."

[unchecked]
"Lemma 3" = "Its constant is not given."

[[erratum]]
id = "E1"
where = "Section 1"
kind = "reading"
quote = 'x \\geq y'
text = \"\"\"
The text prints one
sign.
\"\"\"
readings = ["all x", "x > 0"]
consequence = "None."
main = "survive"
evidence = "by reading"
"""


def read(folder, text):
    path = folder / "errata.toml"
    path.write_text(text, encoding="utf-8")
    return load_errata(path)


def test_a_file_is_read_with_line_breaks_as_spaces(tmp_path):
    found = read(tmp_path, GOOD)
    assert found.survives == "Theorem 1 stands."
    assert dict(found.remarks) == {"Lemma 2": "Attained."}
    assert dict(found.unchecked) == {"Lemma 3": "Its constant is not given."}
    (erratum,) = found.errata
    assert (erratum.id, erratum.kind, erratum.readings) == ("E1", "reading", ("all x", "x > 0"))
    assert erratum.quote == r"x \geq y" and erratum.text == "The text prints one sign."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("survives =", "survive =", "top level, field 'survive' is unknown. Try one of survives"),
        ('main = "survive"\n', "", "erratum E1, field 'main' is missing. Try main ="),
        ('main = "survive"', 'mian = "survive"', "erratum E1, field 'mian' is unknown. Try one"),
        (
            'main = "survive"',
            'main = "?"',
            "E1 has main='?', expected the effect on the main theorems. Try",
        ),
        ('kind = "reading"', 'kind = "wrong"', "erratum E1, field 'kind' is 'wrong'. Try one of"),
        ('kind = "reading"', "kind = 3", "erratum E1, field 'kind' is of type int. Try a text"),
        ('kind = "reading"', 'kind = "gap"', "needs two readings"),
        ('where = "Section 1"', 'where = " "', "erratum E1, field 'where' is empty. Try at least"),
        ('["all x", "x > 0"]', '"all x"', "E1, field 'readings' is of type str. Try a list"),
        ('["all x", "x > 0"]', "[1, 2]", "E1, field 'readings' is of type int. Try a text"),
        ('id = "E1"\n', "", "erratum number 1, field 'id' is missing. Try id ="),
        ('"Lemma 2" = "Attained."', '"Lemma 2" = []', "remarks, field 'Lemma 2' is of type list"),
        ("[[erratum]]", "[erratum]", "top level, field 'erratum' is not a list. Try [[erratum]]"),
        ("'x \\geq y'", '"x \\geq y"', "is not TOML in UTF-8"),
    ],
)
def test_a_fault_names_the_file_the_entry_and_the_field(old, new, message, tmp_path):
    assert GOOD.count(old) == 1
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read(tmp_path, GOOD.replace(old, new))
    assert str(tmp_path / "errata.toml") in str(caught.value)


def test_two_errata_of_one_id_are_refused(tmp_path):
    entry = GOOD[GOOD.index("[[erratum]]") :]
    with pytest.raises(ValueError, match="erratum E1 is given 2 times"):
        read(tmp_path, GOOD + entry)


def test_a_file_that_is_absent_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_errata(tmp_path / "none.toml")
