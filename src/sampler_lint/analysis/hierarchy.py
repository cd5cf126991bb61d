"""Class hierarchies: the order of bases, and who defines what."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.solver import Solver, Var
from sampler_lint.analysis.values import Base, ClassRef, Ext, Unknown, Value, Why
from sampler_lint.limits import DEEPEST_NESTING
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import NEUTRAL_BASES
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Declare,
    Expr,
    Function,
    Name,
    Store,
    last_name,
)
from sampler_lint.workspace.project import Project

_TOO_DEEP = Unknown("a hierarchy too deep to follow")


class Hierarchy(Solver):
    """Answers what a class derives from, and what that defines."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project
        self._mros: dict[Class, tuple[Base, ...]] = {}
        self._fields: dict[Class, list[str]] = {}
        self._resolving: list[Class] = []
        self._families: dict[Class, tuple[list[Class], list[Base]]] = {}

    @abstractmethod
    def _expr(self, expr: Expr) -> Var:
        """The variable of an expression."""

    def values(self, expr: Expr) -> frozenset[Value]:
        """Every value ``expr`` may have; contains :class:`Unknown` where some are not known."""
        return self._solve(self._expr(expr))

    def ask(self, expr: Expr) -> frozenset[Value]:
        """:meth:`values`, also from inside the solver (what it needs is solved first)."""
        return self._solve_within(lambda: self._expr(expr))

    def mro(self, cls: Class) -> tuple[Base, ...]:
        """The linearised hierarchy, the class first; a base that is not known is Unknown.

        Python's own order (C3); where that has no answer, depth first, each class once.
        """
        cached = self._mros.get(cls)
        if cached is not None:
            return cached
        if len(self._resolving) > DEEPEST_NESTING:
            return cls, _TOO_DEEP
        self._mros[cls] = (cls,)  # a class among its own bases stops here
        self._resolving.append(cls)
        orders: list[list[Base]] = []
        for expr in cls.bases:
            for base in self._bases(expr):
                if isinstance(base, Class):
                    orders.append(list(self.mro(base)))
                elif isinstance(base, str):
                    known = [entry.name for entry in catalog.known_mro(base)]
                    orders.append(list(known or [base]))
                else:
                    orders.append([base])
        self._resolving.pop()
        orders.append([order[0] for order in orders])
        result = (cls, *merge(orders))
        if len(result) > DEEPEST_NESTING:
            result = (cls, _TOO_DEEP)
        self._mros[cls] = result
        return result

    def own_mro(self, cls: Class) -> list[Class]:
        """The class and those of its bases that are of the tree."""
        return [base for base in self.mro(cls) if isinstance(base, Class)]

    def _bases(self, expr: Expr) -> Iterator[Base]:
        values = self.ask(expr)
        if not values:
            yield Unknown("a base class that is not found")
        for value in values:
            if isinstance(value, ClassRef):
                yield value.cls
            elif isinstance(value, Ext):
                if value.dotted not in NEUTRAL_BASES:
                    yield value.dotted
            elif isinstance(value, Unknown):
                yield value
            else:
                yield Unknown("a base class made by a call")

    def why_unset(self, cls: Class) -> Why:
        """Why an attribute is not known that the tree sets nowhere."""
        for base in self.mro(cls):
            if isinstance(base, Unknown):
                return base.why
            if isinstance(base, str) and catalog.known(base) is None:
                return Why.FOREIGN
            if isinstance(base, Class) and base.makes_up_attributes:
                return Why.LOST
        return Why.UNDEFINED

    def subclasses(self, cls: Class) -> list[Class]:
        """The classes of the candidate files that derive from ``cls``, at any depth."""
        return self._family(cls)[0]

    def family(self, cls: Class) -> list[Base]:
        """The hierarchy of a class, then its subclasses and what else those derive from."""
        return self._family(cls)[1]

    def own_family(self, cls: Class) -> list[Class]:
        """Those of the tree among them."""
        return [each for each in self.family(cls) if isinstance(each, Class)]

    def family_stores(self, cls: Class, name: str) -> list[Store]:
        """Every assignment to an attribute of an object in methods of its classes."""
        own_stores = self.project.own_stores
        return [store for each in self.own_family(cls) for store in own_stores(name, each)]

    def _family(self, cls: Class) -> tuple[list[Class], list[Base]]:
        known = self._families.get(cls)
        if known is not None:
            return known

        def derived(base: Class) -> Iterator[Class]:
            found = self.project.classes_deriving(base.name)
            return (each for each in found if base in self.mro(each))

        _, *below = closure([cls], derived)
        own = self.mro(cls)
        more = (base for each in below for base in self.mro(each))
        beside = (base for base in more if isinstance(base, Class) and base not in own)
        found = below, [*own, *dict.fromkeys(beside)]
        if not self._resolving:  # else not all bases are known yet
            self._families[cls] = found
        return found

    def is_a(self, cls: Class | str, name: str) -> bool | None:
        """Whether a class is (derived from) the known class ``name``; None if a base is unknown."""
        if isinstance(cls, str):
            return any(entry.name == name for entry in catalog.known_mro(cls))
        mro = self.mro(cls)
        if name in mro:
            return True
        return None if any(isinstance(base, Unknown) for base in mro) else False

    def method(self, cls: Class | str, name: str) -> Function | str | Unknown | None:
        """Who defines the method for instances of ``cls``: a function, a known class, or nobody."""
        if isinstance(cls, str):
            for entry in catalog.known_mro(cls):
                if name in entry.methods:
                    return entry.name
            return None if catalog.known(cls) else Unknown(f"{cls} is not known", Why.FOREIGN)
        for base in self.mro(cls):
            if isinstance(base, Class):
                if base.bindings.get(name):
                    return base.method(name) or Unknown(f"`{name}` is no plain method")
            elif isinstance(base, str):
                entry_ = catalog.known(base)
                if entry_ is None:
                    return Unknown(f"{base} is outside the tree", Why.FOREIGN)
                if name in entry_.methods:
                    return base
            else:
                return base
        return None

    def fields(self, cls: Class) -> list[str]:
        """The annotated names of a dataclass or named tuple, bases first."""
        known = self._fields.get(cls)
        if known is not None:
            return known
        names: dict[str, None] = {}
        for base in reversed(self.mro(cls)):
            if isinstance(base, Class):
                for stmt in base.body:
                    target = (
                        stmt.target
                        if isinstance(stmt, Declare)
                        else stmt.targets[0]
                        if isinstance(stmt, Assign)
                        else None
                    )
                    if isinstance(target, Name):
                        names[target.id] = None
        found = list(names)
        if not self._resolving:  # else not all bases are known yet
            self._fields[cls] = found
        return found

    def _is_named_tuple(self, cls: Class) -> bool:
        return any(last_name(base) == "NamedTuple" for base in cls.bases)

    def _finds_init(self, cls: Class) -> bool:
        return any(
            isinstance(base, Class) and base.method("__init__") is not None
            for base in self.mro(cls)
        )

    def base_init_calls(self, cls: Class) -> list[Call]:
        """``super().__init__(…)`` and ``Base.__init__(self, …)`` in the class's ``__init__``."""
        init = cls.method("__init__")
        if init is None:
            return []
        return [
            call
            for call in init.calls
            if isinstance(call.func, Attr) and call.func.name == "__init__"
        ]

    def params(self, cls: Class | str) -> tuple[str, ...] | None:
        """The constructor's parameter names without ``self``; None if they are not known."""
        if isinstance(cls, str):
            entry = next((e for e in catalog.known_mro(cls) if e.params), None)
            return entry.params if entry is not None else None
        init = self.method(cls, "__init__")
        if isinstance(init, Function):
            return tuple(param.name for param in init.params[1:] if param.is_positional)
        for base in self.mro(cls):
            if isinstance(base, Unknown):
                return None
            if isinstance(base, str):
                return self.params(base) if catalog.known(base) else None
        return ()


def merge(orders: list[list[Base]]) -> list[Base]:
    """C3: the first head that is in no other's tail, again and again."""
    out: list[Base] = []
    orders = [order for order in orders if order]
    while orders:
        head = next(
            (order[0] for order in orders if not any(order[0] in other[1:] for other in orders)),
            orders[0][0],
        )
        out.append(head)
        rest = ([base for base in order if base != head] for order in orders)
        orders = [order for order in rest if order]
    return out
