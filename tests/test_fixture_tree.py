"""Rules and fixtures belong together, and each rule says about itself what it must."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict

import pytest

from cases import FIXTURES, Case, Files, all_cases, check, write_tree
from sampler_lint.harness import invariants
from sampler_lint.rules import Rule, all_rules
from sampler_lint.source import SourceFile

RULES = all_rules()
SECTIONS = [
    "What it does",
    "Why is this bad?",
    "Fix safety",
    "How it is proved",
    "References",
]

each_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])


def cases_of(rule: Rule) -> list[Case]:
    return [case for case in all_cases() if case.code == rule.code]


# fixtures


def test_every_fixture_folder_has_a_rule() -> None:
    folders = {folder.name for folder in FIXTURES.iterdir() if folder.is_dir()}
    assert folders == {rule.code for rule in RULES}


def test_a_fixture_has_a_bad_program_its_good_twin_and_what_is_expected(case: Case) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", case.folder.name)
    assert "train.py" in case.files("bad")
    assert "train.py" in case.files("good")
    assert case.expected.is_file()
    parts = {path.name for path in case.folder.iterdir() if path.is_dir()}
    assert parts <= {"bad", "good", "fixed"}


def test_nothing_of_a_fixture_gives_the_answer_away(case: Case) -> None:
    """No code, and no comment on the bug: a rule that reads comments would pass otherwise."""
    for part in ("bad", "good", "fixed"):
        for name, data in case.files(part).items():
            assert not re.search(rb"SMP\d|noqa|\bBUG\b|FIXME|sampler-lint", data), name


def _style(files: Files) -> tuple[object, ...]:
    """How a program is laid out and written, apart from what it does."""
    sources = [SourceFile(name, data) for name, data in files.items()]
    imports = {
        type(node).__name__ + ("-as" if any(alias.asname for alias in node.names) else "")
        for source in sources
        for node in ast.walk(ast.parse(source.text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    layout = frozenset(name for name in files if name != "train.py")
    newlines = {source.newline for source in sources}
    indents = {source.indent for source in sources}
    return layout, *map(frozenset, (newlines, indents, imports))


@each_rule
def test_every_rule_has_bad_programs_in_two_styles(rule: Rule) -> None:
    styles = {_style(case.files("bad")) for case in cases_of(rule)}
    assert len(styles) >= 2, (
        f"fixtures/{rule.code} shows {len(styles)} style(s): another case differs in the files it "
        "has, in indentation or newlines, or in how it imports"
    )


#: Where a fix imports a package of `frameworks`, the test that proves it with that package.
PROVED_WITH_PACKAGES = {
    "SMP308": ("test_frameworks_data", "test_a_stream_that_the_fix_splits_by_rank"),
}


@each_rule
def test_every_rule_that_fixes_shows_a_fix(rule: Rule) -> None:
    fixed = {bool(case.files("fixed")) for case in cases_of(rule)}
    if rule.code in PROVED_WITH_PACKAGES:
        file, test = PROVED_WITH_PACKAGES[rule.code]
        proof = getattr(importlib.import_module(file), test)
        fixed |= {"engine.fix(" in inspect.getsource(proof)}
    wanted = {"always": [{True}], "never": [{False}], "sometimes": [{True}, {True, False}]}
    assert fixed in wanted[rule.fixable], f"{rule.code} says it fixes {rule.fixable}"


# rules


@each_rule
def test_name_is_kebab_case(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert re.fullmatch(r"SMP[0-9]{3}", rule.code)


def test_codes_and_names_are_used_once() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@each_rule
def test_invariant_is_one_of_the_harness(rule: Rule) -> None:
    assert invariants.get(rule.invariant).name == rule.invariant


def _page(rule: Rule) -> tuple[str, dict[str, str]]:
    """The summary, and the sections in their order."""
    text = inspect.cleandoc(type(rule).__doc__ or "")
    summary, *rest = re.split(r"^([A-Z][^\n]*[:?])\n(?= {4})", text, flags=re.MULTILINE)
    titles = [title.removesuffix(":") for title in rest[::2]]
    return summary.strip(), dict(zip(titles, rest[1::2], strict=True))


@each_rule
def test_docstring_has_the_sections(rule: Rule) -> None:
    summary, sections = _page(rule)
    lacks = [title for title in SECTIONS if not sections.get(title, "").strip()]
    if not re.fullmatch(r"[^(\n].*\.", summary):
        lacks.insert(0, "a summary of one sentence on one line")
    assert not lacks, f"the docstring of {rule.code} lacks {lacks}"
    assert list(sections) == SECTIONS


@each_rule
def test_docstring_names_its_proof_and_its_sources(rule: Rule) -> None:
    _, sections = _page(rule)
    assert f"`{rule.invariant}`" in sections.get("How it is proved", "")
    assert re.search(r"https://\S+|torch/\S+\.py", sections.get("References", ""))


@each_rule
def test_what_docstring_says_of_safety_is_what_fixes_have(rule: Rule, tmp_path) -> None:
    """A kind of fix that is seen in the fixtures must be spoken of."""
    said = _page(rule)[1].get("Fix safety", "").lower()
    seen = defaultdict(list)
    for case in cases_of(rule):
        tree = write_tree(tmp_path / case.folder.name, case.files("bad"))
        for finding in check(tree).findings:
            if finding.code == rule.code and finding.fix:
                seen[finding.fix.applicability.value].append(case.name)
    for kind in seen:
        assert re.search(rf"\b{kind.split('-')[0]}\b", said), (kind, seen[kind])
