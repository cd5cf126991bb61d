"""The documentation site builds strictly, and a browser finds nothing missing on it.

``pytest -m site``, with the extra ``docs``; what needs a browser takes the system's Chromium.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.site

REPOSITORY = Path(__file__).parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def test_every_page_of_the_repository_is_on_the_site(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("index.html")}
    for path in (REPOSITORY / "docs").rglob("*.md"):
        name = path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix()
        assert f"{name.removesuffix('index').strip('/')}/index.html".lstrip("/") in pages
    assert {"index.html", "changelog/index.html", "contributing/index.html"} <= pages


def test_the_address_in_a_finding_is_a_page(site):
    from sampler_lint.reporters import rule_url
    from sampler_lint.rules import all_rules

    settings = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    (base,) = re.findall(r"^site_url: (\S+)$", settings, re.MULTILINE)
    for rule in all_rules():
        path = rule_url(rule.code).removeprefix(base)
        assert (site / path / "index.html").is_file(), path


#: Elements that end outside the window, or whose text does, unless they can be scrolled.
CUT_OFF = """width => [...document.querySelectorAll("article *")].filter(each => {
    if (each.tagName !== "IMG" && !(each.innerText || "").trim()) return false;
    const scrolls = node => ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
    for (let node = each; node.tagName !== "ARTICLE"; node = node.parentElement)
        if (scrolls(node) && node.tagName !== "CODE") return false;
    const hides = getComputedStyle(each).overflowX !== "visible" && each.clientWidth > 0;
    return each.getBoundingClientRect().right > width + 1
        || hides && each.scrollWidth > each.clientWidth + 1;
}).map(each => `${each.tagName}: ${(each.innerText || "").slice(0, 60)}`)"""


def test_a_browser_shows_every_page_and_nothing_is_missing_or_cut_off(
    site, address, browser, request
):
    """All that a page asks for is answered, by the site itself, and something is to be seen.

    In a wide window and a narrow one. The pages of the rules are made alike: without ``--whole``,
    one in three is looked at. CI keeps pictures of some pages, in the folder that ``SCREENSHOTS``
    names.
    """
    asked: list[tuple[int, str]] = []
    complaints: list[str] = []
    page = browser.new_page()
    page.on("response", lambda answer: asked.append((answer.status, answer.url)))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # Each page has the browser make the index of all of them: the first one's is enough.
    page.goto(address)
    page.locator("[data-md-component=search-query]").fill("epoch")
    page.locator(".md-search-result__link").first.wait_for(timeout=180_000)  # on a busy machine
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    small = {**index, "docs": index["docs"][:1]}
    page.route("**/search_index.json", lambda route: route.fulfill(json=small))
    links: set[str] = set()
    pictures = Path(os.environ["SCREENSHOTS"]) if "SCREENSHOTS" in os.environ else None
    shown = {"", "rules", "rules/smp101", "cli", "messages", "comparison"}
    names = {
        path.parent.relative_to(site).as_posix().removeprefix(".")
        for path in site.rglob("index.html")
    }
    assert names > shown
    alike = sorted(name for name in names - shown if name.startswith("rules/"))
    if not request.config.getoption("--whole"):
        names.difference_update(set(alike) - set(alike[::3]))
    for name in sorted(names):
        page.goto(f"{address}/{name}/" if name else f"{address}/")
        heading = page.locator("h1").first
        assert heading.is_visible(), name
        assert len(page.locator("article").inner_text()) > 200, name
        links |= set(page.eval_on_selector_all("article a[href]", "all => all.map(a => a.href)"))
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert page.evaluate(CUT_OFF, width) == [], (name, width)
            if pictures is not None and name in shown:
                file = f"{width}-{name.replace('/', '-') or 'home'}.png"
                page.screenshot(path=pictures / file, full_page=True)
    inside = {link.partition("#")[0] for link in links if link.startswith(address)}
    assert inside
    for link in sorted(inside):
        assert page.request.get(link).status == 200, link
    assert complaints == []
    assert [each for each in asked if each[0] >= 400] == []
    assert [url for _, url in asked if not url.startswith(address)] == []


@pytest.mark.parametrize(
    ("seen", "rules"),
    [
        ("every epoch the same order", {"SMP101", "SMP102"}),
        ("job hangs at the end of the epoch", {"SMP306"}),
    ],
)
def test_a_rule_is_found_by_its_symptom(address, browser, seen, rules):
    page = browser.new_page()
    page.goto(f"{address}/rules/")
    page.get_by_role("searchbox", name="Search the rules by symptom").fill(seen)
    links = page.locator("article tbody tr:not([hidden]) a").evaluate_all(
        "all => all.map(each => each.href)"
    )
    found = {link.rstrip("/").rpartition("/")[2].upper() for link in links}
    assert rules <= found
    assert len(found) < 12


@pytest.mark.parametrize("path", sorted((REPOSITORY / "docs/rules").glob("smp[1-9]*.md")))
def test_a_rules_page_shows_code_run_and_who_was_hit(path):
    text = path.read_text(encoding="utf-8")
    for part in ("Wrong code", "Right code", "At run time", "Fix safety", "Who was hit"):
        assert f"\n## {part}\n" in text, part
    assert f"]({path.stem}.svg)" in text


def test_the_first_screen_is_no_blank_page(address, browser):
    """A screenshot with nothing but background would compress to almost nothing."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/rules/smp101/")
    picture = page.screenshot()
    page.goto("about:blank")
    assert len(picture) > 5 * len(page.screenshot())


def test_the_picture_of_a_proof_is_seen(address, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/rules/smp101/")
    picture = page.locator("article img")
    assert "before the fix and after it" in picture.get_attribute("alt")
    picture.scroll_into_view_if_needed()
    colors = picture.evaluate(
        """async image => {
            await image.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
            const pen = canvas.getContext("2d");
            pen.drawImage(image, 0, 0);
            const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        }"""
    )
    assert colors > 20  # samples are told apart
