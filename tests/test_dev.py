"""Work on the project itself: ``python -m sampler_lint.dev``, and what the site makes of pages."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from sampler_lint.dev import __main__ as command
from sampler_lint.dev import demo, docs, site


@pytest.fixture
def dev(tmp_path, monkeypatch):
    """The command on an empty checkout."""
    (tmp_path / "fixtures").mkdir()
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["dev", *arguments])
        return command.main()

    return run


def test_stale_pages_are_named_or_written(dev, tmp_path, monkeypatch, capsys):
    pages = {"docs/rules/a.md": "new\n"}
    monkeypatch.setattr(docs, "stale", lambda repository: pages)
    monkeypatch.setattr(docs, "stale_pictures", lambda repository: {})
    assert dev("docs", "--check") == 1
    assert capsys.readouterr().out == "stale: docs/rules/a.md\n"
    assert not (tmp_path / "docs").exists()
    assert dev("docs") == 0
    assert capsys.readouterr().out == "written: docs/rules/a.md\n"
    assert (tmp_path / "docs/rules/a.md").read_text() == "new\n"
    pages.clear()
    assert dev("docs", "--check") == 0


def test_a_rule_is_begun_once(dev, tmp_path, capsys):
    assert dev("new", "SMP999", "epoch-goes-backwards") == 0
    out = capsys.readouterr().out
    assert "written: fixtures/SMP999/" in out
    assert "-k SMP999" in out
    assert len(list((tmp_path / "src/sampler_lint/rules").glob("smp999_*.py"))) == 1
    with pytest.raises(SystemExit) as caught:
        dev("new", "SMP999", "epoch-goes-backwards")
    assert caught.value.code == 2
    assert "is there already" in capsys.readouterr().err


def test_without_a_checkout_it_says_what_it_needs(dev, tmp_path, capsys):
    (tmp_path / "fixtures").rmdir()
    with pytest.raises(SystemExit):
        dev("docs")
    assert "this needs a checkout of sampler-lint" in capsys.readouterr().err


@pytest.mark.parametrize(("codes", "expected"), [((1, 1, 0), 0), ((0, 1, 0), 1), ((1, 1, 1), 1)])
def test_the_demo_tells_what_went_wrong(dev, monkeypatch, capsys, codes, expected):
    ran = []

    def play(arguments, *, cwd):
        ran.append(arguments)
        return subprocess.CompletedProcess(arguments, codes[len(ran) - 1])

    monkeypatch.setattr(demo, "command", play)
    assert dev("demo") == expected
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    assert told == [f"$ sampler-lint {' '.join(arguments)}" for arguments in ran]
    assert len(ran) == 3


CONFIG = SimpleNamespace(repo_url="https://example.org/lint", docs_dir="docs", nav=None)


@pytest.mark.parametrize(
    ("page", "link", "leads"),
    [
        ("README.md", "docs/verify.md", "verify.md"),
        ("README.md", "CHANGELOG.md", "changelog.md"),
        ("README.md", "src/x.py", "https://example.org/lint/tree/main/src/x.py"),
        ("docs/verify.md", "../README.md", "index.md"),
        ("docs/verify.md", "rules/smp101.md", "rules/smp101.md"),
        ("docs/rules/smp101.md", "../verify.md", "../verify.md"),
        ("docs/rules/smp101.md", "../../fixtures", "https://example.org/lint/tree/main/fixtures"),
    ],
)
def test_links_lead_where_they_do_in_the_repository(page, link, leads):
    assert site.target(page, link, CONFIG) == leads


def test_a_page_of_the_site_has_its_heading_first_and_its_links_made_right():
    text = "<!-- generated -->\n# Verify\n\n[a](../README.md#use) [b](https://x.org) [c](#here)\n"
    page = SimpleNamespace(file=SimpleNamespace(src_uri="verify.md"))
    assert site.on_page_markdown(text, page=page, config=CONFIG, files=None) == (
        "# Verify\n\n[a](index.md#use) [b](https://x.org) [c](#here)\n"
    )


def test_the_rules_pages_are_listed_by_code(tmp_path):
    (tmp_path / "rules").mkdir()
    for name in ("smp201.md", "smp101.md", "smp101.png"):
        (tmp_path / "rules" / name).touch()
    config = SimpleNamespace(docs_dir=str(tmp_path), nav=["index.md"])
    assert site.on_config(config).nav == [
        "index.md",
        {"Rules": ["rules/smp101.md", "rules/smp201.md"]},
    ]
