#!/usr/bin/env python3
"""check_site.py FOLDER: fails where a link of a page inside of the folder leads to a file
or to an anchor that is not there, or where a page loads something from elsewhere."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            if name == "href" and tag == "a":
                self.links.append(value)
            elif name == "src" or (name == "href" and tag == "link"):
                self.loads.append(value)


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    pages = {file: Page(file) for file in sorted(root.rglob("*.html"))}
    faults = links = 0

    def fault(file: Path, what: str) -> None:
        nonlocal faults
        faults += 1
        print(f"{file.relative_to(root)}: {what}")

    for file, page in pages.items():
        for link in page.loads:
            if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
                fault(file, f"loads {link}: the site must be read offline")
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                fault(file, f"a link to {link}, which is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                fault(file, f"a link to {link}, an anchor that is not there")
    print(f"{len(pages)} pages, {links} links inside, {faults} lead nowhere")
    return 0 if pages and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
