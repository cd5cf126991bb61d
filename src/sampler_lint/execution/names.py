"""The global names of modules, and the classes among them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

from sampler_lint.execution import builtin, standard
from sampler_lint.execution.errors import CannotTellError
from sampler_lint.execution.values import UNKNOWN, External, Fn, Frame, Inner, Klass, Run, last_name
from sampler_lint.syntax.navigation import NEUTRAL_BASES
from sampler_lint.workspace.project import Module, Project

_NEUTRAL_BASES = frozenset(name.rpartition(".")[2] for name in NEUTRAL_BASES)


class Names:
    """The global names of one module, made when first asked for."""

    def __init__(self, interpreter: Run, tree: ast.Module, module: Module | None) -> None:
        self.interpreter = interpreter
        self.path = None if module is None else module.path
        self.led_to: set[str] = set()
        """The paths of the files that imports have led to."""
        self.tree = tree
        self.nodes: dict[str, list[ast.stmt]] = {}
        self.under: dict[ast.stmt, list[tuple[ast.If, bool]]] = {}
        """The tests that statements stand below, and what they come to there."""
        self.made: dict[str, Any] = {}
        self.klasses: dict[ast.ClassDef, Klass] = {}
        self.stars: list[ast.ImportFrom] = []
        """The imports of all names of a module."""
        self._collect(tree.body)

    @property
    def module(self) -> Module | None:
        """The module, as the project has it now; None for torch's own samplers."""
        return None if self.path is None else self.interpreter.project.module_at(self.path)

    @functools.cached_property
    def tests(self) -> dict[ast.stmt, ast.expr]:
        """What is asked before each statement that stands right below an ``if``."""
        asking = (node for node in ast.walk(self.tree) if isinstance(node, ast.If))
        return {stmt: node.test for node in asking for stmt in node.body}

    def _collect(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                self.nodes.setdefault(stmt.name, []).append(stmt)
            elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
                for alias in stmt.names:
                    if alias.name == "*" and isinstance(stmt, ast.ImportFrom):
                        self.stars.append(stmt)
                    name = alias.asname or alias.name.split(".")[0]
                    self.nodes.setdefault(name, []).append(stmt)
            elif isinstance(stmt, (ast.Assign, ast.AnnAssign)):
                for name in _given(stmt):
                    self.nodes.setdefault(name, []).append(stmt)
            elif isinstance(stmt, ast.Try):
                self._collect(stmt.body)
            elif isinstance(stmt, ast.If):
                for holds, block in ((True, stmt.body), (False, stmt.orelse)):
                    above = self.under.get(stmt, [])
                    self.under.update((inner, [*above, (stmt, holds)]) for inner in block)
                    self._collect(block)

    def get(self, name: str) -> Any:
        """The value of a global name or builtin."""
        if name not in self.made:
            self.interpreter.touched.add(self)
            self.made[name] = UNKNOWN  # while it is made
            self.made[name] = self._make(name)
        return self.made[name]

    def set(self, name: str, value: Any) -> None:
        """Give a global name another value, until the process ends."""
        self.interpreter.touched.add(self)
        self.made[name] = value

    def _make(self, name: str) -> Any:
        nodes = self.nodes.get(name)
        if not nodes:
            if self.stars and not builtin.has_builtin(name):
                return self._from_stars(name)
            return External(f"builtins.{name}")
        if len(nodes) > 1 and not isinstance(nodes[0], (ast.Import, ast.ImportFrom)):
            if not all(node in self.tree.body or node in self.under for node in nodes):
                raise CannotTellError(f"`{name}` is defined several times")
            nodes = [node for node in nodes if self._is_run(node)][-1:]  # one after the other
            if not nodes:
                raise CannotTellError(f"`{name}` is not defined")
        node = nodes[0]
        if isinstance(node, ast.FunctionDef):
            return Fn(node, self)
        if isinstance(node, ast.ClassDef):
            if "NamedTuple" in map(last_name, node.bases):
                return standard.record([last_name(s.target) for s in _fields(node)])
            return self.klass(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return self.imported(node, name)
        assert isinstance(node, (ast.Assign, ast.AnnAssign))
        return self.interpreter.value(_given(node)[name], Frame(self, {}))

    def _from_stars(self, name: str) -> Any:
        """What has come with all names of a module."""
        for stmt in reversed(self.stars):
            source, module, path = stmt.module or "", self.module, None
            if module is not None:
                path = module.project.imports.find(source, module, stmt.level)
            if module is not None and path is not None:
                names = self._led_to(module.project, path)
                if names is not None and (name in names.nodes or names.stars):
                    return names.get(name)
                continue
            outside = External(f"{source}.{name}")
            if self.interpreter.external_class(outside) is not outside:
                return outside
        raise CannotTellError(f"`{name}` may come from a star import")

    def _is_run(self, node: ast.stmt) -> bool:
        """Whether the tests that a statement stands below come out so that it is reached."""
        frame = Frame(self, {})
        return all(
            self.interpreter.true(self.interpreter.value(stmt.test, frame)) is holds
            for stmt, holds in self.under.get(node, ())
        )

    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Any:
        """What an import statement binds to ``name``."""
        if isinstance(node, ast.Import):
            alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
            dotted = alias.name if alias.asname else name
            return self._module(dotted, 0) or External(dotted)
        return self._from(node, next(a.name for a in node.names if (a.asname or a.name) == name))

    def _from(self, node: ast.ImportFrom, attribute: str) -> Any:
        source = node.module or ""
        module = self.module
        if module is not None:
            path = module.project.imports.find(source, module, node.level)
            if path is not None:
                names = self._led_to(module.project, path)
                if names is not None and attribute in names.nodes:
                    return names.get(attribute)
                inner = self._module(f"{source}.{attribute}" if source else attribute, node.level)
                if inner is not None:
                    return inner
                if standard.place_of(attribute) is not None:
                    return External(f"torch.distributed.{attribute}")
                raise CannotTellError(f"`{attribute}` of {source}")
        return External(f"{source}.{attribute}")

    def _module(self, dotted: str, level: int) -> Names | None:
        """A module of the tree."""
        module = self.module
        if module is None:
            return None
        path = module.project.imports.find(dotted, module, level)
        return None if path is None else self._led_to(module.project, path)

    def _led_to(self, project: Project, path: str) -> Names | None:
        target = project.module_at(path)
        self.led_to.add(path)
        return None if target is None else self.interpreter.names_of(target)

    def local_classes(self, name: str) -> list[ast.ClassDef]:
        """The classes of that name in functions, without those that read a function's names."""
        return [
            node
            for node, functions in self._local_classes.get(name, ())
            if not _reads_names_of(node, functions)
        ]

    @functools.cached_property
    def _local_classes(self) -> dict[str, list[tuple[ast.ClassDef, list[ast.FunctionDef]]]]:
        """By name, each class inside functions, with these."""
        found: dict[str, list[tuple[ast.ClassDef, list[ast.FunctionDef]]]] = {}
        todo: list[tuple[ast.AST, list[ast.FunctionDef]]] = [(self.tree, [])]
        while todo:
            node, functions = todo.pop()
            if isinstance(node, ast.ClassDef) and functions:
                found.setdefault(node.name, []).append((node, functions))
            elif isinstance(node, ast.FunctionDef):
                functions = [*functions, node]
            if not isinstance(node, ast.expr):
                todo += [(child, functions) for child in ast.iter_child_nodes(node)]
        return found

    def klass(self, node: ast.ClassDef) -> Klass:
        """The class of a ``class`` statement."""
        known = self.klasses.get(node)
        if known is not None:
            return known
        klass = self.klasses[node] = Klass(node.name, node, self, [])
        frame = Frame(self, {})
        for base in node.bases:
            expr = base.value if isinstance(base, ast.Subscript) else base
            value = self.interpreter.external_class(self.interpreter.value(expr, frame))
            if isinstance(value, External):
                if value.dotted.rpartition(".")[2] in _NEUTRAL_BASES:
                    continue
            elif not isinstance(value, Klass):
                raise CannotTellError(f"a base of {node.name}")
            klass.bases.append(value)
        for stmt in node.body:
            if isinstance(stmt, ast.ClassDef):
                self.nodes.setdefault(f"{node.name}.{stmt.name}", []).append(stmt)
                klass.members[stmt.name] = Inner(f"{node.name}.{stmt.name}")
            if isinstance(stmt, ast.FunctionDef):
                function = Fn(stmt, self, klass)
                if function.decorators & {"setter", "deleter"}:
                    if "setter" in function.decorators:
                        klass.setters[stmt.name] = function
                    continue
                klass.members[stmt.name] = function
            elif isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
                klass.members[stmt.targets[0].id] = stmt.value
            elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
                value = stmt.value
                if value is not None:
                    klass.members[stmt.target.id] = value
        if "dataclass" in map(last_name, node.decorator_list):
            klass.members.setdefault("__init__", Fn(_fields_init(klass), self, klass))
        return klass


def _given(stmt: ast.Assign | ast.AnnAssign) -> dict[str, ast.expr]:
    """What an assignment gives to each name, also if it has several: ``rank, world = 0, 1``."""
    value = stmt.value
    if value is None:
        return {}
    given: dict[str, ast.expr] = {}
    for target in stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            is_plain = len(target.elts) == len(value.elts)
            pairs = list(zip(target.elts, value.elts, strict=True)) if is_plain else []
        given.update((one.id, each) for one, each in pairs if isinstance(one, ast.Name))
    return given


def _fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for stmt in node.body:
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            yield stmt


def _fields_init(klass: Klass) -> ast.FunctionDef:
    """The constructor that ``@dataclass`` writes."""
    fields = {
        last_name(stmt.target): stmt
        for base in reversed(klass.mro)
        if isinstance(base, Klass)
        for stmt in _fields(base.node)
    }
    lines = [f"self.{name} = {name}" for name in fields]
    if "__post_init__" in klass.members:
        lines.append("self.__post_init__()")
    made = ast.parse("def __init__(self):\n    " + "\n    ".join(lines or ["pass"])).body[0]
    assert isinstance(made, ast.FunctionDef)
    for name, field in fields.items():
        given = [k.value for k in getattr(field.value, "keywords", ()) if k.arg == "default"]
        factory = [k for k in getattr(field.value, "keywords", ()) if k.arg == "default_factory"]
        default = given[0] if given else field.value
        if factory:
            default = ast.copy_location(ast.Call(factory[0].value, [], []), factory[0].value)
        made.args.args.append(ast.arg(name, field.annotation))
        made.args.defaults += [] if default is None else [default]
    return ast.fix_missing_locations(made)


def _reads_names_of(node: ast.ClassDef, functions: list[ast.FunctionDef]) -> bool:
    """Whether a class reads a name that one of the functions around it binds."""
    inside = set(ast.walk(node))
    used = {n.id for n in inside if isinstance(n, ast.Name)} - set(map(_bound, inside))
    outside = (n for f in functions for n in ast.walk(f) if n not in inside and n is not f)
    return any(_bound(n) in used for n in outside)


def _bound(node: ast.AST) -> str:
    """The local name that a node binds, if it does."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    return node.arg if isinstance(node, ast.arg) else ""
