"""What files store and derive that no rule looks at, and what else changes under another base."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain

from sampler_lint.analysis.values import Ext, Obj, Value
from sampler_lint.catalog import known_mro
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import handed_on
from sampler_lint.edits.safety.meaning import scope_at
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed
from sampler_lint.findings import Place
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.nodes import Call, Class, Expr, If, Raise, Simple, last_name
from sampler_lint.workspace.project import Module


@dataclass
class ClassOutline:
    """A class of such a file: the names of its bases, its methods and what is stored in it."""

    row: int
    bases: list[str]
    methods: set[str]
    stores: set[str] = field(default_factory=set)


@dataclass
class Outline:
    """The classes of a file, and the lines at which attributes of others than ``self`` are set."""

    classes: list[ClassOutline]
    stores: dict[str, list[int]]

    def deriving(self, names: Collection[str]) -> Iterator[tuple[ClassOutline, str]]:
        """The classes with a base of one of the names, and that name."""
        for cls in self.classes:
            yield from ((cls, name) for name in cls.bases if name in names)


def unread(model: Model, *words: bytes) -> Iterator[tuple[str, Outline]]:
    """The files that say one of the words, and that no rule looks at."""
    saying = _saying(model, words)
    known: dict[str, Outline | None] = model.memo.setdefault(unread, {})
    for path in dict.fromkeys(path for word in words for path in saying[word]):
        shown = model.project.files[path]
        if path not in known:
            known[path] = None
            with contextlib.suppress(SourceError, SyntaxError, ValueError, RecursionError):
                text = SourceFile(shown, model.project.bytes_of(path)).text
                known[path] = _outline(ast.parse(text))
        outline = known[path]
        if outline is not None:
            yield shown, outline


def _outline(root: ast.Module) -> Outline:
    outline = Outline([], {})
    meant: dict[str, str] = {}
    left: list[tuple[ast.AST, tuple[ClassOutline, ...]]] = [(root, ())]
    while left:
        node, around = left.pop()
        if isinstance(node, ast.alias) and node.asname is not None:
            meant[node.asname] = node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            for cls in around:
                cls.stores.add(node.attr)
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                outline.stores.setdefault(node.attr, []).append(node.lineno)
        elif isinstance(node, ast.ClassDef):
            methods = {one.name for one in node.body if isinstance(one, FUNCTIONS)}
            cls = ClassOutline(node.lineno, [ast.unparse(base) for base in node.bases], methods)
            outline.classes.append(cls)
            around = (*around, cls)
        left.extend((child, around) for child in ast.iter_child_nodes(node))
    for cls in outline.classes:
        cls.bases = [meant.get(base, base).rpartition(".")[2] for base in cls.bases]
    outline.classes.sort(key=lambda cls: cls.row)
    for rows in outline.stores.values():
        rows.sort()
    return outline


def _saying(model: Model, words: Collection[bytes]) -> dict[bytes, list[str]]:
    """The files without a sampler word that say each word, each file read once for new ones."""
    known: dict[bytes, list[str]] = model.memo.setdefault(_saying, {})
    new = {word for word in words if word not in known}
    known.update((word, []) for word in new)
    looked_at = {module.path for module in model.project.candidates}
    for path in model.project.files.keys() - looked_at if new else ():
        with contextlib.suppress(SourceError):
            data = model.project.bytes_of(path)
            for word in new:
                if word in data:
                    known[word].append(path)
    for word in new:
        known[word].sort()
    return known


# What else changes when a class derives from another base.


def other_base(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that treats a class in another way because of the base that a fix gives it."""
    for old, new in changed.same.items():
        if not isinstance(old, ast.ClassDef) or not isinstance(new, ast.ClassDef):
            continue
        if [*map(ast.dump, old.bases)] == [*map(ast.dump, new.bases)]:
            continue
        cls = scope_at(module, old)
        if not isinstance(cls, Class):
            return f"what derives from `{old.name}` is not known"
        if made := _made_by_type(model, module):
            return f"{made} may derive from `{old.name}`"
        for derived in model.flow.subclasses(cls):
            for call in _supers(derived):
                if last_name(call.positional[0]) == cls.name:
                    place = model.place(call.scope, call)
                    return f"{place} skips `{cls.name}`"
        for base in new.bases:
            values = model.flow.values(expression(base, module.facts, None))
            named = ast.unparse(base).rpartition(".")[2]
            asking = (model.project.calls_named(name) for name in ("isinstance", "issubclass"))
            for call in chain.from_iterable(asking):
                given = call.positional
                if len(given) != 2 or _refuses(call):
                    continue
                if _asks(model, given[1], values, named):
                    return f"{model.place(call.scope, call)} asks what the class derives from"
            if other := handed_on(model, named):
                return f"{other} may ask what the class derives from"
            if reason := _unset(model, cls, values):
                return reason
    return None


def _unset(model: Model, cls: Class, bases: frozenset[Value]) -> str | None:
    """A read of what the constructor of a base of torch sets, which the class does not run."""
    if model.flow.base_init_calls(cls):
        return None
    known = [each for base in bases if isinstance(base, Ext) for each in known_mro(base.dotted)]
    names = {name for each in known for name in each.attributes} - model.attributes(cls).names
    family = {cls, *model.flow.subclasses(cls)}
    for module in model.modules:
        for read in (each for scope in module.facts.scopes for each in scope.reads):
            if read.name in names and any(
                isinstance(value, Obj) and value.cls in family
                for value in model.flow.values(read.value)
            ):
                place = model.place(read.scope, read)
                return f"{place} reads `{read.name}`, which `{cls.name}` does not set"
    return None


def other_init(model: Model, module: Module, changed: Changed) -> str | None:
    """A class of a file that is not looked at, whose other bases a changed call may reach."""
    for old, call in changed.same.items():
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr != "__init__" or ast.dump(old) == ast.dump(call):
            continue
        around = changed.new.around(call)
        cls = next((one for one in around if isinstance(one, ast.ClassDef)), None)
        if cls is None:
            continue
        if made := _made_by_type(model, module):
            return f"{made} may give `{cls.name}` other bases, too"
        for shown, outline in unread(model, cls.name.encode()):
            for derived, _ in outline.deriving({cls.name}):
                if len(derived.bases) > 1:
                    return f"{shown}:{derived.row} has other bases, too"
    return None


def stored_over(model: Model, module: Module, changed: Changed) -> str | None:
    """A class that derives from one in which a fix stores an attribute, and has such a method.

    Nothing can be stored under the name of a property that has no setter.
    """
    for node in changed.new.spans:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        around = changed.new.around(node) if changed.back.get(node) is None else ()
        made = next((one for one in around if isinstance(one, ast.ClassDef)), None)
        old = changed.back.get(made) if made is not None else None
        cls = scope_at(module, old) if isinstance(old, ast.ClassDef) else None
        if not isinstance(cls, Class):
            continue
        for call in model.project.calls_named("vars"):
            held = [v for arg in call.positional for v in model.flow.values(arg)]
            kinds = [v.cls for v in held if isinstance(v, Obj) and isinstance(v.cls, Class)]
            if any(cls in model.flow.mro(each) for each in kinds):
                return f"{model.place(call.scope, call)} takes all that it keeps"
        for derived in model.flow.subclasses(cls):
            if derived.method(node.attr) is not None:
                return f"`{derived.name}` has a method `{node.attr}`"
        for shown, outline in unread(model, cls.name.encode()):
            for other, _ in outline.deriving({cls.name}):
                if node.attr in other.methods:
                    return f"{shown}:{other.row} has a method `{node.attr}`"
    return None


def _made_by_type(model: Model, module: Module) -> Place | None:
    """A place in the program where ``type(name, bases, namespace)`` makes a class."""
    program = model.project.program_of(module)
    calls = (call for call in model.project.calls_named("type") if len(call.positional) == 3)
    near = (c for c in calls if model.project.program_of(model.module_of(c.scope)) == program)
    return next((model.place(call.scope, call) for call in near), None)


def _supers(cls: Class) -> Iterator[Call]:
    for method in cls.methods:
        yield from (c for c in method.calls if last_name(c.func) == "super" and c.positional)


def _asks(model: Model, kinds: Expr, values: frozenset[object], named: str) -> bool:
    """Whether one of the classes is the base, which the file may not have imported yet."""
    return any(
        values & model.flow.values(one) or last_name(one) == named
        for one in getattr(kinds, "items", None) or [kinds]
    )


def _refuses(call: Call) -> bool:
    """Whether the test only stops what is of another class."""
    stmt = call.stmt
    if isinstance(stmt, Simple):
        return stmt.kind == "assert"
    return isinstance(stmt, If) and bool(stmt.body) and isinstance(stmt.body[-1], Raise)
