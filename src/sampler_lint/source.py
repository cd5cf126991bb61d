"""One file as bytes and text, nothing translated: newlines, BOM and encoding stay as they are."""

from __future__ import annotations

import bisect
import codecs
import io
import operator
import os
import re
import stat
import tokenize
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sampler_lint.findings import Cell, FileError, Position

if TYPE_CHECKING:
    from sampler_lint.notebook import Notebook

#: Bytes of the largest file that is read: what people write stays far below it, and a tree of
#: syntax takes hundreds of times the memory. Most of a notebook is pictures, so the whole of it
#: may be larger; its code may not.
LARGEST = 4_000_000
LARGEST_NOTEBOOK = 50_000_000

#: How the name of a Jupyter notebook ends.
NOTEBOOK = ".ipynb"

#: A file without any of these words cannot build, hold or drive a sampler, so it is neither
#: decoded nor parsed unless another file's names lead to it. What scales pictures and fetches
#: files is named alike: ``upsampler``, ``grid_sampler``, ``samplerate``, ``downloader``.
_SAMPLER = re.compile(rb"(?<!grid_)(?<![Uu]p)(?<![Dd]own)[Ss]ampler(?!ate)")
_LOADER = re.compile(rb"(?<![Dd]own)(?<!spec\.)[Ll]oader")

#: So end the names of what tells a shell, or people, which programs to run.
TELLING = (".sh", ".bash", ".slurm", ".sbatch", ".md", ".rst", "Makefile")
#: Files that say what a project needs, or how it is run, have these endings.
_SETTINGS = (".toml", ".cfg", ".py", ".txt", ".yml", ".yaml", *TELLING)

LINE_END = re.compile(r"\r\n|\r|\n")
#: The first line of a block and the header above it, to see how much deeper it stands.
_BLOCK = re.compile(
    r"^([ \t]*)(?:async|class|def|elif|else|except|finally|for|if|try|while|with)\b[^\r\n]{0,300}:"
    r"[ \t]*(?:#[^\r\n]{0,300})?[\r\n]+\1([ \t]+)[^\s#]",
    re.MULTILINE,
)


class SourceError(Exception):
    """The file cannot be used; ``error`` says which and why."""

    def __init__(self, error: FileError) -> None:
        super().__init__(str(error))
        self.error = error


#: The class whose objects share themselves out: nothing else need be about samplers.
_STREAM = b"IterableDataset"


def is_candidate(data: bytes) -> bool:
    """Whether ``data`` says one of the words that this linter is about."""
    return (
        b"set_epoch" in data
        or _STREAM in data
        or _says(data, b"ampler", _SAMPLER, 1)
        or says_loader(data)
    )


def says_loader(data: bytes) -> bool:
    """Whether ``data`` says ``loader``, whatever that loads."""
    return _says(data, b"oader", _LOADER, 1)


_SAMPLING = re.compile(
    rb"(?<!grid_)(?<!Grid)(?<![Uu]p)(?<![Dd]own)(?<!Re)(?<!\bre)(?<!_re)(?<!Sub)(?<!\bsub)(?<!_sub)"
    rb"[Ss]ampler(?!ate)"
)
_DATA_LOADER = re.compile(rb"(?:(?<=[Dd]ata)|(?<=[Dd]ata_))[Ll]oader")


def is_about_sampling(code: bytes) -> bool:
    """Whether ``code`` of a candidate certainly speaks of samplers or data loaders.

    A ``loader`` alone may load anything, and a ``Resampler`` scales sounds and pictures.
    """
    return (
        b"set_epoch" in code
        or _STREAM in code
        or _says(code, b"ampler", _SAMPLING, 1)
        or _says(code, b"oader", _DATA_LOADER, 1)
    )


def _says(data: bytes, stem: bytes, word: re.Pattern[bytes], before: int = 0) -> bool:
    """Whether ``word`` matches somewhere, ``before`` bytes ahead of its fixed ``stem``.

    A search for fixed bytes is ten times as fast as one for a pattern.
    """
    at = data.find(stem)
    while at >= 0:
        if at >= before and word.match(data, at - before):
            return True
        at = data.find(stem, at + 1)
    return False


#: A file that seeds or splits belongs to the sampler's story though it does not name it, ...
_SEEDS = re.compile(
    rb"(?:(?<=manual_)seed\w{0,40}|(?:(?<=random\.)|(?<=set_)|(?<=set_random_))seed"
    rb"|seed_everything)[(,)]"
)
_SPLITS = re.compile(rb"(?:(?<=random)|(?<=train_test))_split[(,)]")
#: ... and so does one that draws, if there is a dataset that may be ordered by the draw.
_DRAWS = (b"randperm(", b"permutation(", b"shuffle(")


def seeds_or_draws(data: bytes) -> bool:
    """Whether ``data``, which is no candidate, may say how a program's data is ordered."""
    return (
        _says(data, b"seed", _SEEDS)
        or _says(data, b"_split", _SPLITS)
        or (b"Dataset" in data and any(draw in data for draw in _DRAWS))
    )


#: How the object of a framework is built that trains with loaders of other files.
_STARTS = (b"Trainer(", b"Fabric(", b"Accelerator(")


def starts_training(data: bytes) -> bool:
    """Whether ``data`` may have a framework train, which it can without a sampler word."""
    return any(word in data for word in _STARTS)


def sets_up(data: bytes) -> bool:
    """Whether ``data``, which is no candidate, may seed, split, draw or start a training."""
    return seeds_or_draws(data) or starts_training(data)


_RANKS = (b"rank", b"world_size", b"main_process", b"master")
_BEFORE_RANK = re.compile(rb"(?<!\w)(?:[gs]et_|is_|local_|global_|node_)*\Z")
_AFTER_RANK = re.compile(rb"(?!\w)")
_LONGEST_BEFORE = 80


def says_rank_or_data(data: bytes) -> bool:
    """Whether ``data`` may say which rank a process is, or define data that a loader reads."""
    return b"Dataset" in data or any(
        says_between(data, word, _BEFORE_RANK, _AFTER_RANK) for word in _RANKS
    )


def says_between(
    data: bytes, word: bytes, before: re.Pattern[bytes], after: re.Pattern[bytes] | None = None
) -> bool:
    """Whether a word stands somewhere between what ``before`` ends with and ``after`` begins with.

    No more than :data:`_LONGEST_BEFORE` bytes before it are looked at.
    """
    at = data.find(word)
    while at >= 0:
        if (after is None or after.match(data, at + len(word))) and before.search(
            data[max(0, at - _LONGEST_BEFORE) : at]
        ):
            return True
        at = data.find(word, at + 1)
    return False


_OWN_CODE = re.compile(rb"sampler[-_ ]?lint|smp[0-9]", re.IGNORECASE)


def names_a_rule(data: bytes, *, is_candidate: bool = True) -> bool:
    """Whether ``data`` may hold a comment that speaks to this linter by a code.

    Its name is a sampler word: what is no candidate does not say it.
    """
    named = is_candidate and b"lint" in data
    return (named or b"SMP" in data or b"smp" in data) and _OWN_CODE.search(data) is not None


def read_bytes(path: str) -> bytes:
    """The regular file's bytes.

    Raises:
        SourceError: the file cannot be opened or read, is no regular file, or is larger than
            :data:`LARGEST`, or as a notebook than :data:`LARGEST_NOTEBOOK`.
    """
    largest = LARGEST_NOTEBOOK if path.endswith(NOTEBOOK) else LARGEST
    try:
        # Opening a FIFO would wait for a writer.
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceError(FileError(path, "is not a regular file"))
            if status.st_size > largest:
                raise _too_large(path, "", status.st_size, largest)
            return file.read()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(FileError(path, f"cannot be read: {reason}")) from error


def _too_large(path: str, what: str, size: int, largest: int) -> SourceError:
    told = f"{what}{size / 1e6:.0f} MB, more than {largest / 1e6:.0f}"
    return SourceError(FileError(path, f"is too large to be checked ({told})"))


def setting_names(folder: str) -> list[str]:
    """The names in a folder that files with settings, needs and commands may have, sorted.

    Also those of the folders in it, with a slash, but for links and what is hidden.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name + os.sep if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if entry.name.endswith(_SETTINGS)
                or (entry.name[:1] != "." and entry.is_dir(follow_symlinks=False))
            )
    except OSError:
        return []


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def as_declared(text: str) -> bytes:
    """A file's whole text (an editor's, or flake8's) in the encoding that its cookie declares."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        return text.encode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
    except (SyntaxError, UnicodeError):
        return data


class SourceFile:
    """A decoded Python file.

    ``text`` is the decoded content without BOM and with its newlines untouched; ``encode``
    turns changed text back into bytes in the same encoding, BOM included. The text of a notebook
    is that of its code cells, and ``encode`` puts it back into them.
    """

    def __init__(self, path: str, data: bytes) -> None:
        """Decode ``data`` as Python would.

        Raises:
            SourceError: the encoding cookie is unknown, the bytes are not in that encoding, or
                the file is called a notebook and is none.
        """
        self.path = path
        self.data = data
        self._told: dict[tuple[Callable[..., object], tuple[object, ...]], bool] = {}
        self._told_in: dict[tuple[int, int, Callable[[str], object]], bool] = {}
        self.is_quoted = False
        """Whether somebody took a stretch of the text, for which nobody can answer later."""
        self.shape = ""
        """What stands for its syntax tree, once that was asked."""
        self._notebook = _notebook(path, data) if path.endswith(NOTEBOOK) else None
        if self._notebook is not None:
            self.bom, self.encoding = b"", "utf-8"
            self.text = self._notebook.source.decode("utf-8", "surrogatepass")
            return
        self.bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            # Like Python, and unlike tokenize, take a lone CR for a line end.
            head = iter(data.splitlines()[:2])
            self.encoding = tokenize.detect_encoding(lambda: next(head, b""))[0]
            if self.bom:
                self.encoding = "utf-8"
            self.text = data[len(self.bom) :].decode(self.encoding)
        except SyntaxError as error:
            raise SourceError(FileError(path, f"cannot be decoded: {error.msg}")) from error
        except UnicodeDecodeError as error:
            row = data.count(b"\n", 0, error.start) + 1
            reason = f"cannot be decoded as {self.encoding}: {error.reason}"
            raise SourceError(FileError(path, reason, row)) from error
        except (LookupError, UnicodeError) as error:
            raise SourceError(FileError(path, f"cannot be decoded: {error}")) from error

    @classmethod
    def read(cls, path: str) -> SourceFile:
        """Read and decode the file at ``path``.

        Raises:
            SourceError: it cannot be read or decoded.
        """
        return cls(path, read_bytes(path))

    def encode(self, text: str) -> bytes:
        """``text`` as this file's bytes.

        Raises:
            UnicodeEncodeError: the file's encoding has no such character.
            NotebookError: the cells of the notebook would not be the same.
        """
        if self._notebook is not None:
            return self._notebook.with_source(text.encode("utf-8", "surrogatepass"))
        return self.bom + text.encode(self.encoding)

    def tells(self, question: Callable[..., object], *more: object) -> bool:
        """Whether the file's bytes (and what ``more`` is asked with) answer a question with yes.

        Whoever looks for something in the text asks here: another text that gives the same
        answers, and has the same code, is told apart by nobody.
        """
        key = (question, more)
        known = self._told.get(key)
        if known is None:
            known = self._told[key] = bool(question(self.data, *more))
        return known

    def says(self, word: str) -> bool:
        """Whether a word is somewhere in the text."""
        if self._notebook is None and word.isascii():
            return self.tells(operator.contains, word.encode())
        self.is_quoted = True
        return word in self.text

    def stretch(self, start: int, end: int) -> str:
        """A part of the text, for questions that :meth:`tells` cannot answer."""
        self.is_quoted = True
        return self.text[start:end]

    def tells_in(self, first: int, last: int, question: Callable[[str], object]) -> bool:
        """Whether some of the lines, which nodes begin and end in, answer a question with yes."""
        key = (first, last, question)
        known = self._told_in.get(key)
        if known is None:
            starts = [*self.line_starts, len(self.text)]
            known = bool(question(self.text[starts[first - 1] : starts[last]]))
            self._told_in[key] = known
        return known

    def is_alike(self, other: SourceFile, rows: Mapping[int, int]) -> bool:
        """Whether all that was asked of this text is answered alike by another one.

        ``rows`` are those of the other that nodes in each row of this one stand in.
        """
        for (first, last, question), answer in self._told_in.items():
            if other.tells_in(rows.get(first, 1), rows.get(last, 1), question) is not answer:
                return False
        return not (self.is_quoted or self._notebook) and all(
            other.tells(question, *more) is answer
            for (question, more), answer in self._told.items()
        )

    def error(self, reason: str, row: int | None) -> FileError:
        """What is wrong with the file in a row of its text."""
        cell = self.cell_of(row) if row else None
        if cell is None or row is None:
            return FileError(self.path, reason, row)
        return FileError(
            self.path, f"cell {cell.number}, line {row - cell.first_row + 1}: {reason}"
        )

    def cell_of(self, row: int) -> Cell | None:
        """The cell with the row of the text, if this is a notebook."""
        if self._notebook is None:
            return None
        number, inner = self._notebook.place(row)
        return Cell(number, row - inner + 1, self._notebook.file_row(row))

    def row_in(self, cell: int | None, row: int) -> int:
        """The row of the text that is ``row`` of the cell with that number, if it is a notebook.

        Raises:
            SourceError: there is none, or only one of file and place is a notebook's.
        """
        if self._notebook is None:
            if cell is None and row <= len(self.line_starts):
                return row
            last = f"line {row}; the last is {len(self.line_starts)}"
            raise SourceError(
                FileError(self.path, f"there is no {last if cell is None else 'cell'}")
            )
        if cell is None:
            shown = f"{self.path}:cell 1:{row}"
            raise SourceError(
                FileError(self.path, f"is a notebook: name the cell, as in {shown!r}")
            )
        try:
            return self._notebook.row(cell, row)
        except LookupError:
            raise SourceError(
                FileError(self.path, f"there is no line {row} of code in cell {cell}")
            ) from None

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line (lines end in LF, CRLF or CR)."""
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    def line(self, row: int) -> str:
        """Line ``row`` (1-based) with its line end; empty beyond the last."""
        starts = self.line_starts
        if not 1 <= row <= len(starts):
            return ""
        end = starts[row] if row < len(starts) else len(self.text)
        return self.text[starts[row - 1] : end]

    def offset(self, row: int, utf8_column: int) -> int:
        """Character offset of an ``ast`` position (1-based row, 0-based column in UTF-8 bytes)."""
        start = self.line_starts[row - 1]
        head = self.text[start : start + utf8_column]
        if head.isascii():
            return start + utf8_column
        line = self.line(row)
        return start + len(
            line.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore")
        )

    def position(self, offset: int) -> Position:
        """The row and column of a character offset."""
        row = bisect.bisect_right(self.line_starts, offset)
        return Position(row, offset - self.line_starts[row - 1] + 1)

    @cached_property
    def newline(self) -> str:
        """The line end that most lines use; LF in a file without any."""
        ends = LINE_END.findall(self.text)
        return max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"

    @cached_property
    def indent(self) -> str:
        """One level of the file's own indentation: what most blocks add; else four spaces."""
        steps = Counter(match[2] for match in _BLOCK.finditer(self.text.replace("\r", "\n")))
        return max(steps, key=steps.__getitem__, default=" " * 4)

    @cached_property
    def longest_line(self) -> int:
        """How many characters the longest line has, without its line end."""
        return max(map(len, LINE_END.split(self.text)))

    @cached_property
    def quote(self) -> str:
        """The quote that most short strings of the file use."""
        singles = len(re.findall(r"(?<!['\w])'[^'\"\n]*'(?!')", self.text))
        doubles = len(re.findall(r'(?<!["\w])"[^"\'\n]*"(?!")', self.text))
        return "'" if singles > doubles else '"'


@dataclass(slots=True)
class Sources:
    """The text that positions refer to: from ``overlay`` where it has the path, else from disk."""

    overlay: Mapping[str, bytes] = field(default_factory=dict)
    _read: dict[str, SourceFile | None] = field(default_factory=dict)

    def __call__(self, path: str) -> SourceFile | None:
        """The file at ``path``; None when it cannot be read or decoded (any more)."""
        if path not in self._read:
            try:
                data = self.overlay.get(path)
                source = SourceFile.read(path) if data is None else SourceFile(path, data)
            except SourceError:
                source = None
            self._read[path] = source
        return self._read[path]


def _notebook(path: str, data: bytes) -> Notebook:
    from sampler_lint.notebook import Notebook, NotebookError

    try:
        notebook = Notebook(data)
    except NotebookError as error:
        raise SourceError(FileError(path, str(error))) from error
    if len(notebook.source) > LARGEST:
        raise _too_large(path, "its code has ", len(notebook.source), LARGEST)
    return notebook
