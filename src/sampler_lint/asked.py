"""Why a rule keeps silent about a place: the questions that it asked last, heard from outside.

No rule says a word for it: the calls that rules make are watched while they look.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sampler_lint.analysis.values import Obj, Unknown
from sampler_lint.domain.model import Model
from sampler_lint.findings import Place
from sampler_lint.rules import Rule, plugin_modules
from sampler_lint.syntax.nodes import Class, Expr, Function, Node

_RULES = "sampler_lint.rules."
_DOMAIN = "sampler_lint.domain."
#: What is asked to say where something stands.
_NO_QUESTIONS = frozenset({"classes", "module_of", "place", "place_of", "silent"})


class Question:
    """A call that a rule makes to learn something of the model, and what it got."""

    def __init__(
        self, function: Callable[..., Any], given: list[Any], asked_for: Question | None
    ) -> None:
        self._name = function.__name__
        self._says = inspect.getdoc(function)
        self.given = given
        self.got: list[Any] = []
        self.asked_for = asked_for
        self.last: Question | None = None
        """The last question that it led to."""
        if asked_for is not None:
            asked_for.last = self

    def lines(self, model: Model) -> list[str]:
        """It and the last one that each led to, in words; the last is why the rule stopped."""
        chain = [self]
        while chain[-1].last is not None:
            chain.append(chain[-1].last)
        told = [each for each in chain if each._says] or chain[-1:]
        return [f"{each._words()}: {each._answer(model)}" for each in told]

    def _words(self) -> str:
        if not self._says:
            return f"`{self._name}`"
        first = self._says.split("\n\n")[0].replace("\n", " ").rstrip(".")
        return f"{first[0].lower()}{first[1:]} (`{self._name}`)"

    def _answer(self, model: Model) -> str:
        return ", ".join(dict.fromkeys(_in_words(model, value) for value in self.got)) or "nothing"


def _in_words(model: Model, value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Unknown):
        return f"not known ({value.why.value}): {value.reason}"
    if isinstance(value, Obj):
        return f"the {value.name} of {model.place_of(value)}"
    if isinstance(value, (Class, Function)):
        return f"`{value.name}` of {model.place(value, value)}"
    if isinstance(value, Place):
        return str(value)
    if isinstance(value, Expr):
        scope = getattr(value, "scope", None)
        return f"line {value.row}" if scope is None else f"{model.place(scope, value)}"
    if isinstance(value, (tuple, list, set, frozenset, dict)) and not hasattr(value, "_fields"):
        return f"{len(value)} found" if value else "none"
    return str(getattr(value, "reason", "found"))


def last_questions(
    rules: Sequence[Rule], model: Model, nodes: set[Node]
) -> Iterator[tuple[Rule, Question]]:
    """The last question that each rule asks about one of ``nodes``, or about an object built there.

    Not of a rule that looked at no more than what kind of call or statement it is.
    """
    every = []
    with _Watch() as asked:
        for rule in rules:
            asked.clear()
            with contextlib.suppress(Exception):  # told as a failed rule before
                for _ in rule.check(model):
                    pass
            every.append((rule, _last_about(asked, nodes)))
    for rule, question in every:
        if question is not None:
            yield rule, question


def _last_about(asked: Sequence[Question], nodes: set[Node]) -> Question | None:
    about: list[Question] = []
    within: set[Question] = set()
    for each in asked:
        if each.asked_for in within or any(_is_about(value, nodes) for value in each.given):
            within.add(each)
            if each.asked_for not in within:
                about.append(each)
    if not any(each.last or any(map(_is_followed, each.given)) for each in about):
        return None
    return about[-1]


def _is_followed(value: Any) -> bool:
    """Whether it is more than a piece of text: an object, or a loop that was found."""
    return isinstance(value, (Obj, Class)) or (
        isinstance(value, tuple) and hasattr(value, "_fields")
    )


def _is_about(value: Any, nodes: set[Node]) -> bool:
    if isinstance(value, Obj):
        return value.site in nodes
    if isinstance(value, tuple):
        return any(_is_about(part, nodes) for part in value)
    return isinstance(value, Node) and value in nodes


class _Watch:
    """Hears of the questions that rules ask while it is entered.

    It stands in for the functions that the modules of rules name, and for the model's methods.
    """

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self._open: list[Question] = []
        self._replaced = contextlib.ExitStack()
        self._rules: tuple[str, ...] = ()

    def __enter__(self) -> list[Question]:
        self._rules = (_RULES, *plugin_modules())
        rules = [m for n, m in sorted(sys.modules.items()) if n.startswith(self._rules)]
        homes = (*self._rules, _DOMAIN)
        for owner in (*rules, Model):
            for name, function in list(vars(owner).items()):
                if not inspect.isfunction(function) or name.startswith("__"):
                    continue
                if function.__module__.startswith(homes) and name not in _NO_QUESTIONS:
                    setattr(owner, name, self._heard(function))
                    self._replaced.callback(setattr, owner, name, function)
        return self.asked

    def __exit__(self, *_: object) -> None:
        self._replaced.close()

    def _heard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def asks(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            by_rule = sys._getframe(1).f_globals["__name__"].startswith(self._rules)
            if not by_rule or not any(isinstance(each, Model) for each in given):
                return function(*args, **kwargs)
            question = Question(function, given, self._open[-1] if self._open else None)
            self.asked.append(question)
            with self._inside(question):
                got = function(*args, **kwargs)
            if inspect.isgenerator(got):
                return self._each(question, got)
            question.got.append(got)
            return got

        return asks

    @contextlib.contextmanager
    def _inside(self, question: Question) -> Iterator[None]:
        self._open.append(question)
        try:
            yield
        finally:
            self._open.pop()

    def _each(self, question: Question, answers: Iterator[Any]) -> Iterator[Any]:
        nothing = object()
        while True:
            with self._inside(question):
                answer = next(answers, nothing)
            if answer is nothing:
                return
            question.got.append(answer)
            yield answer
