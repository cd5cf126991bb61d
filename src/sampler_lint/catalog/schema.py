"""The shape of the catalog's tables: plain values for rules, pages and tests to go through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple


@cache
def release(text: str) -> tuple[int, ...]:
    """``2.0.3`` as numbers that compare; zeros at the end do not count (``2.0`` is ``2.0.0``)."""
    numbers = [int(part) for part in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def words(text: str) -> frozenset[str]:
    """The names in a line of them."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Span:
    """The versions of a package for which something holds."""

    since: str = ""
    """The first of them; empty if it is older than what the catalog tells of."""
    before: str = ""
    """The first release after them; empty if it holds in the newest."""

    def __contains__(self, version: tuple[int, ...]) -> bool:
        return (not self.since or release(self.since) <= version) and (
            not self.before or version < release(self.before)
        )

    def __str__(self) -> str:
        if self.since and self.before:
            return f"from {self.since} to before {self.before}"
        if self.since:
            return f"{self.since} and later"
        return f"before {self.before}" if self.before else "all versions"


ALL = Span()


class Constructor(NamedTuple):
    """What a constructor took in other versions than the newest."""

    versions: Span
    params: tuple[str, ...] = ()
    keywords: frozenset[str] = frozenset()
    required: int = 0


class KnownClass(NamedTuple):
    """A class outside the tree whose behaviour is known, as it is in the newest version."""

    name: str
    """Canonical dotted name."""
    kind: str
    """``sampler``, ``batch_sampler`` or ``loader``."""
    base: str | None = None
    """Canonical name of its base, when that is known too."""
    params: tuple[str, ...] = ()
    """Constructor parameters in positional order."""
    keywords: frozenset[str] = frozenset()
    """Keyword-only constructor parameters."""
    open: bool = False
    """Whether the constructor also takes ``*args`` or ``**kwargs``, for its base."""
    required: int = 0
    """How many parameters must be given."""
    attributes: frozenset[str] = frozenset()
    """What its own ``__init__`` or class body sets."""
    methods: frozenset[str] = frozenset()
    """Defined in the class itself, properties too; without ``__init__``."""
    reads: tuple[tuple[str, frozenset[str]], ...] = ()
    """For a method, the attributes of ``self`` it reads."""
    distributed: bool = False
    """Whether it hands each rank its own shard."""
    shuffles: str | bool = False
    """Whether its order is random: always, never, or by the parameter of that name."""
    shuffles_unasked: bool = True
    """Whether it does when that parameter is not given."""
    makes: tuple[tuple[str, str, tuple[str, ...], str], ...] = ()
    """The attributes that its ``__init__`` fills where no argument of that name is given, with the
    class that it builds for that, those of its own arguments that it passes on by name, and the one
    of these that is None where it builds nothing."""
    built_by: str = ""
    """``module:function`` that builds the base in a way of its own, where no class has the name."""
    earlier: tuple[Constructor, ...] = ()
    """Other constructors, in older versions."""
    aliases: tuple[str, ...] = ()
    """Other dotted names it can be imported by."""
    versions: Span = ALL
    """The versions of the package that have the class."""


class Factory(NamedTuple):
    """A function that builds a loader, and a sampler for it where it is asked to."""

    names: tuple[str, ...]
    """The dotted names it is reached by, that of its definition first."""
    params: tuple[str, ...]
    """Its first parameters, in their order."""
    sampler: str
    """The class of that sampler."""
    asked: tuple[str, ...]
    """The parameters that have to be true for it; they are false by default."""
    to_sampler: tuple[str, ...] = ("dataset",)
    """The arguments that the sampler gets, by the same names."""
    chosen_by: str = ""
    """The parameter that names another class for it."""
    hands_on: frozenset[str] = frozenset({"dataset", "batch_size"})
    """The arguments that reach the loader as they are; how it uses others is not known."""


class HandsBack(NamedTuple):
    """A function that gives back what it is given, each in its place."""

    names: tuple[str, ...]
    """The dotted names it is reached by; ``()`` stands for an instance."""
    params: tuple[str, ...]
    """Its parameters, in the order of both what it takes and what it returns; ``self`` for a
    method that returns the object it is called of."""


class Sharder(NamedTuple):
    """A function that gives each rank a part of the loaders it is handed."""

    names: tuple[str, ...]
    """The dotted names it is reached by; ``()`` stands for an instance, ``self`` for one whose
    class derives from the framework's."""
    leaves: str = ""
    """The class of samplers whose loaders it leaves as they are."""
    parts: tuple[str, ...] = ("sampler", "batch_sampler")
    """The arguments of a loader whose order it divides, and does not make anew."""
    switch: str = ""
    """The argument that turns it off."""


class Runner(NamedTuple):
    """A method that goes over the loader it is handed in each epoch, and sets no epoch itself."""

    names: tuple[str, ...]
    """The dotted names it is reached by; ``()`` stands for an instance."""
    params: tuple[str, str]
    """The parameter of the loader, and that of the number of epochs, which is 1 by default."""
    step: str = ""
    """The argument of the instance that is called for each batch; empty where it trains itself."""


class Fit(NamedTuple):
    """A call that has a framework go over a loader, whose epochs that sets itself."""

    names: tuple[str, ...]
    """The dotted names it is reached by; ``()`` stands for an instance."""
    params: tuple[str, ...]
    """The parameter of the loader, as it was and is called."""
    place: int | None = None
    """Where the loader stands among the arguments without a name."""
    evaluates: bool = False
    """Whether it evaluates with that loader instead."""


Deed = Literal["reads", "demands", "calls", "rebuilds", "wraps", "replaces", "seeds"]


class Contract(NamedTuple):
    """What a framework does with one part of a loader that it is given, or with its process."""

    does: Deed
    """``reads`` attributes, ``demands`` a class, ``calls`` a method, ``rebuilds`` the part by
    calling its class anew, ``wraps`` or ``replaces`` it; of the process it ``seeds`` generators."""
    part: str
    """The loader's ``sampler``, ``batch_sampler``, ``batch_sampler.sampler`` or ``dataset``; or the
    ``process``."""
    names: tuple[str, ...]
    """The attributes read, the class demanded or put around it, the method called, the parameters
    that the new call names, or the libraries whose generators are seeded."""
    versions: Span = ALL
    when: str = ""
    """Under which conditions, in words."""
    without: str = ""
    """What happens when the part is not as it should be; a message may quote it."""
    source: str = ""
    """``module:function`` where it stands."""
    code: tuple[str, ...] = ()
    """What stands there, as ``ast.unparse`` writes it."""
    absent: tuple[str, ...] = ()
    """What does not stand there, so that it differs from other versions."""


class Framework(NamedTuple):
    """A package that takes a program's loaders (or torch itself)."""

    name: str
    """As the rest of the linter calls it."""
    title: str
    """As a message calls it."""
    packages: tuple[str, ...]
    """Import names, newest first."""
    distributions: tuple[str, ...]
    """Names on the package index, in the order of ``packages``."""
    releases: tuple[str, ...]
    """Releases to try a requirement on: each minor one, and those where something changed."""
    pythons: tuple[tuple[str, Span], ...] = ()
    """The oldest Python that releases run on."""
    trainers: frozenset[str] = frozenset()
    """The names that take the loaders: who imports none of them only borrows a helper."""
    switches: tuple[tuple[str, Span], ...] = ()
    """Arguments of those that turn rebuilding and replacing off."""
    train_hooks: frozenset[str] = frozenset()
    """Methods of its classes that give the loader to train with."""
    evaluation_hooks: frozenset[str] = frozenset()
    """Methods of its classes that give loaders to evaluate or predict with."""
    divides_hooked: bool = True
    """Whether it divides the loaders that these methods give; if not, only those it makes."""
    sampler_hooks: frozenset[str] = frozenset()
    """Methods of its classes that give the sampler of a loader that it then shards."""
    imported_as: tuple[tuple[str, Span], ...] = ()
    """What an import name alone says of the version, where two names share the package."""
    registry: str = ""
    """The registry from which it builds the batch samplers of a configuration."""
    own_data: str = ""
    """The argument of a dataset, if it divides only the loader that it makes of that."""
    contracts: tuple[Contract, ...] = ()
    classes: tuple[KnownClass, ...] = ()
    factories: tuple[Factory, ...] = ()
    hands_back: tuple[HandsBack, ...] = ()
    sharders: tuple[Sharder, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    """Attributes of its objects that tell ``rank``, ``local rank`` or ``world size``."""
    runners: tuple[Runner, ...] = ()
    fits: tuple[Fit, ...] = ()
    loader_makers: tuple[str, ...] = ()
    """Functions that build a loader of a dataset: on several ranks with torch's DistributedSampler,
    where they are given no sampler."""
