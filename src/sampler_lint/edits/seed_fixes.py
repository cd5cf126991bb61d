"""Fixes that hand the program's seed on."""

from __future__ import annotations

from collections.abc import Iterable

from sampler_lint.analysis.values import Ext, ExtObj, FuncRef
from sampler_lint.domain.draws import seeded
from sampler_lint.domain.model import Model
from sampler_lint.domain.seed_names import Seed, in_scope
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Applicability, Doubted, Fix
from sampler_lint.syntax.navigation import built_by_itself
from sampler_lint.syntax.nodes import Attr, Bin, Call, Class, Const, Expr, Function, Name, last_name

#: What speaks against a fix that passes the seed.
MAY_BE_NO_INT = Doubted("whether the seed is an int is not known")
NOT_PASSED_EVERYWHERE = Doubted("not every caller is known to pass an int")


def spelled(seed: Seed) -> str:
    """The seed as an int-valued expression."""
    return f"{seed.code} or 0" if seed.is_number is False else seed.code


def summed(model: Model, call: Call, *terms: str) -> str:
    """A sum that a call seeds a generator with; numpy takes no more than 32 bits, and no sign."""
    text = " + ".join(terms)
    is_numpy = any(
        isinstance(value, (Ext, ExtObj)) and value.dotted.startswith("numpy.")
        for value in model.flow.values(call.func)
    )
    return f"({text}) % 2**32" if is_numpy else text


def pass_seed(editor: Editor, site: Call, keyword: str, given: Expr | None, value: str) -> None:
    """Make the call ``site`` pass ``value``, in place of ``given`` if there is one."""
    if given is not None:
        editor.replace(given, value)
    else:
        editor.add_argument(site, keyword, value)


def pass_in(
    model: Model,
    editor: Editor,
    calls: Iterable[Call],
    keyword: str,
    *,
    of: Function | None = None,
    untyped: bool = False,
    known: dict[Function, Editor | None] | None = None,
) -> tuple[bool, bool]:
    """Pass the program's seed in ``calls``: whether in any, and whether all certainly get an int.

    A function that calls without a seed gets a parameter of its own, if all of its callers in
    turn have a seed to pass. ``untyped``: whether a seed that may be no int is passed, too.
    ``known`` are the functions that were asked before.
    """
    known = {} if known is None else known
    passed, everywhere = False, True
    for call in calls:
        if call.keyword(keyword) is not None:
            passed = True  # it went to `**kwargs` before
            continue
        there = editor.at(model.module_of(call.scope))
        seed = in_scope(model, there.module, call.scope, call)
        is_wrong = call.has_double_star or (of is not None and not is_named(model, call, of))
        if seed is not None and not is_wrong and (untyped or seed.is_number is not None):
            there.add_argument(call, keyword, spelled(seed))
            everywhere = everywhere and seed.is_number is not None
            passed = True
            continue
        through = None
        if seed is None and not is_wrong and isinstance(call.scope, Function):
            through = _through(model, there, call.scope, known)
        if through is None:
            everywhere = False
        else:
            there.add_argument(call, keyword, "seed").add(through)
            passed = True
    return passed, everywhere


def _through(
    model: Model, editor: Editor, function: Function, known: dict[Function, Editor | None]
) -> Editor | None:
    """What gives a function the seed that all of its callers have; None if not all do."""
    if function not in known:
        known[function] = None  # what calls itself has no other caller then
        calls = model.flow.callers(function)
        if can_take_seed(model, function) and calls and not editor.module.is_library(function):
            apart = editor.apart()
            _, everywhere = pass_in(model, apart, calls, "seed", of=function, known=known)
            if everywhere:
                take_seed(apart, function, "0")
                known[function] = apart
    return known[function]


def can_take_seed(model: Model, function: Function) -> bool:
    """A plain function or a constructor: a method's signature may be somebody else's contract.

    Not that of a class method that no other class of the family has.
    """
    is_plain = function.cls is None or (function.name == "__init__" and bool(function.params))
    return (
        ((is_plain and not function.decorators) or _is_own_maker(model, function))
        and function.define is not None
        and function.param("seed") is None
        and "seed" not in function.bindings
    )


def _is_own_maker(model: Model, function: Function) -> bool:
    cls = function.cls
    if cls is None:
        return False
    family = [*model.flow.mro(cls)[1:], *model.flow.subclasses(cls)]
    return [*map(last_name, function.decorators)] == ["classmethod"] and all(
        isinstance(each, Class) and each.method(function.name) is None for each in family
    )


def called(function: Function) -> str:
    """The name by which the function is called: of a constructor, the class's."""
    is_init = function.cls is not None and function.name == "__init__"
    return function.cls.name if function.cls is not None and is_init else function.name


def is_named(model: Model, call: Call, function: Function) -> bool:
    """Whether a call names the function, or a place that holds nothing else: an entry of a dict.

    It may also stand for the function's class in a method of that.
    """
    held = model.flow.values(call.func)
    if held and all(isinstance(one, FuncRef) and one.function is function for one in held):
        return True
    if last_name(call.func) == called(function):
        return True
    own = built_by_itself(call)
    return function.name == "__init__" and own is not None and own is function.cls


def take_seed(editor: Editor, function: Function, default: str) -> None:
    """Give a function a parameter ``seed``, and its docstring an entry for it."""
    editor.add_parameter(function, "seed", "int", default)
    meaning = "The seed of the shuffle, the same on every rank."
    editor.document_parameter(function, "seed", "int", meaning)


def pass_to_taker(model: Model, editor: Editor, function: Function, calls: Iterable[Call]) -> Fix:
    """Pass the program's seed in the calls of a function that the fix has given a parameter."""
    passed, everywhere = pass_in(model, editor, calls, "seed", untyped=True)
    if not passed:
        applicability = Applicability.DISPLAY  # as long as nobody passes it, nothing changes
    elif everywhere and not editor.module.is_library(function):
        applicability = Applicability.SAFE
    else:
        applicability = Applicability.UNSAFE
    title = f"Give `{called(function)}` a `seed` parameter"
    return editor.fix(title, applicability, NOT_PASSED_EVERYWHERE)


def seed_generators(model: Model, editor: Editor, function: Function) -> None:
    """Add ``seed`` to the literal seed of a loader's generator.

    A loader shuffles with it where it has no sampler, and seeds its workers.
    """
    handed = {
        given.id for call in function.calls if isinstance(given := call.keyword("generator"), Name)
    }
    for found in seeded(model, function):
        seed = found.seed
        terms = [seed.left, seed.right] if isinstance(seed, Bin) and seed.op == "Add" else [seed]
        literals = [term for term in terms if isinstance(term, Const) and type(term.value) is int]
        if found.generator in handed and len(literals) == 1:
            editor.wrap(literals[0], "", " + seed")


def draw_from(model: Model, seeding: Call, draw: Call, editor: Editor) -> Fix | None:
    """Pass the seeded generator to a draw of torch's."""
    name = _generator_seeded(seeding)
    if (
        name is None
        or draw.scope is not seeding.scope
        or draw.row <= seeding.row
        or draw.keyword("generator") is not None
        or not all(
            isinstance(value, Ext) and value.dotted.startswith("torch.")
            for value in model.flow.values(draw.func)
        )
    ):
        return None
    editor.at(model.module_of(draw.scope)).add_argument(draw, "generator", name)
    return editor.fix(f"Draw from `{name}`", Applicability.SAFE)


def _generator_seeded(seeding: Call) -> str | None:
    """The variable of a generator of torch's: ``g.manual_seed(…)``, or what that is given to."""
    if not isinstance(seeding.func, Attr) or seeding.func.name != "manual_seed":
        return None
    owner = seeding.func.value
    if isinstance(owner, Name):
        bound = owner.scope.bindings.get(owner.id, ())
        is_one = len(bound) == 1 and isinstance(bound[0].value, Call)
        return owner.id if is_one and owner.scope is seeding.scope else None
    names = [
        name
        for name, bound in seeding.scope.bindings.items()
        if len(bound) == 1 and bound[0].how == "assign" and bound[0].value is seeding
    ]
    return names[0] if len(names) == 1 else None
