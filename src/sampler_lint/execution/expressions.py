"""The values of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from sampler_lint.execution import items, library, operators, standard
from sampler_lint.execution.budget import (
    BUDGET,
)
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

#: What an expression does, with its parts and names looked up once: given a process and the names
#: of a running function, its value.
Code = Callable[[Any, Frame], Any]


class Expressions(Run):
    """Evaluates expressions, and assigns to them."""

    lends: bool
    codes: dict[ast.AST, Code]
    """What the expressions and statements that have run do."""

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        code = self.codes.get(node)
        if code is None:
            code = self.codes[node] = prepared(node)
        return code(self, frame)

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
        prepared_target(target)(self, value, frame)

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
            key = _key(target.slice)(self, frame)
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


# -- what expressions do


def prepared(node: ast.expr) -> Code:
    """What an expression does, without looking at its parts again each time."""
    prepare = _PREPARED.get(type(node))
    if prepare is not None:
        return prepare(node)
    handler: Callable[..., Any] = _EXPRESSIONS.get(type(node), _unknown)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1  # a step: so does each of these
        if BUDGET.left < 0:
            BUDGET.over()
        return handler(run, node, frame)

    return code


def _unknown(run: Any, node: ast.expr, frame: Frame) -> Any:
    raise CannotTellError(type(node).__name__)


def _constant(node: ast.Constant) -> Code:
    value = node.value

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        return value

    return code


def _name(node: ast.Name) -> Code:
    name = node.id

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        found = frame.variables.get(name, _NOT_HERE)
        return run.elsewhere(node, frame) if found is _NOT_HERE else found

    return code


def _attribute(node: ast.Attribute) -> Code:
    owner_of, name = prepared(node.value), node.attr

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        return run.attribute(owner_of(run, frame), name, node)

    if not isinstance(node.value, ast.Name):
        return code
    owner_name, owner = node.value.id, node.value

    def of_variable(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 2  # the name's own, too
        if BUDGET.left < 0:
            BUDGET.over()
        found = frame.variables.get(owner_name, _NOT_HERE)
        if found is _NOT_HERE:
            found = run.elsewhere(owner, frame)
        return run.attribute(found, name, node)

    return of_variable


def _subscript(node: ast.Subscript) -> Code:
    owner_of, key_of = prepared(node.value), _key(node.slice)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        owner = owner_of(run, frame)
        if isinstance(owner, External) and owner.dotted.startswith(_TYPES):
            return owner  # of which types says nothing at run time
        key = key_of(run, frame)
        try:
            return run.item(owner, key)
        except (IndexError, KeyError) as error:
            raise RaisedError(type(error).__name__, node) from error

    return code


_TYPES = ("typing.", "collections.abc.")


def _key(node: ast.expr) -> Code:
    """What stands in brackets, as a key."""
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        keys = [_key(part) for part in node.elts]
        return lambda run, frame: tuple(key(run, frame) for key in keys)
    if isinstance(node, ast.Slice):
        ends = [
            None if part is None else prepared(part) for part in (node.lower, node.upper, node.step)
        ]
        return lambda run, frame: _slice(
            [None if end is None else plain(end(run, frame)) for end in ends], node, frame
        )
    value_of = prepared(node)

    def code(run: Any, frame: Frame) -> Any:
        value = value_of(run, frame)
        return value if value is UNKNOWN or isinstance(value, (Source, Given)) else plain(value)

    return code


def _slice(parts: list[Any], node: ast.AST, frame: Frame) -> slice:
    if any(part is not None and not isinstance(part, int) for part in parts):
        if any(isinstance(part, float) for part in parts):
            raise FractionError(node=node, names=frame.names)
        raise CannotTellError("a slice")
    return slice(*parts)


def _call(node: ast.Call) -> Code:
    callee_of = prepared(node.func)
    may_be_super = isinstance(node.func, ast.Name) and node.func.id == "super"
    args_of = [
        (isinstance(arg, ast.Starred), prepared(arg.value if isinstance(arg, ast.Starred) else arg))
        for arg in node.args
    ]
    is_spread = any(star for star, _ in args_of)
    each_of = [arg_of for _, arg_of in args_of]
    keywords_of = [(keyword.arg, prepared(keyword.value)) for keyword in node.keywords]
    kinds = _kinds(node)
    kinds_of = [] if kinds is None else [prepared(kind) for kind in kinds]

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        if may_be_super and "super" not in frame.variables:
            return run.parent(node, frame)
        callee = callee_of(run, frame)
        asks_kinds = False
        if isinstance(callee, External):
            if library.is_silent(callee):
                return UNKNOWN
            asks_kinds = kinds is not None and library.is_isinstance(callee)
        args: list[Any] = []
        if asks_kinds:
            args.append(each_of[0](run, frame))
        elif is_spread:
            for star, arg_of in args_of:
                arg = arg_of(run, frame)
                args += run.listed(arg) if star else [arg]
        else:
            for arg_of in each_of:
                args.append(arg_of(run, frame))
        keywords: dict[str, Any] = {}
        for name, keyword_of in keywords_of:
            value = keyword_of(run, frame)
            if name is not None:
                keywords[name] = value
            elif isinstance(value, dict):
                BUDGET.items(len(value))
                keywords.update(value)
            else:
                raise CannotTellError("**")
        try:
            if asks_kinds:
                return any(run.call(callee, [*args, k(run, frame)], {}) for k in kinds_of)
            return run.call(callee, args, keywords)
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

    return code


def _binop(node: ast.BinOp) -> Code:
    left_of, op, right_of = prepared(node.left), node.op, prepared(node.right)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        left = left_of(run, frame)
        return run.binary(op, left, right_of(run, frame), node)

    return code


def _bool_op(node: ast.BoolOp) -> Code:
    *parts, last = map(prepared, node.values)
    decided = isinstance(node.op, ast.Or)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        for part in parts:
            value = part(run, frame)
            if run.true(value) == decided:
                return value
        return last(run, frame)

    return code


def _compare(node: ast.Compare) -> Code:
    first, many = prepared(node.left), len(node.ops) > 1
    steps = [
        (op, operators.COMPARISONS.get(type(op)), prepared(right))
        for op, right in zip(node.ops, node.comparators, strict=True)
    ]

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        left = first(run, frame)
        result: Any = True
        for op, compares, right_of in steps:
            right = right_of(run, frame)
            if type(left) is int and type(right) is int and compares is not None:
                result = compares(left, right)  # most are these
            else:
                result = run.compared(op, left, right)
            if many and not run.true(result):
                return False
            left = right
        return result

    return code


def _if_exp(node: ast.IfExp) -> Code:
    test, body, orelse = prepared(node.test), prepared(node.body), prepared(node.orelse)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        return (body if run.true(test(run, frame)) else orelse)(run, frame)

    return code


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Code:
    first_of = prepared(node.generators[0].iter)
    is_dict, is_list = isinstance(node, ast.DictComp), isinstance(node, ast.ListComp)
    is_set = isinstance(node, ast.SetComp)
    each = _pair(node) if isinstance(node, ast.DictComp) else prepared(node.elt)
    items_of = _loops(node.generators, each)

    def code(run: Any, frame: Frame) -> Any:
        BUDGET.left -= 1
        if BUDGET.left < 0:
            BUDGET.over()
        # Python takes the outermost iterable at once, the rest when asked.
        first = run.iterate(first_of(run, frame))
        BUDGET.items(len(frame.variables))
        out = items_of(run, frame.inner(dict(frame.variables)), first)
        if is_dict:
            return dict(out)
        if is_list:
            return BUDGET.collect(out)
        return {key(item) for item in out} if is_set else out

    return code


def _pair(node: ast.DictComp) -> Code:
    key_of, value_of = prepared(node.key), prepared(node.value)
    return lambda run, frame: (key(key_of(run, frame)), value_of(run, frame))


def _loops(
    generators: list[ast.comprehension], each: Code
) -> Callable[[Any, Frame, Iterator[Any]], Iterator[Any]]:
    """What the loops of a comprehension hand out, the items of the outermost one given."""
    generator, *inner = generators
    assign = prepared_target(generator.target)
    tests = [prepared(test) for test in generator.ifs]
    if not inner:

        def code(run: Any, frame: Frame, items: Iterator[Any]) -> Iterator[Any]:
            for item in items:
                assign(run, item, frame)
                for test in tests:
                    if not run.true(test(run, frame)):
                        break
                else:
                    yield each(run, frame)

        return code
    next_of, rest = prepared(inner[0].iter), _loops(inner, each)

    def nested(run: Any, frame: Frame, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            assign(run, item, frame)
            if all(run.true(test(run, frame)) for test in tests):
                yield from rest(run, frame, run.iterate(next_of(run, frame)))

    return nested


def prepared_target(target: ast.expr) -> Callable[[Any, Any, Frame], None]:
    """What it does to be given a value."""
    if isinstance(target, ast.Name):
        name = target.id

        def to_name(run: Any, value: Any, frame: Frame) -> None:
            if name in frame.outer:
                frame.names.set(name, value)
            else:
                frame.variables[name] = value

        return to_name
    if isinstance(target, ast.Attribute):
        owner_of = prepared(target.value)
        return lambda run, value, frame: run.set_attribute(owner_of(run, frame), target, value)
    if isinstance(target, ast.Subscript):
        container_of, key_of = prepared(target.value), _key(target.slice)

        def to_item(run: Any, value: Any, frame: Frame) -> None:
            container = container_of(run, frame)
            key = key_of(run, frame)
            if container is UNKNOWN and run.lends:
                raise CannotTellError("which of its items is changed")
            items.store(container, key, value)

        return to_item
    if isinstance(target, (ast.Tuple, ast.List)):
        inner = [prepared_target(each) for each in target.elts]

        def to_each(run: Any, value: Any, frame: Frame) -> None:
            for assign, item in zip(inner, run.parts(value, target), strict=True):
                assign(run, item, frame)

        return to_each
    assert isinstance(target, ast.Starred)
    return prepared_target(target.value)


_PREPARED: dict[type[ast.expr], Callable[[Any], Code]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BinOp: _binop,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_exp,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[..., Any]] = {
    ast.UnaryOp: Expressions._unary,
    ast.List: Expressions._display,
    ast.Tuple: Expressions._display,
    ast.Set: Expressions._display,
    ast.Dict: Expressions._dict,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._walrus,
    ast.JoinedStr: Expressions._text,
}
