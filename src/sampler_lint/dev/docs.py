"""Documentation that cannot go stale: made from the rules, the fixtures and real output.

Pages of ``docs/rules`` are made whole, and the pictures on them from runs. In hand-written
pages, what stands between ``<!-- BEGIN name -->`` and ``<!-- END name -->`` is made.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sampler_lint.dev import frameworks, messages, pictures, reference
from sampler_lint.dev.demo import SHOWN, command
from sampler_lint.harness import verify
from sampler_lint.harness.verify import Fixture
from sampler_lint.rules import Described, every_rule, page, summary

#: Hand-written pages with generated blocks.
WITH_BLOCKS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("harness", "contract", "configuration", "comparison")),
)

_BLOCK = re.compile(
    r"(?P<begin><!-- BEGIN (?P<name>[\w-]+) -->\n).*?(?P<end><!-- END (?P=name) -->)", re.DOTALL
)


def pages(repository: Path) -> dict[str, str]:
    """Every page that is generated, whole or in part, by its path in the repository.

    Raises:
        LookupError: a block has a name that nothing fills, or a fixture finds nothing to show.
    """
    made = {
        page_of(rule): rule_page(repository, rule, fixtures_of(repository, rule))
        for rule in every_rule()
    }
    made[frameworks.PATH] = frameworks.page(f"<!-- Made from the catalog: {_MAKE} -->")
    expected = sorted((repository / "fixtures").glob("SMP*/*/expected.txt"))
    expected += sorted((repository / "tests" / "snippets").glob("*.txt"))
    comment = f"<!-- Made from what tests expect: {_MAKE} -->"
    made[messages.PATH] = messages.page(comment, expected)
    made[reference.RULES] = reference.rules(f"<!-- Made from the rules: {_MAKE} -->")
    made[reference.COMMANDS] = reference.command_line(f"<!-- Made from the parsers: {_MAKE} -->")
    fill = _Blocks(repository)
    for name in filter(lambda name: (repository / name).exists(), WITH_BLOCKS):
        made[name] = fill((repository / name).read_text(encoding="utf-8"))
    return made


def stale(repository: Path) -> dict[str, str | None]:
    """The pages that are not as they should be, with their right content (None: none).

    Pictures are taken as they are: see :func:`stale_pictures`.
    """
    made = pages(repository)
    found: dict[str, str | None] = {
        path: text for path, text in made.items() if _read(repository / path) != text
    }
    known = made.keys() | {pictures.path_of(fixture.code) for fixture in pictured(repository)}
    for path in sorted((repository / "docs" / "rules").iterdir()):
        relative = path.relative_to(repository).as_posix()
        if relative not in known:
            found[relative] = None
    return found


def stale_pictures(repository: Path) -> dict[str, str | None]:
    """The same for the pictures, which takes running the programs that they show.

    Raises:
        HarnessError: torch is not there, or a program could not be run.
    """
    made = pictures.draw_all(pictured(repository))
    return {path: text for path, text in made.items() if _read(repository / path) != text}


def pictured(repository: Path) -> list[Fixture]:
    """Of each rule that is proved, the fixture whose proof its page shows."""
    first = (fixtures_of(repository, rule)[:1] for rule in every_rule())
    return [verify.read_fixture(folder) for folders in first for folder in folders]


def write(repository: Path, changed: Mapping[str, str | None]) -> None:
    """Write what :func:`stale` returned."""
    for name, text in changed.items():
        path = repository / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _read(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


# -- fixtures


def fixtures_of(repository: Path, rule: Described) -> list[Path]:
    """The rule's fixtures, first the one to show: with a fix if there is one, and small."""
    folders = sorted(path.parent for path in (repository / "fixtures" / rule.code).glob("*/bad"))
    first = min(folders, key=lambda folder: (not _has_fix(folder), _size(folder)), default=None)
    return [] if first is None else [first, *(folder for folder in folders if folder != first)]


def _has_fix(fixture: Path) -> bool:
    return (fixture / "fixed").is_dir()


def _size(fixture: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in (fixture / "bad").rglob("*.py"))


@contextmanager
def _project(fixture: Path) -> Iterator[Path]:
    """The fixture's bad program as a project of its own."""
    with tempfile.TemporaryDirectory(prefix="sampler-lint-docs-") as temporary:
        project = Path(temporary, "project")
        shutil.copytree(fixture / "bad", project, ignore=shutil.ignore_patterns("__pycache__"))
        (project / "pyproject.toml").touch()
        yield project


def _finding(fixture: Path, code: str) -> str:
    return _output(fixture, "--isolated", "--select", code, ".")


def _diff(fixture: Path, code: str) -> str:
    return _output(fixture, "--isolated", "--select", code, "--diff", "--unsafe-fixes", ".")


def _output(fixture: Path, *arguments: str) -> str:
    with _project(fixture) as project:
        done = command(arguments, cwd=project, capture=True)
    if done.returncode != 1:
        raise LookupError(f"{fixture}: sampler-lint {' '.join(arguments)}: {done.stderr}")
    return done.stdout.replace("\r\n", "\n").rstrip("\n")


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text}\n```\n"


# -- the page of a rule


def page_of(rule: Described) -> str:
    """Where the rule's page is; the end of the address that findings give."""
    return f"docs/rules/{rule.code.lower()}.md"


def rule_page(repository: Path, rule: Described, fixtures: list[Path]) -> str:
    """The rule's docstring as Markdown, and its finding and fix in a real program."""
    first, *sections = re.split(r"^(?=## )", page(rule), flags=re.MULTILINE)
    on = "On" if rule.default else "Off"
    state = f"Fixable: {rule.fixable}. Severity: {rule.severity.value}. {on} by default."
    prose = [text for text in sections if not text.startswith("## References")]
    references = "".join(text for text in sections if text not in prose)
    return "\n".join(
        [
            f"<!-- Made from the rule's docstring and its fixtures: {_MAKE} -->",
            f"# {rule.name} ({rule.code})\n",
            f"{first.strip()}\n",
            f"{state}\n",
            *_symptoms(rule),
            *(_example(repository, rule, fixtures[0]) if fixtures else ()),
            *(f"{text.strip()}\n" for text in prose),
            *_references(repository, rule, references),
            *_programs(repository, fixtures),
        ]
    )


def _symptoms(rule: Described) -> Iterator[str]:
    if rule.symptoms:
        yield "Symptoms:\n"
        yield _listed(map(reference.as_text, rule.symptoms))


def _example(repository: Path, rule: Described, fixture: Path) -> Iterator[str]:
    """Wrong code, right code and what happens at run time."""
    yield "## Wrong code\n"
    yield _fenced(_code(fixture), "python")
    yield "What sampler-lint reports:\n"
    finding = _finding(fixture, rule.code)
    yield _fenced(finding, "text")
    yield "## Right code\n"
    if _has_fix(fixture):
        diff = _diff(fixture, rule.code)
        option = " --unsafe-fixes" if "--unsafe-fixes" in finding else ""
        yield f"What `sampler-lint --fix{option}` makes of it:\n"
    else:
        diff = _difference(fixture)
        yield "There is no automatic fix; one way to write it:\n"
    yield _fenced(diff, "diff")
    yield from _proof(repository, fixture)


def _code(fixture: Path) -> str:
    """The function or class in which the finding stands, or the first lines around it."""
    with _project(fixture) as project:
        from sampler_lint import engine

        options = engine.Options(select=(fixture.parent.name,))
        finding = engine.check([str(project)], options).findings[0]
        lines = Path(finding.path).read_text(encoding="utf-8").splitlines()
    row = finding.start.row
    around = [
        (node.lineno - len(node.decorator_list), node.end_lineno or 0)
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and node.lineno <= row <= (node.end_lineno or 0)
    ]
    first, last = min(around, default=(row, row))
    return textwrap.dedent("\n".join(lines[first - 1 : last])).expandtabs(4)


def _difference(fixture: Path) -> str:
    """From the wrong program to its right twin."""
    lines: list[str] = []
    for path in sorted((fixture / "bad").rglob("*.py")):
        name = path.relative_to(fixture / "bad").as_posix()
        bad, good = (
            (fixture / which / name).read_text(encoding="utf-8").splitlines()
            for which in ("bad", "good")
        )
        names = (f"a/{name}", f"b/{name}")
        lines += difflib.unified_diff(bad, good, *names, lineterm="")
    return "\n".join(lines)


def _references(repository: Path, rule: Described, text: str) -> Iterator[str]:
    """The references, those to projects that had the bug apart."""
    items = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    hit = [_linked(item) for item in items if _PROJECT in item]
    found = list(_found(repository, rule))
    unmet = next((item.strip() for item in items if item.startswith("not met")), None)
    if hit or found:
        yield "## Who was hit\n\nReports, repairs and findings in public repositories:\n"
        yield _listed([*hit, *found])
    elif unmet:
        yield f"## Who was hit\n\n{unmet.capitalize()}.\n"
        items = [item for item in items if not item.startswith("not met")]
    if others := [_linked(item) for item in items if _PROJECT not in item]:
        yield "## References\n"
        yield _listed(others)


def _linked(item: str) -> str:
    return re.sub(r"https://(?:github\.com/)?(\S+)", r"[\1](\g<0>)", item.strip())


def _listed(items: Iterable[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


_PROJECT = "https://github.com/"


def _found(repository: Path, rule: Described) -> Iterator[str]:
    """A finding of each public repository in which those of the rule were read and are right."""
    first: dict[str, str] = {}
    for path in sorted((repository / "benchmarks" / "wild" / "judged").glob("smp*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if (row["code"], row["verdict"]) == (rule.code, "right"):
                place = f"{row['commit']}/{row['path']}#L{row['line']}"
                first.setdefault(row["repo"], f"{_PROJECT}{row['repo']}/blob/{place}")
    for repo, link in first.items():
        yield f"[{repo}]({link}), found by sampler-lint"


def _programs(repository: Path, fixtures: list[Path]) -> Iterator[str]:
    if fixtures:
        yield "## Test programs\n"
        yield "This rule is tested and proved on these programs:\n"
        places = [(one.name, one.relative_to(repository).as_posix()) for one in fixtures]
        yield _listed(f"[{name}](../../{place})" for name, place in places)


def _proof(repository: Path, fixture: Path) -> Iterator[str]:
    """What was seen when the fixture was run, in words and in a picture."""
    path = repository / pictures.path_of(fixture.parent.name)
    if not path.exists():
        return
    picture = path.read_text(encoding="utf-8")
    name = fixture.relative_to(repository).as_posix()
    yield "## At run time\n"
    yield f"![{pictures.title(picture)}]({path.name})\n"
    yield f"{pictures.legend(picture)}\n"
    yield f"Recorded by `sampler-lint verify {name}`:\n"
    for line in pictures.description(picture).splitlines():
        verdict, _, evidence = line.partition(" - ")
        yield f"- {verdict}: `{evidence}`"
    yield ""


_MAKE = "python -m sampler_lint.dev docs"


# -- blocks of hand-written pages


class _Blocks:
    """Fills the blocks of a page, each made only where it is asked for."""

    def __init__(self, repository: Path) -> None:
        self._shown = repository / SHOWN
        self._code = SHOWN.parent.name
        self._makers: Mapping[str, Callable[[], str]] = {
            "bad": self._bad,
            "finding": lambda: _fenced(_finding(self._shown, self._code), "text"),
            "fix": lambda: _fenced(_diff(self._shown, self._code), "diff"),
            "proof": self._proof,
            "rules": _rules,
            "invariants": _invariants,
            "promises": _promises,
            "settings": _settings,
            "habits": _habits,
        }

    def __call__(self, text: str) -> str:
        return _BLOCK.sub(self._filled, text)

    def _filled(self, match: re.Match[str]) -> str:
        if match["name"] not in self._makers:
            raise LookupError(f"nothing fills the block {match['name']!r}")
        return f"{match['begin']}{self._makers[match['name']]()}{match['end']}"

    def _bad(self) -> str:
        """The function with the bug, as far as the reported line depends on it."""
        with _project(self._shown) as project:
            from sampler_lint import engine

            finding = engine.check([str(project)]).findings[0]
            text = Path(finding.path).read_text(encoding="utf-8")
        return _fenced(_excerpt(text, finding.start.row), "python")

    def _proof(self) -> str:
        proofs = verify.verify_fixtures([self._shown])
        return _fenced(verify.render_table(proofs).rstrip("\n"), "text")


def _excerpt(text: str, row: int) -> str:
    """The function around a line: its loop, and what assigns the names it reads; else ``...``."""
    lines = text.splitlines()
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or 0)
    ]
    function = next(node for node in around if isinstance(node, ast.FunctionDef))
    loop = next(node for node in around if isinstance(node, ast.For))
    names = _names(around[-1])
    kept: list[ast.stmt | None] = []
    for before in reversed(function.body[: function.body.index(loop)]):
        if not isinstance(before, ast.Assign) or names.isdisjoint(map(ast.unparse, before.targets)):
            kept += [None] if kept[-1:] != [None] else []
            continue
        names |= _names(before.value)
        kept.append(before)
    shown = lines[function.lineno - 1 : function.body[0].lineno - 1]
    for stmt in reversed(kept):
        indent = " " * function.body[0].col_offset
        shown += [f"{indent}..."] if stmt is None else lines[stmt.lineno - 1 : stmt.end_lineno]
    inner = next(node for node in ast.walk(loop) if isinstance(node, ast.For) and node is not loop)
    shown += lines[loop.lineno - 1 : inner.lineno]
    return "\n".join([*shown, " " * inner.body[0].col_offset + "..."])


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _rules() -> str:
    rows = [
        f"| [{rule.code}]({page_of(rule)}) | `{rule.name}` | {_summary(rule)} | {rule.fixable} |\n"
        for rule in every_rule()
    ]
    return "".join(["| code | name | what is wrong | fix |\n", "|---|---|---|---|\n", *rows])


def _habits() -> str:
    from sampler_lint.config import rows_of_habits

    rows = [f"| {typed} | {told} |\n" for typed, told in rows_of_habits()]
    return "".join(["| elsewhere | here |\n", "|---|---|\n", *rows])


def _invariants() -> str:
    from sampler_lint.harness.invariants import INVARIANTS

    return _named("invariant", [(each.name, each.promise) for each in INVARIANTS.values()])


def _promises() -> str:
    from sampler_lint.harness.promises import PROMISES

    return _named("promise", [(each.name, each.text) for each in PROMISES.values()])


def _named(what: str, pairs: Iterable[tuple[str, str]]) -> str:
    rows = [f"| `{name}` | {text} |\n" for name, text in pairs]
    return "".join([f"| {what} | holds when |\n", "|---|---|\n", *rows])


def _settings() -> str:
    from sampler_lint.config import KEYS

    rows = [f"| `{key.name}` | {key.help} | `{key.example}` |\n" for key in KEYS]
    return "".join(["| key | meaning | example |\n", "|---|---|---|\n", *rows])


def _summary(rule: Described) -> str:
    return summary(rule).replace("|", "\\|")
