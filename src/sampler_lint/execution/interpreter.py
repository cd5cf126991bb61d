"""A small interpreter of Python syntax trees: arithmetic, containers, loops, classes, generators.

It never hands code to Python. Whatever it does not know raises :class:`CannotTellError`.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sampler_lint import catalog
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.execution import library, methods, standard
from sampler_lint.execution.agreement import agreed
from sampler_lint.execution.budget import BUDGET, DEEPEST_CALL, MOST_FILES, Op, size
from sampler_lint.execution.chance import Chance, Stream
from sampler_lint.execution.errors import (
    CannotTellError,
    FractionError,
    Kind,
    OutsideError,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.expressions import spell
from sampler_lint.execution.names import Names
from sampler_lint.execution.statements import Statements
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    Bound,
    Data,
    Entry,
    External,
    Fn,
    Frame,
    Given,
    Inner,
    Instance,
    Klass,
    Native,
    Parent,
    Passed,
    Size,
    Source,
    Told,
    elements,
    given,
    last_name,
    perform,
    plain,
    truth,
)
from sampler_lint.syntax.nodes import Class, ModuleFacts
from sampler_lint.syntax.parse import FactsError, all_nodes, child_nodes, parse
from sampler_lint.workspace.project import Module, Project

#: What is never a function, whatever it stands for.
_NEVER_CALLED = frozenset({bool, dict, float, int, list, set, str, tuple})
#: Of whose attributes :mod:`.methods` tells all.
_OF_LIBRARY = frozenset({bool, dict, float, int, list, range, set, str, tuple, Array})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Decorators under which a function still does what it says.
_SAME_FUNCTION = frozenset(
    {
        "abstractmethod", "cache", "cached_property", "classmethod", "deprecated", "final", "jit",
        "lru_cache", "njit", "no_grad", "override", "property", "setter", "staticmethod",
        "typechecked", "wraps",
    }
)  # fmt: skip


def _is_pass(node: ast.FunctionDef | ast.Lambda) -> bool:
    return not isinstance(node, ast.Lambda) and node.name in {"__iter__", "__getitem__"}


_Parameters = tuple[list[str], frozenset[str], list[tuple[str, ast.expr]]]


class Interpreter(Statements):
    """Runs code of one project as process ``rank`` of ``world``."""

    def __init__(
        self,
        project: Project,
        passed: Callable[[Class], Mapping[str, tuple[Passed, ...]]] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """``texts``: what files say instead, by their paths."""
        self.project = project
        self._texts = texts or {}
        self.passed = passed
        """What the tree passes for the parameters of a class."""
        self.world = 1
        self.rank = 0
        self.depth = 0
        self.outside = 0
        """How often anything was asked that may answer otherwise the next time."""
        self.agreed = 0
        """How often the ranks have told each other something that they had drawn."""
        self.asked_place = False
        """Whether it asked for its rank."""
        self.asked_worker = False
        """Whether it asked which worker of a loader it is."""
        self.worker: tuple[int, int] | None = None
        """Which worker of how many it is; None in a process that has no workers."""
        self.chance = Chance()
        self.tries_orders = False
        """Whether each process draws other orders (see :class:`~.chance.Chance`)."""
        self.counts_draws = False
        """Whether each draw gives another order than the one before."""
        self.seeds_of_first: set[tuple[Any, ...]] = set()
        self.mixes_orders = 0
        """By what number an order is another one for other seeds (see :class:`~.chance.Chance`)."""
        self.levels_orders = False
        """Whether they are the same ones for all seeds (see :class:`~.chance.Chance`)."""
        self.settles_chance = False
        """Whether a number that is drawn is one that it may be (see :class:`~.chance.Chance`)."""
        self.watch: Callable[[Instance], None] | None = None
        """What is told of each object that is iterated, or has an item taken, before it is."""
        self.stands_in = False
        """Whether the type was asked of something that stands for an argument."""
        self.guesses = False
        """Whether arguments of which only the use is known are guessed."""
        self.lends = False
        """Whether an item that a method may change was taken, and nobody knows which."""
        self.touched: set[Names] = set()
        """Those of which something has been made in this process."""
        self.told: dict[Class, Mapping[str, tuple[Passed, ...]]] = {}
        """What it was told to be passed for the parameters of classes."""
        self.spoken: dict[Klass, tuple[frozenset[str], ...]] = {}
        """What the text of a class says of names (see :class:`~.set_up.SetUp`)."""
        self._names: dict[str, Names] = {}
        self._bodies: dict[ast.FunctionDef, tuple[bool, frozenset[str]]] = {}
        self._taken: dict[ast.arguments, _Parameters] = {}
        BUDGET.open()

    def restart(self, world: int, rank: int) -> None:
        """Be another process, with a fresh budget; module globals are made again."""
        self.world, self.rank = world, rank
        self.depth = self.agreed = 0
        self.lends = False
        self.chance = Chance()
        self.chance.settles, self.chance.counts_draws = self.settles_chance, self.counts_draws
        self.chance.mixes = max(self.mixes_orders, 0)
        self.chance.levels = self.levels_orders
        if self.tries_orders:
            self.chance.tries_orders, self.chance.worker = True, rank
            if rank == 0:
                self.seeds_of_first = set()
            self.chance.seeds_of_first = self.seeds_of_first
        BUDGET.restart()
        for names in self.touched:
            names.made.clear()
        self.touched.clear()

    def serve(
        self, project: Project, passed: Callable[[Class], Mapping[str, tuple[Passed, ...]]]
    ) -> None:
        """Go on with the tree as it is now."""
        self.passed = passed
        if project is not self.project:
            self.project = project
            self._forget()

    def read_for(self, classes: tuple[Class, ...]) -> dict[str, ModuleFacts | None]:
        """The files that what was done with the classes rests on, and what they say."""
        read: dict[str, ModuleFacts | None] = {}
        todo = [self.project.module_of(cls).path for cls in classes]
        while todo:
            path = todo.pop()
            if path not in read:
                module = self.project.module_at(path)
                read[path] = None if module is None else module.facts
                names = self._names.get(path)
                todo += () if names is None else names.led_to
        return read

    def forget_files(self) -> None:
        """Make room, before anything is asked of another class: what was read is read again."""
        if len(self._names) > MOST_FILES:
            self._forget()
            # Collection is off while checking, and what has run refers to itself. The youngest:
            # what has been here the last time is not looked at again.
            gc.collect(0)

    def rewritten(self) -> None:
        """Keep nothing of what a node of a program says: one says something else now."""
        self.spoken.clear()

    def _forget(self) -> None:
        self.rewritten()
        for kept in (self._names, self._bodies, self._taken, self.touched):
            kept.clear()

    def names_of(self, module: Module) -> Names:
        """The globals of a module of the tree."""
        known = self._names.get(module.path)
        if known is None:
            try:
                tree = parse(self._texts.get(module.path, module.source.text))
            except FactsError as error:
                raise CannotTellError("the file") from error
            known = self._names[module.path] = Names(self, tree, module)
        return known

    @property
    def prelude(self) -> Names:
        """torch's own samplers."""
        known = self._names.get("")
        if known is None:
            known = self._names[""] = Names(self, _prelude(), None)
        return known

    def class_of(self, cls: Class) -> Klass:
        """The class of the tree that the facts call ``cls``.

        Raises:
            CannotTellError: it is none that this interpreter can build.
        """
        module = self.project.module_of(cls)
        names = self.names_of(module)
        found = names.nodes.get(cls.name) or names.local_classes(cls.name)
        is_other_text = module.path in self._texts and len(found) == 1
        for node in found:
            # The row of a decorated class is that of its `class` line in both.
            if isinstance(node, ast.ClassDef) and (node.lineno == cls.row or is_other_text):
                if not _writes_init(node) and not all(map(_keeps_class, node.decorator_list)):
                    raise CannotTellError("a decorated class")
                if any(keyword.arg != "metaclass" for keyword in node.keywords):
                    raise CannotTellError("a class with keywords")
                klass = names.klass(node)
                klass.passed = {} if self.passed is None else self.passed(cls)
                self.told[cls] = klass.passed
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
            name = _of_torch_data(value.dotted)
            if name is not None and name in self.prelude.nodes:
                return self.known_class(name)
        return value

    def member(self, klass: Klass, name: str, above: Klass | None = None) -> Any:
        """What the hierarchy of ``klass`` (above one of its classes) defines as ``name``.

        A base outside the tree makes and begins objects as any other: what it stores, nobody knows.
        """
        bases = klass.mro
        if above is not None:
            bases = bases[bases.index(above) + 1 :]
        for base in bases:
            if not isinstance(base, Klass):
                begins = name == "__new__" or (name == "__init__" and above is not None)
                if begins and not _is_enumeration(base):
                    continue
                raise OutsideError(f"`{name}` of a base outside the tree")
            if name in base.members:
                member = base.members[name]
                if isinstance(member, Inner):
                    return base.names.get(member.name)
                if isinstance(member, ast.expr):
                    return self.value(member, Frame(base.names, {}))
                return member
        return None

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
        if type(callee) is Bound:
            return self._call_function(callee, args, keywords)
        if isinstance(callee, External):
            known = self.external_class(callee)
            if known is callee:
                return library.external(self, callee, args, keywords)
            callee = known
        if isinstance(callee, Native):
            return callee.call(*args, **keywords)
        if isinstance(callee, Klass):
            return self.build(callee, args, keywords)
        if isinstance(callee, (Bound, Fn)):
            return self._call_function(callee, args, keywords)
        if isinstance(callee, Data) and not isinstance(callee, Source):
            place = standard.place_of(callee.key.rpartition(".")[2])
            if place is not None and isinstance(callee, Given):  # whatever is given to ask
                return perform(place, self, args, keywords)
            self.outside += 1
            asked = args[-1] if isinstance(callee, Entry) and args else None
            places = self.listed(asked) if isinstance(asked, (list, Array)) else []
            if places and all(type(place) is int for place in places):
                # Asked for several samples at once, data tells something of each.
                told = callee.part(f"({', '.join(map(spell, args[:-1]))})")
                return [self.item(told, place) for place in places]
            return callee.part(f"({', '.join(map(spell, args))})")
        if callee is UNKNOWN:
            self.outside += 1
            self.chance.tell("", [*args, *keywords.values()])
            return UNKNOWN
        if isinstance(callee, Size):
            return int(callee)
        if type(callee) in _NEVER_CALLED:
            raise RaisedError("TypeError")
        raise CannotTellError("what is called")

    def _call_function(self, callee: Bound | Fn, args: list[Any], keywords: dict[str, Any]) -> Any:
        place = self._place_named(callee)
        if place is not None:
            return perform(place, self, args, keywords)
        if isinstance(callee, Bound):
            if self.watch is not None and _is_pass(callee.function.node):
                self.watch(callee.receiver)
            return self.run(callee.function, [callee.receiver, *args], keywords, callee.receiver)
        if callee.klass is not None and args and isinstance(args[0], Instance):
            return self.run(callee, args, keywords, args[0])  # `Base.method(self)`
        return self._aside(callee, args, keywords)

    def _place_named(self, callee: Any) -> Op | None:
        """What gives the place of the process: a function, or a method of what is no sampler."""
        fn = callee.function if isinstance(callee, Bound) else callee
        if type(fn) is not Fn or type(fn.node) is not ast.FunctionDef:
            return None
        place = standard.place_of(fn.node.name)
        if place is None:
            return None
        if isinstance(callee, Bound):
            owner = callee.receiver
            if not isinstance(owner, Instance) or any(
                isinstance(base, Klass) and "__iter__" in base.members for base in owner.klass.mro
            ):
                return None
        elif fn.klass is not None:
            return None
        return place

    def _aside(self, fn: Fn, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of a function; nobody knows its value if it cannot be followed.

        Raises:
            CannotTellError: it cannot, and may change what others hold.
        """
        before = self.chance.kept()
        try:
            return self.run(fn, args, keywords, None)
        except (OverBudgetError, WantedError):
            raise
        except CannotTellError:
            scalars = (type(None), bool, int, float, str, External)
            if (
                fn.closure is not None
                or any(isinstance(each, (ast.Global, ast.Nonlocal)) for each in all_nodes(fn.node))
                or not all(
                    isinstance(value, scalars)
                    or value is UNKNOWN
                    or (isinstance(value, Data) and not isinstance(value, Source))
                    for value in (*args, *keywords.values())
                )
            ):
                raise
            self.outside += 1
            self.chance.put_back(before)
            self.chance.tell(last_name(fn.node), [*args, *keywords.values()])
            parts = [arg for arg in args if isinstance(arg, Data)] if Data.traced else []
            name = getattr(fn.node, "name", "")
            given = (*args, *keywords.values())
            return parts[0].made_by(name) if parts else agreed(self, name, given)

    def run(self, fn: Fn, args: list[Any], keywords: dict[str, Any], receiver: Any) -> Any:
        """A call of a function of the tree, as a method of ``receiver`` if there is one."""
        if fn.decorators and fn.decorators - _SAME_FUNCTION:
            return self.call(self._decorated(fn), args, keywords)
        frame = self.frame(fn, args, keywords, receiver)
        if isinstance(fn.node, ast.Lambda):
            return self.value(fn.node.body, frame)
        if self._body(fn.node)[0]:
            return self._generate(fn.node, frame)
        self.depth += 1
        if self.depth > DEEPEST_CALL:
            raise CannotTellError("how deep it calls")
        try:
            left = self.execute(fn.node.body, frame)
        finally:
            self.depth -= 1
        if left is None:
            return None
        if type(left) is not tuple:  # no Python, though it can be parsed
            raise CannotTellError("a jump out of a function")
        return left[0]

    def _decorated(self, fn: Fn) -> Any:
        """What the decorators of the tree make of a function.

        Raises:
            CannotTellError: one is not of the tree.
        """
        assert isinstance(fn.node, ast.FunctionDef)
        made: Any = fn.bare
        for decorator in reversed(fn.node.decorator_list):
            if last_name(decorator) not in _SAME_FUNCTION:
                made = self.call(self.value(decorator, Frame(fn.names, fn.defaults)), [made], {})
        if not isinstance(made, (Fn, Bound, Native)):
            raise CannotTellError("a decorated function")
        return made

    def frame(self, fn: Fn, args: list[Any], keywords: dict[str, Any], receiver: Any) -> Frame:
        """The names of a function as a call begins."""
        if fn.decorators and fn.decorators - _SAME_FUNCTION:
            raise CannotTellError("a decorated function")
        frame = Frame(fn.names, self._bind(fn, args, keywords), fn.klass, receiver)
        if fn.closure is not None:
            BUDGET.items(len(fn.closure))
            frame.variables = {**fn.closure, **frame.variables}
        if isinstance(fn.node, ast.FunctionDef):
            frame.own = self._body(fn.node)[1]
        return frame

    def _body(self, node: ast.FunctionDef) -> tuple[bool, frozenset[str]]:
        """As :func:`_body` says, looked up once."""
        known = self._bodies.get(node)
        if known is None:
            known = self._bodies[node] = _body(node)
        return known

    def _generate(self, node: ast.FunctionDef, frame: Frame) -> Iterator[Any]:
        try:
            left = yield from self.block(node.body, frame)
        except RaisedError as error:
            if error.kind == "StopIteration":  # PEP 479
                raise RaisedError("RuntimeError", error.node, error.names) from error
            raise
        if left is not None and type(left) is not tuple:
            raise CannotTellError("a jump out of a function")

    def _bind(self, fn: Fn, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        spec = fn.node.args
        params, names, with_defaults = self._parameters_of(spec)
        out: dict[str, Any] = dict(zip(params, args, strict=False))
        if len(args) == len(params) == len(names) and not (keywords or spec.vararg or spec.kwarg):
            return out  # most are so
        if len(args) > len(params):
            if spec.vararg is None:
                raise RaisedError("TypeError", fn.node)
            BUDGET.items(len(args))
            out[spec.vararg.arg] = tuple(args[len(params) :])
        elif spec.vararg is not None:
            out[spec.vararg.arg] = ()
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
        defaults: Frame | None = None
        for name, default in with_defaults:
            if name not in out:
                defaults = defaults or Frame(fn.names, fn.defaults)
                out[name] = self.value(default, defaults)
        if not names <= out.keys():
            raise RaisedError("TypeError", fn.node)
        return out

    def _parameters_of(self, spec: ast.arguments) -> _Parameters:
        """The names of a function's positional parameters, of all, and those with a default."""
        known = self._taken.get(spec)
        if known is None:
            params = [param.arg for param in (*spec.posonlyargs, *spec.args)]
            with_defaults = [
                *zip(params[len(params) - len(spec.defaults) :], spec.defaults, strict=True),
                *(
                    (param.arg, default)
                    for param, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
                    if default is not None
                ),
            ]
            names = frozenset((*params, *(param.arg for param in spec.kwonlyargs)))
            known = self._taken[spec] = params, names, with_defaults
        return known

    def attribute(self, owner: Any, name: str, node: ast.AST | None = None) -> Any:
        """``owner.name``."""
        if isinstance(owner, Instance):
            owner.unread.pop(name, None)
            if name in owner.attributes:
                return owner.attributes[name]
            if name == "__class__":
                return owner.klass
            if name == "__dict__":
                owner.unread.clear()
                return owner.attributes
            try:
                member = self.member(owner.klass, name)
            except OutsideError:
                self.outside += 1
                return UNKNOWN
            if isinstance(member, Fn):
                return self._bound(member, owner)
            if member is None and owner.made is not None:
                key = f"self.{name}"
                value = owner.attributes[name] = given(key, owner.made, key)
                return value
            if member is None:
                if self.member(owner.klass, "__getattr__") is not None:
                    raise CannotTellError("__getattr__")
                raise RaisedError("AttributeError", node)
            return member
        if type(owner) in _OF_LIBRARY:
            return self._attribute_of_plain(owner, name)
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
            member = self._constant_of(owner, name) or self.member(owner, name)
            if member is None:
                raise CannotTellError(f"`{name}` of a class")
            return self._bound(member, owner) if isinstance(member, Fn) else member
        if isinstance(owner, External):
            return library.external_attribute(owner, name)
        if isinstance(owner, Names):
            if name in owner.nodes:
                return owner.get(name)
            raise CannotTellError(f"`{name}` of a module")
        if isinstance(owner, Source):
            return owner.attribute(name)
        if isinstance(owner, Data):
            if owner.length is not None and name in methods.ARRAY:
                return methods.attribute(self, Array(owner.items()), name)
            if isinstance(owner, Given) and methods.keeps_array(name):
                return Native(lambda *args, **keywords: owner)
            return owner.part(f".{name}")
        if owner is UNKNOWN:
            if self.lends and name in methods.CHANGING:
                raise CannotTellError("which of its items is changed")
            return UNKNOWN
        if isinstance(owner, Told) and not hasattr(int, name) and not methods.keeps_array(name):
            return owner.data.part(f".{name}")
        return self._attribute_of_plain(owner, name)

    def _attribute_of_plain(self, owner: Any, name: str) -> Any:
        """``owner.name`` of a number, a container or an iterator."""
        if name == "__class__" or (name == "__len__" and not isinstance(owner, (list, Array))):
            raise CannotTellError(f"`{name}`")
        if name == "__iter__" or (name == "__next__" and isinstance(owner, Iterator)):
            run = External(f"builtins.{name.strip('_')}")
            return Native(lambda: self.call(run, [owner], {}))
        return methods.attribute(self, owner, name)

    def _constant_of(self, klass: Klass, name: str) -> Instance | None:
        """A member of an enumeration, which is always the same object."""
        node = klass.members.get(name)
        if not isinstance(node, ast.expr) or not any(map(_is_enumeration, klass.bases)):
            return None
        if name not in klass.constants:
            value = self.value(node, Frame(klass.names, {}))
            attributes = {"name": name, "value": value, "_value_": value}
            klass.constants[name] = Instance(klass, attributes)
        return klass.constants[name]

    def _bound(self, function: Fn, owner: Instance | Klass) -> Any:
        """A function of a class as an attribute of its object, or of the class itself."""
        if "classmethod" in function.decorators:
            return Bound(function, owner if isinstance(owner, Klass) else owner.klass)
        if isinstance(owner, Klass) or "staticmethod" in function.decorators:
            return function
        if any(decorator.endswith("property") for decorator in function.decorators):
            value = self.run(function, [owner], {}, owner)
            if "cached_property" in function.decorators and isinstance(
                function.node, ast.FunctionDef
            ):
                owner.attributes[function.node.name] = value
            return value
        return Bound(function, owner)

    def stream(self, of: External) -> Stream:
        """What a generator or its method draws from: the process's own for a function."""
        return of.stream or self.chance.of_process(of.dotted.partition(".")[0])

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

    def read(self, instance: Instance) -> Iterator[Any]:
        """What a loader gets of a sampler or a dataset: by iterating it, or index by index."""
        getter = self.method(instance, "__getitem__")
        if self.method(instance, "__iter__") is not None or getter is None:
            yield from self.iterate(instance)
            return
        for index in range(self.length(instance)):
            yield self.call(getter, [index], {})

    def _stepped(self, step: Bound) -> Iterator[Any]:
        """What an object yields by its ``__next__``."""
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
        if type(value) is list:  # most are
            return len(value)
        if isinstance(value, Instance):
            method = self.method(value, "__len__")
            if method is None:
                raise RaisedError("TypeError")
            result = plain(self.call(method, [], {}))
            if isinstance(result, float):
                raise FractionError(node=method.function.node, names=method.function.names)
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
        value = value.data if isinstance(value, Told) else value
        if isinstance(value, Data) and value.size_of_part is not None:
            return value.size_of_part
        raise CannotTellError("how long it is")

    def true(self, value: Any) -> bool:
        """Whether the value is true."""
        if value is True or value is False:  # most are
            return value is True
        if isinstance(value, Instance):
            if self.method(value, "__bool__") is not None:
                raise CannotTellError("whether it is true")
            return self.method(value, "__len__") is None or self.length(value) > 0
        return truth(value)


@lru_cache(1 << 12)  # a program calls the same few again and again
def _of_torch_data(dotted: str) -> str | None:
    """What torch's own package for data calls a class or function, if it is one of that."""
    name = catalog.canonical(dotted)
    return name.removeprefix(TORCH_DATA) if name.startswith(TORCH_DATA) else None


def _is_enumeration(base: Any) -> bool:
    return isinstance(base, External) and base.dotted.startswith("enum.")


def _writes_init(node: ast.ClassDef) -> bool:
    """Whether a class has a constructor in its text: then a decorator adds none, whatever it is.

    One that puts another class in its place still leaves this one to be right.
    """
    return any(isinstance(stmt, ast.FunctionDef) and stmt.name == "__init__" for stmt in node.body)


def _keeps_class(decorator: ast.expr) -> bool:
    """Whether a class decorator only enters the class somewhere, or writes its constructor."""
    return last_name(decorator) == "dataclass" or ("register" in ast.unparse(decorator).lower())


def _body(node: ast.FunctionDef) -> tuple[bool, frozenset[str]]:
    """Whether a function is a generator, and the names that its statements give a value."""
    yields = False
    own: set[str] = set()
    todo: list[ast.AST] = list(node.body)
    while todo:
        current = todo.pop()
        if isinstance(current, ast.Name) and isinstance(current.ctx, ast.Store):
            own.add(current.id)
        elif isinstance(current, (ast.Yield, ast.YieldFrom)):
            yields = True
        if isinstance(current, _COMPREHENSIONS):
            todo.append(current.generators[0].iter)  # the rest has names of its own
        elif not isinstance(current, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(child_nodes(current))
    return yields, frozenset(own)


@cache
def _prelude() -> ast.Module:
    path = Path(__file__).with_name("prelude.py")
    return ast.parse(path.read_text(encoding="utf-8"))
