"""Notebooks are checked and fixed like scripts, cell by cell, through every front."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from cases import FIXTURES
from sampler_lint import engine
from sampler_lint.cli import main
from sampler_lint.notebook import Notebook

FIXTURE = FIXTURES / "SMP101/torch-batch-sampler"
MAGIC = ["%matplotlib inline\n", "!pip install torch"]
OUTPUT = {"name": "stdout", "output_type": "stream", "text": ["epoch 0: loss 0.7\n"]}


def cells_of(text):
    """A program as its author would have it in a notebook: a statement, and a cell for it."""
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    starts = [0, *(node.lineno - 1 for node in tree.body[1:])]
    ends = [*starts[1:], len(lines)]
    return [lines[start:end] for start, end in zip(starts, ends, strict=True)]


def notebook(cells):
    code = [
        {
            "cell_type": "code",
            "execution_count": number,
            "metadata": {"tags": ["x"]},
            "outputs": [OUTPUT],
            "source": source,
        }
        for number, source in enumerate(cells, 1)
    ]
    heading = {"cell_type": "markdown", "metadata": {}, "source": ["# Training\n", "`set_epoch`"]}
    content = {"cells": [heading, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def program(name):
    return (FIXTURE / name / "train.py").read_text()


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.ipynb").write_text(notebook([MAGIC, *cells_of(program("bad"))]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place_in_cell():
    """Where the fixture's one finding stands: its cell, its row there and its column."""
    with tempfile.TemporaryDirectory() as folder:  # here it is one of many programs
        Path(folder, "train.py").write_text(program("bad"))
        (finding,) = engine.check([folder]).findings
    row = finding.start.row
    for number, cell in enumerate(cells_of(program("bad")), 3):
        if row <= len(cell):
            return number, row, finding.start.column
        row -= len(cell)
    raise AssertionError


def test_a_finding_names_the_cell_and_the_row_in_it(project, capsys):
    assert main([]) == 1
    out = capsys.readouterr().out
    number, row, column = place_in_cell()
    assert out.startswith(f"train.ipynb:cell {number}:{row}:{column}: SMP101 [*] ")
    assert f"\n{row} |             train_loader.sampler.set_epoch(epoch)\n" in out
    assert f"    note: train.ipynb: cell {number}, line " in out


def test_json_counts_rows_in_the_cell(project, capsys):
    main(["--output-format", "json"])
    (record,) = json.loads(capsys.readouterr().out)
    number, row, column = place_in_cell()
    assert (record["cell"], record["location"]) == (number, {"row": row, "column": column})
    for edit in record["fix"]["edits"]:
        assert edit["cell"] == number
        assert 0 < edit["location"]["row"] <= row


def test_formats_for_files_name_the_row_of_the_json(project, capsys):
    main(["--output-format", "gitlab"])
    (record,) = json.loads(capsys.readouterr().out)
    row = record["location"]["positions"]["begin"]["line"]
    line = (project / "train.ipynb").read_text().splitlines()[row - 1]
    assert "train_loader.sampler.set_epoch(epoch)" in line


BUILT = "    train_loader = DataLoader(dataset, batch_sampler=batch_sampler)"


def test_sarif_relates_the_line_of_the_json_where_the_loader_is_built(project, capsys):
    assert main(["--output-format", "sarif"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (related,) = result["relatedLocations"]
    where = related["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "train.ipynb"
    lines = (project / "train.ipynb").read_text().splitlines()
    assert BUILT in lines[where["region"]["startLine"] - 1]
    assert related["message"]["text"] == "loader built here with `batch_sampler=`"


def test_a_changed_line_that_a_finding_rests_on_brings_it_up(project, capsys):
    def git(*arguments):
        author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *author, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert main(["--diff-base", "HEAD"]) == 0
    path = project / "train.ipynb"
    path.write_text(path.read_text().replace(BUILT, f"{BUILT}  # changed"))
    assert main(["--diff-base", "HEAD"]) == 1
    assert capsys.readouterr().out.count("SMP101") == 1


def test_each_note_names_the_row_in_its_cell(tmp_path, monkeypatch, capsys):
    text = (FIXTURES / "SMP402/even-batches-tabs/bad/train.py").read_text()
    (tmp_path / "train.ipynb").write_text(notebook([MAGIC, *cells_of(text)]))
    monkeypatch.chdir(tmp_path)
    assert main(["--select", "SMP402", "--output-format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    (related,) = found["related"]
    cell = cells_of(text)[related["cell"] - 3]
    line = cell[related["location"]["row"] - 1]
    assert "//" in line
    assert line[related["location"]["column"] - 1 :] == line.lstrip()
    assert found["why"] == [
        f"train.ipynb: cell {related['cell']}, line {related['location']['row']}: "
        "quotient taken here"
    ]


def test_a_fix_changes_the_lines_of_the_cell_and_nothing_else(project, capsys):
    assert main(["--fix"]) == 0
    expected = notebook([MAGIC, *cells_of(program("fixed"))])
    assert (project / "train.ipynb").read_text() == expected
    assert main(["--fix"]) == 0
    assert (project / "train.ipynb").read_text() == expected


def test_git_applies_the_diff(project, capfdbinary):
    subprocess.run(["git", "init", "-q"], check=True)
    assert main(["--diff"]) == 1
    patch = capfdbinary.readouterr().out
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert (project / "train.ipynb").read_text() == notebook([MAGIC, *cells_of(program("fixed"))])


def test_a_suppression_in_the_cell_holds(project):
    path = project / "train.ipynb"
    text = path.read_text()
    changed = text.replace("set_epoch(epoch)\\n", "set_epoch(epoch)  # noqa: SMP101\\n")
    assert changed != text
    path.write_text(changed)
    assert main([]) == 0
    assert main(["--fix"]) == 0
    assert path.read_text() == changed


def test_a_loader_of_a_module_is_seen_in_the_notebook(tmp_path, monkeypatch, capsys):
    case = next(
        case
        for case in sorted((FIXTURES / "SMP101").iterdir())
        if len(list((case / "bad").glob("*.py"))) > 1
    )
    shutil.copytree(case / "bad", tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    (before,) = engine.check(["."]).findings
    script = tmp_path / before.path
    script.with_suffix(".ipynb").write_text(notebook(cells_of(script.read_text())))
    script.unlink()
    (after,) = engine.check(["."]).findings
    assert (after.code, after.message) == (before.code, before.message)
    assert after.path.endswith(".ipynb")


def test_what_is_wrong_with_a_cell_is_said_of_the_cell(tmp_path, capsys):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a.ipynb").write_text(notebook([["x = 1\n"], ["y = (\n"]]))
    (tmp_path / "b.ipynb").write_text("no notebook")
    (tmp_path / "c.py").write_text("x = 1\n")
    assert main([str(tmp_path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: {tmp_path / 'a.ipynb'}: cell 3, line 1: ")
    assert second.startswith(f"error: {tmp_path / 'b.ipynb'}: is no notebook: ")


def test_a_notebook_on_standard_input(project, monkeypatch, capfdbinary):
    class Input:
        buffer = open(project / "train.ipynb", "rb")  # noqa: SIM115

    with Input.buffer:
        monkeypatch.setattr("sys.stdin", Input)
        assert main(["--fix", "--stdin-filename", "other.ipynb", "-"]) == 0
    fixed = capfdbinary.readouterr().out
    book = Notebook(fixed)
    assert b"train_loader.batch_sampler.sampler.set_epoch(epoch)" in book.source


def test_await_at_the_top_of_a_cell_is_right(tmp_path, capsys):
    (tmp_path / "pyproject.toml").touch()
    cell = ["import torch.utils.data as data\n", "await data.get()\n", "loader = 1"]
    (tmp_path / "a.ipynb").write_text(notebook([cell]))
    assert main([str(tmp_path)]) == 0


def test_explain_takes_the_place_that_a_finding_names(project, capsys):
    main(["--output-format", "concise"])
    place = capsys.readouterr().out.partition(": SMP101")[0]
    assert main(["explain", place]) == 0
    first, *more = capsys.readouterr().out.splitlines()
    assert first == f"{place.rpartition(':')[0]}: train_loader.sampler.set_epoch(epoch)"
    assert any(line.startswith("  SMP101 reported: ") for line in more)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("train.ipynb:3", "is a notebook: name the cell, as in 'train.ipynb:cell 1:3'"),
        ("train.ipynb:cell 99:1", "there is no line 1 of code in cell 99"),
        ("other.py:cell 1:1", "there is no cell"),
    ],
)
def test_explain_names_a_place_that_is_not_there(project, capsys, place, said):
    (project / "other.py").write_text("x = 1\n")
    assert main(["explain", place]) == 2
    assert capsys.readouterr().err == f"error: {place.partition(':')[0]}: {said}\n"
