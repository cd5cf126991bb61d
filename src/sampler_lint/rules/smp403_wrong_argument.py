"""SMP403: a sampler or loader is given an argument that it does not take, or in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import scope_of
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Table
from sampler_lint.domain.datasets import is_iterable
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.signatures import (
    Construction,
    Signature,
    base_inits,
    constructions,
    factory_calls,
    is_changed,
    never_in,
)
from sampler_lint.edits.editor import Editor, Fixer, renaming
from sampler_lint.edits.names import quoted
from sampler_lint.edits.region import offsets
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.limits import SURE_SLIP
from sampler_lint.parameters import FLAGS, NUMBERS, OBJECTS, role_of, same_role
from sampler_lint.rules._alike import slips
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import owner_of, same, walk
from sampler_lint.syntax.nodes import (
    Arg,
    Call,
    Const,
    Expr,
    Function,
    If,
    Map,
    Name,
    Node,
    last_name,
)
from sampler_lint.workspace.project import Module

_TYPE_ERROR = "TypeError when the line runs"


class WrongArgument(Rule):
    """A sampler or loader is built with an argument that its constructor does not take.

    What it does:
        Compares calls that build a sampler or a loader, and calls of a base's `__init__`, with
        the constructor's real parameters (torch's, or those of the class in this repository), and
        calls of a function of this repository that returns one with its parameters.
        Reports a keyword that it does not have, more positional arguments than it takes, an
        argument given twice, a missing one, and a positional argument that fills another
        parameter than the one it is named after (`DistributedSampler(dataset, rank, ...)`, where
        `rank` becomes `num_replicas`). Not reported where the constructor takes `**kwargs` or is
        not known.

    Why is this bad?
        An unknown keyword is a TypeError when the line runs, which for an evaluation loader or a
        multi-GPU branch may be hours into the job. An argument on the wrong parameter may not
        raise at all: `DataLoader(dataset, batch_size, num_workers)` sets `shuffle`.

    Fix safety:
        Safe for a typo with one possible correction (`num_worker`): the call can only raise
        without it. Unsafe for another word (`world_size` for `num_replicas`) and for misplaced
        positional arguments, which become keywords.

    How it is proved:
        Invariant `runs`: before the fix the script fails with the TypeError, after it every rank
        finishes.

    References:
        - torch/utils/data/{dataloader,sampler,distributed}.py (2.0 to 2.13), the constructors
        - met in https://github.com/open-mmlab/mmaction2 (tests/test_runtime/test_eval_hook.py)
    """

    code = "SMP403"
    name = "wrong-argument"
    symptoms = (
        "TypeError: __init__() got an unexpected keyword argument",
        "a DataLoader argument has no effect",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare every call of a known constructor with its parameters."""
        for made in self._made(model):
            suspects = list(_construction(model, made))
            if suspects and not is_expected(model, made.call, TypeError):
                yield from suspects

    def _made(self, model: Model) -> Iterator[Construction]:
        yield from constructions(model)
        yield from factory_calls(model)
        for _, cls in model.classes():
            if model.is_sampler_class(cls) or model.is_a(cls, DATA_LOADER) is True:
                yield from base_inits(model, cls)


def _construction(model: Model, made: Construction) -> Iterator[Suspect]:
    module = model.module_of(made.call.scope)
    named = [*_keywords(module, made), *_in_tables(model, made)]
    yield from named
    signature = made.signature
    given = made.positional
    if len(given) > len(signature.positional) and not signature.open_positional:
        yield _too_many(module, made)
        return
    missing = _missing(made)
    if missing and not named and not _is_conditional(made.call):
        yield _too_few(module, made, missing)
        return
    for index, value in enumerate(given[: len(signature.positional)]):
        meant = _meant(signature, made, index, value)
        # What is called a sampler may be a dataset that yields batches.
        if meant is not None and not is_iterable(model, value):
            yield _misplaced(module, made, index, value, meant)
            return


# --------------------------------------------------------------------------- keywords


def _keywords(module: Module, made: Construction) -> Iterator[Suspect]:
    signature = made.signature
    by_place = set(signature.positional[: len(made.positional)])
    for arg in made.args:
        name = arg.keyword
        if name is None:
            continue
        if name in by_place:
            yield Suspect(
                module,
                keyword_node(module, arg),
                f"`{made.built}` is given `{name}` twice, by position and by keyword",
                end=arg.value,
                effect=_TYPE_ERROR,
                hides=True,
                advice="drop one of the two",
            )
        elif name not in signature.names and not signature.open_keywords:
            suspect = _unknown_keyword(module, made, arg, name)
            if suspect is not None:
                yield suspect


def _unknown_keyword(module: Module, made: Construction, arg: Arg, name: str) -> Suspect | None:
    near, sure = _near(name, made)
    if near is None and _is_conditional(made.call):
        return None
    taken = ", ".join(
        f"`{n}`" for n in [*made.signature.positional, *sorted(made.signature.keywords)]
    )
    message = f"`{made.built}` takes no argument `{name}`"
    message += f"; did you mean `{near}`?" if near else ""
    node = keyword_node(module, arg)

    fix = _rename(node, name, near, sure) if near and node is not arg.value else None
    advice = "" if near else f"it takes {taken or 'nothing'}"
    return Suspect(
        module,
        node,
        message,
        end=arg.value,
        fix=fix,
        effect=_TYPE_ERROR,
        hides=True,
        advice=advice,
    )


def _near(name: str, made: Construction) -> tuple[str | None, bool]:
    """The parameter that was meant, and whether only the spelling slipped."""
    given = {arg.keyword for arg in made.args} | set(
        made.signature.positional[: len(made.positional)]
    )
    free = [other for other in made.signature.names if other not in given]
    close = slips(name, free, at_least=SURE_SLIP)
    if len(close) == 1:
        return close[0], True
    return same_role(name, free), False


def _in_tables(model: Model, made: Construction) -> Iterator[Suspect]:
    """What a dict that is passed by ``**`` holds by mistake.

    Slips of the pen among its keys, and each keyword of the one call that fills ``**kwargs``.
    """
    if made.signature.open_keywords:
        return
    for arg in made.args:
        if arg.stars != 2 or not isinstance(arg.value, Name):
            continue
        tables = model.flow.values(arg.value)
        if len(tables) != 1 or is_changed(arg.value):
            continue
        table = next(iter(tables))
        if not isinstance(table, Table) or not isinstance(table.node, (Map, Call)):
            continue
        # What fills `**kwargs` is written where the call is.
        written = table.node.func if isinstance(table.node, Call) else table.node
        module = model.module_of(scope_of(written))
        for name, node in _entries(module, table.node):
            near, sure = _near(name, made)
            is_sure = sure or (isinstance(table.node, Call) and not _is_conditional(made.call))
            if name in made.signature.names or not is_sure:
                continue
            message = f"`{made.built}` takes no argument `{name}`, which it gets by `**`"
            message += f"; did you mean `{near}`?" if near else ""
            why = (Related(model.place(made.call.scope, made.call), "passed here"),)
            fix = _rename(node, name, near, sure) if near else None
            yield Suspect(module, node, message, why=why, fix=fix, effect=_TYPE_ERROR, hides=True)


def _entries(module: Module, node: Map | Call) -> Iterator[tuple[str, Node]]:
    """The keys of a dict display or ``dict(…)``, and their places."""
    if isinstance(node, Map):
        for key, _ in node.items:
            if isinstance(key, Const) and isinstance(key.value, str):
                yield key.value, key
    else:
        for arg in node.args:
            if arg.keyword is not None:
                yield arg.keyword, keyword_node(module, arg)


def _rename(node: Node, old: str, new: str, sure: bool) -> Fixer:
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    because = f"`{old}` may mean something else"
    return renaming(node, old, new, f"Pass it as `{new}`", applicability, because)


def keyword_node(module: Module, arg: Arg) -> Node:
    """The name in ``name=value``; the value if it cannot be found."""
    source = module.source
    end = offsets(source, arg.value)[0]
    match = re.search(
        rf"\b{re.escape(arg.keyword or '')}\s*=[\s(\\]*$", source.stretch(max(0, end - 400), end)
    )
    if match is None or not arg.keyword:
        return arg.value
    place = source.position(end - len(match.group()))
    node = Node()
    node.row = node.end_row = place.row
    node.col = len(source.line(place.row)[: place.column - 1].encode())
    node.end_col = node.col + len(arg.keyword.encode())
    return node


# --------------------------------------------------------------------------- positions


def _too_many(module: Module, made: Construction) -> Suspect:
    count = len(made.signature.positional)
    takes = (
        "no positional argument"
        if not count
        else ("one positional argument" if count == 1 else f"{count} positional arguments")
    )
    return Suspect(
        module,
        made.positional[count],
        f"`{made.built}` takes {takes}, but {len(made.positional)} are given",
        end=made.positional[-1],
        effect=_TYPE_ERROR,
        hides=True,
        advice="remove the extra arguments",
    )


def _missing(made: Construction) -> list[str]:
    """The parameters that must be given and are not."""
    given = {arg.keyword for arg in made.args}
    given.update(made.signature.positional[: len(made.positional)])
    order = [*made.signature.positional, *sorted(made.signature.keywords)]
    lacks = [name for name in order if name in made.signature.required and name not in given]
    unpacked = [arg for arg in made.args if arg.stars]
    return [
        name
        for name in lacks
        if all(arg.stars == 2 and name in never_in(arg.value) for arg in unpacked)
    ]


def _too_few(module: Module, made: Construction, missing: list[str]) -> Suspect:
    names = " and ".join(f"`{name}`" for name in missing)
    how = "called" if isinstance(made.signature.owner, Function) else "built"
    message = f"`{made.built}` is {how} without {names}"
    return Suspect(
        module,
        made.call,
        message,
        fix=partial(_pass_own, made, missing),
        effect=_TYPE_ERROR,
        hides=True,
        advice=f"pass {names}",
    )


def _pass_own(made: Construction, missing: list[str], editor: Editor) -> Fix | None:
    """Pass the parameters of these names that the function itself takes."""
    scope = made.call.scope
    own = {one.name for one in scope.params} if isinstance(scope, Function) else set()
    if not own.issuperset(missing):
        return None
    for name in missing:
        editor.add_argument(made.call, name, name)
    names = " and ".join(f"`{name}`" for name in missing)
    return editor.fix(f"Pass {names} on", Applicability.SAFE)


def _meant(signature: Signature, made: Construction, index: int, value: Expr) -> str | None:
    """The parameter that a positional argument was meant for, if it is not the one it gets."""
    place = signature.positional[index]
    keywords = {arg.keyword for arg in made.args}
    if isinstance(value, Const):
        return _kind_clash(place, value) if isinstance(signature.owner, str) else None
    name = _named(signature, value)
    if name is None or name == place or name in keywords or name not in signature.names:
        return None
    if _says(value, place) or _is_short_for(value, place):
        return None
    # Another argument of that very name in its own place, or a part of the value: the value is
    # used twice, on purpose.
    for other, given in enumerate(made.positional[: len(signature.positional)]):
        if signature.positional[other] == name and (
            _named(signature, given) == name or any(same(part, value) for part in walk(given))
        ):
            return None
    return name


def _says(value: Expr, place: str) -> bool:
    """Whether all words of a parameter are said by what it gets: ``opt["dataset"]``.

    Or by where that comes from: ``for dataset in opt.values()``.
    """
    owner = owner_of(value) if isinstance(value, Name) else None
    bound = definitions(owner, value) if owner is not None and isinstance(value, Name) else []
    told = [value, *(each.value for each in bound if each.value is not None)]
    nodes = [node for each in told for node in walk(each)]
    said = [str(node.value) if isinstance(node, Const) else last_name(node) for node in nodes]
    return {*place.split("_")} <= {word for name in said if name for word in name.split("_")}


def _is_short_for(value: Expr, place: str) -> bool:
    """Whether a call is named after the last words of the parameter: ``get_size()``, a world's."""
    got = (last_name(value.func) or "").removeprefix("get_") if isinstance(value, Call) else ""
    return got != "" and f"_{place}".endswith(f"_{got}")


def _named(signature: Signature, value: Expr) -> str | None:
    """What a value is called; of ``get_rank()``, the parameter that wants a rank."""
    if isinstance(value, Call):
        getter = last_name(value.func) or ""
        got = getter.removeprefix("get_")
        return same_role(got, signature.names) if got != getter else None
    return last_name(value)


def _kind_clash(place: str, value: Const) -> str | None:
    """What a literal must have been meant for, when the parameter cannot hold it."""
    kind = type(value.value)
    role = role_of(place)
    if kind is bool and (role in NUMBERS or role in OBJECTS):
        return "a flag"
    if kind is int and (role in OBJECTS or (role in FLAGS and value.value not in {0, 1})):
        return "a number"
    return None


def _misplaced(module: Module, made: Construction, index: int, value: Expr, meant: str) -> Suspect:
    place = made.signature.positional[index]
    shown = quoted(module.source, value)
    known = meant in made.signature.names
    message = (
        f"positional argument {index + 1} of `{made.built}` is `{place}`, but gets `{shown}`"
        + ("" if known else f", {meant}")
    )

    fix = partial(_by_keyword, made, index) if known else None
    return Suspect(
        module,
        value,
        message,
        fix=fix,
        effect="it is built with wrong settings, or not at all",
        advice="pass it by keyword",
    )


def _by_keyword(made: Construction, first: int, editor: Editor) -> Fix | None:
    """Name the positional arguments from ``first`` on, each by what it says it is."""
    signature = made.signature
    names: list[str] = []
    rest = made.positional[first : len(signature.positional)]
    if any(arg.stars for arg in made.args):
        return None
    for offset, value in enumerate(rest):
        own = _named(signature, value)
        alias = same_role(own or "", signature.names)
        said = (own, alias, signature.positional[first + offset])
        names.append(next(name for name in said if name in signature.names))
    taken = [*signature.positional[:first], *(arg.keyword for arg in made.args if arg.keyword)]
    if len({*names, *taken}) < len(names) + len(taken):
        return None
    for name, value in zip(names, rest, strict=True):
        editor.name_argument(made.call, value, name)
    why = "the order may be meant, and the name be wrong"
    return editor.fix("Pass it by keyword", Applicability.UNSAFE, why)


# --------------------------------------------------------------------------- surroundings


def _is_conditional(call: Call) -> bool:
    """Whether a test (of a version, of a signature) stands before the call."""
    return call.stmt is not None and any(isinstance(s, If) for s in call.stmt.ancestors())
