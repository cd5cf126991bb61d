"""The commands, made from the list of rules; they only ask the engine for the file's new bytes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace

from libcst import Module, parse_module
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from sampler_lint import engine
from sampler_lint.cache import Cache, default_folder
from sampler_lint.config import Lookup
from sampler_lint.options import Options
from sampler_lint.roots import project_root
from sampler_lint.rules import Described, every_rule, summary
from sampler_lint.source import SourceError, read_bytes


def _command(rule: Described) -> type[CodemodCommand]:
    """What runs the fix of one rule."""

    class Command(CodemodCommand):
        DESCRIPTION = f"{rule.name}: {summary(rule)}"

        def __init__(self, context: CodemodContext, unsafe_fixes: bool = False) -> None:
            super().__init__(context)
            self._unsafe = unsafe_fixes

        @staticmethod
        def add_args(arg_parser: argparse.ArgumentParser) -> None:
            """The command line's option of the same name."""
            arg_parser.add_argument(
                "--unsafe-fixes", action="store_true", help="also apply unsafe fixes"
            )

        def transform_module_impl(self, tree: Module) -> Module:
            """The file as ``sampler-lint --fix --force-exclude --select CODE FILE`` writes it."""
            path, old = self.context.filename or "-", tree.bytes
            lookup = Lookup()

            def options(folder: str) -> Options:
                of_folder = lookup.at(folder).options
                chosen = replace(of_folder, select=(rule.code,), extend_select=())
                return replace(chosen, ignore=(), extend_ignore=())

            overlay = {} if _holds(path, old) else {path: old}
            if not overlay:
                # A record of the whole project tells most files, in no time, that all is well.
                report = engine.check(
                    *([project_root(path)], options),
                    cache=Cache(default_folder()),
                    parse_all=False,
                    edits=False,
                )
                if not any(os.path.abspath(found.path) == path for found in report.findings):
                    return tree
            unsafe = self._unsafe or lookup.at(os.getcwd()).unsafe_fixes
            fixed = engine.fix([path], options, unsafe=unsafe, write=False, overlay=overlay)
            for finding, reason in fixed.left:
                if finding.fix is not None:
                    self.warn(f"{finding.start.row}: {finding.label} not fixed: {reason}")
            return _tree(tree, fixed.changed, path)

    Command.__name__ = Command.__qualname__ = rule.code  # workers are sent it by its name
    return Command


def _holds(path: str, data: bytes) -> bool:
    try:
        return read_bytes(path) == data
    except SourceError:
        return False


def _tree(tree: Module, changed: Mapping[str, tuple[bytes, bytes]], path: str) -> Module:
    """The new tree of the file, byte by byte what the engine would have written."""
    if path not in changed:
        return tree
    _, data = changed[path]
    new = parse_module(data, config=tree.config_for_parsing)
    if new.bytes != data:
        raise SkipFile("LibCST cannot keep this file's bytes: use sampler-lint --fix")
    return new


__all__ = [rule.code for rule in every_rule() if rule.fixable != "never"]
globals().update({rule.code: _command(rule) for rule in every_rule() if rule.fixable != "never"})
