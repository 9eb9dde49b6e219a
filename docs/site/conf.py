"""The site: the Markdown of docs/ and of the tree's root as pages, read offline. Built by
tools/site.sh; Sphinx 5.3 (Debian 12) or later, MyST, and Furo where it is installed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent

project = "Tranche"
author = "Tranche developers"
copyright = "2026, Tranche developers"
release = ".".join(
    re.findall(
        r"^#define TRANCHE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)",
        (ROOT / "include/tranche/version.h").read_text(),
        re.M,
    )
)
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/README.md", "build/site-pages/*.md"]
exclude_patterns = [
    "build/[!s]*",
    "build-*",
    "out",
    "src",
    "tests",
    "tools",
    "examples",
    "include",
    "python",
    "cmake",
    "debian",
]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = f"Tranche {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_last_updated_fmt = None
# What a page is found by, and the order in which pages are read.
CONTENTS = {
    "Begin": ["docs/install", "docs/tutorial", "docs/coming-from", "docs/run-file"]
    + ["docs/models"],
    "Train": ["docs/batch", "docs/memory", "docs/precision", "docs/distributed"]
    + ["docs/parallelism"]
    + ["docs/planner", "docs/plan", "docs/simulate", "docs/fine-tuning", "docs/encoders"],
    "Use": ["docs/checkpoints", "docs/sample", "docs/evaluate", "docs/report"]
    + ["docs/tokenizer", "docs/gguf"],
    "Programs": ["docs/library", "docs/library-reference", "docs/python"],
    "Reference": ["build/site-pages/commands", "build/site-pages/keys", "docs/glossary"]
    + ["docs/benchmarks", "bench/README", "CHANGELOG"],
    "Inside": ["ARCHITECTURE", "CONTRIBUTING", "SECURITY", "docs/internals/*"],
}


def without_folders(app: Sphinx, name: str, source: list[str]) -> None:
    """A link to a folder of the sources becomes its words: the site has no such page."""
    folder = (ROOT / f"{name}.md").parent

    def plain(link: re.Match[str]) -> str:
        return link[1] if (folder / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"\[([^][]*)\]\(([^)#: ]+)\)", plain, source[0])


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The first page lists all others; a reader of the file itself does not see that."""
    if name != root_doc:
        return
    for caption, pages in CONTENTS.items():
        lines = [f"/{page}" for page in pages]
        glob = [":glob:"] if any("*" in page for page in pages) else []
        source[0] += "\n\n" + "\n".join(
            ["```{toctree}", ":hidden:", f":caption: {caption}", *glob, "", *lines, "```"]
        )


def setup(app: Sphinx) -> None:
    app.connect("source-read", without_folders)
    app.connect("source-read", add_contents)
