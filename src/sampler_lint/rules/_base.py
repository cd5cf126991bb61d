"""What a rule is. A rule file defines one subclass of :class:`Rule`; nothing registers it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from sampler_lint.edits.editor import Fixer
from sampler_lint.findings import Finding, Grade, Related, Severity
from sampler_lint.suppressions import Suppressions

if TYPE_CHECKING:
    from sampler_lint.domain.model import Model
    from sampler_lint.syntax.nodes import Node
    from sampler_lint.workspace.project import Module


@dataclass(slots=True)
class Suspect:
    """A place the model calls wrong.

    ``start`` and ``end`` are nodes of ``module``; the finding spans from the first character
    of ``start`` to the last of ``end`` (``start`` itself when ``end`` is None).
    """

    module: Module
    start: Node
    message: str
    """What is wrong, in one line of at most some 120 characters."""
    end: Node | None = None
    why: tuple[Related, ...] = ()
    fix: Fixer | None = field(default=None, repr=False)
    """Writes the fix, with an editor of ``module``; may be asked twice (see ``edits.editor``)."""
    candidates: Callable[[], Iterable[Fixer]] | None = field(default=None, repr=False)
    """All changes that may be meant, where only a run of the code can tell which."""
    grade: Grade = Grade.CERTAIN
    """``LIKELY`` where something unknown stands beside the claim, or where it is wrong only in a
    program that the tree does not show; its fix is never safe."""
    severity: Severity | None = None
    """None for the rule's."""
    effect: str = ""
    """What happens at run time, where the message does not say it."""
    advice: str = ""
    """What to do; shown where there is no fix."""
    hides: bool = False
    """Whether its fix may uncover what others are silent about while it stands: the program ends
    there with an error, or another rule takes it for the cause. Told where there is a fix."""


class Described(abc.ABC):
    """Anything with a code. The class docstring is its public page."""

    code: ClassVar[str]
    """``SMP`` (a plugin's: the name of its entry point) and three digits."""
    name: ClassVar[str]
    """kebab-case; must read well after "allow"."""
    symptoms: ClassVar[tuple[str, ...]] = ()
    """What a user with this bug sees, in their words; the same words as other rules where it is
    the same symptom. The rule is found by them."""
    default: ClassVar[bool] = True
    """Whether the rule is on without being selected."""
    severity: ClassVar[Severity] = Severity.ERROR
    """What the bug costs, where the suspect does not say otherwise."""
    fixable: ClassVar[str] = "sometimes"
    """``always``, ``sometimes`` or ``never``: whether a finding comes with a fix."""


class Rule(Described):
    """One kind of bug: what it is, how it is found, how it is fixed, how a fix is proved.

    The docstring has these sections, in this order: a one-line summary, then
    ``What it does``, ``Why is this bad?``, ``Fix safety``, ``How it is proved`` and
    ``References``.
    """

    invariant: ClassVar[str] = ""
    """The harness invariant that a program with this bug breaks (see ``harness.invariants``); a
    rule of ours has one."""

    @abc.abstractmethod
    def check(self, model: Model) -> Iterator[Suspect]:
        """Ask the model; yield a suspect for each certain answer.

        What is unknown on the way of the claim is silence; beside it, it makes a suspect likely.
        """


def classes_in(module: ModuleType) -> list[type[Described]]:
    """What has a code among the names of a module, imported ones too."""
    # In Python 3.10 `isinstance(tuple[int], type)` is true, and `issubclass` raises on it.
    named = [value for value in vars(module).values() if issubclass(type(value), type)]
    return [value for value in named if issubclass(value, Described)]


class Judged(NamedTuple):
    """A file about which every rule that was asked has spoken."""

    suppressions: Suppressions
    silenced: Sequence[Finding]
    """The findings that its comments silence."""
    asked: frozenset[str]
    """The codes of the rules that were asked about it."""
    known: Mapping[str, bool]
    """Every code that there is, and whether its rule is on without being selected."""


class FileRule(Described):
    """A rule about what a file says to the linter, not about what its code does."""

    @abc.abstractmethod
    def check(self, file: Judged) -> Iterator[Finding]:
        """Look at the file after every :class:`Rule` has spoken."""
