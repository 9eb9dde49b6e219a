#!/usr/bin/env python3
"""check_tutorial.py PAGE PROGRAM: runs every command of a page ("    $ tranche ...") in
one folder, in their order, and compares what they say with what the page says. Numbers
may be others, and "..." stands for any lines. A block whose first line is "// NAME" is a
file of that name for the commands behind it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def commands(page: Path) -> list[tuple[int, str, list[str]]]:
    """The line, command and output of each command of the page."""
    found: list[tuple[int, str, list[str]]] = []
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("    $ "):
            found.append((number, line[6:], []))
            inside = True
        elif inside and line.startswith("    "):
            found[-1][2].append(line[4:])
        elif line.strip():
            inside = False
    return found


def files(page: Path) -> dict[str, str]:
    """The files that the page shows whole, by their names."""
    blocks = re.findall(r"(?m)^    // (\S+)\n((?:    .*\n|\n)+)", page.read_text())
    return {name: text.split("\n    $ ")[0] for name, text in blocks}


def plain(line: str) -> str:
    """The line without what differs between machines."""
    line = re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "0", line)
    return re.sub(r"\s+", " ", re.sub(r"0 ?([KMG]i)?B\b", "0 B", line)).strip()


def matches(wanted: list[str], said: list[str]) -> bool:
    if not wanted:
        return not said
    if wanted[0] == "...":
        return any(matches(wanted[1:], said[i:]) for i in range(len(said) + 1))
    return bool(said) and plain(wanted[0]) == plain(said[0]) and matches(wanted[1:], said[1:])


def main() -> int:
    page, program = Path(sys.argv[1]), Path(sys.argv[2])
    if not Path("/usr/share/common-licenses/GPL-3").exists():
        print("this system has no text that the page trains on")
        return 77
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}")
    all_commands, failed = commands(page), 0
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_CACHE_HOME"] = folder + "/cache"
        for name, text in files(page).items():
            (Path(folder) / name).write_text(text)
        for number, command, wanted in all_commands:
            run = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
            said = run.stdout.decode(errors="replace").splitlines()
            if run.returncode != 0 or not matches(wanted, said):
                failed += 1
                print(f"{page}:{number}: {command}: status {run.returncode}; it says")
                print("\n".join(f"    {line}" for line in said))
    print(f"{len(all_commands)} commands, {failed} say something else")
    return 0 if all_commands and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
