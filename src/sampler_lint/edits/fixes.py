"""Pieces that the codemods of several rules are made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import overload

from sampler_lint.edits.region import (
    Planned,
    Region,
    RegionError,
    insert_lines,
    line_indent,
    offsets,
    parts_in,
    planned,
)
from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.source import SourceFile
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Define,
    Expr,
    Function,
    Name,
    Node,
    Scope,
    Stmt,
    walk,
)
from sampler_lint.workspace.project import Module


def text_of(source: SourceFile, node: Node) -> str:
    """The node as the file spells it."""
    start, end = offsets(source, node)
    return source.text[start:end]


def fix(
    message: str, applicability: Applicability, edits: Iterable[Edit | Planned], source: SourceFile
) -> Fix:
    """A fix; one that would drop a comment is unsafe, whatever was asked for.

    A comment that another edit of the fix writes again is moved, not dropped. What is replaced
    in other files than ``source`` is not looked at, and taken to hold a comment.
    """
    listed = tuple(edits)
    expected = (edit if isinstance(edit, Edit) else edit.expected for edit in listed)
    known = [edit for edit in expected if edit is not None]
    if applicability is Applicability.SAFE and _drops_comment(known, source):
        applicability = Applicability.UNSAFE
    return Fix(message, applicability, _Edits(listed))


class _Edits(Sequence[Edit]):
    """The edits of a fix, by file and place, each once; worked out when they are looked at."""

    def __init__(self, parts: Iterable[Edit | Planned]) -> None:
        self._parts = tuple(parts)

    @cached_property
    def _made(self) -> tuple[Edit, ...]:
        made = (part if isinstance(part, Edit) else part.make() for part in self._parts)
        return tuple(sorted({edit for edit in made if edit is not None}))

    @property
    def expected(self) -> list[Edit]:
        """Edits that mean the same, worked out without libcst where that can be.

        Raises:
            RegionError: libcst had to be asked and cannot tell.
        """
        known = (
            part if isinstance(part, Edit) else part.expected or part.make() for part in self._parts
        )
        return [edit for edit in known if edit is not None]

    @overload
    def __getitem__(self, index: int) -> Edit: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Edit]: ...

    def __getitem__(self, index: int | slice) -> Edit | Sequence[Edit]:
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)


def _drops_comment(edits: Iterable[Edit], source: SourceFile) -> bool:
    written = Counter(comment for edit in edits for comment in _COMMENT.findall(edit.content))
    for edit in edits:
        if edit.path == source.path:
            written.subtract(_COMMENT.findall(source.text[edit.start : edit.end]))
        elif edit.start < edit.end:
            return True
    return any(count < 0 for count in written.values())


#: A ``#`` in a string is taken for a comment, too: that errs on the safe side.
_COMMENT = re.compile(r"#[^\r\n]*")


def name_of(module: Module, scope: Class | Function) -> Node:
    """The name in a ``class`` or ``def`` line, as a node to point at."""
    source = module.source
    line = source.line(scope.row)
    node = Node()
    node.row = node.end_row = scope.row
    match = re.compile(rf"(?:class|def)\s+({re.escape(scope.name)})\b").search(line)
    if match is None:
        node.col, node.end_col = scope.col, scope.col
    else:
        node.col = len(line[: match.start(1)].encode())
        node.end_col = len(line[: match.end(1)].encode())
    return node


def visible(scope: Scope, name: str) -> bool:
    """Whether ``name`` is bound in the scope or one around it."""
    current: Scope | None = scope
    while current is not None:
        if name in current.bindings:
            return True
        current = current.outer
    return False


def means_the_same(expr: Expr, scope: Scope) -> bool:
    """Whether every name in ``expr`` has its own meaning when written in ``scope``, too."""
    return all(
        _binder(name.scope, name.id) is _binder(scope, name.id)
        for name in walk(expr)
        if isinstance(name, Name)
    )


def _binder(scope: Scope, name: str) -> Scope | None:
    """The scope that binds ``name`` as ``scope`` reads it; None for a builtin."""
    current: Scope | None = scope
    while current is not None:
        if name in current.bindings and (current is scope or not isinstance(current, Class)):
            return current
        current = current.outer
    return None


def fresh_name(scope: Scope, *wanted: str) -> str:
    """The first of ``wanted`` that means nothing yet in the scope."""
    for name in wanted:
        if not visible(scope, name):
            return name
    number = 2
    while visible(scope, f"{wanted[-1]}_{number}"):
        number += 1
    return f"{wanted[-1]}_{number}"


def imported_as(module: Module, attribute: str) -> str | None:
    """The module-level name of what was imported as ``from … import attribute``."""
    for name, bindings in module.facts.bindings.items():
        for binding in bindings:
            if binding.how == "import" and binding.payload[1] == attribute:
                return name
    return None


def imported_module(module: Module, dotted: str) -> str | None:
    """How the file's top level can spell the module, without another import.

    ``import torch`` brings ``torch.distributed``, too, as torch imports it itself.
    """
    head, _, tail = dotted.rpartition(".")
    for name, bindings in module.facts.bindings.items():
        for binding in bindings:
            is_only = binding.how == "import" and len(bindings) == 1 and name != head
            if is_only and binding.payload[:2] in {(dotted, None), (head, tail)}:
                return name
    if head:
        owner = imported_module(module, head)
        return f"{owner}.{tail}" if owner is not None else None
    return None


def first_definition(module: Module) -> Stmt | None:
    """The first ``def`` or ``class`` at the top level of the file."""
    for stmt in module.facts.body:
        if isinstance(stmt, Define):
            return stmt
    return None


def define_helper(module: Module, lines: list[str]) -> Edit | None:
    """The edit that puts a function before the file's first definition, two lines apart."""
    first = first_definition(module)
    if first is None:
        return None
    row = min([first.row, *(decorator.row for decorator in getattr(first, "decorators", []))])
    # Comments directly above a definition belong to it.
    while row > 1 and module.source.line(row - 1).lstrip().startswith("#"):
        row -= 1
    return insert_lines(module.source, row, [*lines, "", ""])


def insert_first(
    source: SourceFile, body: list[Stmt], owner: Stmt, lines: list[str]
) -> Edit | None:
    """The edit that puts ``lines`` before the first statement of a block."""
    if not body:
        return after_docstring(source, owner, lines)
    first = body[0]
    if first.row == owner.row:
        return None  # for x in y: pass
    row = first.row
    decorators = getattr(first, "decorators", None) or []
    row = min([row, *(decorator.row for decorator in decorators)])
    while row - 1 > owner.row and _is_comment(source, row - 1, line_indent(source, first.row)):
        row -= 1
    indent = line_indent(source, first.row)
    return insert_lines(source, row, [indent + line for line in lines])


def after_docstring(source: SourceFile, definition: Node, lines: list[str]) -> Edit | None:
    """The edit that puts ``lines`` after the docstring that is all a definition holds."""
    inside = line_indent(source, definition.row) + source.indent
    if not source.line(definition.end_row).startswith(inside):
        return None
    return insert_lines(source, definition.end_row + 1, [inside + line for line in lines])


def _is_comment(source: SourceFile, row: int, indent: str) -> bool:
    line = source.line(row)
    return line.startswith(indent + "#")


def add_keyword(module: Module, call: Call, keyword: str, value: str) -> Edit | Planned:
    """The edit that passes ``keyword=value`` after the call's other arguments, in its layout.

    It stands before ``**more``; a line that would be the file's longest is broken.
    """
    around = call.stmt or call.scope

    def make() -> Edit:
        return _keyword_edit(Region(module, around), call, f"{keyword}={value}")

    def expected() -> Edit:
        return added_part(module.source, offsets(module.source, call.func)[1], f"{keyword}={value}")

    return planned(module, around, call, make, expected=expected)


def added_part(source: SourceFile, start: int, text: str) -> Edit:
    """The edit that puts ``text`` behind the other arguments, or parameters, but before ``**``.

    Raises:
        RegionError: there are no parentheses behind ``start``.
    """
    parts, close = parts_in(source.text, start)
    if not parts:
        return Edit(source.path, close, close, text)
    first, last = parts[-1]
    if source.text.startswith("**", first):
        return Edit(source.path, first, first, f"{text}, ")
    return Edit(source.path, last, last, f", {text}")


def dropped_parts(source: SourceFile, start: int, first: int, last: int) -> Edit:
    """The edit that takes the arguments from number ``first`` to before ``last`` away.

    Raises:
        RegionError: there are no parentheses behind ``start``.
    """
    parts, close = parts_in(source.text, start)
    begin = parts[first][0] if first == 0 else parts[first - 1][1]
    end = parts[last][0] if first == 0 and last < len(parts) else parts[last - 1][1]
    return Edit(source.path, begin, close if first == 0 and last == len(parts) else end, "")


def _keyword_edit(region: Region, call: Call, text: str) -> Edit:
    import libcst as cst

    source = region.source
    node = region.find(call, cst.Call)
    if not node.args:
        end = region.span(node)[1] - 1
        return Edit(source.path, end, end, text)
    last = node.args[-1]
    last_start, _ = region.span(last)
    _, end = region.span(last.value)
    open_row = source.position(region.span(node.func)[1]).row
    last_row = source.position(last_start).row
    alone = not source.line(last_row)[: source.position(last_start).column - 1].strip()
    own_lines = last_row != open_row and alone
    row_indent = line_indent(source, last_row)
    if last.star == "**":
        gap = f"{source.newline}{row_indent}" if own_lines else " "
        return Edit(source.path, last_start, last_start, f"{text},{gap}")
    if own_lines:
        # One argument a line: so is the new one, with a trailing comma if the others have one.
        added = f"{source.newline}{row_indent}{text}"
        if isinstance(last.comma, cst.Comma):
            comma_end = behind_comment(source, region.span(last.comma)[1])
            return Edit(source.path, comma_end, comma_end, f"{added},")
        # A comment behind the last argument stays behind it.
        stop = behind_comment(source, end)
        return Edit(source.path, end, stop, f",{source.text[end:stop]}{added}")
    start, stop = region.span(node)
    row = source.position(start).row
    column = source.position(stop).column - 1
    is_alone = source.position(stop).row == row and not source.line(row)[column:].strip()
    longest = min(max(_SHORT, *map(len, _LINES.split(source.text))), _LONG)
    if is_alone and len(source.line(row).rstrip()) + len(text) + 2 > longest:
        opened = source.text.index("(", region.span(node.func)[1]) + 1
        indent = line_indent(source, row)
        inner = indent + ("\t" if indent.startswith("\t") else "    ")
        given = source.text[opened:end]
        wrapped = f"{source.newline}{inner}{given}, {text}{source.newline}{indent}"
        return Edit(source.path, opened, stop - 1, wrapped)
    return Edit(source.path, end, end, f", {text}")


def behind_comment(source: SourceFile, offset: int) -> int:
    """The end of the line, if there is only a comment behind ``offset``; else ``offset``."""
    place = source.position(offset)
    rest = source.line(place.row)[place.column - 1 :]
    return offset + len(rest.rstrip("\r\n")) if rest.lstrip().startswith("#") else offset


#: A line of the first length is never too long, one above the second always.
_SHORT, _LONG = 88, 120
_LINES = re.compile(r"\r\n|\r|\n")


def drop_argument(module: Module, call: Call, value: Expr) -> Edit | Planned:
    """The edit that takes the argument with this value out of the call, and its comma.

    Raises:
        RegionError: the call cannot be read.
    """
    around = call.stmt or call.scope

    def make() -> Edit:
        return _argument_edit(Region(module, around), call, value)

    def expected() -> Edit:
        start = offsets(module.source, call.func)[1]
        index = next(i for i, arg in enumerate(call.args) if arg.value is value)
        return dropped_parts(module.source, start, index, index + 1)

    return planned(module, around, call, make, drops=True, expected=expected)


def _argument_edit(region: Region, call: Call, value: Expr) -> Edit:
    import libcst as cst

    source = region.source
    args = region.find(call, cst.Call).args
    wanted = offsets(source, value)[0]
    index = next(
        (
            i
            for i, arg in enumerate(args)
            if region.span(arg.value)[0] <= wanted < region.span(arg)[1]
        ),
        None,
    )
    if index is None:
        raise RegionError(f"{region.module.display}:{call.row}: no such argument")
    start, end = region.span(args[index])
    comma = args[index].comma
    own_line = not source.line(source.position(start).row)[
        : source.position(start).column - 1
    ].strip()
    if index + 1 < len(args) and (index == 0 or own_line):
        return Edit(source.path, start, region.span(args[index + 1])[0], "")
    if index == 0:
        stop = region.span(comma)[1] if isinstance(comma, cst.Comma) else end
        return Edit(source.path, start, stop, "")
    before = args[index - 1]
    assert isinstance(before.comma, cst.Comma)
    if isinstance(comma, cst.Comma):
        return Edit(source.path, region.span(before.comma)[1], region.span(comma)[1], "")
    return Edit(source.path, region.span(before)[1], end, "")


def is_library(module: Module, scope: Scope) -> bool:
    """Whether code outside the tree may call the scope: a function of a package."""
    return module.is_library(scope)


def future_annotations(module: Module) -> bool:
    """Whether annotations of the file are never evaluated."""
    return any(
        binding.how == "import" and binding.payload[0] == "__future__"
        for binding in module.facts.bindings.get("annotations", ())
    )


def reads_within(scope: Scope, owner: Stmt, value: Expr, attribute: str) -> list[Attr]:
    """The reads of ``value.attribute``, spelled like ``value``, in a statement and inside it."""
    from sampler_lint.syntax.nodes import same

    return [
        read
        for read in scope.reads
        if read.name == attribute
        and read.stmt is not None
        and owner.encloses(read.stmt)
        and same(read.value, value)
    ]


__all__ = [
    "add_keyword",
    "define_helper",
    "drop_argument",
    "first_definition",
    "fix",
    "fresh_name",
    "future_annotations",
    "imported_as",
    "imported_module",
    "insert_first",
    "is_library",
    "name_of",
    "reads_within",
    "text_of",
    "visible",
]
