"""Which samplers give each rank its part, and what of a framework divides that part once more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import (
    LOCAL,
    Hop,
    as_passed,
    depends_on,
    ends,
    origins,
    parameter_of,
)
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Ext, Obj, Pack, Value
from sampler_lint.domain.concepts import ITERATES, WORLD_SIZE
from sampler_lint.domain.escape import is_left
from sampler_lint.domain.injection import Switch, injections
from sampler_lint.domain.model import BATCH_SAMPLER, DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.passes import Pass
from sampler_lint.domain.programs import program_files
from sampler_lint.domain.rank_terms import is_rank
from sampler_lint.domain.ranks import kinds
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, owner_of, self_class, statements, unparse
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    Function,
    If,
    Index,
    Name,
    Other,
    Seq,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial


def shares_out(model: Model, sampler: Obj, depth: int = 0) -> bool:
    """Whether a sampler, or one that it takes samples from, certainly gives each rank its part."""
    if depth > DEEPEST_WRAPPING or is_alone(model, sampler):
        return False
    if _divides(model, sampler.cls):
        return True
    return model.is_a(sampler, BATCH_SAMPLER) is True and any(
        isinstance(inner, Obj) and shares_out(model, inner, depth + 1)
        for inner in model.passed_to(sampler, "sampler")
    )


def _divides(model: Model, cls: Class | str) -> bool:
    if isinstance(cls, str):
        return any(entry.distributed for entry in catalog.known_mro(cls))
    if model.flow.method(cls, "__iter__") == DISTRIBUTED_SAMPLER:
        return True
    trials = model.trials(cls)
    tried = (*trials.usual, *trials.guessed)
    return any(trial.divides for trial in tried) or (
        any(trial.differs for trial in tried) and _takes_share(model, cls)
    )


def _takes_share(model: Model, cls: Class) -> bool:
    """Whether a pass takes the rank's share of an order, ``order[rank:total:size]``, in any case.

    Of one in which samples come several times, the ranks may read the same.
    """
    passing = model.flow.method(cls, "__iter__")
    return isinstance(passing, Function) and any(
        isinstance(node, Index)
        and isinstance(node.key, Other)
        and len(node.key.parts) > 1
        and depends_on(model.flow, node.key.parts[0], is_rank, LOCAL) is not None
        and depends_on(model.flow, node.key.parts[-1], _is_world_size, LOCAL) is not None
        for stmt in statements(passing.body)
        if not any(isinstance(above, If) for above in stmt.ancestors())
        for node in nodes_in([stmt])
    )


def pads(model: Model, sampler: Obj) -> bool:
    """Whether a sampler of the tree repeats a few samples where they do not divide evenly.

    As simulated: all samples come, each in one part, and fewer more than there are ranks.
    """
    if not isinstance(sampler.cls, Class) or not _is_as_tried(model, sampler):
        return False
    worlds = [
        trial
        for trial in model.trials(sampler.cls).usual
        if trial.world.ranks > 1 and not trial.world.drop_last
    ]
    return any(map(_repeats_few, worlds)) and all(
        trial.divides for trial in worlds if trial.world.is_even
    )


def _is_as_tried(model: Model, sampler: Obj) -> bool:
    """Whether it has no option of its class set otherwise than by default, as in the trials.

    Nor one without a default that the program answers with yes here and with no there.
    """
    for name, default in parameters(model, sampler).items():
        given = model.argument(sampler, name)
        if role_of(name) is not None or given is None:
            continue
        if isinstance(default, Const):
            told = model.flow.constants(given, sampler.through)
            if told is not None and default.value not in told:
                return False
        elif default is None and model.flow.constants(given) == {False, True}:
            return False
    return True


def _repeats_few(trial: Trial) -> bool:
    samples = trial.world.samples
    found = [index for turn in trial.turns for index in turn.indices or ()]
    return (
        trial.differs
        and set(found) == set(range(samples))
        and samples < len(found) < samples + trial.world.ranks
    )


def is_alone(model: Model, sampler: Obj) -> bool:
    """Whether a sampler is told, by its caller or a default, that there is one process."""
    for name, default in parameters(model, sampler).items():
        if role_of(name) is Role.WORLD_SIZE:
            given = model.argument(sampler, name) or default
            if given is not None and model.flow.constants(given) == {1}:
                return True
    return False


def parameters(model: Model, sampler: Obj) -> dict[str, Expr | None]:
    """What building a sampler takes, with the defaults that the tree shows."""
    init = model.flow.method(sampler.cls, "__init__")
    if isinstance(init, Function):
        return {param.name: param.default for param in init.params}
    return dict.fromkeys(model.flow.params(sampler.cls) or ())


class Numbers(NamedTuple):
    """What a sampler is told of its rank and of the ranks: None where it is told nothing."""

    rank_name: str
    rank: Expr | None
    size: Expr | None


def numbers(model: Model, sampler: Obj, through: Call | None = None) -> Numbers | None:
    """The parameters of a sampler that shards by them, with what stands for each.

    None where it takes other numbers, or may be told them unseen. ``through`` is the call of a
    factory that builds the sampler.
    """
    found: dict[Role, tuple[str, Expr | None]] = {}
    for name, default in parameters(model, sampler).items():
        role = role_of(name)
        if role in {Role.RANK, Role.WORLD_SIZE}:
            if role in found or model.flow.may_be_passed(sampler, name):
                return None
            given = model.flow.argument(sampler, name)
            found[role] = name, default if given is None else as_passed(model.flow, given, through)
    if found.keys() != {Role.RANK, Role.WORLD_SIZE}:
        return None
    return Numbers(*found[Role.RANK], found[Role.WORLD_SIZE][1])


class OneRank(NamedTuple):
    """The rank that a sampler is told in every process of a program of several."""

    name: str
    """The parameter."""
    rank: Expr
    """What stands for it: an argument, or a default that nobody replaces."""
    value: int
    is_given: bool
    """Whether the call that builds the sampler passes it as a literal."""


def one_rank(model: Model, sampler: Obj, through: Call | None) -> OneRank | None:
    """The one number that stands for the rank, where that of the processes is the real one.

    ``through`` is the call of a factory that builds the sampler.
    """
    told = numbers(model, sampler, through)
    if told is None:
        return None
    name, rank, size = told
    known = model.flow.constants(rank) if rank is not None else None
    if rank is None or known is None or len(known) != 1:
        return None
    value = next(iter(known))
    if type(value) is not int or not _is_of_processes(model, sampler, size):
        return None
    is_literal = isinstance(rank, Const) and model.flow.argument(sampler, name) is rank
    return OneRank(name, rank, value, is_literal)


def _is_of_processes(model: Model, sampler: Obj, size: Expr | None) -> bool:
    """Whether a sampler divides among all processes: torch's asks itself if it is not told."""
    if size is None or model.flow.constants(size) == {None}:
        return model.is_a(sampler, DISTRIBUTED_SAMPLER) is True
    through = LOCAL | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE
    return model.flow.constants(size) is None and (
        kinds(model, size) == {"world size"}
        or depends_on(model.flow, size, _is_world_size, through) is not None
    )


def _is_world_size(expr: Expr) -> bool:
    is_named = role_of(last_name(expr) or "") is Role.WORLD_SIZE
    return is_named or WORLD_SIZE.names(expr) or WORLD_SIZE.is_call(expr)


class Again(NamedTuple):
    """A framework that divides among the ranks what a sampler has divided already."""

    sampler: Obj
    loader: Obj | None
    """The loader that has it, where the framework does not build that."""
    place: Call | Function
    """The call that divides, or the hook that hands over to what does."""
    by: str
    """What divides, as a message calls it."""
    framework: str


def divided_again(model: Model) -> Iterator[Again]:
    """The samplers whose parts a framework certainly divides among the ranks once more."""
    for module in model.modules:
        for framework in sorted(model.frameworks(module)):
            for again in (
                *_by_calls(model, module, framework),
                *_by_hooks(model, module, framework),
            ):
                if _deals_with_it(model, module):
                    break
                yield again


@remembered
def _deals_with_it(model: Model, module: Module) -> bool:
    """Whether the program speaks of what a framework puts around a batch sampler: to replace it."""
    names = {
        name
        for framework in catalog.tables()
        for contract in catalog.contracts(framework, "wraps", "batch_sampler")
        for name in contract.names
        if name.isidentifier()
    }
    files = program_files(model)
    return any(files.says(path, *names) for path in files.beside(module.path))


def _by_calls(model: Model, module: Module, framework: str) -> Iterator[Again]:
    for call, sharder, loader in given_to_sharders(model, module, framework):
        for sampler in _divided(model, loader, sharder):
            yield Again(sampler, loader, call, f"`{unparse(call.func)}`", framework)


def given_to_sharders(
    model: Model, module: Module, framework: str
) -> Iterator[tuple[Call, catalog.Sharder, Obj]]:
    """The loaders that the calls of a file hand to a framework, which gives each rank a part."""
    known = catalog.sharders(framework)
    words = {name.rpartition(".")[2] for name in known}
    for call in module.facts.all_calls if known else ():
        if last_name(call.func) not in words:
            continue
        found = [known[name] for name in reached_by(model, call, framework) if name in known]
        if not found or _is_off(model, call, found[0]):
            continue
        for place, arg in enumerate(call.args):
            if arg.stars == 2 or is_left_there(model, call, place):
                continue
            for loader in _loaders(model, arg.value):
                yield call, found[0], loader


def reached_by(model: Model, call: Call, framework: str) -> Iterator[str]:
    """The dotted names of what is called: by value, by annotation, or by the class around."""
    for value in model.flow.values(call.func):
        if isinstance(value, Ext):
            yield value.dotted
    if not isinstance(call.func, Attr):
        return
    for end in ends(model.flow, call.func.value, Hop.ASSIGNED | Hop.ATTRIBUTE | Hop.CALLER):
        _, param = parameter_of(end) or (None, None)
        for value in model.flow.values(param.annotation) if param and param.annotation else ():
            if isinstance(value, Ext):
                yield f"{value.dotted}().{call.func.name}"
    root: Expr = call.func
    while isinstance(root, Attr):
        root = root.value
    cls = self_class(root)
    if cls is not None and _is_of(model, cls, framework):
        yield "self." + (dotted(call.func) or "").partition(".")[2]


def _is_of(model: Model, cls: Class, framework: str) -> bool:
    """Whether a class derives from a class of the framework."""
    return any(
        isinstance(base, str)
        and catalog.FRAMEWORK_PACKAGES.get(base.partition(".")[0]) == framework
        and base.rpartition(".")[2] in catalog.framework(framework).trainers
        for base in model.flow.mro(cls)
    )


def _is_off(model: Model, call: Call, sharder: catalog.Sharder) -> bool:
    given = call.keyword(sharder.switch) if sharder.switch else None
    return call.has_double_star or (given is not None and model.flow.constants(given) != {True})


def is_left_there(model: Model, call: Call, place: int) -> bool:
    """Whether the program goes on with what it gave, and not with what it gets back for it."""
    target = _target(call, place)
    if target is None:
        return isinstance(call.stmt, ExprStmt) and call.stmt.value is call
    if not isinstance(target, Name):
        return False
    is_kept = isinstance(call.args[place].value, (Name, Attr))
    return target.id.startswith("_") or (is_kept and is_left(model, target))


def _target(call: Call, place: int) -> Expr | None:
    """What is assigned what a call gives back for one of its arguments."""
    if not isinstance(call.stmt, Assign) or call.stmt.value is not call:
        return None
    target = call.stmt.targets[0]
    if isinstance(target, Seq) and place < len(target.items) == len(call.args):
        return target.items[place]
    return target


@remembered
def passes_over_shared(model: Model) -> list[Pass]:
    """The passes over what a framework gives back for a loader whose data it divides."""
    return [
        found
        for module in model.modules
        for framework in sorted(injections(model).trainers(module))
        for call, _, loader in given_to_sharders(model, module, framework)
        for found in _passes_over_given(model, call, loader)
    ]


def _passes_over_given(model: Model, call: Call, loader: Obj) -> Iterator[Pass]:
    places = [n for n, arg in enumerate(call.args) if loader in _loaders(model, arg.value)]
    targets = [target for place in places if (target := _target(call, place)) is not None]
    program = model.project.program_of(model.module_of(call.scope))
    for module in model.project.modules_in(program) if targets else ():
        for scope in module.facts.scopes:
            for source, stmt in scope.iterated:
                if any(_is_given_back(each, call, targets) for each in _iterated(model, source, 0)):
                    yield Pass(scope, stmt, source, loader, source)


def _iterated(model: Model, source: Expr, depth: int) -> Iterator[Expr]:
    """What is iterated, whatever is around it: ``enumerate``, or a call that gives it back.

    An attribute, and all that is kept under its name.
    """
    for step in origins(model.flow, source, LOCAL | Hop.CALLER | Hop.ATTRIBUTE):
        end = step.expr
        if not step.is_end:
            if isinstance(end, Attr):
                yield end
            continue
        wraps = isinstance(end, Call) and (
            ITERATES.is_call(end)
            or any(
                isinstance(value, Ext) and catalog.handed_back(value.dotted)
                for value in model.flow.values(end.func)
            )
        )
        if wraps and isinstance(end, Call) and depth < DEEPEST_WRAPPING:
            for given in end.positional:
                yield from _iterated(model, given, depth + 1)
        else:
            yield end


def _is_given_back(end: Expr, call: Call, targets: list[Expr]) -> bool:
    """Whether an expression is what the call gives back for one of its arguments.

    An attribute is, once a method has put it in the place of what was there.
    """
    if isinstance(end, Attr):
        cls = self_class(end.value)
        is_before = end.stmt is None or (
            end.scope is call.scope and call.stmt is not None and end.stmt.order <= call.stmt.order
        )
        return (
            cls is not None
            and not is_before
            and any(
                isinstance(target, Attr)
                and target.name == end.name
                and self_class(target.value) is cls
                for target in targets
            )
        )
    owner = owner_of(end) if isinstance(end, Name) else None
    is_whole = isinstance(call.stmt, Assign) and call.stmt.targets[0] in targets
    return (end is call and is_whole) or (
        isinstance(end, Name)
        and owner is not None
        and any(isinstance(target, Name) and target.id == end.id for target in targets)
        and any(each.stmt is call.stmt for each in definitions(owner, end))
    )


def _loaders(model: Model, expr: Expr) -> Iterator[Obj]:
    todo: list[Value] = [*model.flow.values(expr)]
    for value in todo:
        if isinstance(value, Pack):
            todo += [each for item in value.items for each in model.flow.values(item)]
        elif isinstance(value, Obj) and model.role(value) == "loader":
            yield value


def _divided(model: Model, loader: Obj, sharder: catalog.Sharder) -> Iterator[Obj]:
    """The samplers of a loader that share out what is then divided again."""
    for name in sharder.parts:
        for value in model.passed_to(loader, name):
            if (
                isinstance(value, Obj)
                and value.site is not None
                and not (sharder.leaves and model.is_a(value, sharder.leaves) is not False)
                and shares_out(model, value)
            ):
                yield value


def _by_hooks(model: Model, module: Module, framework: str) -> Iterator[Again]:
    table = catalog.framework(framework)
    injection = injections(model)
    for function in module.facts.functions:
        if function.cls is None or not _is_of(model, function.cls, framework):
            continue
        returned = [each.value for each in function.returns if each.value is not None]
        if function.name in table.sampler_hooks:
            if _makes_its_own_loader(model, function.cls, table.train_hooks):
                continue
            for value in (value for expr in returned for value in model.flow.values(expr)):
                if isinstance(value, Obj) and value.site is not None and shares_out(model, value):
                    yield Again(value, None, function, table.title, framework)
        elif function.name in table.train_hooks and any(
            contract.part == "sampler" for contract in catalog.contracts(framework, "wraps")
        ):
            if injection.switch(injection.program(module)) != Switch.OPEN:
                continue
            sharder = catalog.Sharder((), DISTRIBUTED_SAMPLER, ("sampler",))
            for loader in (each for expr in returned for each in _loaders(model, expr)):
                for sampler in _divided(model, loader, sharder):
                    yield Again(sampler, loader, function, f"{table.title}'s Trainer", framework)


def _makes_its_own_loader(model: Model, cls: Class, hooks: Collection[str]) -> bool:
    """Whether a class of the tree says what its loader is, and never asks the framework for it."""
    made = [model.flow.method(cls, hook) for hook in hooks]
    return any(
        isinstance(method, Function) and not any(last_name(c.func) in hooks for c in method.calls)
        for method in made
    )
