"""The VS Code extension: built, packed, and its client's side against the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sampler_lint.config import KEYS

#: What npm says where no registry answers it.
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN")
EXTENSION = Path(__file__).parent.parent / "editors/vscode"


def test_its_settings_are_keys_of_the_configuration():
    contributed = json.loads((EXTENSION / "package.json").read_text())["contributes"]
    names = {
        name.removeprefix("sampler-lint.") for name in contributed["configuration"]["properties"]
    }
    assert names == {"path", "likely", "minSeverity", "select", "ignore"}
    keys = {key.name for key in KEYS}
    assert {"likely", "min-severity", "select", "extend-ignore"} <= keys


@pytest.mark.network
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_it_is_built_tested_and_packed(tmp_path):
    skipped = shutil.ignore_patterns("node_modules", "out", "*.vsix")
    folder = Path(shutil.copytree(EXTENSION, tmp_path / "vscode", ignore=skipped))
    shutil.copy(EXTENSION.parent.parent / "LICENSE", folder)
    server = tmp_path / "sampler-lint"
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sampler_lint "$@"\n')
    server.chmod(0o755)
    for command in ("ci --no-audit --no-fund", "test", "run package"):
        done = subprocess.run(
            ["npm", *command.split()],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "SERVER": str(server)},
        )  # fmt: skip
        said = done.stdout + done.stderr
        if command.startswith("ci") and any(code in said for code in UNREACHABLE):
            pytest.skip(f"npm cannot reach its registry: {said.splitlines()[0]}")
        assert done.returncode == 0, said
    with zipfile.ZipFile(folder / "sampler-lint.vsix") as packed:
        names = {name for name in packed.namelist() if name.startswith("extension/")}
    assert names == {
        "extension/LICENSE.txt",
        "extension/package.json",
        "extension/readme.md",
        "extension/out/extension.js",
    }
