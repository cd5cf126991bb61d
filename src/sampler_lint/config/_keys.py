"""The keys of a configuration: what each takes, and what it is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sampler_lint.findings import Severity

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class RefusedError(Exception):
    """A value that its key does not take; the text says what it does take."""

    def about(self, key: Key) -> str:
        """The same with the key's name."""
        return f"{key.name}{' ' if str(self).startswith('must') else ': '}{self}"


@dataclass(frozen=True, slots=True)
class Key:
    """One key, spelled as in the file."""

    name: str
    read: Callable[[Any], Any]
    """From the TOML value to ours; raises :class:`RefusedError`."""
    example: str
    """A line as it may stand in the file."""
    help: str
    run: bool = False
    """Whether it is a choice of the whole run, not of single files."""

    @property
    def field(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")

    @property
    def is_flag(self) -> bool:
        """Whether its value is true or false."""
        return self.read is _flag

    @property
    def takes_list(self) -> bool:
        """Whether its value is a list."""
        return self.example.startswith(f"{self.name} = [")


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RefusedError("must be a list of strings")
    return tuple(value)


def _codes(value: Any) -> tuple[str, ...]:
    return known_codes(_strings(value))


def known_codes(words: Collection[str]) -> tuple[str, ...]:
    """Prefixes of rules' codes, and ``ALL``, in capitals; the code of a rule for its name.

    Raises:
        RefusedError: one of them is no rule's name and begins no rule's code.
    """
    if all(word.upper() == "ALL" for word in words):
        return ("ALL",) * len(words)  # nothing to look for the rules for
    from sampler_lint.rules import names

    named = names()
    codes = []
    for word in words:
        code = named.get(word.lower().replace("_", "-"), word.upper())
        if code != "ALL" and not (word and any(each.startswith(code) for each in named.values())):
            hint = nearest(word, named) or "sampler-lint rule lists them"
            raise RefusedError(f"no rule's code begins with {word!r} ({hint})")
        codes.append(code)
    return tuple(codes)


def nearest(word: str, words: Collection[str]) -> str:
    """``did you mean ...?``, or nothing when no word is near.

    Each part between hyphens has to begin as in ``word`` and to be near itself: a slip is rarely
    made in a first letter, and what turns a meaning round is a part more or less (``no-``,
    ``-only``) or another beginning (``un-``, ``in-`` for ``ex-``, ``max-`` for ``min-``).
    """
    from difflib import SequenceMatcher, get_close_matches

    def is_alike(other: str) -> bool:
        parts, others = word.replace("_", "-").split("-"), other.split("-")
        if len(parts) != len(others):
            joined = SequenceMatcher(None, "".join(parts), "".join(others)).ratio()
            return other.startswith(word) or joined > 0.9
        pairs = zip(parts, others, strict=True)
        return all(a[:1] == b[:1] and SequenceMatcher(None, a, b).ratio() > 0.5 for a, b in pairs)

    near = get_close_matches(word, filter(is_alike, words), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _codes_by_pattern(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise RefusedError("must be a table from patterns to lists of codes")
    for pattern, codes in value.items():
        if not isinstance(codes, list):
            raise RefusedError(f"must give a list of codes for {pattern!r}")
    return tuple((pattern, _codes(codes)) for pattern, codes in value.items())


def _names(value: Any) -> tuple[str, ...]:
    names = _strings(value)
    for name in names:
        if not _DOTTED.fullmatch(name):
            raise RefusedError(f"must be a list of dotted names, which {name!r} is not")
    return names


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedError("must be true or false")
    return value


def _version(value: Any) -> str:
    from sampler_lint.workspace.requirements import specifier

    text = value if isinstance(value, str) else ""
    try:
        specifier(text)
    except ValueError as error:
        raise RefusedError('must be a version like "2.4", in quotes, or like ">=2.4"') from error
    return text


def _required(value: Any) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from sampler_lint import __version__

    text = value if isinstance(value, str) else ""
    try:
        wanted = SpecifierSet(text if text[:1] in "<>=!~" else f"=={text}")
    except InvalidSpecifier:
        wanted = SpecifierSet()
    if not wanted:
        raise RefusedError('must be a version like "0.1.0", in quotes, or like ">=0.1,<2"')
    if not wanted.contains(__version__, prereleases=True):
        raise RefusedError(f"{text!r} is required, but this is sampler-lint {__version__}")
    return text


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise RefusedError("must be a path")
    return value


def one_of(value: Any, choices: Collection[str]) -> str:
    """``value`` if it is among the choices.

    Raises:
        RefusedError: it is not.
    """
    if not isinstance(value, str) or value not in choices:
        near = nearest(value, choices) if isinstance(value, str) else ""
        hint = f" ({near})" if near else ""
        raise RefusedError(f"must be one of {', '.join(sorted(choices))}{hint}")
    return value


def _format(value: Any) -> str:
    from sampler_lint.reporters import FORMATS

    return one_of(value, FORMATS)


def _severity(value: Any) -> Severity:
    return Severity(one_of(value, [each.value for each in Severity]))


def _frameworks(value: Any) -> tuple[str, ...]:
    from sampler_lint.catalog import FRAMEWORK_PACKAGES
    from sampler_lint.workspace.requirements import framework_told

    names = _strings(value)
    try:
        unknown = [name for name in names if framework_told(name) is None]
    except ValueError as error:
        raise RefusedError(str(error)) from error
    for name in unknown:
        one_of(name, {*FRAMEWORK_PACKAGES.values()})
    return names


def _packages(value: Any) -> tuple[str, ...]:
    packages = _strings(value)
    if packages:
        from sampler_lint.rules import PluginError, load

        try:
            for package in packages:
                load(package)
        except PluginError as error:
            raise RefusedError(str(error)) from error
    return packages


KEYS = (
    Key(
        "extend",
        _path,
        'extend = "../sampler-lint.toml"',
        "a configuration to inherit from; the path is relative to this file",
        run=True,
    ),
    Key(
        "required-version",
        _required,
        'required-version = ">=0.1"',
        "the versions of sampler-lint that may run; any other exits with code 2",
        run=True,
    ),
    Key(
        "plugins",
        _packages,
        'plugins = ["ourlib-lint"]',
        "installed packages with more rules ([how to write them](own-rules.md))",
    ),
    Key(
        "select",
        _codes,
        'select = ["SMP1", "seed-not-passed"]',
        "rules to report, by code prefix or name; `ALL` is every rule",
    ),
    Key("ignore", _codes, 'ignore = ["SMP504"]', "rules to skip"),
    Key("extend-select", _codes, 'extend-select = ["SMP405"]', "more rules to report"),
    Key("extend-ignore", _codes, 'extend-ignore = ["SMP201"]', "more rules to skip"),
    Key(
        "per-file-ignores",
        _codes_by_pattern,
        'per-file-ignores = { "tests/" = ["SMP2"] }',
        "rules to skip in files that match a pattern (with `!`: that do not match)",
    ),
    Key(
        "extend-per-file-ignores",
        _codes_by_pattern,
        'extend-per-file-ignores = { "/old/" = ["SMP1"] }',
        "more of these",
    ),
    Key("fixable", _codes, 'fixable = ["SMP1"]', "rules whose fixes `--fix` may apply"),
    Key(
        "unfixable",
        _codes,
        'unfixable = ["SMP201"]',
        "rules whose fixes are only shown",
    ),
    Key("exclude", _strings, 'exclude = ["third_party/"]', "files to skip"),
    Key("extend-exclude", _strings, 'extend-exclude = ["*_pb2.py"]', "more files to skip"),
    Key(
        "baseline",
        _path,
        'baseline = "sampler-lint-baseline.json"',
        "a file that lists known findings, which are not reported; relative to this file",
    ),
    Key(
        "known-samplers",
        _names,
        'known-samplers = ["ourlib.data.make_sampler"]',
        "functions or classes that build a `DistributedSampler`, by dotted name",
    ),
    Key(
        "known-loaders",
        _names,
        'known-loaders = ["ourlib.data.make_loader"]',
        "functions or classes that build a `DataLoader`, by dotted name",
    ),
    Key(
        "torch-version",
        _version,
        'torch-version = "2.4"',
        "the oldest torch that the project runs on, or a range such as `>=2.4,<2.10`",
    ),
    Key(
        "frameworks",
        _frameworks,
        'frameworks = ["lightning>=2.2"]',
        "the training frameworks in use, with versions where they matter",
    ),
    Key("likely", _flag, "likely = true", "also report likely findings"),
    Key("min-severity", _severity, 'min-severity = "error"', "the lowest severity to report"),
    Key("unsafe-fixes", _flag, "unsafe-fixes = true", "also apply unsafe fixes", run=True),
    Key("output-format", _format, 'output-format = "json"', "the format of the findings", run=True),
    Key(
        "cache-dir",
        _path,
        'cache-dir = ".cache/sampler-lint"',
        "the folder of the cache",
        run=True,
    ),
)
