"""What a file imports, told from its text: the same as its facts say."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint.syntax.lower import extract
from sampler_lint.syntax.parse import parse
from sampler_lint.workspace.import_scan import imports_in

REPOSITORY = Path(__file__).resolve().parent.parent
Imports = set[tuple[str, str | None, int]]


def by_facts(text: str) -> Imports:
    facts = extract(parse(text))
    bound = (
        binding.payload
        for scope in facts.scopes
        for bindings in scope.bindings.values()
        for binding in bindings
        if binding.how == "import"
    )
    return {*bound, *((name, None, level) for name, level in facts.star_imports)}


@pytest.mark.parametrize(
    "text",
    [
        "import a, b.c, d.e as f",
        "from . import x\nfrom .. import y as z\nfrom ...a.b import (c,\n  d as e,  # why\n)",
        "from.a import b; import c\nif x: import d\nelse: from e import f",
        "from a import *\nfrom .b import *",
        "from a import b, \\\n    c\nfrom . \\\n import d",
        '"""\nimport not_this\n"""\nimport this',
        "x = 'import no'; y = '''\nfrom a import b\n'''\n# import no\n#: \"\nimport yes",
        's = "\\""; t = r"\\\\"\nimport a\nu = """\\"""\nimport no\n"""\nimport b',
        "def f():\n\tfrom a import b\n\nclass C:\n    import d",
        "import a\nx = 'important'  # what is imported\ndef f(): return 'import'",
        "from . import (\n    a,\n    b,  # noqa: F401  # needed on import\n)\nx = 1",
        "x = '#'; import a",
        "from a import (  # why: no import (b)\n  c,  # or )\n  d)\nx = 1",
        'import a\ndef f():\n    """\n    from b import c\n    """\n    import d',
        "fromage = 1\nimportance = 2\nx = yield_from = 3",
        "\ufeffimport a",
        "try:\n    import a\nexcept ImportError: import b",
        "",
    ],
)
def test_imports_are_those_of_the_facts(text: str) -> None:
    for newline in ("\n", "\r\n", "\r"):
        data = text.replace("\n", newline).encode()
        assert set(imports_in(data) or ()) == by_facts(text.removeprefix("\ufeff"))


def test_imports_of_whole_files() -> None:
    for path in sorted(REPOSITORY.glob("src/**/*.py"))[::4]:
        assert set(imports_in(path.read_bytes()) or ()) == by_facts(path.read_text("utf-8")), path


def test_an_unknown_encoding_is_left_to_the_parser() -> None:
    text = textwrap.dedent("# coding: latin-1\nimport \xe4")
    assert imports_in(text.encode("latin-1")) is None
