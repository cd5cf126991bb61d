"""``--show-settings``: what holds for a path, and which rule is on there, and why."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sampler_lint.cli._settings import Settings
from sampler_lint.config import KEYS, Config
from sampler_lint.findings import Severity
from sampler_lint.options import Options, weight
from sampler_lint.reporters.text import visible

if TYPE_CHECKING:
    from sampler_lint.rules import Described


def show_settings(settings: Settings, paths: Sequence[str]) -> str:
    """The settings of each path as text, in TOML where that is possible."""
    return "\n\n".join("\n".join(_lines(settings, path)) for path in paths)


def _lines(settings: Settings, path: str) -> Iterator[str]:
    from sampler_lint.rules import every_rule

    folder = path if os.path.isdir(path) else os.path.dirname(path)
    config, options = settings.config(folder or "."), settings.options(folder or ".")
    yield visible(f"# {path}: {config.path or 'no configuration, the defaults'}")
    default = Config()
    for key in KEYS:
        value = config.get(key) if key.run else getattr(options, key.field)
        set_here = value != default.get(key)
        if value is None:
            yield f"# {key.name} is not set"
        else:
            yield f"{'' if set_here else '# '}{key.name} = {_toml(value)}"
    others = options.others
    while others is not None:
        for key in KEYS:
            value = None if key.run else getattr(others, key.field)
            if value and value != default.get(key):
                yield visible(
                    f"# and below {others.folder or os.curdir}: {key.name} {_toml(value)}"
                )
        others = others.others
    yield "#"
    for rule in every_rule(options.plugins):
        on, why = _state(rule, options, path)
        yield f"# {rule.code} {'on ' if on else 'off'} {why} ({rule.name})"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Severity):
        value = value.value
    if isinstance(value, str):
        return json.dumps(value)
    if value and isinstance(value[0], tuple):
        return "{ " + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value) + " }"
    return json.dumps(list(value))


def _state(rule: Described, options: Options, path: str) -> tuple[bool, str]:
    """Whether the rule judges the file ``path``, and what decides it."""
    candidates = [
        (weight(rule.code, prefixes), rank, word, prefixes)
        for rank, (word, prefixes) in enumerate(
            (
                ("select", options.select or ()),
                ("extend-select", options.extend_select),
                ("ignore", options.ignore),
                ("extend-ignore", options.extend_ignore),
            )
        )
    ]
    if options.select is None and rule.default:
        candidates.append((0, -1, "default", ()))
    length, _, word, prefixes = max(candidates)
    if weight(rule.code, ignored := options.ignored_in(path)) >= 0:
        return False, f"by per-file-ignores {_longest(rule.code, ignored)}"
    if length < 0:
        return False, "by default" if options.select is None else "as select does not name it"
    if word == "default":
        return True, "by default"
    return word not in {"ignore", "extend-ignore"}, f"by {word} {_longest(rule.code, prefixes)}"


def _longest(code: str, prefixes: tuple[str, ...]) -> str:
    return max(prefixes, key=lambda prefix: weight(code, (prefix,)))
