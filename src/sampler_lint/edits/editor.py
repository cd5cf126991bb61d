"""What a fix writes, in the terms of the program.

A rule says what to write at which node; commas, comments, indentation, line ends, decorators and
suites in one line are the business of this module. A rule's fix is a function of an
:class:`Editor` and may be run twice: for a draft, whose edits Python reads like the final ones
and which is enough to judge and to announce a fix, and for the edits themselves. Only the latter
reads argument lists, signatures and docstrings with libcst, whose classes take as long to make
as checking a small repository.
"""

from __future__ import annotations

import copy
import io
import re
import tokenize
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sampler_lint.edits.names import first_definition, name_of, reads_of
from sampler_lint.edits.region import EditError, Region, begins_at, beside_others, offsets
from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.source import LINE_END, SourceFile
from sampler_lint.syntax.navigation import blocks, nodes_in, self_class, self_stores, statements
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Define,
    Expr,
    For,
    Function,
    Imported,
    Lambda,
    Loop,
    Map,
    Name,
    Node,
    Raise,
    Return,
    Scope,
    Simple,
    Stmt,
    While,
    dotted,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    import libcst as cst


class Editor:
    """What one fix writes, in any file of the tree. Every method that writes returns the editor.

    Raises:
        EditError: by any method that writes, where it cannot be done: then there is no fix.
    """

    def __init__(self, module: Module, *, draft: bool = False) -> None:
        """``draft``: the edits need only mean the same to Python as the final ones."""
        self.module = module
        self.source = module.source
        self.draft = draft
        self._edits: dict[Edit, Module] = {}
        self._opened: dict[tuple[str, int], list[str]] = {}
        """The lines that a body behind its colon now begins with, by where it began."""
        self._skimmed: list[Node] = []

    def at(self, module: Module) -> Editor:
        """The same fix, in another file."""
        other = copy.copy(self)
        other.module, other.source = module, module.source
        return other

    def apart(self) -> Editor:
        """What may become a part of this fix; see :meth:`add`."""
        return Editor(self.module, draft=self.draft)

    def add(self, other: Editor) -> Editor:
        """Write what another editor has written."""
        if not self._opened.keys().isdisjoint(other._opened):
            raise EditError(f"{self.module.display}: a body in the same line")
        self._edits.update(other._edits)
        self._opened.update(other._opened)
        self._skimmed += other._skimmed
        return self

    @property
    def is_final(self) -> bool:
        """Whether the edits are the final ones, though this may be a draft."""
        return not self._skimmed

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What was written, by file and place, each once."""
        return tuple(sorted(self._edits))

    def fix(self, message: str, applicability: Applicability, because: str = "") -> Fix:
        """What was written as a fix; one that drops a comment is unsafe, whatever was asked for.

        A comment that another edit of the fix writes again is moved, not dropped. ``because``
        says what speaks against it, if it is unsafe. There is none that drops a ``name := …``.
        """
        if self._drops(_WALRUS):
            raise EditError(f"{self.module.display}: takes away what assigns a name")
        if applicability is Applicability.SAFE and self._drops(_COMMENT):
            applicability, because = Applicability.UNSAFE, "it drops a comment"
        is_unsafe = applicability is Applicability.UNSAFE
        return Fix(message, applicability, self.edits, because if is_unsafe else "")

    def _drops(self, pattern: re.Pattern[str]) -> bool:
        """Whether something of the kind stands nowhere any more."""
        found: Counter[str] = Counter()
        for edit, module in self._edits.items():
            found.update(pattern.findall(edit.content))
            found.subtract(pattern.findall(module.source.text[edit.start : edit.end]))
        return any(count < 0 for count in found.values())

    # ------------------------------------------------------------------------ expressions

    def replace(self, node: Expr | Stmt, code: str) -> Editor:
        """Write ``code`` in the place of an expression, or of a simple statement."""
        return self._put(*self._span(node), code)

    def replace_whole(self, node: Bin, code: str) -> Editor:
        """The same for a sum, with the parentheses around it, as ``code`` needs none."""
        import libcst as cst

        text, (start, end) = self.source.text, self._span(node)
        region = Region(self.module, self._around(node))
        first, last = region.whole(region.find(node, cst.BinaryOperation))
        around = text[first:start] + text[end:last]
        if around.strip("()") or text[first - 1].isidentifier():  # a comment, or `return(…)`
            return self.replace(node, code)
        return self._put(first, last, code)

    def wrap(self, node: Expr, before: str, after: str = "") -> Editor:
        """Write something directly before and behind an expression."""
        start, end = self._span(node)
        return self._put(start, start, before)._put(end, end, after)

    def rename(self, node: Node, old: str, new: str) -> Editor:
        """Spell a name otherwise: the last one in an expression, or a whole word in a string."""
        start, end = self._span(node)
        found = list(re.finditer(rf"\b{re.escape(old)}\b", self.source.text[start:end]))
        if not found:
            raise EditError(f"{self.module.display}:{node.row}: no `{old}` here")
        return self._put(start + found[-1].start(), start + found[-1].end(), new)

    # ------------------------------------------------------------------------ arguments

    def add_argument(self, call: Call, keyword: str, code: str) -> Editor:
        """Pass ``keyword=code`` after the call's other arguments, but before ``**more``.

        A line that would be the file's longest is broken.
        """
        return self._append_to(self._arguments(call), f"{keyword}={code}", call)

    def drop_argument(self, call: Call, value: Expr) -> Editor:
        """Take the argument with this value out of the call."""
        items = self._arguments(call).items
        number = _number_of(items, offsets(self.source, value)[0])
        item = items[number]
        alone = self._alone_before(item.start) is not None
        if number + 1 < len(items) and (number == 0 or alone):
            return self._put(item.start, items[number + 1].start, "")
        if number == 0:
            return self._put(item.start, item.comma or item.end, "")
        before = items[number - 1]
        if item.comma is not None and before.comma is not None:
            return self._put(before.comma, item.comma, "")
        return self._put(before.end, item.end, "")

    def drop_arguments(self, call: Call, first: int) -> Editor:
        """Take the arguments from number ``first`` on out of the call."""
        found = self._arguments(call)
        start = found.items[first - 1].end if first else found.opened
        return self._put(start, found.closed, "")

    def replace_argument(self, call: Call, value: Expr, keyword: str, code: str) -> Editor:
        """Pass ``keyword=code`` instead of the argument with this value."""
        items = self._arguments(call).items
        item = items[_number_of(items, offsets(self.source, value)[0])]
        return self._put(item.start, item.end, f"{keyword}={code}")

    def insert_argument(self, call: Call, before: Expr, code: str) -> Editor:
        """Pass another positional argument behind the one with this value, laid out like it."""
        items = self._arguments(call).items
        number = _number_of(items, offsets(self.source, before)[0])
        item, beside = items[number], items[min(number + 1, len(items) - 1)]
        indent = self._alone_before(beside.start)
        gap = " " if indent is None else f"{self.source.newline}{indent}"
        return self._put(item.end, item.end, f",{gap}{code}")

    def name_argument(self, call: Call, value: Expr, name: str) -> Editor:
        """Pass a positional argument by its name."""
        items = self._arguments(call).items
        start = items[_number_of(items, offsets(self.source, value)[0])].start
        return self._put(start, start, f"{name}=")

    def add_entry(self, display: Map, key: str, code: str) -> Editor:
        """Write an entry below the others of a dict display that has some, and no ``**more``."""
        found = _by_tokens(self.source.text, self._span(display)[0], "{")
        return self._append_to(found, f"{key}: {code}")

    def _arguments(self, call: Call) -> _Items:
        """The call's arguments as they stand in its parentheses."""
        if self.draft and not self._is_in_f_string(call):
            self._skimmed.append(call)
            return _by_tokens(self.source.text, offsets(self.source, call.func)[1])
        import libcst as cst

        region = Region(self.module, self._around(call))
        node = region.find(call, cst.Call)
        opened = self.source.text.index("(", region.end(node.func)) + 1
        items = [_Item(*region.span(arg), _behind(region, arg.comma)) for arg in node.args]
        return _Items(opened, items, offsets(self.source, call)[1] - 1)

    # ------------------------------------------------------------------------ definitions

    def add_parameter(self, function: Function, name: str, kind: str, default: str) -> Editor:
        """Give a function a last parameter, in the signature's own style."""
        typed = any(param.annotation is not None for param in function.params)
        text = f"{name}: {kind} = {default}" if typed else f"{name}={default}"
        return self._append_to(self._parameters(function), text)

    def _parameters(self, function: Function) -> _Items:
        """The parameters as they stand in the signature's parentheses."""
        named = name_of(self.module, function)
        if self.draft:
            self._skimmed.append(function)
            return _by_tokens(self.source.text, offsets(self.source, named)[1])
        import libcst as cst

        assert function.define is not None
        region = Region(self.module, function.define)
        name = region.find(named, cst.Name)
        node = next(found for found in region.nodes(cst.FunctionDef) if found.name is name)
        items = [_parameter(region, each) for each in _in_order(node.params)]
        behind = region.span(node.type_parameters or name)[1]
        return _Items(self.source.text.index("(", behind) + 1, items, -1)

    def document_parameter(self, function: Function, name: str, kind: str, text: str) -> Editor:
        """Add an entry below the last parameter's in a Google-style docstring, if there is one.

        Of a constructor, the docstring may be the class's. A draft leaves it out.
        """
        if self.draft or not function.params:
            self._skimmed.append(function)
            return self
        scopes: list[Function | Class] = [function]
        if function.name == "__init__" and function.cls is not None:
            scopes.append(function.cls)
        for scope in scopes:
            found = self._entry(scope, function.params[-1].name)
            if found is not None:
                row, entry = found
                shown = f"{name} ({kind})" if entry[2] else name
                return self._lines(row, [f"{entry[1]}{shown}: {text}"])
        return self

    def _entry(self, scope: Function | Class, name: str) -> tuple[int, re.Match[str]] | None:
        """The row below the entry of a parameter in a docstring, and the entry's beginning."""
        import libcst as cst

        if scope.define is None:
            return None
        source, region = self.source, Region(self.module, scope.define)
        quoted = (node for node in region.nodes(cst.SimpleString) if len(node.quote) == 3)
        docstring = next(quoted, None)
        if docstring is None:
            return None
        first, last = (source.position(offset).row for offset in region.span(docstring))
        if scope.body and scope.body[0].row < first:
            return None  # a string of the body
        pattern = re.compile(_ENTRY.format(name=re.escape(name)))
        for row in range(first, last):
            match = pattern.match(source.line(row))
            if match is not None:
                row += 1
                while row < last and source.line(row).startswith((f"{match[1]} ", f"{match[1]}\t")):
                    row += 1
                return row, match
        return None

    # ------------------------------------------------------------------------ statements

    def insert_before(self, stmt: Stmt, *lines: str) -> Editor:
        """Write lines before a statement and the comments directly above it, indented like it."""
        if self._unfolded(stmt, lines) is not None:
            return self
        first = self._first_in_line(stmt)
        indent = line_indent(self.source, first.row)
        return self._lines(self._with_comments(begins_at(first)[0]), _indented(indent, lines))

    def insert_after(self, stmt: Stmt, *lines: str) -> Editor:
        """Write lines below a statement, indented like it."""
        indent = self._unfolded(stmt)
        if indent is None:
            indent = line_indent(self.source, self._first_in_line(stmt).row)
        row = stmt.end_row
        if self._rest(row, stmt.end_col).startswith(";"):
            for other in stmt.block:  # in reading order
                row = max(row, other.end_row) if other.row == row else row
        return self._lines(row + 1, _indented(indent, lines))

    def insert_first(self, owner: Loop | Function, *lines: str) -> Editor:
        """Write lines before the first statement of a loop's or function's body."""
        if not owner.body:
            return self._after_docstring(owner, lines)
        return self.insert_before(owner.body[0], *lines)

    def _unfolded(self, stmt: Stmt, lines: Iterable[str] = ()) -> str | None:
        """The indentation of a body that stood behind its colon, now in lines of its own.

        The first of them are ``lines``. None for a body that has its own lines anyway.
        """
        source, first = self.source, stmt.block[0]
        start = offsets(source, first)[0]
        before = source.text[source.line_starts[first.row - 1] : start].rstrip(" \t")
        if not before.endswith(":"):
            return None
        owner = first.parent if first.parent is not None else first.scope
        if not isinstance(owner, (For, While, Function)) or not self._begins_line(owner):
            return None
        indent = line_indent(source, owner.row) + source.indent
        above = self._opened.setdefault((source.path, start), [])
        colon = source.line_starts[first.row - 1] + len(before)
        self._edits.pop(Edit(source.path, colon, start, self._body_begun(indent, above)), None)
        above.extend(lines)
        return indent if self._put(colon, start, self._body_begun(indent, above)) else None

    def _body_begun(self, indent: str, above: Iterable[str]) -> str:
        return self.source.newline + self._text(_indented(indent, above)) + indent

    def _begins_line(self, owner: Stmt | Function) -> bool:
        return self._alone_before(self.source.offset(owner.row, owner.col)) is not None

    def append(self, function: Function, *lines: str) -> Editor:
        """Write lines at the end of a function, above its last ``return``.

        A lone ``pass`` gives way.
        """
        if not function.body:
            return self._after_docstring(function, lines)
        last = function.body[-1]
        if isinstance(last, Simple) and last.kind == "pass" and len(function.body) == 1:
            indent = line_indent(self.source, self._first_in_line(last).row)
            return self._put(*self._whole_lines(last), self._text(_indented(indent, lines)))
        if isinstance(last, Return):
            return self.insert_before(last, *lines)
        return self.insert_after(last, *lines)

    def store(self, init: Function, *lines: str) -> Editor:
        """Write lines in a constructor below the rest, but above what may leave it or read them."""
        for stmt in init.body:
            inside = list(statements([stmt]))
            if any(isinstance(each, Return) for each in inside) or _may_ask(init, inside):
                return self.insert_before(stmt, *lines)
        if init.body and isinstance(init.body[-1], Raise):
            raise EditError(f"{self.module.display}:{init.row}: never returns")
        return self.append(init, *lines)

    def _after_docstring(self, owner: Stmt | Function, lines: Iterable[str]) -> Editor:
        """Write lines below the docstring that is all a function holds."""
        inside = line_indent(self.source, owner.row) + self.source.indent
        if not self.source.line(owner.end_row).startswith(inside):
            raise EditError(f"{self.module.display}:{owner.row}: a body in the same line")
        return self._lines(owner.end_row + 1, _indented(inside, lines))

    def define(self, *lines: str) -> Editor:
        """Write a function before the file's first definition, two lines apart."""
        first = first_definition(self.module)
        if first is None:
            raise EditError(f"{self.module.display}: nothing is defined")
        row = self._with_comments(begins_at(first)[0])
        return self._lines(row, [*lines, "", ""])

    def import_beside(self, statement: Stmt, name: str, new: str) -> Editor:
        """Import ``new`` from where ``name`` is imported from by this statement."""
        start, end = offsets(self.source, statement)
        code = _COMMENT.sub(lambda comment: " " * len(comment[0]), self.source.text[start:end])
        found = list(re.finditer(rf"\b{re.escape(name)}\b(?=\s*(?:as\b|[,)]|$))", code))
        if not found:
            raise EditError(f"{self.module.display}:{statement.row}: no `{name}` here")
        first, last = (start + offset for offset in found[-1].span())
        if new < name or self.source.text[last:end].lstrip().startswith("as "):
            return self._put(first, first, f"{new}, ")
        return self._put(last, last, f", {new}")

    def add_import(self, name: str) -> Editor:
        """Import a module of Python's own, in its place among the first of the file's imports."""
        imports: dict[Stmt, str] = {}
        for bindings in self.module.facts.bindings.values():
            for binding in bindings:
                imported, stmt = binding.payload, binding.stmt
                if stmt is None or stmt.block is not self.module.facts.body:
                    continue
                if isinstance(imported, Imported) and imported.name != "__future__":
                    imports[stmt] = "" if imported.attribute else imported.name
        above: Stmt | None = None
        for stmt in sorted(imports, key=begins_at):
            is_next = above is None or stmt.row == above.end_row + 1
            if not is_next or not imports[stmt] or imports[stmt] > name:
                if above is None:  # what stands above may be the file's own head
                    return self._lines(self._first_in_line(stmt).row, [f"import {name}"])
                break
            above = stmt
        if above is None:
            raise EditError(f"{self.module.display}: nothing is imported")
        return self.insert_after(above, f"import {name}")

    def delete(self, stmt: Stmt, *, with_comments: bool = False) -> Editor:
        """Take out a statement, and one of two gaps around it if it has lines of its own."""
        if (part := beside_others(self.source, stmt)) is not None:
            return self._put(*part, "")
        start, end = self._whole_lines(stmt, with_comments)
        text = self.source.text
        gap = text.find("\n", len(text[:start].rstrip(" \t\r\n")), start) + 1
        is_one_of_two = gap and re.match(r"[ \t]*(?:\r?\n|\Z)", text[end:])
        return self._put(gap if is_one_of_two else start, end, "")

    def forget(self, read: Expr) -> Editor:
        """Take out the assignment of a function's variable of which ``read`` is the only read.

        Not where a comment says something of it, or more stands in its lines.
        """
        if not isinstance(read, Name) or reads_of(self.module, read) != 1:
            return self
        bound = read.scope.bindings.get(read.id, ())
        made = bound[0].stmt if len(bound) == 1 and not bound[0].path else None
        if not isinstance(made, Assign) or not isinstance(read.scope, Function):
            return self
        is_alone = len(made.targets) == 1 and made.row == made.end_row and len(made.block) > 1
        is_alone = is_alone and self._first_in_line(made) is made
        if is_alone and not self._rest(made.end_row, made.end_col):
            return self if self._with_comments(made.row) < made.row else self.delete(made)
        return self

    def lines_of(self, stmt: Stmt, node: Expr, code: str) -> list[str]:
        """The lines of a statement and the comments above it, with ``code`` for one expression.

        Without indentation.
        """
        text, (start, end) = self.source.text, self._span(node)
        if beside_others(self.source, stmt) is not None:
            return [
                text[(own := offsets(self.source, stmt))[0] : start] + code + text[end : own[1]]
            ]
        indent = line_indent(self.source, stmt.row)
        first, last = self._whole_lines(stmt, with_comments=True)
        ended = (text[first:start] + code + text[end:last]).removesuffix("\n").removesuffix("\r")
        # Not by `splitlines`: a form feed ends no line of Python, and may stand in a comment.
        return [line.removeprefix(indent) for line in LINE_END.split(ended)]

    def nest(self, stmt: Stmt, *head: str) -> Editor:
        """Make a statement the body of what the ``head`` lines begin."""
        source = self.source
        rows = range(stmt.row, stmt.end_row + 1)
        texts = [source.line(row) for row in rows]
        shared = any(each is not stmt and each.row in rows for each in stmt.block)
        if shared or any(quotes in text for text in texts for quotes in ('"""', "'''")):
            raise EditError(f"{self.module.display}:{stmt.row}: cannot be indented")
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                start = source.line_starts[row - 1]
                above = _indented(line_indent(source, row), head) if row == stmt.row else []
                self._put(start, start, self._text(above) + source.indent)
        return self

    # ------------------------------------------------------------------------ the text itself

    def _put(self, start: int, end: int, content: str) -> Editor:
        if start < end or content:
            self._edits[Edit(self.source.path, start, end, content)] = self.module
        return self

    def _text(self, lines: Iterable[str]) -> str:
        return "".join(line + self.source.newline for line in lines)

    def _lines(self, row: int, lines: Iterable[str]) -> Editor:
        """Write lines before a row."""
        starts, text = self.source.line_starts, self.source.text
        offset = starts[row - 1] if row <= len(starts) else len(text)
        written = self._text(lines)
        if offset == len(text) and text and not text.endswith(("\n", "\r")):
            written = self.source.newline + written.removesuffix(self.source.newline)
        return self._put(offset, offset, written)

    def _whole_lines(self, stmt: Stmt, with_comments: bool = False) -> tuple[int, int]:
        """Where the lines of a statement begin and end, with the comments directly above it.

        Raises:
            EditError: another statement stands in one of them.
        """
        source, first = self.source, stmt.row
        rest = self._rest(stmt.end_row, stmt.end_col)
        if self._first_in_line(stmt) is not stmt or (rest and not rest.startswith("#")):
            raise EditError(f"{self.module.display}:{stmt.row}: shares a line")
        if with_comments:
            first = self._with_comments(first)
        starts = source.line_starts
        end = starts[stmt.end_row] if stmt.end_row < len(starts) else len(source.text)
        return starts[first - 1], end

    def _with_comments(self, row: int) -> int:
        """The first of the rows of comments directly above a row, which belong to it."""
        indent = line_indent(self.source, row)
        while row > 1 and self.source.line(row - 1).startswith(f"{indent}#"):
            row -= 1
        return row

    def _first_in_line(self, stmt: Stmt) -> Stmt:
        """The statement, or that of its block which its first line begins with.

        Raises:
            EditError: they stand behind a colon.
        """
        if self._alone_before(offsets(self.source, stmt)[0]) is None:
            first = next(other for other in stmt.block if other.end_row >= stmt.row)
            if first is stmt or self._alone_before(offsets(self.source, first)[0]) is None:
                raise EditError(f"{self.module.display}:{stmt.row}: a body in the same line")
            return self._first_in_line(first)
        return stmt

    def _alone_before(self, offset: int) -> str | None:
        """The white space before ``offset``, if nothing else stands before it in its line."""
        place = self.source.position(offset)
        before = self.source.line(place.row)[: place.column - 1]
        return None if before.strip() else before

    def _rest(self, row: int, column: int) -> str:
        """What stands in a row from a column (in bytes) on."""
        end = self.source.offset(row, column) - self.source.line_starts[row - 1]
        return self.source.line(row)[end:].lstrip()

    def _behind_comment(self, offset: int) -> int:
        """The end of the line, if there is only a comment behind ``offset``; else ``offset``."""
        place = self.source.position(offset)
        rest = self.source.line(place.row)[place.column - 1 :]
        return offset + len(rest.rstrip("\r\n")) if rest.lstrip().startswith("#") else offset

    def _append_to(self, found: _Items, text: str, call: Call | None = None) -> Editor:
        """Write an argument or a parameter after the others, laid out like them."""
        source = self.source
        if not found.items:
            return self._put(found.opened, found.opened, text)
        last = found.items[-1]
        indent = self._alone_before(last.start)
        line = None if indent is None else f"{source.newline}{indent}"
        if source.text.startswith("**", last.start):
            return self._put(last.start, last.start, f"{text},{line or ' '}")
        if line is None:
            if call is not None and self._is_too_long(call, text):
                return self._break(call, found, text)
            return self._put(last.end, last.end, f", {text}")
        # One a line: so is the new one, with a trailing comma if the others have one.
        if last.comma is not None:
            behind = self._behind_comment(last.comma)
            return self._put(behind, behind, f"{line}{text},")
        behind = self._behind_comment(last.end)
        if behind == last.end:
            return self._put(behind, behind, f",{line}{text}")
        return self._put(last.end, last.end, ",")._put(behind, behind, f"{line}{text}")

    def _is_too_long(self, call: Call, text: str) -> bool:
        """Whether the line of a call, which ends it, would become longer than the file's are."""
        source = self.source
        if call.end_row != call.row or self._rest(call.end_row, call.end_col):
            return False
        longest = min(max(_SHORT, source.longest_line), _LONG)
        return len(source.line(call.row).rstrip()) + len(text) + 2 > longest

    def _break(self, call: Call, found: _Items, text: str) -> Editor:
        """Write the arguments and a new one in a line of their own."""
        newline, indent = self.source.newline, line_indent(self.source, call.row)
        inner = indent + ("\t" if indent.startswith("\t") else "    ")
        self._put(found.opened, found.opened, newline + inner)
        closed = offsets(self.source, call)[1] - 1
        return self._put(found.items[-1].end, closed, f", {text}{newline}{indent}")

    # ------------------------------------------------------------------------ places

    def _span(self, node: Node) -> tuple[int, int]:
        """Where a node stands; in an f-string its spelling or libcst must say so, too.

        Before Python 3.12 the positions of what stands in an f-string are not its own.
        """
        start, end = offsets(self.source, node)
        if (
            isinstance(node, (Expr, Stmt))
            and self._is_in_f_string(node)
            and not (isinstance(node, Expr) and self.source.text[start:end] == dotted(node))
        ):
            import libcst as cst

            kinds = (cst.BaseExpression, cst.BaseSmallStatement)
            Region(self.module, self._around(node)).find(node, *kinds)  # type: ignore[type-abstract]
        return start, end

    def _is_in_f_string(self, node: Expr | Stmt) -> bool:
        source = self.source
        start = source.line_starts[max(self._around(node).row, 1) - 1]
        return _F_STRING.search(source.text, start, offsets(source, node)[1]) is not None

    def _around(self, node: Expr | Stmt) -> Stmt | Scope:
        """The innermost statement that holds a node."""
        if isinstance(node, Stmt):
            return node
        known: Stmt | None = getattr(node, "stmt", None)
        if known is not None:
            return known
        around: Stmt | Scope = self.module.facts
        inside = [self.module.facts.body]
        place = node.row, node.col
        while begun := [body for body in inside if body and begins_at(body[0]) <= place]:
            body = begun[-1]
            around = body[bisect_right(body, place, key=begins_at) - 1]
            inside = [around.what.body] if isinstance(around, Define) else list(blocks(around))
        return around


def _may_ask(init: Function, stmts: list[Stmt]) -> bool:
    """Whether statements of a constructor may run what reads the object.

    They hand it on, call a method of it, define a function that reads it, or read what may be a
    property.
    """
    kept = {
        target.name for target, store in self_stores([init]) if store.stmt.order < stmts[0].order
    }
    inside = list(nodes_in(stmts))
    parts = {id(each.value) for each in inside if isinstance(each, Attr) and each.name in kept}
    parts |= {id(store.target.value) for store in init.stores}
    defined: list[Scope] = [each.function for each in inside if isinstance(each, Lambda)]
    defined += [each.what for each in stmts if isinstance(each, Define)]
    return any(
        isinstance(each, Name) and self_class(each) is not None and id(each) not in parts
        for each in chain(inside, *(nodes_in(statements(each.body)) for each in defined))
    )


def line_indent(source: SourceFile, row: int) -> str:
    """The white space a line starts with."""
    line = source.line(row)
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def _indented(indent: str, lines: Iterable[str]) -> list[str]:
    return [line and indent + line for line in lines]


#: Writes a fix; None, or an :class:`EditError`, if there is none.
Fixer: TypeAlias = Callable[[Editor], Fix | None]


def replacing(
    node: Expr | Stmt,
    code: str,
    message: str,
    applicability: Applicability = Applicability.SAFE,
    because: str = "",
) -> Fixer:
    """The fix that writes ``code`` in the place of one node, and nothing else."""
    return lambda editor: editor.replace(node, code).fix(message, applicability, because)


def renaming(
    node: Node, old: str, new: str, message: str, applicability: Applicability, because: str = ""
) -> Fixer:
    """The fix that spells one name otherwise, and nothing else."""
    return lambda editor: editor.rename(node, old, new).fix(message, applicability, because)


class _Item(NamedTuple):
    """An argument, or a parameter, in its parentheses."""

    start: int
    end: int
    comma: int | None
    """Behind its comma."""


class _Items(NamedTuple):
    """What stands between two parentheses: behind the one, the items, before the other."""

    opened: int
    items: list[_Item]
    closed: int


def _number_of(items: list[_Item], offset: int) -> int:
    for number, item in enumerate(items):
        if item.start <= offset < item.end:
            return number
    raise EditError("no such argument")


def _by_tokens(text: str, start: int, bracket: str = "(") -> _Items:
    """What stands in the first pair of parentheses, or other brackets, behind ``start``.

    Told by Python's own tokens: a comma or a parenthesis in a comment or a string is none.

    Raises:
        EditError: there is no such pair.
    """
    starts = [0]
    lines = io.StringIO(text[start:], newline="")

    def line() -> str:
        read = lines.readline()
        starts.append(starts[-1] + len(read))
        return read

    depth = opened = 0
    items: list[_Item] = []
    first: int | None = None
    last = 0
    try:
        for token in tokenize.generate_tokens(line):
            if token.type in _NO_CODE:
                continue
            begin = start + starts[token.start[0] - 1] + token.start[1]
            end = start + starts[token.end[0] - 1] + token.end[1]
            kind = token.exact_type
            if opened and depth == 1 and (kind in _CLOSES or kind == tokenize.COMMA):
                if first is not None:
                    items.append(_Item(first, last, end if kind == tokenize.COMMA else None))
                first = None
                if kind in _CLOSES:
                    return _Items(opened, items, begin)
                continue
            if opened and first is None:
                first = begin
            last = end
            if not depth and token.string == bracket:
                opened = end
            # The first may close a parenthesis around what is called.
            depth = max(0, depth + (kind in _OPENS) - (kind in _CLOSES))
    except (tokenize.TokenError, IndentationError):
        pass
    raise EditError("there are no parentheses here")


_OPENS = {tokenize.LPAR, tokenize.LSQB, tokenize.LBRACE}
_CLOSES = {tokenize.RPAR, tokenize.RSQB, tokenize.RBRACE}
_NO_CODE = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENCODING,
}


def _in_order(parameters: cst.Parameters) -> Iterator[cst.Param | cst.ParamSlash]:
    """All that a signature lists and that another parameter may stand behind."""
    import libcst as cst

    listed = (
        *parameters.posonly_params,
        parameters.posonly_ind,
        *parameters.params,
        parameters.star_arg,
        *parameters.kwonly_params,
        parameters.star_kwarg,
    )
    return (each for each in listed if isinstance(each, (cst.Param, cst.ParamSlash)))


def _parameter(region: Region, node: cst.Param | cst.ParamSlash) -> _Item:
    import libcst as cst

    start, end = region.span(node)
    if isinstance(node, cst.ParamSlash):
        end = start + 1
    elif node.default is not None:
        end = region.end(node.default)
    elif node.annotation is not None:
        end = region.end(node.annotation.annotation)
    return _Item(start, end, _behind(region, node.comma))


def _behind(region: Region, comma: object) -> int | None:
    import libcst as cst

    return region.span(comma)[1] if isinstance(comma, cst.Comma) else None


_WALRUS = re.compile(r"(?<!\w)\w+\s*:=")
#: A ``#`` in a string is taken for a comment, too: that errs on the safe side.
_COMMENT = re.compile(r"#[^\r\n]*")
_F_STRING = re.compile(r"""\b[rR]?[fF][rR]?["']""")
_ENTRY = r"^([ \t]+){name}( ?\([^)\n]*\))?:"
#: A line of the first length is never too long, one above the second always.
_SHORT, _LONG = 88, 120
