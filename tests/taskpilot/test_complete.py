"""Completeness: stated, or following from what is visible; else a gap with a code and a remedy."""

from __future__ import annotations

from frognano.taskpilot.complete import Enforced, Visible, VisibleTests, completeness, enforced, remedy
from frognano.taskpilot.requirements import Requirement

DOCUMENTED = '''def f(x, size=20):
    """Return x cut to size characters. Raise ValueError below zero."""
    raise ValueError("too small by far")

def g(x):
    pass
'''


def requirement(call: str, outcome: str, match: str = "", test: str = "t.py::test_hidden") -> Requirement:
    return Requirement(test=test, call=call, outcome=outcome, match=match, text=f"{call} == {outcome}")


def one(call: str, outcome: str, match: str = "", shown: tuple[Requirement, ...] = (), readme: str = "") -> Enforced:
    visible = Visible({"m.py": DOCUMENTED}, readme)
    return enforced([requirement(call, outcome, match)], visible, VisibleTests(shown))[0]


def test_a_documented_function_is_matched_by_its_docstring() -> None:
    assert one("f(1)", "1").follows == "documentation"


def test_an_undocumented_one_is_a_gap() -> None:
    assert one("g(1)", "1").gap == "behaviour-undocumented"


def test_the_readme_documents_what_it_names() -> None:
    assert one("g(1)", "1", readme="Use g to do it.").follows == "documentation"


def test_a_visible_test_of_the_same_function_matches() -> None:
    assert one("g(1)", "1", shown=(requirement("g(2)", "2", test="t.py::test_shown"),)).follows == "visible test"


def test_a_hidden_test_is_no_visible_one() -> None:
    assert one("g(1)", "1", shown=(requirement("g(2)", "2"),)).gap == "behaviour-undocumented"


def test_an_exception_must_be_named_somewhere() -> None:
    assert one("f(-1)", "raises ValueError").follows == "documentation"
    assert one("f(-1)", "raises KeyError").gap == "exception-unstated"


def test_a_message_must_be_visible() -> None:
    assert one("f(-1)", "raises ValueError", "too small by far").gap == ""
    assert one("f(-1)", "raises ValueError", "quite another text").gap == "message-unstated"


def test_a_changed_default_must_be_stated() -> None:
    visible, asked = Visible({"m.py": DOCUMENTED}, ""), [requirement("f('abc')", "'abc'")]
    assert enforced(asked, visible, VisibleTests(()), ("size", "20"))[0].gap == "default-unstated"
    stated = Visible({"m.py": DOCUMENTED.replace("characters", "characters, by default 20")}, "")
    assert enforced(asked, stated, VisibleTests(()), ("size", "20"))[0].follows == "documentation"


def test_a_quoted_call_is_stated() -> None:
    found = [one("g( 1 )", "1")]
    assert completeness(found, ">>> g(1)\ngot: 2\nexpected: 1\n").stated == 1
    missing = completeness(found, "g is wrong\n")
    assert (missing.complete, missing.share, missing.gaps) == (False, 0.0, ("behaviour-undocumented",))


def test_a_remedy_closes_the_gaps_it_names() -> None:
    found = [one("g(1)", "1"), one("f(-1)", "raises KeyError")]
    note = remedy(found, "g is wrong", None)
    assert note == "g(1) gives 1; f(-1) raises KeyError"
    assert completeness(found, f"g is wrong\n\nRequired: {note}\n").complete


def test_too_many_gaps_have_no_remedy() -> None:
    assert remedy([one(f"g({n})", "1") for n in range(9)], "", None) is None
    assert remedy([one("f(-1)", "raises ValueError", "quite another text")], "", None) is None
