"""A small interpreter of Python syntax trees: arithmetic, containers, loops, classes, generators.

It never hands code to Python. Whatever it does not know raises :class:`CannotTellError`.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sampler_lint import catalog
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.execution import library, operators
from sampler_lint.execution.budget import (
    BUDGET,
    DEEPEST_CALL,
    MOST_FILES,
    PATIENT_TURNS,
    size,
)
from sampler_lint.execution.errors import (
    CannotTellError,
    EndlessError,
    Globals,
    Kind,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    Bound,
    Data,
    External,
    Fn,
    Given,
    Inner,
    Instance,
    Klass,
    Native,
    Parent,
    Passed,
    Places,
    Size,
    Source,
    elements,
    key,
    plain,
    state,
    truth,
    weigh,
)
from sampler_lint.syntax.nodes import Class
from sampler_lint.workspace.project import Module, Project

_NEUTRAL_BASES = frozenset(
    {"object", "ABC", "Generic", "Protocol", "Iterable", "Iterator", "Sized"}
)
#: Decorators under which a function still does what it says.
_SAME_FUNCTION = frozenset(
    {
        "abstractmethod", "cache", "cached_property", "classmethod", "final", "jit",
        "lru_cache", "njit", "no_grad", "override", "property", "setter", "staticmethod",
        "typechecked",
    }
)  # fmt: skip
#: Functions that give the place of the process among the others, whoever wraps them.
_PLACES = frozenset({"get_rank", "get_world_size", "get_dist_info"})


class _Break(Exception):  # noqa: N818 - control flow
    pass


class _Continue(Exception):  # noqa: N818 - control flow
    pass


class _Return(Exception):  # noqa: N818 - control flow
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Names:
    """The global names of one module, made when first asked for."""

    def __init__(self, interpreter: Interpreter, tree: ast.Module, module: Module | None) -> None:
        self.interpreter = interpreter
        self.module = module
        self.tree = tree
        self.nodes: dict[str, list[ast.stmt]] = {}
        self.made: dict[str, Any] = {}
        self.klasses: dict[ast.ClassDef, Klass] = {}
        self.stars = False
        self._collect(tree.body)

    def _collect(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                self.nodes.setdefault(stmt.name, []).append(stmt)
            elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
                for alias in stmt.names:
                    self.stars = self.stars or alias.name == "*"
                    name = alias.asname or alias.name.split(".")[0]
                    self.nodes.setdefault(name, []).append(stmt)
            elif isinstance(stmt, (ast.Assign, ast.AnnAssign)):
                targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
                for target in targets:
                    if isinstance(target, ast.Name) and stmt.value is not None:
                        self.nodes.setdefault(target.id, []).append(stmt)
            elif isinstance(stmt, ast.Try):
                self._collect(stmt.body)
            elif isinstance(stmt, ast.If):
                self._collect(stmt.body)
                self._collect(stmt.orelse)

    def get(self, name: str) -> Any:
        """The value of a global name or builtin."""
        if name not in self.made:
            self.interpreter.touched.add(self)
            self.made[name] = UNKNOWN  # while it is made
            self.made[name] = self._make(name)
        return self.made[name]

    def _make(self, name: str) -> Any:
        nodes = self.nodes.get(name)
        if not nodes:
            if self.stars and not library.has_builtin(name):
                raise CannotTellError(f"`{name}` may come from a star import")
            return External(f"builtins.{name}")
        if len(nodes) > 1 and not isinstance(nodes[0], (ast.Import, ast.ImportFrom)):
            if not all(node in self.tree.body for node in nodes):
                raise CannotTellError(f"`{name}` is defined several times")
            nodes = nodes[-1:]  # one after the other
        node = nodes[0]
        if isinstance(node, ast.FunctionDef):
            return Fn(node, self)
        if isinstance(node, ast.ClassDef):
            if "NamedTuple" in map(_exception_name, node.bases):
                return library.record([_exception_name(s.target) for s in _fields(node)])
            return self.klass(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return self.imported(node, name)
        assert isinstance(node, (ast.Assign, ast.AnnAssign))
        assert node.value is not None
        return self.interpreter.value(node.value, Frame(self, {}))

    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Any:
        """What an import statement binds to ``name``."""
        if isinstance(node, ast.Import):
            alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
            dotted = alias.name if alias.asname else name
            return self._module(dotted, 0) or External(dotted)
        return self._from(node, next(a.name for a in node.names if (a.asname or a.name) == name))

    def _from(self, node: ast.ImportFrom, attribute: str) -> Any:
        source = node.module or ""
        if self.module is not None:
            project = self.module.project
            path = project.find(source, self.module, node.level)
            if path is not None:
                target = project.module_at(path)
                names = None if target is None else self.interpreter.names_of(target)
                if names is not None and attribute in names.nodes:
                    return names.get(attribute)
                inner = self._module(f"{source}.{attribute}" if source else attribute, node.level)
                if inner is not None:
                    return inner
                if attribute in _PLACES:
                    return External(f"torch.distributed.{attribute}")
                raise CannotTellError(f"`{attribute}` of {source}")
        return External(f"{source}.{attribute}")

    def _module(self, dotted: str, level: int) -> Names | None:
        """A module of the tree."""
        if self.module is None:
            return None
        path = self.module.project.find(dotted, self.module, level)
        target = None if path is None else self.module.project.module_at(path)
        return None if target is None else self.interpreter.names_of(target)

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
        if "dataclass" in map(_exception_name, node.decorator_list):
            klass.members.setdefault("__init__", Fn(_fields_init(klass), self, klass))
        return klass


class Frame:
    """The names of one running function."""

    def __init__(
        self,
        names: Globals,
        variables: dict[str, Any],
        klass: Klass | None = None,
        receiver: Any = None,
    ) -> None:
        self.names = names
        self.variables = variables
        self.klass = klass
        self.receiver = receiver

    def inner(self, variables: dict[str, Any]) -> Frame:
        """A frame inside this one (a comprehension)."""
        return Frame(self.names, variables, self.klass, self.receiver)


class Interpreter:
    """Runs code of one project as process ``rank`` of ``world``."""

    def __init__(
        self,
        project: Project,
        passed: Callable[[Class], Mapping[str, tuple[Passed, ...]]] | None = None,
    ) -> None:
        self.project = project
        self.passed = passed
        """What the tree passes for the parameters of a class."""
        self.world = 1
        self.rank = 0
        self.depth = 0
        self.outside = 0
        """How often anything was asked that may answer otherwise the next time."""
        self.asked_place = False
        """Whether it asked for its rank."""
        self.seeds: list[Any] | None = []
        """What random numbers were seeded with; None once some depend on nothing known."""
        self.stands_in = False
        """Whether the type was asked of something that stands for an argument."""
        self.touched: set[Names] = set()
        """Those of which something has been made in this process."""
        self._names: dict[int, Names] = {}
        self._generators: dict[ast.FunctionDef, bool] = {}
        BUDGET.open()

    def restart(self, world: int, rank: int) -> None:
        """Be another process, with a fresh budget; module globals are made again."""
        self.world, self.rank = world, rank
        self.depth = 0
        self.seeds = []
        BUDGET.restart()
        for names in self.touched:
            names.made.clear()
        self.touched.clear()

    def forget_files(self) -> None:
        """Make room, before anything is asked of another class: what was read is read again."""
        if len(self._names) > MOST_FILES:
            self._names.clear()
            self._generators.clear()
            self.touched.clear()
            # Collection is off while checking, and what has run refers to itself. The youngest:
            # what has been here the last time is not looked at again.
            gc.collect(0)

    # -- names and classes

    def names_of(self, module: Module) -> Names:
        """The globals of a module of the tree."""
        known = self._names.get(id(module))
        if known is None:
            try:
                tree = ast.parse(module.source.text)
            except (SyntaxError, ValueError, RecursionError) as error:
                raise CannotTellError("the file") from error
            known = self._names[id(module)] = Names(self, tree, module)
        return known

    @property
    def prelude(self) -> Names:
        """torch's own samplers."""
        known = self._names.get(0)
        if known is None:
            known = self._names[0] = Names(self, _prelude(), None)
        return known

    def class_of(self, cls: Class) -> Klass:
        """The class of the tree that the facts call ``cls``.

        Raises:
            CannotTellError: it is none that this interpreter can build.
        """
        names = self.names_of(self.project.module_of(cls))
        for node in names.nodes.get(cls.name, ()):
            # The row of a decorated class is that of its `class` line in both.
            if isinstance(node, ast.ClassDef) and node.lineno == cls.row:
                if not all(_keeps_class(decorator) for decorator in node.decorator_list):
                    raise CannotTellError("a decorated class")
                if any(keyword.arg != "metaclass" for keyword in node.keywords):
                    raise CannotTellError("a class with keywords")
                klass = names.klass(node)
                klass.passed = {} if self.passed is None else self.passed(cls)
                return klass
        raise CannotTellError("a nested class")

    def known_class(self, name: str) -> Klass:
        """A class of the prelude."""
        value = self.prelude.get(name)
        assert isinstance(value, Klass)
        return value

    def external_class(self, value: Any) -> Any:
        """torch's classes as the prelude has them."""
        if isinstance(value, External):
            dotted = catalog.canonical(value.dotted)
            if dotted.startswith(TORCH_DATA):
                name = dotted.removeprefix(TORCH_DATA)
                if name in self.prelude.nodes:
                    return self.known_class(name)
        return value

    def member(self, klass: Klass, name: str, above: Klass | None = None) -> Any:
        """What the hierarchy of ``klass`` (above one of its classes) defines as ``name``."""
        bases = klass.mro
        if above is not None:
            bases = bases[bases.index(above) + 1 :]
        for base in bases:
            if not isinstance(base, Klass):
                raise CannotTellError(f"`{name}` of a base outside the tree")
            if name in base.members:
                member = base.members[name]
                if isinstance(member, Inner):
                    return base.names.get(member.name)
                if isinstance(member, ast.expr):
                    return self.value(member, Frame(base.names, {}))
                return member
        return None

    # -- calls

    def build(self, klass: Klass, args: list[Any], keywords: dict[str, Any]) -> Instance:
        """``klass(*args, **keywords)``."""
        instance = Instance(klass)
        if self.member(klass, "__new__") is not None:
            raise CannotTellError("__new__")
        init = self.member(klass, "__init__")
        if isinstance(init, Fn):
            self.call(Bound(init, instance), args, keywords)
        return instance

    def default(self, klass: Klass, node: ast.expr | None) -> Any:
        """The value of a parameter's default."""
        if node is None:
            raise CannotTellError("an argument")
        return self.value(node, Frame(klass.names, {}))

    def global_value(self, fn: Fn, node: ast.expr) -> Any:
        """The value of an expression beside a function."""
        return self.value(node, Frame(fn.names, {}))

    def method(self, instance: Instance, name: str) -> Bound | None:
        """A method of an object."""
        member = self.member(instance.klass, name)
        return Bound(member, instance) if isinstance(member, Fn) else None

    def call(self, callee: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """``callee(*args, **keywords)``."""
        callee = self.external_class(callee)
        if isinstance(callee, Native):
            return callee.call(*args, **keywords)
        if isinstance(callee, Klass):
            return self.build(callee, args, keywords)
        if isinstance(callee, Bound):
            return self._run(callee.function, [callee.receiver, *args], keywords, callee.receiver)
        if isinstance(callee, Fn):
            if callee.klass is not None and args and isinstance(args[0], Instance):
                return self._run(callee, args, keywords, args[0])  # `Base.method(self)`
            if isinstance(callee.node, ast.FunctionDef) and callee.node.name in _PLACES:
                return library.external(self, f"torch.distributed.{callee.node.name}", [], {})
            return self._aside(callee, args, keywords)
        if isinstance(callee, External):
            return library.external(self, callee.dotted, args, keywords)
        if isinstance(callee, Data) and not isinstance(callee, Source):
            self.outside += 1
            return callee.part(f"({', '.join(map(_spell, args))})")
        if callee is UNKNOWN:
            self.outside += 1
            return UNKNOWN
        if isinstance(callee, Size):
            return int(callee)
        raise CannotTellError("what is called")

    def _aside(self, fn: Fn, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of a function; nobody knows its value if it cannot be followed.

        Raises:
            CannotTellError: it cannot, and may change what others hold.
        """
        seeds = None if self.seeds is None else list(self.seeds)
        try:
            return self._run(fn, args, keywords, None)
        except (OverBudgetError, WantedError):
            raise
        except CannotTellError:
            scalars = (type(None), bool, int, float, str, External)
            if (
                fn.closure is not None
                or any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in ast.walk(fn.node))
                or not all(
                    isinstance(value, scalars)
                    or value is UNKNOWN
                    or (isinstance(value, Data) and not isinstance(value, Source))
                    for value in (*args, *keywords.values())
                )
            ):
                raise
            self.outside += 1
            self.seeds = seeds
            return UNKNOWN

    def _run(self, fn: Fn, args: list[Any], keywords: dict[str, Any], receiver: Any) -> Any:
        if fn.decorators - _SAME_FUNCTION:
            raise CannotTellError("a decorated function")
        frame = Frame(fn.names, self._bind(fn, args, keywords), fn.klass, receiver)
        if fn.closure is not None:
            BUDGET.items(len(fn.closure))
            frame.variables = {**fn.closure, **frame.variables}
        if isinstance(fn.node, ast.Lambda):
            return self.value(fn.node.body, frame)
        if fn.node not in self._generators:
            self._generators[fn.node] = _yields(fn.node)
        if self._generators[fn.node]:
            return self._generate(fn.node, frame)
        self.depth += 1
        if self.depth > DEEPEST_CALL:
            raise CannotTellError("how deep it calls")
        try:
            next(self._block(fn.node.body, frame), None)  # to its end, for it yields nothing
        except _Return as returned:
            return returned.value
        except (_Break, _Continue) as error:  # no Python, though it can be parsed
            raise CannotTellError("a jump out of a function") from error
        finally:
            self.depth -= 1
        return None

    def _generate(self, node: ast.FunctionDef, frame: Frame) -> Iterator[Any]:
        try:
            yield from self._block(node.body, frame)
        except _Return:
            return
        except (_Break, _Continue) as error:
            raise CannotTellError("a jump out of a function") from error
        except RaisedError as error:
            if error.kind == "StopIteration":  # PEP 479
                raise RaisedError("RuntimeError", error.node, error.names) from error
            raise

    def _bind(self, fn: Fn, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        spec = fn.node.args
        params = [*spec.posonlyargs, *spec.args]
        out: dict[str, Any] = {}
        defaults = Frame(fn.names, fn.defaults)
        for param, value in zip(params, args, strict=False):
            out[param.arg] = value
        if len(args) > len(params):
            if spec.vararg is None:
                raise RaisedError("TypeError", fn.node)
            BUDGET.items(len(args))
            out[spec.vararg.arg] = tuple(args[len(params) :])
        elif spec.vararg is not None:
            out[spec.vararg.arg] = ()
        names = {param.arg for param in [*params, *spec.kwonlyargs]}
        extra = {}
        for name, value in keywords.items():
            if name in names:
                if name in out:
                    raise RaisedError("TypeError", fn.node)
                out[name] = value
            elif spec.kwarg is not None:
                extra[name] = value
            else:
                raise RaisedError("TypeError", fn.node)
        if spec.kwarg is not None:
            out[spec.kwarg.arg] = extra
        for param, default in zip(
            params[len(params) - len(spec.defaults) :], spec.defaults, strict=True
        ):
            if param.arg not in out:
                out[param.arg] = self.value(default, defaults)
        for param, kw_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if param.arg not in out and kw_default is not None:
                out[param.arg] = self.value(kw_default, defaults)
        if names - out.keys():
            raise RaisedError("TypeError", fn.node)
        return out

    # -- statements

    def _block(self, body: list[ast.stmt], frame: Frame) -> Iterator[Any]:
        for stmt in body:
            yield from self._statement(stmt, frame)

    def _statement(self, stmt: ast.stmt, frame: Frame) -> Iterator[Any]:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        if isinstance(stmt, ast.Expr):
            yield from self._expression(stmt.value, frame)
        elif isinstance(stmt, ast.Assign):
            value = self.value(stmt.value, frame)
            for target in stmt.targets:
                self._assign(target, value, frame)
        elif isinstance(stmt, ast.AnnAssign):
            if stmt.value is not None:
                self._assign(stmt.target, self.value(stmt.value, frame), frame)
        elif isinstance(stmt, ast.AugAssign):
            self._augment(stmt, frame)
        elif isinstance(stmt, ast.If):
            if isinstance(stmt.body[-1], ast.Raise):
                chosen = self._holds(stmt.test, frame, assumed=False)
            else:
                chosen = self.true(self.value(stmt.test, frame))
            yield from self._block(stmt.body if chosen else stmt.orelse, frame)
        elif isinstance(stmt, ast.For):
            yield from self._for(stmt, frame)
        elif isinstance(stmt, ast.While):
            yield from self._while(stmt, frame)
        elif isinstance(stmt, ast.Return):
            raise _Return(None if stmt.value is None else self.value(stmt.value, frame))
        elif isinstance(stmt, ast.Raise):
            raise RaisedError(_exception_name(stmt.exc), stmt, frame.names)
        elif isinstance(stmt, ast.Assert):
            if not self._holds(stmt.test, frame, assumed=True):
                raise RaisedError("AssertionError", stmt, frame.names)
        elif isinstance(stmt, ast.Try):
            yield from self._try(stmt, frame)
        elif isinstance(stmt, ast.With):
            for item in stmt.items:
                if item.optional_vars is not None:
                    held = self._held(item.context_expr, frame)
                    self._assign(item.optional_vars, held, frame)
            yield from self._block(stmt.body, frame)
        elif isinstance(stmt, ast.FunctionDef):
            frame.variables[stmt.name] = self._closure(stmt, frame)
        elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
            for alias in stmt.names:
                name = alias.asname or alias.name.split(".")[0]
                frame.variables[name] = frame.names.imported(stmt, name)
        elif isinstance(stmt, ast.Delete):
            for target in stmt.targets:
                self._delete(target, frame)
        elif isinstance(stmt, ast.Break):
            raise _Break
        elif isinstance(stmt, ast.Continue):
            raise _Continue
        elif not isinstance(stmt, ast.Pass):
            raise CannotTellError(type(stmt).__name__)

    def _held(self, node: ast.expr, frame: Frame) -> Any:
        """What a ``with`` statement binds: what an argument leads to, else nobody knows."""
        value = self.value(node, frame) if isinstance(node, ast.Call) else UNKNOWN
        return value if isinstance(value, Given) else UNKNOWN

    def _holds(self, test: ast.expr, frame: Frame, *, assumed: bool) -> bool:
        """Whether the test of a guard is true: ``assumed`` where that cannot be told.

        A program is taken to be right: what it checks of its arguments holds, so that the type
        of what stands for one is the type asked for.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return not self._holds(test.operand, frame, assumed=not assumed)
        if isinstance(test, ast.BoolOp):
            decided = isinstance(test.op, ast.Or)
            for part in test.values:
                if self._holds(part, frame, assumed=assumed) is decided:
                    return decided
            return not decided
        before, self.stands_in = self.stands_in, False
        try:
            found = self.true(self.value(test, frame))
            return assumed if self.stands_in and isinstance(test, ast.Call) else found
        except (OverBudgetError, WantedError):
            raise
        except CannotTellError:
            self.outside += 1
            return assumed
        finally:
            self.stands_in = before

    def _expression(self, node: ast.expr, frame: Frame) -> Iterator[Any]:
        if isinstance(node, ast.Yield):
            yield None if node.value is None else self.value(node.value, frame)
        elif isinstance(node, ast.YieldFrom):
            yield from self.iterate(self.value(node.value, frame))
        elif not (isinstance(node, ast.Constant) or _logs(node)):
            self.value(node, frame)

    def _for(self, stmt: ast.For, frame: Frame) -> Iterator[Any]:
        for item in self.iterate(self.value(stmt.iter, frame)):
            self._assign(stmt.target, item, frame)
            try:
                yield from self._block(stmt.body, frame)
            except _Continue:
                continue
            except _Break:
                return
        yield from self._block(stmt.orelse, frame)

    def _while(self, stmt: ast.While, frame: Frame) -> Iterator[Any]:
        turns = 0
        before: object = None
        while self.true(self.value(stmt.test, frame)):
            BUDGET.step()
            turns += 1
            if turns > PATIENT_TURNS:
                now = self._state(frame)
                if now is not None and now == before:
                    raise EndlessError("", stmt, frame.names)
                before = now
            try:
                for item in self._block(stmt.body, frame):
                    self.outside += 1
                    yield item
            except _Continue:
                continue
            except _Break:
                return
        yield from self._block(stmt.orelse, frame)

    def _state(self, frame: Frame) -> object:
        """All that the next turn of a loop can depend on; None when that is not known."""
        try:
            return self.outside, state(frame.variables)
        except CannotTellError:
            return None

    def _try(self, stmt: ast.Try, frame: Frame) -> Iterator[Any]:
        try:
            yield from self._tried(stmt, frame)
        except EndlessError:
            raise
        except (RaisedError, _Return, _Break, _Continue):
            yield from self._block(stmt.finalbody, frame)
            raise
        yield from self._block(stmt.finalbody, frame)

    def _tried(self, stmt: ast.Try, frame: Frame) -> Iterator[Any]:
        """All of the statement but what is done finally."""
        try:
            yield from self._block(stmt.body, frame)
        except EndlessError:
            raise
        except RaisedError as error:
            for handler in stmt.handlers:
                if _catches(handler, error.kind):
                    if handler.name:
                        frame.variables[handler.name] = UNKNOWN
                    yield from self._block(handler.body, frame)
                    break
            else:
                raise
        else:
            yield from self._block(stmt.orelse, frame)

    # -- targets

    def _assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            frame.variables[target.id] = value
        elif isinstance(target, ast.Attribute):
            self._set_attribute(self.value(target.value, frame), target.attr, value)
        elif isinstance(target, ast.Subscript):
            container = self.value(target.value, frame)
            key = self._key(target.slice, frame)
            library.store(container, key, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if value is UNKNOWN:
                values: list[Any] = [UNKNOWN] * len(target.elts)
            elif isinstance(value, Places) and len(target.elts) == 1:
                values = [Array(value.items)]
            elif isinstance(value, Data) and value.length is None:
                # As many as there are names for.
                values = [value.part(f"[{place}]") for place in range(len(target.elts))]
            else:
                values = self.listed(value)
            stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
            if stars:
                after = len(target.elts) - stars[0] - 1
                BUDGET.items(2 * len(values))
                middle = values[stars[0] : len(values) - after]
                values = [*values[: stars[0]], middle, *values[len(values) - after :]]
            if len(values) != len(target.elts):
                raise CannotTellError("how many values there are")
            for inner, item in zip(target.elts, values, strict=True):
                self._assign(inner, item, frame)
        else:
            assert isinstance(target, ast.Starred)
            self._assign(target.value, value, frame)

    def _set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(owner, Instance):
            member = self.member(owner.klass, name)
            if isinstance(member, Fn) and member.decorators:
                setter = owner.klass.setter(name)
                if setter is None:
                    raise CannotTellError("a property that is set")
                self._run(setter, [owner, value], {}, owner)
                return
            owner.attributes[name] = value
        elif isinstance(owner, Source):
            owner.changed[name] = value
        elif owner is not UNKNOWN:
            raise CannotTellError("an attribute that is set")

    def _augment(self, stmt: ast.AugAssign, frame: Frame) -> None:
        old = self.value(stmt.target, frame)
        new = self.value(stmt.value, frame)
        if isinstance(old, list) and isinstance(stmt.op, ast.Add):
            old.extend(self.listed(new))
            self._assign(stmt.target, old, frame)
        else:
            self._assign(stmt.target, self._binary(stmt.op, old, new, stmt), frame)

    def _delete(self, target: ast.expr, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            container = self.value(target.value, frame)
            key = self._key(target.slice, frame)
            try:
                library.delete(container, key)
            except (IndexError, KeyError) as error:
                raise RaisedError(type(error).__name__, target) from error
        else:
            raise CannotTellError("what is deleted")

    # -- expressions

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        BUDGET.left -= 1  # a step; most are these
        if BUDGET.left < 0:
            BUDGET.over()
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise CannotTellError(type(node).__name__)
        return handler(self, node, frame)

    def _constant(self, node: ast.Constant, frame: Frame) -> Any:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        if node.id in frame.variables:
            return frame.variables[node.id]
        return frame.names.get(node.id)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.value(node.value, frame), node.attr, node)

    def attribute(self, owner: Any, name: str, node: ast.AST | None = None) -> Any:
        """``owner.name``."""
        if isinstance(owner, Instance):
            if name in owner.attributes:
                return owner.attributes[name]
            if name == "__class__":
                return owner.klass
            member = self.member(owner.klass, name)
            if isinstance(member, Fn):
                return self._bound(member, owner)
            if member is None:
                if self.member(owner.klass, "__getattr__") is not None:
                    raise CannotTellError("__getattr__")
                raise RaisedError("AttributeError", node)
            return member
        if isinstance(owner, Parent):
            member = self.member(owner.receiver.klass, name, owner.klass)
            if isinstance(member, Fn):
                return self._bound(member, owner.receiver)
            if member is None and name == "__init__":
                return Native(lambda *args, **keywords: None)
            raise CannotTellError(f"super().{name}")
        if isinstance(owner, Klass):
            if name == "__name__":
                return owner.name
            member = self.member(owner, name)
            if member is None:
                raise CannotTellError(f"`{name}` of a class")
            if isinstance(member, Fn) and "classmethod" in member.decorators:
                return Bound(member, owner)
            return member
        if isinstance(owner, External):
            return library.external_attribute(owner, name)
        if isinstance(owner, Names):
            if name in owner.nodes:
                return owner.get(name)
            raise CannotTellError(f"`{name}` of a module")
        if isinstance(owner, Source):
            return owner.attribute(name)
        if isinstance(owner, Data):
            if owner.length is not None and library.is_method(Array, name):
                return library.attribute(self, Array(owner.items()), name)
            if isinstance(owner, Given) and library.keeps_array(name):
                return Native(lambda *args, **keywords: owner)
            return owner.part(f".{name}")
        if owner is UNKNOWN:
            return UNKNOWN
        if name == "__class__" or (name == "__len__" and not isinstance(owner, (list, Array))):
            raise CannotTellError(f"`{name}`")
        if name == "__iter__" or (name == "__next__" and isinstance(owner, Iterator)):
            run = External(f"builtins.{name.strip('_')}")
            return Native(lambda: self.call(run, [owner], {}))
        return library.attribute(self, owner, name)

    def _bound(self, function: Fn, owner: Instance) -> Any:
        """A function of a class as an attribute of its object."""
        if "classmethod" in function.decorators:
            return Bound(function, owner.klass)
        if "staticmethod" in function.decorators:
            return function
        if any(decorator.endswith("property") for decorator in function.decorators):
            return self._run(function, [owner], {}, owner)
        return Bound(function, owner)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        key = self._key(node.slice, frame)
        if isinstance(owner, Data):
            return owner.part(f"[{_spell(key)}]")
        if owner is UNKNOWN:
            return UNKNOWN
        if isinstance(owner, Instance):
            getter = self.method(owner, "__getitem__")
            if getter is None:
                raise CannotTellError("an item of an object")
            return self.call(getter, [key], {})
        try:
            return library.item(owner, key)
        except (IndexError, KeyError) as error:
            raise RaisedError(type(error).__name__, node) from error

    def _key(self, node: ast.expr, frame: Frame) -> Any:
        if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
            return tuple(self._key(part, frame) for part in node.elts)
        if isinstance(node, ast.Slice):
            parts = [
                None if part is None else plain(self.value(part, frame))
                for part in (node.lower, node.upper, node.step)
            ]
            if any(part is not None and not isinstance(part, int) for part in parts):
                raise CannotTellError("a slice")
            return slice(*parts)
        value = self.value(node, frame)
        return (
            value if value is UNKNOWN else plain(value) if not isinstance(value, Source) else value
        )

    def _call(self, node: ast.Call, frame: Frame) -> Any:
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "super"
            and "super" not in frame.variables
        ):
            return self._super(node, frame)
        callee = self.value(node.func, frame)
        if library.is_silent(callee):
            return UNKNOWN
        kinds = _kinds(node) if library.is_isinstance(callee) else None
        args: list[Any] = []
        for arg in node.args if kinds is None else node.args[:1]:
            if isinstance(arg, ast.Starred):
                args += self.listed(self.value(arg.value, frame))
            else:
                args.append(self.value(arg, frame))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                BUDGET.items(len(value))
                keywords.update(value)
            else:
                raise CannotTellError("**")
        try:
            if kinds is not None:
                return any(self.call(callee, [*args, self.value(k, frame)], {}) for k in kinds)
            return self.call(callee, args, keywords)
        except (
            TypeError,
            ValueError,
            KeyError,
            IndexError,
            OverflowError,
            AttributeError,
        ) as error:
            raise CannotTellError("a call") from error
        except RaisedError as error:
            if error.node is None:
                error.node, error.names = node, frame.names
            raise

    def _super(self, node: ast.Call, frame: Frame) -> Parent:
        if frame.klass is None or not isinstance(frame.receiver, Instance):
            raise CannotTellError("super()")
        if node.args and not (
            isinstance(node.args[0], ast.Name) and node.args[0].id == frame.klass.name
        ):
            raise CannotTellError("super() of another class")
        return Parent(frame.klass, frame.receiver)

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self._binary(node.op, left, right, node)

    def _binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if isinstance(left, Data) or isinstance(right, Data):
            left, right = _operand(left), _operand(right)
        if isinstance(left, str) and isinstance(op, ast.Mod):
            return UNKNOWN
        if isinstance(left, Instance) or isinstance(right, Instance):
            raise CannotTellError("an operator of an object")
        try:
            return operators.binary(type(op), left, right)
        except ZeroDivisionError as error:
            raise RaisedError("ZeroDivisionError", node) from error

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return not self.true(value)
        if value is UNKNOWN:
            return UNKNOWN
        return operators.unary(type(node.op), plain(value))

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Any:
        *parts, last = node.values
        for part in parts:
            value = self.value(part, frame)
            if self.true(value) == isinstance(node.op, ast.Or):
                return value
        return self.value(last, frame)

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.value(node.left, frame)
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, frame)
            result = self._compared(op, left, right)
            if len(node.ops) > 1 and not self.true(result):
                return False
            left = right
        return result

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            if left is UNKNOWN or right is UNKNOWN:
                raise CannotTellError("whether it is None")
            return (left is right) is isinstance(op, ast.Is)
        if isinstance(left, Given):
            texts = right if isinstance(right, (list, tuple, set)) else [right]
            if texts and all(isinstance(text, str) for text in texts):
                raise WantedError(left.pattern, Kind.TEXT, sorted(texts))
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, Given):
                raise right.wanted(Kind.SEQUENCE)
            if isinstance(right, (External, Instance, Data)) or right is UNKNOWN:
                raise CannotTellError("what is in it")
            return library.contains(self, right, left) is isinstance(op, ast.In)
        if left is None or right is None:
            if left is UNKNOWN or right is UNKNOWN:
                raise CannotTellError("whether it is None")
            if isinstance(op, (ast.Eq, ast.NotEq)):
                return (left is right) is isinstance(op, ast.Eq)
        left, right = _operand(left), _operand(right)
        if isinstance(left, Instance) or isinstance(right, Instance):
            raise CannotTellError("a comparison of objects")
        return operators.compare(type(op), left, right)

    def _if_exp(self, node: ast.IfExp, frame: Frame) -> Any:
        chosen = node.body if self.true(self.value(node.test, frame)) else node.orelse
        return self.value(chosen, frame)

    def _display(self, node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Any:
        items: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                items += self.listed(self.value(item.value, frame))
            else:
                items.append(self.value(item, frame))
        if isinstance(node, ast.List):
            return items
        return tuple(items) if isinstance(node, ast.Tuple) else {key(item) for item in items}

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        out: dict[Any, Any] = {}
        for name, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, frame)
            if name is not None:
                out[key(self.value(name, frame))] = value
            elif isinstance(value, dict):
                BUDGET.items(len(value))
                out.update(value)
            else:
                raise CannotTellError("**")
        return out

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
    ) -> Any:
        # Python takes the outermost iterable at once, the rest when asked.
        first = self.iterate(self.value(node.generators[0].iter, frame))
        BUDGET.items(len(frame.variables))
        inner = frame.inner(dict(frame.variables))
        if isinstance(node, ast.DictComp):
            return {
                key(self.value(node.key, inner)): self.value(node.value, inner)
                for _ in self._loops(node.generators, inner, first)
            }
        out = (self.value(node.elt, inner) for _ in self._loops(node.generators, inner, first))
        if isinstance(node, ast.ListComp):
            return BUDGET.collect(out)
        return {key(item) for item in out} if isinstance(node, ast.SetComp) else out

    def _loops(
        self, generators: list[ast.comprehension], frame: Frame, first: Iterator[Any] | None
    ) -> Iterator[None]:
        if not generators:
            yield
            return
        generator = generators[0]
        for item in first or self.iterate(self.value(generator.iter, frame)):
            self._assign(generator.target, item, frame)
            if all(self.true(self.value(test, frame)) for test in generator.ifs):
                yield from self._loops(generators[1:], frame, None)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Fn:
        return self._closure(node, frame)

    def _closure(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Fn:
        # The body sees the names as they are when it runs, the defaults as they are now.
        BUDGET.items(len(frame.variables))
        return Fn(node, frame.names, frame.klass, frame.variables, dict(frame.variables))

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.value(node.value, frame)
        self._assign(node.target, value, frame)
        return value

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Any:
        return UNKNOWN

    # -- protocols

    def iterate(self, value: Any) -> Iterator[Any]:
        """``iter(value)``."""
        if isinstance(value, Instance):
            method = self.method(value, "__iter__")
            if method is None:
                raise CannotTellError("how it iterates")
            made = self.call(method, [], {})
            step = self.method(made, "__next__") if isinstance(made, Instance) else None
            return self.iterate(made) if step is None else self._stepped(step)
        found = elements(value)
        if found is None:
            raise CannotTellError("what it holds")
        return BUDGET.each(found)

    def _stepped(self, step: Bound) -> Iterator[Any]:
        """What an object hands out by its ``__next__``."""
        while True:
            BUDGET.step()
            try:
                item = self.call(step, [], {})
            except RaisedError as error:
                if error.kind != "StopIteration":
                    raise
                return
            yield item

    def listed(self, value: Any) -> list[Any]:
        """``list(value)``."""
        if isinstance(value, Array):
            value = value.items
        if isinstance(value, (list, tuple, dict, set, range, str)):
            return BUDGET.collect(value)
        return BUDGET.collect(self.iterate(value))

    def length(self, value: Any) -> int:
        """``len(value)``."""
        if isinstance(value, Instance):
            method = self.method(value, "__len__")
            if method is None:
                raise RaisedError("TypeError")
            result = plain(self.call(method, [], {}))
            if not isinstance(result, int):
                raise RaisedError("TypeError")
            return result
        if isinstance(value, (list, tuple, dict, set, range, str)):
            return size(value)
        if isinstance(value, Array):
            return len(value.items)
        if isinstance(value, Data) and value.length is not None:
            return value.length
        if isinstance(value, Given):
            raise value.wanted(Kind.SEQUENCE)
        if isinstance(value, Data) and value.size_of_part is not None:
            return value.size_of_part
        raise CannotTellError("how long it is")

    def true(self, value: Any) -> bool:
        """Whether the value is true."""
        if isinstance(value, Instance):
            if self.method(value, "__bool__") is not None:
                raise CannotTellError("whether it is true")
            return self.method(value, "__len__") is None or self.length(value) > 0
        return truth(value)


def _kinds(node: ast.Call) -> list[ast.expr] | None:
    """The classes of ``isinstance(x, (A, B))``, to be asked about one after the other.

    The first tells mostly, and the next may be in a big file.
    """
    if len(node.args) != 2 or node.keywords or not isinstance(node.args[1], ast.Tuple):
        return None
    kinds = node.args[1].elts
    return None if any(isinstance(kind, ast.Starred) for kind in kinds) else kinds


_LOGGER = re.compile(r"^_*(rank_?zero_?|module_?)?log(ger|ging)?$", re.IGNORECASE)


def _logs(node: ast.expr) -> bool:
    """Whether a statement writes to a log, whoever made the logger."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    levels = {"debug", "info", "warning", "warn", "error", "exception", "log"}
    return node.func.attr in levels and _LOGGER.match(name) is not None


def _keeps_class(decorator: ast.expr) -> bool:
    """Whether a class decorator only enters the class somewhere, or writes its constructor."""
    return _exception_name(decorator) == "dataclass" or (
        "register" in ast.unparse(decorator).lower()
    )


def _fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for stmt in node.body:
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            yield stmt


def _fields_init(klass: Klass) -> ast.FunctionDef:
    """The constructor that ``@dataclass`` writes."""
    fields = {
        _exception_name(stmt.target): stmt
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


def _operand(value: Any) -> Any:
    """The value as an operand: a column of the data goes element by element."""
    if type(value) is Data and value.length is not None:
        return Array(value.items())
    return plain(value)


def _spell(value: Any) -> str:
    weigh(value)
    if isinstance(value, Data):
        return value.key
    known = isinstance(value, (bool, int, float, str, list, tuple, slice, type(None)))
    return repr(value) if known else type(value).__name__


def _yields(node: ast.FunctionDef) -> bool:
    todo: list[ast.AST] = list(node.body)
    while todo:
        current = todo.pop()
        if isinstance(current, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(current, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(current))
    return False


def _exception_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else "Exception"


_ARITHMETIC = {"ZeroDivisionError": "ArithmeticError", "IndexError": "LookupError"}
_LOOKUP = {"KeyError": "LookupError", "NotImplementedError": "RuntimeError"}


def _catches(handler: ast.ExceptHandler, kind: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {_exception_name(item) for item in kinds}
    also = {kind, _ARITHMETIC.get(kind, kind), _LOOKUP.get(kind, kind)}
    return bool(names & (also | {"Exception", "BaseException"}))


@cache
def _prelude() -> ast.Module:
    path = Path(__file__).with_name("prelude.py")
    return ast.parse(path.read_text(encoding="utf-8"))


_EXPRESSIONS: dict[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: Interpreter._constant,
    ast.Name: Interpreter._name,
    ast.Attribute: Interpreter._attribute,
    ast.Subscript: Interpreter._subscript,
    ast.Call: Interpreter._call,
    ast.BinOp: Interpreter._binop,
    ast.UnaryOp: Interpreter._unary,
    ast.BoolOp: Interpreter._bool_op,
    ast.Compare: Interpreter._compare,
    ast.IfExp: Interpreter._if_exp,
    ast.List: Interpreter._display,
    ast.Tuple: Interpreter._display,
    ast.Set: Interpreter._display,
    ast.Dict: Interpreter._dict,
    ast.ListComp: Interpreter._comprehension,
    ast.SetComp: Interpreter._comprehension,
    ast.GeneratorExp: Interpreter._comprehension,
    ast.DictComp: Interpreter._comprehension,
    ast.Lambda: Interpreter._lambda,
    ast.NamedExpr: Interpreter._walrus,
    ast.JoinedStr: Interpreter._text,
}
