"""``sampler-lint completion``: what makes a shell complete commands, options and their values.

The scripts are a few lines that ask this module for the words that may stand at the cursor, so
they know every option of the installed version. Where it has nothing to say, files are offered.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module

from sampler_lint.cli._common import CLEAN, Parser, output_format

_SCRIPTS = {
    "bash": """\
_sampler_lint() {
  local IFS=$'\\n' current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=($(sampler-lint completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ $COMP_CWORD -eq 1 && $current != -* ]] && COMPREPLY+=($(compgen -f -- "$current"))
  return 0
}
complete -o filenames -o default -F _sampler_lint sampler-lint
""",
    "zsh": """\
#compdef sampler-lint
_sampler_lint() {
  local -a found
  found=(${(f)"$(sampler-lint completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  (( $#found )) && compadd -a found
  (( CURRENT == 2 || ! $#found )) && _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _sampler_lint "$@"
else
  compdef _sampler_lint sampler-lint
fi
""",
    "fish": """\
function __sampler_lint
    set -l before (commandline -opc)
    sampler-lint completion --words $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c sampler-lint -a '(__sampler_lint)'
""",
}

_EPILOG = """\
in the shell's start-up file:
  eval "$(sampler-lint completion bash)"     # ~/.bashrc
  eval "$(sampler-lint completion zsh)"      # ~/.zshrc, after compinit
  sampler-lint completion fish | source      # ~/.config/fish/config.fish
"""


def main(argv: Sequence[str]) -> int:
    """Print the script of a shell, or the words that it asks for, and return the exit code."""
    if argv[:1] == ["--words"]:
        print("\n".join(candidates(argv[1:])))
    else:
        print(_SCRIPTS[make_parser().parse_args(argv).shell], end="")
    return CLEAN


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint completion",
        description="Print a completion script for commands, options and rule codes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell to complete in")
    return parser


def candidates(words: Sequence[str]) -> list[str]:
    """What the last of the words, which follow the program's name, may become; nothing: a file."""
    from sampler_lint.cli import COMMANDS

    # bash gives the parts of --select=SMP1 as three words.
    words = [word for word in words[:-1] if word != "="] + [words[-1].removeprefix("=")]
    *before, word = words
    if "--" in before:
        return []
    command = before.pop(0) if before and before[0] in COMMANDS else None
    parser = import_module(f"sampler_lint.cli.{command or COMMANDS[0]}").make_parser()
    options = {each: action for action in parser._actions for each in action.option_strings}
    name, equals, value = word.partition("=")
    if equals and name in options:
        return [f"{name}={each}" for each in _values(options[name], value)]
    last = options.get(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        return _values(last, word)
    if word.startswith("-"):
        return _beginning(word, options)
    positional = [each for each in parser._actions if not each.option_strings]
    if command is None and not before:
        return _beginning(word, COMMANDS)
    return _values(positional[0], word) if positional else []


def _values(action: argparse.Action, word: str) -> list[str]:
    if action.choices is not None:
        return _beginning(word, map(str, action.choices))
    if action.type is output_format:
        from sampler_lint.reporters import FORMATS

        return _beginning(word, FORMATS)
    if action.metavar in ("CODE", "CODES"):
        from sampler_lint.rules import codes

        _load_plugins()
        # Of a list, the last item.
        head = word[: word.rfind(",") + 1]
        return [head + code for code in _beginning(word[len(head) :].upper(), codes())]
    return []


def _load_plugins() -> None:
    """Read the configuration of the working directory, which may name packages with rules."""
    from sampler_lint.config import ConfigError, Lookup

    with suppress(ConfigError):  # told by the command itself
        Lookup().at(os.curdir)


def _beginning(word: str, possible: Iterable[str]) -> list[str]:
    return sorted(each for each in possible if each.startswith(word))
