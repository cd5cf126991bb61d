"""Rules of another package, which is the one that docs/own-rules.md shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.cli import main
from sampler_lint.harness import verify
from sampler_lint.options import Options
from sampler_lint.rules import _plugins

DOCS = Path(__file__).parent.parent / "docs/own-rules.md"
PYPROJECT, RULES = re.findall(
    r"^```(?:toml|python)\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL
)[:2]
TRAIN = """\
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data, shuffle=False)
loader = DataLoader(data, sampler=sampler)
"""
NAMED = 'plugins = ["ourlib-lint"]\n'


def install(folder: Path, package: str, rules: str = RULES, prefix: str = "OUR") -> None:
    """As an installer leaves a package behind, without one."""
    module = package.replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entry = f"[sampler_lint.rules]\n{prefix} = {module}\n" if prefix else ""
    (info / "entry_points.txt").write_text(entry)
    (folder / f"{module}.py").write_text(rules)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Where packages are installed; what was loaded is forgotten after the test."""
    folder = tmp_path / "installed"
    install(folder, "ourlib-lint")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    (project / "sampler-lint.toml").write_text(NAMED)
    monkeypatch.chdir(project)
    before = {*sys.modules}
    monkeypatch.setattr(sys, "path", [sys.path[0], str(folder), *sys.path[1:]])
    monkeypatch.setattr(_plugins, "_LOADED", {})
    monkeypatch.setattr(_plugins, "EVERYWHERE", set())
    engine._rules.cache_clear()
    yield folder
    engine._rules.cache_clear()
    for name in {*sys.modules} - before:
        if str(folder) in (getattr(sys.modules[name], "__file__", "") or ""):
            del sys.modules[name]


def printed(capsys, *argv: str) -> tuple[int, str, str]:
    try:
        code = main(argv)
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    return code, out, err


def codes(capsys, *argv: str) -> list[str]:
    _, out, _ = printed(capsys, "--output-format", "json", "--no-cache", *argv)
    return [finding["code"] for finding in json.loads(out)]


def test_a_named_package_is_asked_and_others_are_not(installed, capsys):
    install(installed, "unasked", "raise SystemExit('run though nobody asked')", "NEV")
    assert codes(capsys) == ["OUR101"]
    Path("sampler-lint.toml").unlink()
    assert codes(capsys) == []
    assert codes(capsys, "--config", NAMED.strip(), "--config", "select=OUR") == ["OUR101"]


def test_its_rules_are_chosen_as_ours_are(installed, capsys):
    assert codes(capsys, "--select", "OUR1") == ["OUR101"]
    assert codes(capsys, "--select", "tail-not-said") == ["OUR101"]
    assert codes(capsys, "--select", "SMP") == []
    assert codes(capsys, "--ignore", "OUR") == []
    assert codes(capsys, "--isolated") == []
    Path("sampler-lint.toml").write_text(f'ignore = ["OUR101"]\n{NAMED}')
    assert codes(capsys) == []
    Path("sampler-lint.toml").write_text(f'per-file-ignores = {{ "train.py" = ["OUR"] }}\n{NAMED}')
    assert codes(capsys) == []


def test_of_two_projects_only_the_one_that_names_it_gets_its_rules(installed, capsys):
    other = Path("other")
    other.mkdir()
    (other / "sampler-lint.toml").write_text("")
    (other / "train.py").write_text(TRAIN)
    _, out, _ = printed(capsys, "--output-format", "concise", "--no-cache", ".", "other")
    assert re.findall(r"^\S+\.py(?=:.*OUR101)", out, re.MULTILINE) == ["train.py"]


def test_a_configuration_that_is_extended_may_name_it(installed, capsys):
    Path("base.toml").write_text(NAMED)
    Path("sampler-lint.toml").write_text('select = ["OUR101"]\nextend = "base.toml"\n')
    assert codes(capsys) == ["OUR101"]


def test_comments_silence_it_and_stale_ones_are_found(installed, capsys):
    text = TRAIN.replace("shuffle=False)", "shuffle=False)  # noqa: OUR101")
    Path("train.py").write_text(text)
    assert codes(capsys) == []
    Path("train.py").write_text(text.replace("shuffle=False", "drop_last=True"))
    assert codes(capsys, "--extend-select", "SMP001") == ["SMP001"]
    named = "shuffle=False)  # sampler-lint: ignore[tail-not-said]"
    Path("train.py").write_text(TRAIN.replace("shuffle=False)", named))
    assert codes(capsys) == []


def test_its_fix_is_applied(installed, capsys):
    printed(capsys, "--fix", "--no-cache")
    assert Path("train.py").read_text() == TRAIN
    printed(capsys, "--fix", "--unsafe-fixes", "--no-cache")
    assert "DistributedSampler(data, shuffle=False, drop_last=True)" in Path("train.py").read_text()


def test_its_page_is_shown(installed, capsys):
    code, out, _ = printed(capsys, "rule", "OUR101")
    assert code == 0
    assert out.startswith("# tail-not-said (OUR101)")
    assert "readthedocs" not in out
    assert "OUR101  tail-not-said" in printed(capsys, "rule")[1]
    assert printed(capsys, "rule", "--isolated", "OUR101")[0] == 2


def test_its_codes_are_completed(installed, capsys):
    assert printed(capsys, "completion", "--words", "--select", "OU")[1] == "OUR101\n"
    assert printed(capsys, "completion", "--words", "rule", "OUR")[1] == "OUR101\n"


def test_its_fixtures_are_proved(installed, capsys, monkeypatch):
    """As far as the rule is looked up: a run takes seconds, and knows nothing of rules."""
    bad = Path("fixtures/OUR101/case/bad")
    bad.mkdir(parents=True)
    (bad / "train.py").write_text(TRAIN)
    (bad.parent / "fixed").mkdir()
    (bad.parent / "proof.toml").write_text('invariant = "runs"\n')
    seen = []

    def verify_fixtures(paths, **_):
        for fixture in verify.find_fixtures(paths):
            with verify.prepared(fixture) as (_, fixed, *_):
                seen.append((fixed / "train.py").read_text())
        return []

    monkeypatch.setattr(verify, "verify_fixtures", verify_fixtures)
    assert printed(capsys, "verify", "fixtures")[0] == 0
    assert seen == [TRAIN.replace("shuffle=False", "shuffle=False, drop_last=True")]


def test_a_rule_without_an_invariant_is_told_where_to_name_one(installed, capsys):
    bad = Path("fixtures/OUR101/case/bad")
    bad.mkdir(parents=True)
    (bad / "train.py").write_text(TRAIN)
    status, _, err = printed(capsys, "verify", "fixtures")
    assert status == 2
    assert "fixtures/OUR101/case: rule OUR101 names no invariant; name one in proof.toml" in err


def test_explain_says_what_it_said_and_why_it_was_silent(installed, capsys):
    _, out, _ = printed(capsys, "explain", "train.py:3")
    assert "OUR101" in out
    Path("train.py").write_text(TRAIN.replace("shuffle=False", "drop_last=True"))
    _, out, _ = printed(capsys, "explain", "train.py:3")
    assert re.search(r"OUR101.*\n?.*is_distributed_sampler", out), out


@pytest.mark.parametrize("form", ["sarif", "rdjson", "github", "gitlab", "junit", "text"])
def test_every_format_reports_it(installed, capsys, form):
    _, out, _ = printed(capsys, "--output-format", form, "--no-cache")
    assert "OUR101" in out
    assert "our101" not in out  # no page of ours
    if form == "sarif":
        [rule] = json.loads(out)["runs"][0]["tool"]["driver"]["rules"]
        assert rule["name"] == "tail-not-said"
        assert "helpUri" not in rule


def test_what_was_kept_is_dropped_when_its_rules_change(installed, tmp_path):
    def said() -> str:
        command = [sys.executable, "-m", "sampler_lint", "--output-format", "concise"]
        paths = f"{installed}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        told = {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **told}
        ).stdout

    assert "does not set" in said()
    install(installed, "ourlib-lint", RULES.replace("does not set", "does not know"))
    assert "does not know" in said()


@pytest.mark.parametrize(
    ("rules", "prefix", "says"),
    [
        (RULES, "SMP", "clashes with our own"),
        (RULES, "SM", "clashes with our own"),
        (RULES, "our", "is not in capitals"),
        (RULES, "", "has no entry point in 'sampler_lint.rules'"),
        ("import nowhere_at_all", "BAD", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("", "BAD", "holds no rule"),
        (RULES, "BAD", "has no code of 'BAD' and three digits"),
        (RULES.replace("OUR101", "BAD101"), "BAD", "there is another rule 'tail-not-said'"),
        (RULES.replace("tail-not-said", "Tail"), "OUR", "clashes with those of 'ourlib-lint'"),
        (
            RULES.replace("OUR101", "BAD101").replace("tail-not-said", "set-epoch-misplaced"),
            "BAD",
            "there is another rule 'set-epoch-misplaced'",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(installed, capsys, rules, prefix, says):
    install(installed, "broken", rules, prefix)
    Path("sampler-lint.toml").write_text('plugins = ["ourlib-lint", "broken"]\n')
    code, out, err = printed(capsys)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_package_that_is_not_installed_is_one_line(installed, capsys):
    Path("sampler-lint.toml").write_text('plugins = ["not-there"]\n')
    code, _, err = printed(capsys)
    assert code == 2
    assert "sampler-lint.toml:1: plugins: no package 'not-there' is installed" in err
    assert err.count("\n") == 1


def test_the_tree_cannot_bring_its_own_rules(installed, capsys):
    install(Path(), "evil", "raise SystemExit('run')", "EVL")
    Path("sampler-lint.toml").write_text('plugins = ["evil"]\n')
    command = [sys.executable, "-m", "flake8", "--select", "SMP", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "no package 'evil' is installed" in done.stdout, done.stderr


def test_a_rule_that_raises_costs_its_own_findings(installed, capsys):
    rules = RULES.replace("OUR101", "BAD101").replace("tail-not-said", "bad")
    fails = rules.replace("for sampler", "raise ValueError('so')\n        for sampler")
    install(installed, "raises", fails, "BAD")
    Path("sampler-lint.toml").write_text('plugins = ["ourlib-lint", "raises"]\n')
    code, out, err = printed(capsys, "--no-cache")
    assert code == 2
    assert "OUR101" in out
    assert "the rule BAD101 failed" in err


def test_flake8_reports_it(installed):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    for more, count in (([], 1), (["--extend-ignore", "OUR1"], 0), (["--select", "OUR"], 1)):
        done = subprocess.run(
            [sys.executable, "-m", "flake8", "--isolated", "-j1", *more, "train.py"],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert done.stdout.count("OUR101") == count, (more, done)


OFF = RULES.replace('    code = "OUR101"\n', '    code = "OUR101"\n    default = False\n')


@pytest.mark.parametrize(
    ("asked", "is_on"),
    [
        ([], False),
        (["--select", "OUR"], False),  # the bare prefix: the rules that are on by default
        (["--select", "OUR101"], True),
        (["--select", "OUR1"], True),
        (["--extend-select", "OUR101"], True),
        (["--select", "F,OUR101"], True),
        (["--sampler-lint-extend-select", "OUR101"], True),
    ],
)
def test_flake8_turns_on_a_rule_that_is_off_by_default(installed, asked, is_on):
    install(installed, "ourlib-lint", OFF)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--isolated", "-j1", *asked, "train.py"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert ("OUR101" in done.stdout) == is_on, done


def test_a_rule_that_is_off_by_default_runs_when_it_is_named(installed, capsys):
    install(installed, "ourlib-lint", OFF)
    assert codes(capsys) == []
    assert codes(capsys, "--extend-select", "OUR101") == ["OUR101"]
    assert codes(capsys, "--select", "ALL") == ["OUR101"]
    assert "OUR101  tail-not-said  (off by default)" in printed(capsys, "rule")[1]
    settings = printed(capsys, "--show-settings", "train.py")[1]
    assert re.search("^# OUR101 off by default ", settings, re.MULTILINE)
    # Nobody knows whether it would have been found.
    Path("train.py").write_text(
        TRAIN.replace("data, sh", "data, drop_last=True, sh") + "#noqa: OUR101"
    )
    assert codes(capsys, "--extend-select", "SMP001") == []
    assert codes(capsys, "--extend-select", "SMP001,OUR101") == ["SMP001"]


def test_the_editor_is_shown_it(installed, monkeypatch):
    pytest.importorskip("pygls")
    from lsprotocol import types

    from test_language_server import Editor, in_editor

    monkeypatch.setenv("PYTHONPATH", str(installed))

    async def play(editor: Editor) -> None:
        path = Path.cwd() / "train.py"
        [found] = await editor.open(path)
        assert (found.code, found.code_description) == ("OUR101", None)
        where = types.TextDocumentIdentifier(path.as_uri())
        shown = await editor.client.text_document_hover_async(
            types.HoverParams(where, found.range.start)
        )
        assert shown.contents.value.startswith("## OUR101 `tail-not-said`")
        titles = [each.title for each in await editor.actions(path, found.range)]
        assert any("Pass `drop_last=True`" in title for title in titles), titles

    in_editor(Path.cwd(), play)


def test_who_names_no_package_pays_nothing(installed):
    code = (
        "import sys; from sampler_lint.cli import main; main(['--no-cache']); print(*sys.modules)"
    )
    for text, loaded in (("", False), (NAMED, True)):
        Path("sampler-lint.toml").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(installed)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        assert ("ourlib_lint" in done.stdout.split()) is loaded


def test_the_documented_check_works(installed):
    report = engine.check(["train.py"], Options(plugins=("ourlib-lint",)))
    assert [(each.code, each.start.row) for each in report.findings] == [("OUR101", 3)]


@pytest.mark.network
def test_a_package_that_pip_installs(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(PYPROJECT)
    (package / "ourlib_lint.py").write_text(RULES)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "sampler-lint.toml").write_text(NAMED)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    subprocess.run([*pip, tmp_path / "target", package], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "--no-cache"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "target")},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "OUR101" in done.stdout
