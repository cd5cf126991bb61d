"""The bug atlas names each rule, no rule that does not exist, and pages say where a bug was met."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sampler_lint.rules import all_rules

ATLAS = Path(__file__).resolve().parent.parent / "docs" / "bug-atlas.md"
#: Of comments, not of programs.
_NO_BUGS = {"SMP001"}
RULES = [rule for rule in all_rules() if rule.code not in _NO_BUGS]


def test_the_atlas_names_each_rule_and_no_other() -> None:
    named = set(re.findall(r"SMP\d{3}", ATLAS.read_text(encoding="utf-8")))
    assert named == {rule.code for rule in RULES}


def test_links_of_the_atlas_lead_to_the_page_of_the_code_they_show() -> None:
    text = ATLAS.read_text(encoding="utf-8")
    links = re.findall(r"\[(SMP\d{3})\]\(rules/(\w+)\.md\)", text)
    assert {shown for shown, _ in links} == {rule.code for rule in RULES}
    assert all(page == shown.lower() for shown, page in links)


def test_a_bug_has_code_who_was_hit_and_what_finds_it() -> None:
    parts = re.split(r"^### ", ATLAS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(parts) > 20
    for part in parts:
        part = re.split(r"^## ", part, flags=re.MULTILINE)[0]
        [code] = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
        assert 1 <= len(code.splitlines()) <= 8, part
        assert "https://github.com/" in part, part
        assert re.search(r"[Ff]ound\s+by", part), part


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_where_the_bug_was_met(rule: type) -> None:
    text = " ".join((rule.__doc__ or "").split())
    met = (
        re.search(r"- met in https://github\.com/[\w.-]+/[\w.-]+ \([^)]*\.py[^)]*\)", text)
        is not None
    )
    not_met = "- not met in public code yet" in text
    assert met is not not_met
