"""SMP202: the ranks shuffle with different seeds before each takes its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from sampler_lint.analysis.origins import LOCAL, given_by, only, scope_of
from sampler_lint.analysis.values import Lit, Obj
from sampler_lint.domain.agreement import agrees
from sampler_lint.domain.concepts import SEEDS_ALL
from sampler_lint.domain.divided import (
    OwnDraw,
    is_divided,
    is_drawn_once,
    ordered_before,
    own_draws,
    shared_own_draws,
)
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.rank_terms import RankTerm, differs, drawn_apart, is_rank
from sampler_lint.domain.ranks import kinds
from sampler_lint.domain.samplers import is_distributed_sampler, may_shuffle, sharding_sites
from sampler_lint.domain.seeds import constructions, is_seed_name
from sampler_lint.domain.settled import never_runs
from sampler_lint.domain.shards import (
    GlobalDraw,
    OwnShuffle,
    RankSeeding,
    drawn_by,
    draws,
    own_shuffles,
    rank_seedings,
    shared_draws,
    slices_own_shuffle,
)
from sampler_lint.domain.unseeded import unseeded_draws
from sampler_lint.edits.draw_fixes import draw_alike, sync_seed
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import means_the_same, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import splitting_place
from sampler_lint.syntax.navigation import leftmost, same, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Node,
    Scope,
    Store,
    last_name,
)
from sampler_lint.workspace.project import Module

_SHARES_OVERLAP = "some samples are read by several ranks and others by none"
_OTHER_ORDERS = f"the ranks shard different permutations of the data: {_SHARES_OVERLAP}"
_TAKEN_HERE = "the rank's share is taken here"
_MAY_HAVE_TO_DIFFER = "what else reads the seed may have to differ between ranks"


class SeedDiffersByRank(Rule):
    """The ranks shuffle with different seeds before each takes its share.

    What it does:
        Reports a rank that becomes part of

        - the `seed` of a distributed sampler (`DistributedSampler(data, seed=args.seed + rank)`),
          or the epoch it is given, which is added to the seed (`set_epoch(epoch + rank)`),
        - the seed of a generator that shuffles samples or files before each rank takes its slice
          (`g.manual_seed(self.seed + self.rank)`), or those with `i % world_size == rank`,
        - the seed of a global generator (`torch.manual_seed(args.seed + rank)`) from which
          `random_split` or the constructor of a dataset then draws, or a permutation that chooses
          the samples which a sampler divides, or of which a rank takes its slice,
        - the seed of a generator for such a draw alone, also as `random_state=`.

        The clock, the process's id and a generator made without a seed count like the rank.

        Also reports data that is shuffled, chosen or split with the global generator of `random`,
        numpy, scikit-learn or torch before a sampler divides it, or before a rank takes its slice,
        if nothing in the files that run together seeds that generator: it then starts from the
        system's entropy in each process, as do the workers of its loaders. Only `likely` where a
        framework divides the data, as it does in a program of one process as well.

        Not reported where the ranks may agree on the seed (by a broadcast, for example), where a
        rank shuffles only its own part, and for draws with replacement.

    Why is this bad?
        Each rank takes a slice by position. If every rank slices a different permutation, some
        samples are read by several ranks and others by none; with a split, one rank trains on
        what another validates on. No error is raised, and the loss looks fine.

    Fix safety:
        Safe: the rank, or what holds it, is removed from the sum, so that all ranks have the same
        seed; where a variable holds the sum, it keeps the rank, and the rest is passed. Unsafe
        where the sampler is told another rank than that in the seed (each node may read all data),
        or `*` or `**` may pass the number of replicas: one of its own shares nothing; and where
        noise may come from the same generator, as from the process's own. Unsafe, too:
        the seed that a function takes is passed on without what this adds. Where the rank is added
        elsewhere, it may be wanted for augmentation and stays. Then the split is drawn from its own
        generator with the program's seed, if that is available there (or 0, where nothing seeds the
        program), or a sampler in the repository uses the seed of rank 0, which is broadcast. That
        also helps where the seed comes from the clock or the system, and the file imports
        `torch.distributed`. All of these are unsafe: the split differs from the one before, and the
        broadcast waits for all ranks.

    How it is proved:
        Invariant `partitions`: on two gloo ranks the shares overlap before the fix, and are
        disjoint and complete after it.

    References:
        - torch/utils/data/distributed.py: `seed` "should be identical across all processes in
          the distributed group"
        - https://github.com/open-mmlab/mmpose/pull/1257
        - https://github.com/QwenLM/Qwen3-VL/issues/1947
        - Python's `random`: "If seed is omitted or None, the current system time is used", or
          what the operating system gives
        - met in https://github.com/cszn/KAIR (main_train_psnr.py)
    """

    code = "SMP202"
    name = "seed-differs-by-rank"
    symptoms = (
        "ranks train on the same samples",
        "some samples are never read",
        "validation scores look too good",
    )
    invariant = "partitions"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the seeds of samplers, then at the generators of the process."""
        seen: set[Expr] = set()
        for sampler in constructions(model):
            suspect = _seed_argument(model, sampler, seen)
            if suspect is not None and suspect.start not in seen:
                seen.add(suspect.start)  # type: ignore[arg-type]
                yield suspect
        yield from _epochs_given(model)
        files = _files(model)
        for module in files:
            for shuffle in own_shuffles(model, module):
                if shuffle.term.whole not in seen:
                    seen.add(shuffle.term.whole)
                    yield _own_shuffle(model, shuffle)
        yield from _global_draws(model)

        def is_untold(own: OwnDraw) -> bool:
            return own.term is None or own.term.whole not in seen

        before = [own for own in own_draws(model) if is_untold(own)]
        shared = (own for module in files for own in shared_own_draws(model, module))
        for own in chain(before, filter(is_untold, shared)):
            if own.call not in seen:
                seen |= {own.call} if own.term is None else {own.call, own.term.whole}
                yield _own_draw(model, own)
        for draw, certain in unseeded_draws(model):
            if draw.call not in seen:
                seen.add(draw.call)
                yield _unseeded(model, draw, Grade.CERTAIN if certain else Grade.LIKELY)


def _files(model: Model) -> list[Module]:
    """The files that say samplers, and those of the datasets that loaders get."""
    found = dict.fromkeys(model.modules)
    for loader in model.loaders:
        for value in model.passed_to(loader, "dataset") if loader.site is not None else ():
            if isinstance(value, Obj) and isinstance(value.cls, Class):
                found[model.module_of(value.cls)] = None
    return [module for module in found if not is_test(module)]


# --------------------------------------------------------------------------- samplers


def _seed_argument(model: Model, sampler: Obj, seen: set[Expr]) -> Suspect | None:
    """What is wrong with the seed that a sampler gets; where the rank enters it is ``seen``."""
    site = sampler.site
    if site is None or model.role(sampler) == "loader":
        return None
    module = model.module_of(site.scope)
    given = model.flow.argument(sampler, "seed")
    if given is None or is_test(module) or not _shuffles_what_it_divides(model, sampler):
        return None
    term = differs(model, given, site.scope)
    if term is None:
        return _drawn_seed(model, module, sampler, site, given)
    keeps = _keeps_seed(model, sampler)
    if keeps is not None and agrees(keeps.scope, *_kept(keeps)):
        return None
    if term.whole is not given:
        seen.add(term.whole)
    message = (
        f"`{sampler.name}` gets a seed that contains `{unparse(term.term)}`, so every rank "
        f"shuffles differently"
    )
    why: tuple[Related, ...] = (
        Related(model.place(term.scope, term.whole), "the rank enters here"),
    )
    if term.scope is not site.scope and keeps is not None and keeps.value is not None:
        why = (*why, Related(model.place(site.scope, site), "the sampler is built here"))
        where = model.module_of(keeps.scope)
        return Suspect(
            where,
            keeps.target,
            message,
            keeps.value,
            why,
            partial(sync_seed, keeps.value, keeps.scope, "Keep"),
            effect=_SHARES_OVERLAP,
            advice="use the seed of rank 0 on every rank (broadcast it here)",
        )
    fix: Callable[[Editor], Fix | None] | None = None
    is_open = not _is_told_the_same(model, sampler, term)
    if term.scope is site.scope and (term.whole is given or not is_open):
        unsafe = f"it may divide by another rank than `{unparse(term.term)}`" if is_open else ""
        fix = partial(_drop_rank, term, "seed", unsafe)
        if term.whole is not given:
            fix = partial(_pass_rest, model, term, given)
            if isinstance(given, Bin):
                fix = partial(_drop_side, model, term, given)
    elif isinstance(term.scope, Function):
        fix = partial(_pass_taken, model, term, given)
    return Suspect(
        module,
        given,
        message,
        why=why,
        fix=fix,
        effect=_SHARES_OVERLAP,
        advice="pass a seed that is the same on every rank",
    )


def _is_told_the_same(model: Model, sampler: Obj, term: RankTerm) -> bool:
    """Whether the rank in the seed is surely the one by which the sampler divides.

    The number of a node in the seed is right where each node reads all data. What nobody sees may
    tell the sampler that there is one replica.
    """
    if model.flow.may_be_passed(sampler, "num_replicas"):
        return False
    told = model.argument(sampler, "rank")
    if told is None or unparse(told) == unparse(term.term):
        return True
    kind = kinds(model, told)
    return len(kind) == 1 and kind == kinds(model, term.term) != {"unknown"}


def _drawn_seed(
    model: Model, module: Module, sampler: Obj, site: Call, given: Expr
) -> Suspect | None:
    """The seed comes from the clock or the system, and nothing makes the ranks agree on it."""
    step, source = drawn_apart(model, given) or (None, None)
    keeps = _keeps_seed(model, sampler) if step is not None else None
    if step is None or agrees(site.scope, given):
        return None
    if keeps is not None and agrees(keeps.scope, *_kept(keeps)):
        return None
    why: tuple[Related, ...] = ()
    if step.scope is not site.scope:
        why = (Related(model.place(step.scope, step.expr), "the seed is drawn here"),)
    return Suspect(
        module,
        given,
        f"`{sampler.name}` gets a seed from `{source}`, which differs from rank to rank",
        why=why,
        fix=partial(sync_seed, given, site.scope, "Pass"),
        effect=_SHARES_OVERLAP,
        advice="pass a seed that is set, or broadcast that of rank 0",
    )


def _kept(store: Store) -> list[Expr]:
    """The seed that a constructor keeps, and what it is kept as."""
    return [one for one in (store.value, store.target) if one is not None]


def _keeps_seed(model: Model, sampler: Obj) -> Store | None:
    """Where the constructor of a class of the tree keeps the seed."""
    if not isinstance(sampler.cls, Class):
        return None
    init = model.flow.method(sampler.cls, "__init__")
    if not isinstance(init, Function):
        return None
    for store in init.stores:
        target = store.target
        if (
            isinstance(target, Attr)
            and is_seed_name(target.name.lstrip("_"))
            and self_class(target.value) is not None
        ):
            return store
    return None


def _epochs_given(model: Model) -> Iterator[Suspect]:
    """A sampler adds its epoch to its seed: what is true of the one is true of the other."""
    for call in model.epoch_setters:
        module = model.module_of(call.scope)
        if is_test(module) or len(call.args) != 1 or not isinstance(call.func, Attr):
            continue
        given = call.args[0].value
        samplers = [
            sampler
            for value in model.flow.values(call.func.value)
            if isinstance(value, Obj)
            for sampler, _ in epoch_samplers(model, value)
            if _shuffles_what_it_divides(model, sampler)
        ]
        term = differs(model, given, call.scope) if samplers else None
        if term is None or agrees(call.scope, given):
            continue
        yield Suspect(
            module,
            given,
            f"`{samplers[0].name}` gets an epoch that contains `{unparse(term.term)}`, so every "
            f"rank shuffles differently",
            why=(Related(model.place(term.scope, term.whole), "the rank enters here"),),
            fix=partial(_drop_rank, term, "epoch", "") if term.whole is given else None,
            effect=_SHARES_OVERLAP,
            advice="pass the same epoch on every rank",
        )


def _shuffles_what_it_divides(model: Model, sampler: Obj) -> bool:
    if not is_distributed_sampler(model, sampler) or not may_shuffle(model, sampler):
        return False
    size = model.argument(sampler, "num_replicas")
    if size is not None and Lit(1, "int") in model.flow.values(size):
        return False  # what the rank reads is its own already
    cls = sampler.cls
    return (
        not isinstance(cls, Class)
        or model.is_a(sampler, DISTRIBUTED_SAMPLER)
        or slices_own_shuffle(model, cls)
    )


def _own_shuffle(model: Model, shuffle: OwnShuffle) -> Suspect:
    term = shuffle.term
    scope = shuffle.seeded.call.scope
    assert isinstance(scope, Function)
    cls = scope.cls
    who = scope.name if cls is None else cls.name
    message = (
        f"`{who}` shuffles with a seed that contains `{unparse(term.term)}`, and then takes the "
        f"rank's {'share' if shuffle.share is None else 'slice'}"
    )
    taken: tuple[Module, Node] | None = None
    if shuffle.share is not None:
        taken = model.module_of(shuffle.taker), shuffle.share
    elif cls is not None:
        taken = splitting_place(model, cls)
    why: tuple[Related, ...] = ()
    if taken is not None and taken[1].row != term.whole.row:
        why = (Related(taken[0].place(taken[1]), _TAKEN_HERE),)
    inside = term.scope is scope or (isinstance(term.scope, Function) and term.scope.cls is cls)
    unsafe = _drawn_later(model, shuffle) if inside else _MAY_HAVE_TO_DIFFER
    return Suspect(
        model.module_of(term.scope),
        term.whole,
        message,
        why=why,
        fix=partial(_drop_rank, term, "seed", unsafe),
        effect=f"every rank slices another permutation: {_SHARES_OVERLAP}",
        advice="leave the rank out of the seed",
    )


def _drawn_later(model: Model, shuffle: OwnShuffle) -> str:
    """What else is drawn from the generator, once the rank has its share: noise, for example."""
    name, share = shuffle.seeded.generator, shuffle.share
    if name is None and SEEDS_ALL.is_made(shuffle.seeded.call, model.flow.values):
        return _MAY_HAVE_TO_DIFFER
    for call in shuffle.taker.calls if share is not None and name is not None else ():
        given = call.keyword("generator")
        maker = given if given is not None else getattr(call.func, "value", None)
        if maker is not None and last_name(maker) == name and share and call.row > share.row:
            return f"`{unparse(call)}` draws from the same generator"
    for store in shuffle.taker.stores if name is not None else ():
        is_ordering = any(same(read, store.target) for read in shuffle.taker.reads)
        parts = walk(store.value) if store.value is not None and not is_ordering else ()
        if name in map(last_name, parts) and last_name(store.target) != name:
            return f"`{unparse(store.target)}` is drawn from the same generator"
    return ""


def _drop_rank(term: RankTerm, what: str, unsafe: str, editor: Editor) -> Fix | None:
    """Leave the rank out of a sum: safe but for what makes it unsafe."""
    safe = Applicability.UNSAFE if unsafe else Applicability.SAFE
    for node in walk(term.whole):
        side = _side_of(node, term.term)
        if isinstance(node, Bin) and side is not None:
            rest = _other(node, side)
            if isinstance(rest, Const) and rest.value == 1:  # `seed * (rank + 1)`
                products = (one for one in walk(term.whole) if isinstance(one, Bin))
                product = next((one for one in products if node in {one.left, one.right}), None)
                if product is not None and product.op == "Mult":
                    node, rest = product, _other(product, node)
            text = text_of(editor.source, rest)
            if isinstance(rest, Choice) and node is not term.whole:
                text = f"({text})"  # it binds less than what stands around the sum
            message = f"Drop `{text_of(editor.source, side)}` from the {what}"
            if isinstance(rest, (Attr, Call, Const, Name)):
                return editor.replace_whole(node, text).fix(message, safe, unsafe)
            return editor.replace(node, text).fix(message, safe, unsafe)
    return None


def _side_of(node: Node, rank: Expr) -> Expr | None:
    """The side of a sum that is the rank, or a number times it."""
    for side in (node.left, node.right) if isinstance(node, Bin) and node.op == "Add" else ():
        if side is rank or (
            isinstance(side, Bin) and side.op == "Mult" and rank in {side.left, side.right}
        ):
            return side
    return None


def _pass_rest(model: Model, term: RankTerm, given: Expr, editor: Editor) -> Fix | None:
    """Pass what a variable holds but for the rank; for other uses it keeps the rank.

    The variable is set once, and nothing sets what else is in its sum again.
    """
    whole = term.whole
    if not isinstance(given, Name) or not isinstance(whole, Bin):
        return None
    bindings = given.scope.bindings.get(given.id, ())
    if len(bindings) != 1 or bindings[0].value is not whole or whole.op != "Add":
        return None
    rest = _other(whole, term.term)
    if term.term not in {whole.left, whole.right} or not isinstance(rest, (Attr, Const, Name)):
        return None
    root = leftmost(rest)
    if isinstance(root, Name) and len(root.scope.bindings.get(root.id, ())) > 1:
        return None
    names = {node.name for node in walk(rest) if isinstance(node, Attr)}
    stores = chain.from_iterable(map(model.project.stores_of, names))
    if any(isinstance(s.target, Attr) and self_class(s.target.value) is None for s in stores):
        return None
    text = text_of(editor.source, rest)
    editor.replace(given, text).forget(given)
    left_out = text_of(editor.source, term.term)
    return editor.fix(f"Pass `{text}`, without `{left_out}`", Applicability.SAFE)


def _pass_taken(model: Model, term: RankTerm, given: Expr, editor: Editor) -> Fix | None:
    """Pass what a function takes that adds the rank to it and returns the sum."""
    call = given if isinstance(given, Call) else only(model.flow, given, LOCAL)
    whole = term.whole
    if not isinstance(call, Call) or not isinstance(whole, Bin) or whole.op != "Add":
        return None
    if term.term not in {whole.left, whole.right} or model.flow.callees(call) != [term.scope]:
        return None
    taken = given_by(model.flow, call, _other(whole, term.term))
    if taken is None or not (
        call is given or isinstance(taken, Const) or _is_set_once(taken, scope_of(given))
    ):
        return None
    text = text_of(editor.at(model.module_of(call.scope)).source, taken)
    editor.replace(given, text)
    left_out = unparse(term.term)
    because = f"whatever else `{last_name(call.func)}` does to it is left out"
    return editor.fix(f"Pass `{text}`, without `{left_out}`", Applicability.UNSAFE, because)


def _is_set_once(taken: Expr, scope: Scope) -> bool:
    """Whether a name means one thing wherever a scope reads it."""
    return (
        isinstance(taken, Name)
        and means_the_same(taken, scope)
        and all(len(each.bindings.get(taken.id, ())) <= 1 for each in scope.outward())
    )


def _drop_side(model: Model, term: RankTerm, given: Bin, editor: Editor) -> Fix | None:
    """Leave out the side of a sum that is but a name of the rank."""
    sides = (given.left, given.right)
    ends = {term.whole, term.term}
    ranks = [one for one in sides if only(model.flow, one, LOCAL) in ends]
    if given.op != "Add" or len(ranks) != 1 or not isinstance(ranks[0], (Attr, Name)):
        return None
    rest = _other(given, ranks[0])
    if differs(model, rest, term.scope) is not None:
        return None
    editor.replace_whole(given, text_of(editor.source, rest))
    left_out = text_of(editor.source, ranks[0])
    return editor.fix(f"Drop `{left_out}` from the seed", Applicability.SAFE)


def _other(sides: Bin, one: Expr) -> Expr:
    return sides.left if sides.right is one else sides.right


# --------------------------------------------------------------------------- global generators


def _global_draws(model: Model) -> Iterator[Suspect]:
    told: set[tuple[str, object]] = set()
    programs = program_files(model).programs
    # Where nothing draws from such a generator, how it is seeded does not matter.
    is_drawn = any(
        ask(model, each) for each in programs for ask in (draws, ordered_before, shared_draws)
    )
    for seeding in rank_seedings(model) if is_drawn else ():
        if _is_drawn_for_all(model, seeding):
            continue
        found = shared_draws(model, seeding.program)
        if _is_distributed(model, seeding):
            found = [
                *draws(model, seeding.program),
                *ordered_before(model, seeding.program),
                *found,
            ]
        drawn = [
            draw for draw in drawn_by(model, seeding, found) if not never_runs(model, draw.call)
        ]
        answers = {draw: is_divided(model, draw, seeding.program) for draw in drawn}
        drawn = [draw for draw in drawn if answers[draw] is not False]
        seen = [draw for draw in drawn if answers[draw]]
        if not drawn:
            continue
        if _is_local(seeding):
            key = (seeding.program, seeding.call.scope)
            if key not in told:
                told.add(key)
                yield _at_seeding(model, seeding, seen or drawn, _grade(seen))
            continue
        for draw in drawn:
            if (seeding.program, draw.call) not in told:
                told.add((seeding.program, draw.call))
                yield _at_draw(model, seeding, draw, _grade([draw] if draw in seen else []))


def _grade(seen: list[GlobalDraw]) -> Grade:
    return Grade.CERTAIN if seen else Grade.LIKELY


def _is_distributed(model: Model, seeding: RankSeeding) -> bool:
    """Whether the program divides its data among ranks, and may do so where it seeds."""
    files = model.project.modules_in(seeding.program)
    return any(model.frameworks(module) & {"accelerate", "lightning"} for module in files) or any(
        model.project.program_of(model.module_of(site.scope)) == seeding.program
        and launches(model).together(site, seeding.at) is not False
        for site in sharding_sites(model)
    )


def _is_drawn_for_all(model: Model, seeding: RankSeeding) -> bool:
    """Whether a seed that is no rank's may be drawn before the processes are started."""
    return not is_rank(seeding.term.term) and is_drawn_once(model, seeding.program)


def _is_local(seeding: RankSeeding) -> bool:
    """Whether the script itself adds its rank, so that this is the place to change."""
    scope = seeding.call.scope
    takes = isinstance(scope, Function) and any(is_seed_name(p.name) for p in scope.params)
    return seeding.term.scope is scope and not takes


def _fix_draws(
    model: Model, draws: list[GlobalDraw], otherwise: str | None = None
) -> Callable[[Editor], Fix | None] | None:
    """A generator that is made in each pass would draw one order in all epochs."""
    if any(draw.shared_by is not None for draw in draws):
        return None
    return partial(draw_alike, model, draws, otherwise=otherwise)


def _at_seeding(
    model: Model, seeding: RankSeeding, draws: list[GlobalDraw], grade: Grade
) -> Suspect:
    what = draws[0].what
    message = (
        f"`{unparse(seeding.call.func)}` seeds every rank differently, and {what} depends on it"
    )
    drawn = dict.fromkeys(draw.call for draw in draws)
    why = tuple(Related(model.place(call.scope, call), "drawn here") for call in drawn)
    return Suspect(
        seeding.module,
        seeding.call,
        message,
        why=why,
        grade=grade,
        fix=_fix_draws(model, draws, otherwise=_rest(seeding)),
        effect=_OTHER_ORDERS,
        advice="use the same seed on all ranks until the data is built, or pass a separate "
        "generator",
    )


def _rest(seeding: RankSeeding) -> str | None:
    """The number that the seed of each rank adds its rank to."""
    whole, term = seeding.term.whole, seeding.term.term
    if isinstance(whole, Bin) and whole.op == "Add" and term in {whole.left, whole.right}:
        rest = _other(whole, term)
        is_plain = isinstance(rest, Const) and type(rest.value) is int
        return unparse(rest) if is_plain else None
    return None


def _at_draw(model: Model, seeding: RankSeeding, draw: GlobalDraw, grade: Grade) -> Suspect:
    message = (
        f"{draw.what} depends on {draw.library}'s global generator, which every rank seeds "
        f"differently (`{unparse(seeding.term.term)}`)"
    )
    why = (
        Related(
            model.place(seeding.term.scope, seeding.term.whole),
            "the rank enters here" if is_rank(seeding.term.term) else "the seed is drawn here",
        ),
        Related(model.place(seeding.call.scope, seeding.call), "the generator is seeded here"),
    )
    splits = "what one rank trains on, another may validate on"
    return Suspect(
        draw.module,
        draw.call,
        message,
        why=why,
        grade=grade,
        fix=_fix_draws(model, [draw], otherwise=_rest(seeding)),
        effect=splits if draw.shared_by is None else _OTHER_ORDERS,
        advice="use a generator with the same seed on all ranks",
    )


def _own_draw(model: Model, own: OwnDraw) -> Suspect:
    what = last_name(own.call.func)
    if own.term is None:
        message = f"`{what}` draws by `{own.source}`, which differs from rank to rank"
    else:
        message = f"`{what}` draws with a seed that contains `{own.source}`, another on each rank"
    return Suspect(
        model.module_of(own.call.scope),
        own.call,
        message,
        why=(Related(model.place(scope_of(own.seed), own.seed), "the seed"),)
        if own.term is None
        else (Related(model.place(own.term.scope, own.term.whole), "the rank enters here"),),
        fix=_fix_own(own),
        effect=f"the ranks divide different permutations of the data: {_SHARES_OVERLAP}",
        advice="draw with a generator that has the same seed on all ranks",
    )


def _fix_own(own: OwnDraw) -> Fixer | None:
    """Drop the rank from the seed of a draw, made in the same function or class."""
    here, term = own.call.scope, own.term
    if term is None:
        return None
    if term.scope is here:
        return partial(_drop_rank, term, "seed", "")
    cls = here.cls if isinstance(here, Function) else None
    inside = isinstance(term.scope, Function) and cls is not None and term.scope.cls is cls
    return partial(_drop_rank, term, "seed", _MAY_HAVE_TO_DIFFER) if inside else None


def _unseeded(model: Model, draw: GlobalDraw, grade: Grade) -> Suspect:
    message = (
        f"{draw.what} depends on {draw.library}'s global generator, which nothing seeds: it "
        f"differs between ranks"
    )
    return Suspect(
        draw.module,
        draw.call,
        message,
        # Nothing seeds the program, so any number is as good.
        fix=_fix_draws(model, [draw], otherwise="0"),
        grade=grade,
        effect=_OTHER_ORDERS,
        advice="use a generator with the same seed on all ranks",
    )
