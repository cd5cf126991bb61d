"""Documentation says what is so: generated pages, codes, links and commands."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cases import FIXTURES, read_tree, working_in, write_tree
from sampler_lint.cli import COMMANDS, main
from sampler_lint.dev import docs, messages, pictures, reference
from sampler_lint.domain import concepts
from sampler_lint.findings import Applicability
from sampler_lint.pytest_plugin import GlooWorld
from sampler_lint.rules import all_rules, every_rule
from sampler_lint.syntax.navigation import unparse
from trees import Tree

REPOSITORY = Path(__file__).parent.parent
CODES = {rule.code for rule in every_rule()}
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
HAND_WRITTEN = [
    path for folder in (REPOSITORY, REPOSITORY / "docs", FIXTURES) for path in folder.glob("*.md")
]

_CODE = re.compile(r"\bSMP\d{3}\b")
_LINK = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#\s]+)")


def called_here(
    arguments: Sequence[str], *, cwd: Path, capture: bool
) -> subprocess.CompletedProcess[str]:
    """What :func:`docs.command` returns, without a process of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with working_in(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*arguments])
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(arguments, status, *said)


@pytest.mark.usefixtures("shared_torch")
def test_generated_documentation_is_current(monkeypatch):
    """In one process; those of the test below are real ones."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(docs, "command", called_here)
    stale = docs.stale(REPOSITORY)
    assert not stale, f"run python -m sampler_lint.dev docs: {sorted(stale)}"


def test_a_stale_page_is_noticed_and_written(tmp_path, monkeypatch):
    some = [rule for rule in every_rule() if rule.code in {"SMP101", "SMP301"}]
    monkeypatch.setattr(docs, "every_rule", lambda: some)
    (tmp_path / "fixtures").symlink_to(FIXTURES)
    (tmp_path / "README.md").write_text("a\n<!-- BEGIN rules -->\nold\n<!-- END rules -->\nb\n")
    (tmp_path / "docs" / "rules").mkdir(parents=True)
    (tmp_path / "docs" / "harness.md").write_text("no blocks\n")
    (tmp_path / "docs" / "rules" / "smp999.md").write_text("a rule that is gone\n")

    stale = docs.stale(tmp_path)
    assert stale.keys() == {
        "README.md",
        "docs/cli.md",
        "docs/frameworks.md",
        "docs/messages.md",
        "docs/rules/index.md",
        "docs/rules/smp999.md",
        *(docs.page_of(rule) for rule in some),
    }
    docs.write(tmp_path, stale)
    assert docs.stale(tmp_path) == {}
    assert not (tmp_path / "docs" / "rules" / "smp999.md").exists()
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("a\n<!-- BEGIN rules -->\n| code |")
    assert text.endswith("|\n<!-- END rules -->\nb\n")


def test_an_unknown_block_is_an_error(tmp_path):
    with pytest.raises(LookupError, match="'weather'"):
        docs._Blocks(tmp_path)("<!-- BEGIN weather -->\n<!-- END weather -->")


def test_codes_are_the_same_everywhere():
    assert {folder.name for folder in FIXTURES.glob("SMP*")} == {rule.code for rule in all_rules()}
    assert {path.stem.upper() for path in (REPOSITORY / "docs" / "rules").glob("smp*.md")} == CODES
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(_CODE.findall(changelog)) == CODES


def test_pages_of_proved_rules_show_the_proof():
    """What the pictures say is held to real runs by test_verify."""
    pictured = {fixture.code for fixture in docs.pictured(REPOSITORY)}
    assert pictured == {rule.code for rule in all_rules()}
    for code in pictured:
        picture = (REPOSITORY / pictures.path_of(code)).read_text(encoding="utf-8")
        text = (REPOSITORY / f"docs/rules/{code.lower()}.md").read_text(encoding="utf-8")
        broken, holds = pictures.description(picture).splitlines()
        assert (": broken - " in broken, ": holds - " in holds) == (True, True), code
        broken, holds = (line.replace(" - ", ": `", 1) for line in (broken, holds))
        assert f"![{pictures.title(picture)}](" in text
        assert f"- {broken}`\n- {holds}`\n" in text


def test_a_picture_shows_repeated_orders():
    picture = (REPOSITORY / pictures.path_of("SMP101")).read_text(encoding="utf-8")
    before, after = (
        [frozenset(cells_in_row(panel, row)) for row in range(6)]
        for panel in picture.split("<g ")[1:]
    )
    assert len(set(before)) == 2  # three epochs on each of two ranks
    assert len(set(after)) == 6
    assert sum(width for _, _, width in before[0]) == 50


def cells_in_row(panel: str, row: int) -> Iterator[tuple[str, int, int]]:
    """Colour, place and width of what is drawn in a row."""
    for colour, path in re.findall(r'stroke="(#\w+)" d="([^"]*)"', panel):
        for left, width in re.findall(rf"M(\d+) {row}h(\d+)", path):
            yield colour, int(left), int(width)


def test_the_pytest_example_runs(tmp_path, gloo_session):
    text = (REPOSITORY / "docs" / "harness.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    write_tree(tmp_path, read_tree(FIXTURES / "SMP101" / "torch-batch-sampler" / "fixed"))
    names: dict[str, Any] = {}
    exec(compile(example, "harness.md", "exec"), names)
    with working_in(tmp_path):
        names["test_epochs_differ"](GlooWorld(gloo_session, 2))


@pytest.mark.parametrize("path", HAND_WRITTEN, ids=lambda path: path.name)
def test_codes_that_a_page_names_exist(path):
    named = set(_CODE.findall(path.read_text(encoding="utf-8")))
    assert named <= CODES


def test_links_lead_somewhere():
    pages = [*HAND_WRITTEN, *(REPOSITORY / docs.page_of(rule) for rule in all_rules())]
    dead = [
        (page.name, match["path"])
        for page in pages
        for match in _LINK.finditer(page.read_text(encoding="utf-8"))
        if not (page.parent / match["path"]).exists()
    ]
    assert dead == []


def test_the_readme_tells_the_precision_that_was_measured():
    (readme,) = re.findall(
        r"In (\d+) public repositories .*? (\d+) of (\d+) findings", README, re.DOTALL
    )
    measured = (REPOSITORY / "benchmarks/wild/README.md").read_text(encoding="utf-8")
    right, found, repositories = re.findall(
        r"At the last look (\d+) of (\d+) findings in (\d+) repositories were right", measured
    )[0]
    assert readme == (repositories, right, found)


def test_the_library_example_of_the_readme_runs(tmp_path):
    (example,) = re.findall(r"```python\n(from sampler_lint.*?)```", README, re.DOTALL)
    write_tree(tmp_path, read_tree(FIXTURES / "SMP101" / "torch-batch-sampler" / "bad"))
    said = io.StringIO()
    with working_in(tmp_path), contextlib.redirect_stdout(said):
        exec(compile(example, "README.md", "exec"), {})
    finding, fixed = said.getvalue().splitlines()
    assert re.match(r"train.py 39 SMP101 `train_loader", finding)
    assert fixed == "1 would be fixed in ['train.py']"


def test_the_model_answers_as_contributors_are_told(tmp_path):
    """One that is renamed, or answers otherwise, fails here."""
    told = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = told.partition("## How to ask the model")[2]
    (program,) = re.findall(r"```python\n(.*?)```", told, re.DOTALL)
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", told, re.DOTALL))
    tree = Tree(tmp_path, {"main.py": program})
    names = {
        "tree": tree,
        "model": tree.model,
        "concepts": concepts,
        "unparse": unparse,
        "Applicability": Applicability,
    }
    test = doctest.DocTestParser().get_doctest(examples, names, "CONTRIBUTING.md", None, 0)
    said: list[str] = []
    ran = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert ran.attempted > 20
    assert not said, "".join(said)


def test_each_question_has_its_home():
    told = (REPOSITORY / "docs" / "how-it-decides.md").read_text(encoding="utf-8")
    told = told.partition("## Where each question is answered")[2]
    homes = re.findall(r"`([a-z_]+(?:\.\w+)+)`", told)
    assert len(homes) > 30
    assert [home for home in homes if not _is_there(f"sampler_lint.{home}")] == []


def _is_there(dotted: str) -> bool:
    with contextlib.suppress(ImportError, AttributeError):
        return pkgutil.resolve_name(dotted) is not None
    return False


def test_messages_are_short_and_in_plain_words() -> None:
    page = (REPOSITORY / messages.PATH).read_text(encoding="utf-8")
    median, longest = map(int, re.findall(r"at most (\d+) characters.* has (\d+)\.", page)[0])
    assert median <= 110
    assert longest <= 160
    stiff = r"\b(mend|told|hands? out|stands? still|falls? silent|turns?|come out even|alike)\b"
    assert re.findall(stiff, re.sub(r"`[^`]*`", "", page)) == []


def test_every_rule_has_symptoms() -> None:
    assert [rule.code for rule in every_rule() if not rule.symptoms] == []


def test_rules_are_found_by_their_symptoms(capsys: pytest.CaptureFixture[str]) -> None:
    def found(*words: str) -> list[str]:
        assert main(["rule", "--search", *words]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()]

    assert "SMP306" in found("hangs")
    assert "SMP201" not in found("hang")  # "changes"
    assert {*found("every", "epoch has the same order")} <= {*found("same order")}
    assert "SMP102" in found("same order")
    assert found("loader-argument-conflict") == ["SMP501"]
    assert main(["rule", "--search", "xyzzy"]) == 2


def test_the_reference_has_every_option_of_every_command() -> None:
    text = reference.command_line("")
    for command in COMMANDS:
        assert f"## `sampler-lint {command}`" in text
        parser = importlib.import_module(f"sampler_lint.cli.{command}").make_parser()
        for option in parser._option_string_actions.keys() - {"-h", "--help"}:
            assert re.search(rf"^\| `.*{re.escape(option)}\b", text, re.MULTILINE), option
