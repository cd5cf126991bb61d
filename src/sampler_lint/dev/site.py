"""What mkdocs needs to make a site of pages that are written to be read in the repository.

mkdocs calls these functions by name (https://www.mkdocs.org/dev-guide/plugins/#events).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: Pages of the site that stand at the top of the repository.
TOP = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}

_COMMENT = re.compile(r"\A<!--.*?-->\n", re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the rules behind the guides."""
    rules = sorted(Path(config.docs_dir, "rules").glob("*.md"))
    listed = {"Rules": [f"rules/{path.name}" for path in rules]}
    config.nav = [*(config.nav or ())[:2], listed, *(config.nav or ())[2:]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand above ``docs``."""
    from mkdocs.structure.files import File

    for name, source in TOP.items():
        path = Path(config.docs_dir).parent / source
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links out of the site lead to the repository, and links to pages stay in the site."""
    own = TOP.get(page.file.src_uri) or f"docs/{page.file.src_uri}"
    # A comment before the heading would keep the heading from being the page's title.
    return _LINK.sub(
        lambda link: f"{target(own, link['path'], config)}{link['anchor'] or ''}",
        _COMMENT.sub("", markdown, count=1),
    )


def target(page: str, link: str, config: MkDocsConfig) -> str:
    """Where a relative link of a page of the repository leads on the site.

    Args:
        page: the page's path in the repository.
        link: the link, relative to the page.
        config: the site's configuration; names the repository.
    """
    path = normpath(str(PurePosixPath(page).parent / link))
    moved = {source: name for name, source in TOP.items()}
    own = moved[page] if page in moved else page.removeprefix("docs/")
    if path in moved:
        inside = moved[path]
    elif path.startswith("docs/"):
        inside = path.removeprefix("docs/")
    else:
        return f"{config.repo_url}/tree/main/{path}"
    up = "../" * own.count("/")
    return f"{up}{inside}"
