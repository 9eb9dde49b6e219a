#!/usr/bin/env python3
"""site_pages.py BUILD OUT: writes the pages of the site that are made of tables: what
each command's --help says, and all keys of run files."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

build, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
sys.path.insert(0, str(build / "python"))
from tranche import _declarations as c  # noqa: E402
from tranche._library import library  # noqa: E402


def say(*words: str) -> str:
    return subprocess.run(
        [str(build / "tranche"), *words], capture_output=True, text=True, check=True
    ).stdout


def commands() -> str:
    offered = say("completion", "bash", "--", "").splitlines()
    names = [line.split("\t")[0] for line in offered]
    text = "# Commands\n\nWhat `tranche COMMAND --help` says.\n\n```text\n"
    text += say("--help") + "```\n"
    for name in names:
        if not name.startswith("-"):
            text += f"\n## tranche {name}\n\n```text\n{say(name, '--help')}```\n"
    return text


def words(value: bytes | None) -> str:
    return (value or b"").decode().replace("|", "\\|").replace("*", "\\*")


def listed(values: object) -> str:
    """A NULL-terminated list of texts."""
    found = []
    for value in values:  # type: ignore[attr-defined]
        if value is None:
            break
        found.append(words(value))
    return ", ".join(found)


def keys() -> str:
    text = [
        "# All keys of a run file",
        "",
        "Made of the tables that the reader of run files works by;"
        " [run files](../../docs/run-file.md) explains them by subject.",
        "",
        "Since: the first version of Tranche that has the key.",
        "",
        "| key | takes | default | in Tranche | in DeepSpeed | since |",
        "|---|---|---|---|---|---|",
    ]
    key, index, without = c.tr_run_key(ctypes.sizeof(c.tr_run_key)), 0, []
    while library().tr_run_key_at(index, ctypes.byref(key)):
        index += 1
        since = words(key.since)
        if not key.works:
            without.append(f"| `{key.path.decode()}` | {words(key.doc)} | {since} |")
            continue
        fallback = f"`{key.fallback.decode()}`" if key.fallback else "none"
        meaning = words(key.doc)
        if key.where_key:
            meaning += f". Only where `{key.where_key.decode()}` is {listed(key.where)}"
        cells = [f"`{key.path.decode()}`", words(key.takes), fallback, meaning]
        cells += [words(key.deepspeed) or "no such key", since]
        text.append(f"| {' | '.join(cells)} |")
    text += [
        "",
        "## Keys without an effect",
        "",
        "DeepSpeed has these keys. Tranche accepts them, and names those that a file has.",
        "",
        "| key | why | since |",
        "|---|---|---|",
        *without,
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "commands.md").write_text(commands())
    (out / "keys.md").write_text(keys())


if __name__ == "__main__":
    main()
