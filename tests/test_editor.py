"""What an editor writes, whatever the code around looks like; and drafts mean the same."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sampler_lint.edits.editor import Editor
from sampler_lint.edits.region import EditError
from sampler_lint.findings import Applicability, Edit
from sampler_lint.fixing import apply_edits
from sampler_lint.syntax.nodes import Assign, Attr, Call, ExprStmt, Function, Stmt
from sampler_lint.workspace.project import Module, Project

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


def module_of(folder: Path, text: str, name: str = "train.py") -> Module:
    path = folder / name
    path.write_bytes(text.encode())
    module = Project(str(folder), {str(path): name}, {}).module_at(str(path))
    assert module is not None
    return module


def written(module: Module, write: Callable[[Editor], object]) -> str:
    """The text after the edits, which a draft of them must mean, too."""
    final, draft = Editor(module), Editor(module, draft=True)
    for editor in (final, draft):
        write(editor)
    text, meant = (apply_edits(module.source.text, each.edits) for each in (final, draft))
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(meant))
    assert not draft.is_final or draft.edits == final.edits
    return text


def stmt_at(module: Module, number: int) -> Stmt:
    return module.facts.body[number]


def call_of(module: Module) -> Call:
    """The call in the last statement of the file, or of its last function."""
    stmt = (module.facts.functions or [module.facts])[-1].body[-1]
    assert isinstance(stmt, (ExprStmt, Assign))
    assert isinstance(stmt.value, Call)
    return stmt.value


def function_of(module: Module) -> Function:
    return next(iter(module.facts.functions))


def comments(text: str) -> list[str]:
    return re.findall(r"#[a-z, )(]*", text)


# arguments, in any layout

LAST = ("b", "k=b", "(b)", "k=(b)", "k=(\n    b\n)", "*b", "(b for b in c)", "k='#,)'", "f(b, c)")
BEHIND = ("", ",", " # it, not (that)\n", "  # it, not that\n    ,\n", ",  # it, not that\n", "\n")
LAYOUTS = (
    "f(a, {})",
    "f({})",
    "f(\n    a,\n    {}{{}})",
    "f(a,  # first, of course\n  {}{{}})",
    "(f)(\n    {}{{}})",
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_argument_stands_behind_the_last_in_any_layout(tmp_path, layout, newline):
    for last, behind in itertools.product(LAST, BEHIND):
        call = layout.format(last) if "{{" not in layout else layout.format(last).format(behind)
        text = f"x = {call}\n".replace("\n", newline)
        module = module_of(tmp_path, text)
        after = written(module, lambda e, m=module: e.add_argument(call_of(m), "new", "n"))
        wanted = ast.parse(text)
        wanted.body[0].value.keywords.append(ast.keyword("new", ast.Name("n", ast.Load())))
        assert ast.unparse(ast.parse(after)) == ast.unparse(wanted), after
        assert sorted(comments(after)) == sorted(comments(text)), after
        assert ("\r\n" in after) == (newline == "\r\n")
        assert not re.search(r"(?<!\r)\n", after) or newline == "\n"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_argument_is_dropped_in_any_layout(tmp_path, layout):
    for last, behind in itertools.product(LAST, BEHIND):
        call = layout.format(last) if "{{" not in layout else layout.format(last).format(behind)
        module = module_of(tmp_path, f"x = {call}\n")
        for number in range(len(call_of(module).args)):
            value = call_of(module).args[number].value
            after = written(module, lambda e, m=module, v=value: e.drop_argument(call_of(m), v))
            wanted = ast.parse(module.source.text)
            given = wanted.body[0].value
            if number < len(given.args):
                del given.args[number]
            else:
                given.keywords.clear()
            assert ast.unparse(ast.parse(after)) == ast.unparse(wanted), after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(self, data)", "f(self)"),
        ("f(self, (data), more)", "f(self)"),
        ("f(\n    (self),\n    data,  # of it\n)", "f(\n    (self))"),
        ("f(self)", "f(self)"),
    ],
)
def test_arguments_are_dropped_to_the_end(tmp_path, before, after):
    module = module_of(tmp_path, f"x = {before}\n")
    assert written(module, lambda e: e.drop_arguments(call_of(module), 1)) == f"x = {after}\n"
    none = written(module, lambda e: e.drop_arguments(call_of(module), 0))
    assert ast.unparse(ast.parse(none)) == "x = f()"


def test_an_argument_in_parentheses_gets_its_name_before_them(tmp_path):
    module = module_of(tmp_path, "x = f((1), 2)\n")
    call = call_of(module)

    def write(editor: Editor) -> None:
        for name, value in zip("ab", call.positional, strict=True):
            editor.name_argument(call, value, name)

    assert written(module, write) == "x = f(a=(1), b=2)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():", "def f(new=0):"),
        ("def f(a, /):", "def f(a, /, new=0):"),
        ("def f(a, *, b):", "def f(a, *, b, new=0):"),
        ("def f(a, *b, **c):", "def f(a, *b, new=0, **c):"),
        ("def f(a: (int) = (1)) -> (int):", "def f(a: (int) = (1), new: int = 0) -> (int):"),
        (
            "def f(\n    a=')',  # it, (not) that\n):",
            "def f(\n    a=')',  # it, (not) that\n    new=0,\n):",
        ),
        ("def f(\n    a  # it, not that\n):", "def f(\n    a,  # it, not that\n    new=0\n):"),
        (
            "def f(\n    a\n    # none\n    ,\n):",
            "def f(\n    a\n    # none\n    ,\n    new=0,\n):",
        ),
    ],
)
def test_a_parameter_stands_behind_the_last(tmp_path, before, after):
    module = module_of(tmp_path, f"{before}\n    pass\n")
    add = lambda e: e.add_parameter(function_of(module), "new", "int", "0")  # noqa: E731
    assert written(module, add) == f"{after}\n    pass\n"


# statements


def inside(module: Module, number: int) -> Stmt:
    """A statement of the first compound statement, or of the first function."""
    first = stmt_at(module, 0)
    return getattr(first, "what", first).body[number]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for a in b:\n\tc()\n\td()\n", "for a in b:\n\tNEW\n\tc()\n\td()\n"),
        ("for a in b:\r\n  c()\r\n", "for a in b:\r\n  NEW\r\n  c()\r\n"),
        ("for a in b:\n  c(); d()\n", "for a in b:\n  NEW\n  c(); d()\n"),
        ("for a in b:\n  @c\n  def d(): pass\n", "for a in b:\n  NEW\n  @c\n  def d(): pass\n"),
        ("for a in b: c()\n", "for a in b:\n    NEW\n    c()\n"),
        ("for a in b: c(); d()\n", "for a in b:\n    NEW\n    c(); d()\n"),
        ("while b: # why\n\tc()\n", "while b: # why\n\tNEW\n\tc()\n"),
        ("if a: c()\n", None),
    ],
)
def test_a_line_before_the_first_statement(tmp_path, before, after):
    module = module_of(tmp_path, before)
    for write in (
        lambda e: e.insert_before(inside(module, 0), "NEW"),
        lambda e: e.insert_first(stmt_at(module, 0), "NEW"),
    ):
        if after is None:
            with pytest.raises(EditError):
                write(Editor(module))
        else:
            assert written(module, write) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n\ta()\n", "def f():\n\ta()\n\tNEW\n"),
        ("def f():\n  a()", "def f():\n  a()\n  NEW"),
        ('def f():\n  a(); b = """\n"""\n', 'def f():\n  a(); b = """\n"""\n  NEW\n'),
        ("def f():\n  a()  # why\n", "def f():\n  a()  # why\n  NEW\n"),
        ("def f(): a()\n", "def f():\n    a()\n    NEW\n"),
        ("def f(\n    x\n): a(); b() # why", "def f(\n    x\n):\n    a(); b() # why\n    NEW"),
        ("if a: b()\n", None),
    ],
)
def test_a_line_below_a_statement(tmp_path, before, after):
    module = module_of(tmp_path, before)
    if after is None:
        with pytest.raises(EditError):
            Editor(module).insert_after(inside(module, 0), "NEW")
        return
    assert written(module, lambda e: e.insert_after(inside(module, 0), "NEW")) == after


def test_lines_at_both_ends_of_a_body_behind_its_colon(tmp_path):
    module = module_of(tmp_path, "\tfor a in b: c(); d()\n".join(["if e:\n", "f()\n"]))
    loop = inside(module, 0)

    def write(editor: Editor) -> None:
        editor.insert_after(loop.body[-1], "LAST").insert_first(loop, "FIRST", "SECOND")

    lines = ["if e:", "\tfor a in b:", "\t\tFIRST", "\t\tSECOND", "\t\tc(); d()", "\t\tLAST"]
    assert written(module, write) == "\n".join([*lines, "f()\n"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    pass\n", "def f():\n    NEW\n"),
        ('def f():\n    """It."""\n', 'def f():\n    """It."""\n    NEW\n'),
        ("def f():\n    a()\n    b()\n\nc\n", "def f():\n    a()\n    b()\n    NEW\n\nc\n"),
    ],
)
def test_a_line_at_the_end_of_a_function(tmp_path, before, after):
    module = module_of(tmp_path, before)
    assert written(module, lambda e: e.append(function_of(module), "NEW")) == after


def test_a_statement_is_taken_out_with_its_line_or_from_among_others(tmp_path):
    module = module_of(tmp_path, "a()\nb(); c()\nd()  # why\nif e: f(); g()\n")
    rest = "if e: f(); g()\n"
    for number, text in enumerate(
        (
            f"b(); c()\nd()  # why\n{rest}",
            f"a()\nc()\nd()  # why\n{rest}",
            f"a()\nb()\nd()  # why\n{rest}",
            f"a()\nb(); c()\n{rest}",
        )
    ):
        assert written(module, lambda e, n=number: e.delete(stmt_at(module, n))) == text
    with pytest.raises(EditError):
        Editor(module).delete(module.facts.body[-1].body[0])


def test_an_import_beside_another_is_none_in_a_comment(tmp_path):
    text = "from a import (\n    b,  # c, or d\n    c,  # c, of course\n)\n"
    module = module_of(tmp_path, text)
    after = written(module, lambda e: e.import_beside(stmt_at(module, 0), "c", "new"))
    assert after == text.replace("    c,", "    c, new,")
    after = written(module, lambda e: e.import_beside(stmt_at(module, 0), "c", "also"))
    assert after == text.replace("    c,", "    also, c,")


# expressions


def attribute(module: Module) -> Attr:
    return module.facts.reads[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = (a.b)\n", "x = (a.NEW)\n"),
        ("x = f'{a.b}'\n", "x = f'{a.NEW}'\n"),
        ("x = 'é', a . b\n", "x = 'é', a . NEW\n"),
    ],
)
def test_an_attribute_is_spelled_otherwise(tmp_path, before, after):
    module = module_of(tmp_path, before)
    assert written(module, lambda e: e.rename(attribute(module), "b", "NEW")) == after


def test_what_an_f_string_over_several_lines_shows_is_replaced_there_or_nowhere(tmp_path):
    text = 'x = f"""\n{a}\n  {b.c + 1}\n"""\ny = b.c\n'
    module = module_of(tmp_path, text)
    read = module.facts.reads[0]
    try:
        after = written(module, lambda e: e.replace(read, "NEW"))
    except EditError:
        return  # before Python 3.12
    assert after == text.replace("{b.c", "{NEW")


# fixes


@pytest.mark.parametrize(
    ("text", "write", "wanted"),
    [
        ("x = 1   # why\n", lambda e, s: e.replace(s, "y"), SAFE),
        ("x = 1   # why\n", lambda e, s: e.delete(s), UNSAFE),
        ("x = 1\ny = (1,  # why\n 2)\n", lambda e, s: e.delete(s), SAFE),
        (
            "# why\nx = 1\ny = 2\n",
            lambda e, s: e.delete(s, with_comments=True).insert_after(s, "# why", "z = 3"),
            SAFE,
        ),
        (
            "# why\nx = 1\ny = 2\n",
            lambda e, s: e.delete(s, with_comments=True).insert_after(s, "# what", "z = 3"),
            UNSAFE,
        ),
    ],
)
def test_a_fix_that_drops_a_comment_is_unsafe(tmp_path, text, write, wanted):
    module = module_of(tmp_path, text)
    made = write(Editor(module), stmt_at(module, 0)).fix("Fix it", SAFE)
    assert made.applicability is wanted
    away = Editor(module_of(tmp_path, "other = 1\n", "other.py"))
    write(away.at(module), stmt_at(module, 0))
    assert away.fix("Fix it", SAFE).applicability is wanted, "in another file"


def test_what_may_become_a_part_of_a_fix_stands_apart(tmp_path):
    module = module_of(tmp_path, "x = f(1)\n")
    editor = Editor(module, draft=True)
    part = editor.apart().add_argument(call_of(module), "k", "2")
    assert editor.is_final
    assert not editor.edits
    editor.add(part)
    editor.add(part)
    assert not editor.is_final
    assert editor.edits == (Edit("train.py", 7, 7, ", k=2"),)
