"""From Python's own syntax tree to the facts of a file, in one walk."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

from sampler_lint.limits import DEEPEST_NESTING, LONGEST_STRING
from sampler_lint.syntax.navigation import children, walk
from sampler_lint.syntax.nodes import (
    Arg,
    Assign,
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Const,
    Declare,
    Define,
    Expr,
    ExprStmt,
    For,
    Function,
    How,
    If,
    Import,
    Imported,
    Index,
    Lambda,
    Map,
    ModuleFacts,
    Name,
    Node,
    Nth,
    Other,
    Param,
    Raise,
    Return,
    Scope,
    Seq,
    Simple,
    Stmt,
    Store,
    Text,
    Try,
    Unary,
    While,
    With,
    Yield,
    dotted,
)
from sampler_lint.syntax.parse import FactsError

_LISTS = ("stores", "calls", "reads", "returns", "yields", "loops", "iterated")
NodeT = TypeVar("NodeT", bound=Node)


def extract(tree: ast.Module, *, lists_nodes: bool = False) -> ModuleFacts:
    """The facts of a parsed file; with ``lists_nodes`` they list all of their nodes.

    Raises:
        FactsError: it is nested too deeply to be walked.
    """
    global _made
    made: list[Node] = []
    _made = made if lists_nodes else None
    try:
        facts = _Extractor().module(tree)
    except RecursionError:
        raise FactsError("is nested too deeply to be analysed", None) from None
    finally:
        _made = None
    facts.made = made
    return facts


def is_idle(node: ast.AST) -> bool:
    """Whether a statement does nothing: a text, or a name alone, of which more may be typed."""
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Name))


def expression(node: ast.expr, scope: Scope, stmt: Stmt | None) -> Expr:
    """An expression that is not in the file, as one that stood in a statement of ``scope``.

    Its place is that of the statement, if it is known: its own is one of another text, which may
    be longer. The scope's own lists of what it reads and calls stay as they are.
    """
    maker = _Extractor()
    _ROWS.extend(range(len(_ROWS), (node.end_lineno or 0) + 1))
    maker.facts = ModuleFacts()
    maker.facts.functions, maker.facts.classes, maker.facts.all_calls = [], [], []
    maker.facts.slices = []
    maker._open(maker.facts, "", None)
    maker.scope = maker.facts
    found = maker.expr(node)
    for part in walk(found):
        if isinstance(part, (Name, Attr, Call)):
            part.scope, part.stmt = scope, stmt
        around: Stmt | Scope = scope if stmt is None else stmt
        part.row, part.col = max(around.row, 1), around.col
        part.end_row, part.end_col = max(around.end_row, 1), around.end_col
    return found


class _Extractor:
    """Walks an ``ast`` once, building nodes and scopes."""

    def __init__(self) -> None:
        self.scope: Scope
        self.facts: ModuleFacts
        self.stmt: Stmt | None = None
        self.within: Comp | None = None
        self.order = 0
        self.depth = 0
        """How deep in an expression of its statement (or lambda) is what is read now."""
        self.deferred: list[tuple[Other, ast.expr, Scope, Stmt | None]] = []
        """What stands too deep, in place of which expression and where."""

    # -- scopes

    def module(self, tree: ast.Module) -> ModuleFacts:
        rows = max((stmt.end_lineno or 0 for stmt in tree.body), default=0)
        _ROWS.extend(range(len(_ROWS), rows + 1))
        facts = ModuleFacts()
        facts.row, facts.col, facts.end_row, facts.end_col = 1, 0, 1, 0
        facts.functions, facts.classes, facts.all_calls = [], [], []
        facts.slices, facts.memo = [], {}
        facts.star_imports = []
        self.facts = facts
        self._open(facts, "", None)
        self.scope = facts
        facts.body = self.block(tree.body, None)
        return facts

    def _open(self, scope: Scope, name: str, outer: Scope | None) -> None:
        scope.name, scope.outer, scope.module = name, outer, self.facts
        scope.define = None
        scope.bindings, scope.declared = {}, {}
        scope.stores, scope.calls, scope.reads = [], [], []
        scope.returns, scope.yields, scope.loops = [], [], []
        scope.iterated = []
        scope.body = []

    def _inside(self, scope: Scope, body: Callable[[], None], *, is_lambda: bool = False) -> None:
        saved = self.scope, self.stmt, self.depth
        self.scope, self.stmt = scope, None
        if not is_lambda:
            self.depth = 0
        body()
        self.scope, self.stmt, self.depth = saved
        for name in _LISTS:
            if not getattr(scope, name):
                setattr(scope, name, _NONE)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        function = _at(Function(), node)
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self._open(function, name, self.scope)
        function.decorators = []
        function.params = self.params(node.args)
        self.facts.functions.append(function)

        def body() -> None:
            for param in function.params:
                self.bind(Binding(param.name, "param", None, payload=param))
            if isinstance(node, ast.Lambda):
                result = _at(Return(), node.body)
                self._place(result, function.body, None)
                self.stmt = result
                result.value = self.expr(node.body)
                result.last_order = self.order
                function.body.append(result)
                function.returns.append(result)
            else:
                function.body = self.block(node.body, None)

        self._inside(function, body, is_lambda=isinstance(node, ast.Lambda))
        return function

    def params(self, args: ast.arguments) -> list[Param]:
        out: list[Param] = []
        positional = [(a, "positional_only") for a in args.posonlyargs]
        positional += [(a, "positional") for a in args.args]
        missing = len(positional) - len(args.defaults)
        for number, (arg, kind) in enumerate(positional):
            default = args.defaults[number - missing] if number >= missing else None
            out.append(self.param(arg, kind, default))
        if args.vararg:
            out.append(self.param(args.vararg, "vararg", None))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            out.append(self.param(arg, "keyword_only", default))
        if args.kwarg:
            out.append(self.param(args.kwarg, "kwarg", None))
        return out

    def param(self, arg: ast.arg, kind: str, default: ast.expr | None) -> Param:
        return Param(
            arg.arg,
            kind,
            self.expr(default) if default is not None else None,
            self.expr(arg.annotation) if arg.annotation is not None else None,
            _at(Node(), arg),
        )

    def class_(self, node: ast.ClassDef) -> Class:
        cls = _at(Class(), node)
        self._open(cls, node.name, self.scope)
        cls.bases = [self.expr(base) for base in node.bases]
        cls.keywords = [Arg(self.expr(k.value), k.arg, 0 if k.arg else 2) for k in node.keywords]
        cls.decorators = []
        self.facts.classes.append(cls)

        def body() -> None:
            cls.body = self.block(node.body, None)

        self._inside(cls, body)
        return cls

    def bind(self, binding: Binding) -> None:
        scope = self.scope.declared.get(binding.name, self.scope)
        scope.bindings.setdefault(binding.name, []).append(binding)

    # -- statements

    def block(self, body: list[ast.stmt], parent: Stmt | None) -> list[Stmt]:
        if not body:
            return _NONE
        out: list[Stmt] = []
        for node in body:
            handler = _STATEMENTS.get(type(node))
            if handler is None:
                continue
            if is_idle(node):
                continue
            stmt = handler(self, node, out, parent)
            self._work_off()
            stmt.last_order = self.order
        return out

    def _place(self, stmt: Stmt, block: list[Stmt], parent: Stmt | None) -> None:
        self.order += 1
        stmt.order = stmt.last_order = self.order
        stmt.scope, stmt.block, stmt.parent = self.scope, block, parent

    def _new(self, kind: type[Any], node: ast.stmt, block: list[Stmt], parent: Stmt | None) -> Any:
        stmt = _at(kind(), node)
        self._place(stmt, block, parent)
        block.append(stmt)
        self.stmt = stmt
        return stmt

    def assign(self, node: ast.Assign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Assign = self._new(Assign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.targets = [self.target(target, stmt.value, "assign") for target in node.targets]
        return stmt

    def ann_assign(self, node: ast.AnnAssign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        if node.value is None:
            declare: Declare = self._new(Declare, node, block, parent)
            declare.annotation = self.expr(node.annotation)
            declare.target = self.expr(node.target)
            if isinstance(declare.target, Name) and isinstance(self.scope, Class):
                self.bind(Binding(declare.target.id, "opaque", declare))
            return declare
        stmt: Assign = self._new(Assign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.targets = [self.target(node.target, stmt.value, "assign")]
        return stmt

    def aug_assign(self, node: ast.AugAssign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: AugAssign = self._new(AugAssign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.op = type(node.op).__name__
        stmt.target = self.target(node.target, stmt.value, "aug")
        return stmt

    def target(
        self, node: ast.expr, value: Expr | None, how: How, path: tuple[int, ...] = ()
    ) -> Expr:
        assert self.stmt is not None
        if isinstance(node, ast.Name):
            self.bind(Binding(node.id, how, self.stmt, value, path, within=self.within))
            return self.expr(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            seq = _at(Seq(), node)
            seq.kind, seq.scope = "tuple", self.scope
            seq.items = []
            size = len(node.elts)
            is_starred = any(isinstance(item, ast.Starred) for item in node.elts)
            passed = False
            for number, item in enumerate(node.elts):
                if isinstance(item, ast.Starred):
                    passed = True
                    seq.items.append(self.target(item.value, None, "opaque"))
                else:
                    nth = Nth(number - size if passed else number, size, is_starred)
                    seq.items.append(self.target(item, value, how, (*path, nth)))
            return seq
        expr = self.expr(node, store=True)
        if isinstance(expr, (Attr, Index)):
            self.scope.stores.append(Store(expr, self.stmt, self.scope, how, value, path))
        return expr

    def expr_stmt(self, node: ast.Expr, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: ExprStmt = self._new(ExprStmt, node, block, parent)
        stmt.value = self.expr(node.value)
        return stmt

    def return_(self, node: ast.Return, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Return = self._new(Return, node, block, parent)
        stmt.value = self.expr(node.value) if node.value is not None else None
        self.scope.returns.append(stmt)
        return stmt

    def raise_(self, node: ast.Raise, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Raise = self._new(Raise, node, block, parent)
        stmt.value = self.expr(node.exc) if node.exc is not None else None
        return stmt

    def simple(self, node: ast.stmt, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Simple = self._new(Simple, node, block, parent)
        stmt.kind = type(node).__name__.lower()
        stmt.names = list(getattr(node, "names", ()))
        stmt.parts = []
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            owner: Scope = self.facts
            if isinstance(node, ast.Nonlocal):
                outer = islice(self.scope.outward(), 1, None)
                owner = next((s for s in outer if isinstance(s, Function)), self.facts)
            self.scope.declared.update(dict.fromkeys(node.names, owner))
        elif isinstance(node, ast.Delete):
            stmt.parts = [self.expr(target, store=True) for target in node.targets]
        elif isinstance(node, ast.Assert):
            stmt.parts = [self.expr(node.test)]
        return stmt

    def for_(self, node: ast.For | ast.AsyncFor, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: For = self._new(For, node, block, parent)
        stmt.iter = self.expr(node.iter)
        stmt.target = self.target(node.target, stmt.iter, "element")
        self.scope.loops.append(stmt)
        self.scope.iterated.append((stmt.iter, stmt))
        stmt.body = self.block(node.body, stmt)
        stmt.orelse = self.block(node.orelse, stmt)
        return stmt

    def while_(self, node: ast.While, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: While = self._new(While, node, block, parent)
        stmt.test = self.expr(node.test)
        self.scope.loops.append(stmt)
        stmt.body = self.block(node.body, stmt)
        stmt.orelse = self.block(node.orelse, stmt)
        return stmt

    def if_(self, node: ast.If, block: list[Stmt], parent: Stmt | None) -> Stmt:
        # A long chain of "elif" is one "if" in another: walk it without recursion.
        chain: list[If] = []
        while True:
            stmt: If = self._new(If, node, block, parent)
            chain.append(stmt)
            stmt.test = self.expr(node.test)
            self._work_off()
            stmt.body = self.block(node.body, stmt)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            stmt.orelse = block = []
            node, parent = node.orelse[0], stmt
        stmt.orelse = self.block(node.orelse, stmt)
        for stmt in reversed(chain):
            stmt.last_order = self.order
        return stmt

    def match(self, node: Any, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: If = self._new(If, node, block, parent)
        stmt.test = self.expr(node.subject)
        stmt.body, stmt.orelse = [], []
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.stmt = stmt
                    self.bind(Binding(name, "opaque", stmt))
            inner: If = _at(If(), node)
            inner.end_row, inner.end_col = stmt.end_row, stmt.end_col
            self._place(inner, stmt.body, stmt)
            self.stmt = inner
            inner.test = self.expr(case.guard) if case.guard is not None else stmt.test
            inner.orelse = []
            inner.body = self.block(case.body, inner)
            inner.last_order = self.order
            stmt.body.append(inner)
        return stmt

    def with_(self, node: ast.With | ast.AsyncWith, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: With = self._new(With, node, block, parent)
        stmt.items = []
        for item in node.items:
            context = self.expr(item.context_expr)
            target = None
            if item.optional_vars is not None:
                target = self.target(item.optional_vars, context, "enter")
            stmt.items.append((context, target))
        stmt.body = self.block(node.body, stmt)
        return stmt

    def try_(self, node: Any, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Try = self._new(Try, node, block, parent)
        stmt.body = self.block(node.body, stmt)
        stmt.handlers = []
        for handler in node.handlers:
            self.stmt = stmt
            kind = self.expr(handler.type) if handler.type is not None else None
            if handler.name:
                self.bind(Binding(handler.name, "opaque", stmt))
            stmt.handlers.append((kind, self.block(handler.body, stmt)))
        stmt.orelse = self.block(node.orelse, stmt)
        stmt.final = self.block(node.finalbody, stmt)
        return stmt

    def import_(
        self, node: ast.Import | ast.ImportFrom, block: list[Stmt], parent: Stmt | None
    ) -> Stmt:
        stmt: Import = self._new(Import, node, block, parent)
        stmt.stars = []
        if isinstance(node, ast.Import):
            for alias in node.names:
                # Without "as", "import a.b" binds "a".
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                payload = Imported(whole, None, 0)
                self.bind(Binding(alias.asname or whole, "import", stmt, payload=payload))
            return stmt
        for alias in node.names:
            if alias.name == "*":
                stmt.stars.append((node.module or "", node.level))
                self.facts.star_imports.append((node.module or "", node.level))
            else:
                payload = Imported(node.module or "", alias.name, node.level)
                self.bind(Binding(alias.asname or alias.name, "import", stmt, payload=payload))
        return stmt

    def def_(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        block: list[Stmt],
        parent: Stmt | None,
    ) -> Stmt:
        stmt: Define = self._new(Define, node, block, parent)
        stmt.decorators = [self.expr(decorator) for decorator in node.decorator_list]
        if isinstance(node, ast.ClassDef):
            stmt.what = self.class_(node)
        else:
            stmt.what = self.function(node)
        how: How = "class" if isinstance(node, ast.ClassDef) else "def"
        stmt.what.decorators = stmt.decorators
        stmt.what.define = stmt
        self.stmt = stmt
        self.bind(Binding(node.name, how, stmt, payload=stmt.what))
        return stmt

    # -- expressions

    def expr(self, node: ast.expr, *, store: bool = False) -> Expr:
        kind = type(node)
        if kind is ast.Name:
            name = _at(Name(), node)
            name.id = node.id  # type: ignore[attr-defined]
            name.scope, name.stmt = self.scope, self.stmt
            return name
        if self.depth == DEEPEST_NESTING:
            return self._deferred(node)
        self.depth += 1
        found = self._compound(node, kind, store=store)
        self.depth -= 1
        return found

    def _deferred(self, node: ast.expr) -> Expr:
        other = _at(Other(), node)
        other.parts = []
        self.deferred.append((other, node, self.scope, self.stmt))
        return other

    def _work_off(self) -> None:
        """Read what stands too deep in an expression, as expressions of their own.

        Where they were stand the names in them: what is done with those is not known.
        """
        if not self.deferred:
            return
        saved = self.scope, self.stmt
        read: list[tuple[Other, Expr]] = []
        while self.deferred:
            other, node, self.scope, self.stmt = self.deferred.pop()
            for name in _LISTS:
                if getattr(self.scope, name) is _NONE:
                    setattr(self.scope, name, [])
            read.append((other, self.expr(node)))
        self.scope, self.stmt = saved
        for other, expr in reversed(read):
            other.parts = _names_in(expr)

    def _compound(self, node: ast.expr, kind: type[ast.expr], *, store: bool) -> Expr:
        if kind is ast.Constant:
            const = _at(Const(), node)
            value = node.value  # type: ignore[attr-defined]
            if isinstance(value, (bytes, complex)) or (
                isinstance(value, str) and len(value) > LONGEST_STRING
            ):
                value = ...
            const.value = value
            return const
        if kind is ast.Attribute:
            attr = _at(Attr(), node)
            attr.value = self.expr(node.value)  # type: ignore[attr-defined]
            attr.name = node.attr  # type: ignore[attr-defined]
            attr.scope, attr.stmt = self.scope, self.stmt
            if not store:
                self.scope.reads.append(attr)
            return attr
        handler = _EXPRESSIONS.get(kind)
        if handler is not None:
            result: Expr = handler(self, node)
            return result
        other = _at(Text() if kind is ast.JoinedStr else Other(), node)
        other.parts = [
            self.expr(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        return other

    def call(self, node: ast.Call) -> Expr:
        call = _at(Call(), node)
        call.scope, call.stmt = self.scope, self.stmt
        self.scope.calls.append(call)
        self.facts.all_calls.append(call)
        call.func = self.expr(node.func)
        call.args = [] if node.args or node.keywords else _NONE
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                call.args.append(Arg(self.unpacked(arg), None, 1))
            else:
                call.args.append(Arg(self.expr(arg), None, 0))
        for keyword in node.keywords:
            stars = 0 if keyword.arg else 2
            call.args.append(Arg(self.expr(keyword.value), keyword.arg, stars))
        func = call.func
        if self.stmt is not None and isinstance(func, Name) and func.id == "iter":
            self.scope.iterated += [(arg.value, self.stmt) for arg in call.args[:1]]
        elif self.stmt is not None and isinstance(func, Attr) and func.name == "__iter__":
            self.scope.iterated.append((func.value, self.stmt))
        return call

    def unpacked(self, node: ast.Starred) -> Expr:
        value = self.expr(node.value)
        if self.stmt is not None:
            self.scope.iterated.append((value, self.stmt))
        return value

    def seq(self, node: ast.Tuple | ast.List | ast.Set) -> Expr:
        seq = _at(Seq(), node)
        seq.kind, seq.scope = type(node).__name__.lower(), self.scope
        seq.items = [self.expr(item) for item in node.elts]
        return seq

    def map(self, node: ast.Dict) -> Expr:
        mapping = _at(Map(), node)
        mapping.scope = self.scope
        mapping.items = [
            (self.expr(key) if key is not None else None, self.expr(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return mapping

    def index(self, node: ast.Subscript) -> Expr:
        index = _at(Index(), node)
        index.value = self.expr(node.value)
        index.key = self.expr(node.slice)
        if isinstance(node.slice, ast.Slice) and node.slice.lower is not None:
            self.facts.slices.append(index)
        return index

    def ternary(self, node: ast.IfExp) -> Expr:
        choice = _at(Choice(), node)
        choice.kind = "if"
        choice.test = self.expr(node.test)
        choice.options = [self.expr(node.body), self.expr(node.orelse)]
        return choice

    def bool_op(self, node: ast.BoolOp) -> Expr:
        choice = _at(Choice(), node)
        choice.kind = "or" if isinstance(node.op, ast.Or) else "and"
        choice.test = None
        choice.options = [self.expr(value) for value in node.values]
        return choice

    def bin_op(self, node: ast.BinOp) -> Expr:
        # A long chain "a + b + …" leans to the left; walk it without recursion.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        left = self.expr(chain[-1].left)
        for number, part in enumerate(reversed(chain), 1):
            if number % DEEPEST_NESTING == 0:
                cut = _at(Other(), part.left)
                cut.parts = _names_in(left)
                left = cut
            bin_op = _at(Bin(), part)
            bin_op.op = type(part.op).__name__
            bin_op.left = left
            bin_op.right = self.expr(part.right)
            left = bin_op
        return left

    def unary(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, (int, float)):
                const = _at(Const(), node)
                const.value = -value
                return const
        unary = _at(Unary(), node)
        unary.op = type(node.op).__name__
        unary.operand = self.expr(node.operand)
        return unary

    def compare(self, node: ast.Compare) -> Expr:
        compare = _at(Compare(), node)
        compare.left = self.expr(node.left)
        compare.ops = [type(op).__name__ for op in node.ops]
        compare.rights = [self.expr(right) for right in node.comparators]
        return compare

    def comp(self, node: Any) -> Expr:
        comp = _at(Comp(), node)
        comp.kind, comp.scope = type(node).__name__, self.scope
        comp.iters, comp.tests = [], []
        for generator in node.generators:
            source = self.expr(generator.iter)
            comp.iters.append(source)
            if self.stmt is not None:
                self.scope.iterated.append((source, self.stmt))
                self.within, around = comp, self.within
                self.target(generator.target, source, "element")
                self.within = around
            comp.tests.extend(self.expr(test) for test in generator.ifs)
        comp.table = None
        if isinstance(node, ast.DictComp):
            key, value = comp.elements = [self.expr(node.key), self.expr(node.value)]
            comp.table = _at(Map(), node)
            comp.table.scope, comp.table.items = self.scope, [(key, value)]
        else:
            comp.elements = [self.expr(node.elt)]
        return comp

    def yield_(self, node: ast.Yield | ast.YieldFrom) -> Expr:
        out = _at(Yield(), node)
        out.value = self.expr(node.value) if node.value is not None else None
        out.delegates = isinstance(node, ast.YieldFrom)
        if out.delegates and out.value is not None and self.stmt is not None:
            self.scope.iterated.append((out.value, self.stmt))
        self.scope.yields.append(out)
        return out

    def lambda_(self, node: ast.Lambda) -> Expr:
        out = _at(Lambda(), node)
        out.function = self.function(node)
        return out

    def walrus(self, node: ast.NamedExpr) -> Expr:
        value = self.expr(node.value)
        if self.stmt is not None:
            self.target(node.target, value, "assign")
        return value

    def through(self, node: ast.Await | ast.Starred) -> Expr:
        if isinstance(node, ast.Await):
            return self.expr(node.value)
        other = _at(Other(), node)
        other.parts = [self.unpacked(node)]
        return other


#: One object for each row number: ``ast`` makes two for each of its nodes, which were a fifth of
#: the memory of all facts.
_ROWS: list[int] = []
#: What is empty in most scopes and blocks, and never changed once they are read.
_NONE: list[Any] = []


def _names_in(expr: Expr) -> list[Expr]:
    """The names, dotted ones whole, that are somewhere in an expression."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        current = stack.pop()
        if dotted(current) is not None:
            found.append(current)
        else:
            stack += reversed(children(current))
    return found


#: Where nodes are listed while they are made.
_made: list[Node] | None = None


def _at(new: NodeT, node: Any) -> NodeT:
    if _made is not None:
        _made.append(new)
    row, end_row = node.lineno, node.end_lineno
    new.row = row = _ROWS[row]
    new.end_row = row if row == end_row else _ROWS[end_row]
    new.col, new.end_col = node.col_offset, node.end_col_offset
    return new


_STATEMENTS: dict[type[ast.stmt], Callable[..., Stmt]] = {
    ast.Assign: _Extractor.assign,
    ast.AnnAssign: _Extractor.ann_assign,
    ast.AugAssign: _Extractor.aug_assign,
    ast.Expr: _Extractor.expr_stmt,
    ast.Return: _Extractor.return_,
    ast.Raise: _Extractor.raise_,
    ast.For: _Extractor.for_,
    ast.AsyncFor: _Extractor.for_,
    ast.While: _Extractor.while_,
    ast.If: _Extractor.if_,
    ast.With: _Extractor.with_,
    ast.AsyncWith: _Extractor.with_,
    ast.Try: _Extractor.try_,
    ast.Import: _Extractor.import_,
    ast.ImportFrom: _Extractor.import_,
    ast.FunctionDef: _Extractor.def_,
    ast.AsyncFunctionDef: _Extractor.def_,
    ast.ClassDef: _Extractor.def_,
    ast.Pass: _Extractor.simple,
    ast.Break: _Extractor.simple,
    ast.Continue: _Extractor.simple,
    ast.Global: _Extractor.simple,
    ast.Nonlocal: _Extractor.simple,
    ast.Delete: _Extractor.simple,
    ast.Assert: _Extractor.simple,
    ast.Match: _Extractor.match,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _Extractor.try_

_EXPRESSIONS: dict[type[ast.expr], Callable[..., Expr]] = {
    ast.Call: _Extractor.call,
    ast.Tuple: _Extractor.seq,
    ast.List: _Extractor.seq,
    ast.Set: _Extractor.seq,
    ast.Dict: _Extractor.map,
    ast.Subscript: _Extractor.index,
    ast.IfExp: _Extractor.ternary,
    ast.BoolOp: _Extractor.bool_op,
    ast.BinOp: _Extractor.bin_op,
    ast.UnaryOp: _Extractor.unary,
    ast.Compare: _Extractor.compare,
    ast.ListComp: _Extractor.comp,
    ast.SetComp: _Extractor.comp,
    ast.DictComp: _Extractor.comp,
    ast.GeneratorExp: _Extractor.comp,
    ast.Yield: _Extractor.yield_,
    ast.YieldFrom: _Extractor.yield_,
    ast.Lambda: _Extractor.lambda_,
    ast.NamedExpr: _Extractor.walrus,
    ast.Await: _Extractor.through,
    ast.Starred: _Extractor.through,
}
