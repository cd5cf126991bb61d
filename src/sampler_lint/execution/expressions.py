"""The values of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from sampler_lint.execution import items, library, operators, standard
from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.errors import (
    CannotTellError,
    FractionError,
    Kind,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    Column,
    Data,
    External,
    Fn,
    Frame,
    Given,
    Instance,
    Klass,
    Lost,
    Parent,
    Places,
    Run,
    Source,
    Told,
    key,
    plain,
    weigh,
)

_NOT_HERE = object()


class Expressions(Run):
    """Evaluates expressions, and assigns to them."""

    lends: bool

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        if type(node) is ast.Name:  # half of all
            found = frame.variables.get(node.id, _NOT_HERE)
            return self.elsewhere(node, frame) if found is _NOT_HERE else found
        kind = type(node)
        if kind not in _EXPRESSIONS:
            raise CannotTellError(kind.__name__)
        return _EXPRESSIONS[kind](self, node, frame)

    def _constant(self, node: ast.Constant, frame: Frame) -> Any:
        return node.value

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.value(node.value, frame), node.attr, node)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        if isinstance(owner, External) and owner.dotted.startswith(_TYPES):
            return owner  # of which types says nothing at run time
        key = self._key(node.slice, frame)
        try:
            return self.item(owner, key)
        except (IndexError, KeyError) as error:
            raise RaisedError(type(error).__name__, node) from error

    def _key(self, node: ast.expr, frame: Frame) -> Any:
        """What stands in brackets, as a key."""
        if type(node) is ast.Tuple and any(type(each) is ast.Slice for each in node.elts):
            return tuple(self._key(part, frame) for part in node.elts)
        if type(node) is ast.Slice:
            ends = (node.lower, node.upper, node.step)
            parts = [None if end is None else plain(self.value(end, frame)) for end in ends]
            return _slice(parts, node, frame)
        value = self.value(node, frame)
        if type(value) is int:  # most are
            return value
        return value if value is UNKNOWN or isinstance(value, (Source, Given)) else plain(value)

    def _call(self, node: ast.Call, frame: Frame) -> Any:
        func = node.func
        if type(func) is ast.Name and func.id == "super" and "super" not in frame.variables:
            return self.parent(node, frame)
        callee, kinds = self.value(func, frame), None
        if isinstance(callee, External):
            if library.is_silent(callee.dotted):
                return UNKNOWN
            if library.is_isinstance(callee):
                kinds = _kinds(node)
        args: list[Any] = []
        for arg in node.args if kinds is None else node.args[:1]:
            if type(arg) is ast.Starred:
                value = self.value(arg.value, frame)
                args += [value] if self._tells_nothing(callee, value) else self.listed(value)
            else:
                args.append(self.value(arg, frame))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif self._tells_nothing(callee, value):
                args.append(value)
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

    def _tells_nothing(self, callee: Any, unpacked: Any) -> bool:
        """Whether arguments that nobody knows are unpacked for what is not known, either.

        However many they are, nobody knows what comes of it.
        """
        return unpacked is UNKNOWN and (
            callee is UNKNOWN or (isinstance(callee, External) and not library.is_known(callee))
        )

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left = self.value(node.left, frame)
        return self.binary(node.op, left, self.value(node.right, frame), node)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Any:
        *parts, last = node.values
        decided = isinstance(node.op, ast.Or)
        for part in parts:
            value = self.value(part, frame)
            if self.true(value) == decided:
                return value
        return self.value(last, frame)

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        left, result = self.value(node.left, frame), True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, frame)
            compares = operators.COMPARISONS.get(type(op))
            if type(left) is int and type(right) is int and compares is not None:
                result = compares(left, right)  # most are these
            else:
                result = self.compared(op, left, right)
            if len(node.ops) > 1 and not self.true(result):
                return False
            left = right
        return result

    def _if_exp(self, node: ast.IfExp, frame: Frame) -> Any:
        chosen = node.body if self.true(self.value(node.test, frame)) else node.orelse
        return self.value(chosen, frame)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
    ) -> Any:
        # Python takes the outermost iterable at once, the rest when asked.
        first = self.iterate(self.value(node.generators[0].iter, frame))
        BUDGET.items(len(frame.variables))
        inner = frame.inner(dict(frame.variables))
        if isinstance(node, ast.DictComp):
            names, values = node.key, node.value
            turns = self._turns(node.generators, first, inner)
            return {key(self.value(names, inner)): self.value(values, inner) for _ in turns}
        out = (self.value(node.elt, inner) for _ in self._turns(node.generators, first, inner))
        if isinstance(node, ast.ListComp):
            return BUDGET.collect(out)
        return {key(item) for item in out} if isinstance(node, ast.SetComp) else out

    def _turns(
        self, generators: list[ast.comprehension], items: Iterator[Any], frame: Frame
    ) -> Iterator[None]:
        """The turns of the loops of a comprehension, the items of the outermost one given."""
        generator, *inner = generators
        for item in items:
            self.assign(generator.target, item, frame)
            if not all(self.true(self.value(test, frame)) for test in generator.ifs):
                continue
            if inner:
                more = self.iterate(self.value(inner[0].iter, frame))
                yield from self._turns(inner, more, frame)
            else:
                yield

    def elsewhere(self, node: ast.Name, frame: Frame) -> Any:
        """A name that is none of the function's, or has no value there yet."""
        if node.id in frame.own and node.id not in frame.outer:
            raise RaisedError("UnboundLocalError", node)
        return frame.names.get(node.id)

    def item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        if type(owner) is list and type(key) is int:  # most are these
            return owner[key]
        if isinstance(key, Given):
            if type(owner) is dict:
                items.ask_for_text(owner, key)
            key = plain(key)
        if isinstance(owner, (Data, Told)):
            data = owner.data if isinstance(owner, Told) else owner
            is_column = type(data) in {Data, Column} and data.length is not None
            if is_column and isinstance(key, (Array, list, slice)):
                return items.item(Array(data.items()), key)
            return data.part(f"[{spell(key)}]")
        if owner is UNKNOWN:
            return UNKNOWN
        if isinstance(owner, Instance):
            getter = self.method(owner, "__getitem__")
            if getter is None:
                raise CannotTellError("an item of an object")
            return self.call(getter, [key], {})
        if isinstance(owner, External):
            return self.call(External(f"{owner.dotted}.__getitem__"), [key], {})
        if key is UNKNOWN and isinstance(owner, (dict, list, tuple, Array)):
            self.lends = self.lends or standard.lends(owner)
        return items.item(owner, key)

    def parent(self, node: ast.Call, frame: Frame) -> Parent:
        """``super()``."""
        if frame.klass is None or not isinstance(frame.receiver, Instance):
            raise CannotTellError("super()")
        klass = frame.klass
        if node.args and not (
            isinstance(node.args[0], ast.Name) and node.args[0].id == frame.klass.name
        ):
            klass = self.external_class(self.value(node.args[0], frame))
            if klass not in frame.receiver.klass.mro or not isinstance(klass, Klass):
                raise CannotTellError("super() of another class")
        return Parent(klass, frame.receiver)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """``left OP right``, where ``node`` says so."""
        if type(left) is not int or type(right) is not int:  # most are
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Given) and isinstance(other, (list, tuple)):
                    raise side.wanted(Kind.SEQUENCE)
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
        except RaisedError as error:
            error.node = node
            raise

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return not self.true(value)
        if value is UNKNOWN:
            return UNKNOWN
        return operators.unary(type(node.op), plain(value))

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """``left OP right``."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            if left is UNKNOWN or right is UNKNOWN:
                if not self.guesses:
                    raise CannotTellError("whether it is None")
                self.outside += 1  # something was made: it is none where arguments are guessed
            same = isinstance(left, External) and left == right
            return (same or left is right) is isinstance(op, ast.Is)
        if isinstance(left, Given):
            texts = right if isinstance(right, (list, tuple, set)) else [right]
            if texts and all(isinstance(text, str) for text in texts):
                if new := sorted(set(texts) - left.others):
                    raise WantedError(left.pattern, Kind.TEXT, new, left.others)
                return isinstance(op, (ast.NotEq, ast.NotIn))
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, Given):
                raise right.wanted(Kind.SEQUENCE)
            if isinstance(right, External):
                held = self.call(External(f"{right.dotted}.__contains__"), [left], {})
                return self.true(held) is isinstance(op, ast.In)
            if isinstance(right, Data) or right is UNKNOWN:
                raise CannotTellError("what is in it")
            method = self.method(right, "__contains__") if isinstance(right, Instance) else None
            if method is not None:
                return self.true(self.call(method, [left], {})) is isinstance(op, ast.In)
            return items.contains(self, right, left) is isinstance(op, ast.In)
        if isinstance(left, External) and isinstance(right, External):
            return (left == right) is isinstance(op, ast.Eq)
        if left is None or right is None:
            if left is UNKNOWN or right is UNKNOWN:
                raise CannotTellError("whether it is None")
            if isinstance(op, (ast.Eq, ast.NotEq)):
                return (left is right) is isinstance(op, ast.Eq)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        left, right = _operand(left), _operand(right)
        if isinstance(left, Instance) or isinstance(right, Instance):
            is_constant = any(isinstance(s, Instance) and s.klass.constants for s in (left, right))
            if is_constant and isinstance(op, (ast.Eq, ast.NotEq)):
                return (left is right) is isinstance(op, ast.Eq)
            raise CannotTellError("a comparison of objects")
        return operators.compare(type(op), left, right)

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

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Fn:
        return self.closure(node, frame)

    def closure(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Fn:
        """What a ``def`` or ``lambda`` inside a function makes."""
        # The body sees the names as they are when it runs, the defaults as they are now.
        BUDGET.items(len(frame.variables))
        return Fn(node, frame.names, frame.klass, frame.variables, dict(frame.variables))

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Any:
        """An f-string: known if it is made of plain texts and numbers."""
        parts: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    return UNKNOWN
                try:
                    value = self.value(part.value, frame)
                except OverBudgetError:
                    raise
                except (CannotTellError, RaisedError):
                    return UNKNOWN  # mostly a message, which is no use of what it tells
                if not isinstance(value, (int, str)):
                    return UNKNOWN
                operators.check_number(value)
                parts.append(str(value))
            else:
                parts.append(self.value(part, frame))
        BUDGET.text(sum(map(len, parts)))
        return "".join(parts)

    # -- targets

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """``target = value``."""
        if isinstance(target, ast.Name):
            if target.id in frame.outer:
                frame.names.set(target.id, value)
            else:
                frame.variables[target.id] = value
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value, frame), target, value)
        elif isinstance(target, ast.Subscript):
            container = self.value(target.value, frame)
            key = self._key(target.slice, frame)
            if container is UNKNOWN and self.lends:
                raise CannotTellError("which of its items is changed")
            items.store(container, key, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for inner, item in zip(target.elts, self.parts(value, target), strict=True):
                self.assign(inner, item, frame)
        else:
            assert isinstance(target, ast.Starred)
            self.assign(target.value, value, frame)

    def parts(self, value: Any, target: ast.Tuple | ast.List) -> list[Any]:
        """What each of the names of a target is given."""
        value = value.data if isinstance(value, Told) else value
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
        return values

    def set_attribute(self, owner: Any, target: ast.Attribute, value: Any) -> None:
        """``owner.name = value``, where ``target`` says so."""
        name = target.attr
        if isinstance(owner, Instance):
            member = owner.klass.found(name)
            if isinstance(member, Fn) and member.decorators:
                setter = owner.klass.setter(name)
                if setter is None:
                    raise CannotTellError("a property that is set")
                self.run(setter, [owner, value], {}, owner)
                return
            if name == "__dict__" and isinstance(value, dict):
                owner.attributes = value
            else:
                owner.attributes[name] = value
                before = owner.unread.get(name)
                if before is not None:
                    owner.lost.append(Lost(*before, target, value))
                owner.unread[name] = target, value
        elif isinstance(owner, Source):
            owner.changed[name] = value
        elif owner is not UNKNOWN:
            raise CannotTellError("an attribute that is set")

    def delete(self, target: ast.expr, frame: Frame) -> None:
        """``del target``."""
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            container = self.value(target.value, frame)
            key = self._key(target.slice, frame)
            try:
                items.delete(container, key)
            except (IndexError, KeyError) as error:
                raise RaisedError(type(error).__name__, target) from error
        else:
            raise CannotTellError("what is deleted")


def _kinds(node: ast.Call) -> list[ast.expr] | None:
    """The classes of ``isinstance(x, (A, B))``, to be asked about one after the other.

    The first tells mostly, and the next may be in a big file.
    """
    if len(node.args) != 2 or node.keywords or not isinstance(node.args[1], ast.Tuple):
        return None
    kinds = node.args[1].elts
    return None if any(isinstance(kind, ast.Starred) for kind in kinds) else kinds


def _operand(value: Any) -> Any:
    """The value as an operand: a column of the data goes element by element."""
    if type(value) in {Data, Column} and value.length is not None:
        return Array(value.items())
    return plain(value)


def spell(value: Any) -> str:
    """A value as part of a key of :class:`~.values.Data`."""
    weigh(value)
    if isinstance(value, Data):
        return value.key
    known = isinstance(value, (bool, int, float, str, list, tuple, slice, type(None)))
    return repr(value) if known else type(value).__name__


_TYPES = ("typing.", "collections.abc.")


def _slice(parts: list[Any], node: ast.AST, frame: Frame) -> slice:
    if any(part is not None and not isinstance(part, int) for part in parts):
        if any(isinstance(part, float) for part in parts):
            raise FractionError(node=node, names=frame.names)
        raise CannotTellError("a slice")
    return slice(*parts)


_EXPRESSIONS: dict[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: Expressions._constant,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Call: Expressions._call,
    ast.BinOp: Expressions._binop,
    ast.BoolOp: Expressions._bool_op,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._if_exp,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.UnaryOp: Expressions._unary,
    ast.List: Expressions._display,
    ast.Tuple: Expressions._display,
    ast.Set: Expressions._display,
    ast.Dict: Expressions._dict,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._walrus,
    ast.JoinedStr: Expressions._text,
}
