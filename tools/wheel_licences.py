#!/usr/bin/env python3
"""wheel_licences.py TREE: puts into an unpacked wheel the licence of each library that
was copied into it, as the package of this system has it
(/usr/share/doc/*/copyright)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path


def own_name(file: Path) -> str:
    """The name that the library has on this system: auditwheel adds a hash to it."""
    return re.sub(r"-[0-9a-f]{8}(?=[.\d]*\.so)", "", file.name)


def system_files() -> dict[str, Path]:
    """The libraries of this system, by the names of their files and their links."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    found: dict[str, Path] = {}
    for link in re.findall(r"=> (\S+)", known):
        file = Path(link).resolve()
        found.setdefault(file.name, file)
        found.setdefault(Path(link).name, file)
    return found


def package_of(file: Path) -> str | None:
    """The package that has installed a file; /lib may be a link to /usr/lib."""
    for path in (file, Path("/usr") / file.relative_to("/")):
        found = subprocess.run(
            ["dpkg-query", "-S", path], capture_output=True, text=True
        )
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    return None


def main() -> int:
    tree = Path(sys.argv[1])
    licences = next(tree.glob("*.dist-info")) / "licenses"
    licences.mkdir(exist_ok=True)
    system, failed = system_files(), False
    for file in [
        *sorted(tree.glob("*.libs/*")),
        *sorted(tree.glob("tranche/lib/libgomp*")),
    ]:
        name = own_name(file)
        found = system.get(name)
        package = package_of(found) if found else None
        text = Path("/usr/share/doc") / (package or "") / "copyright"
        if package is None or not text.exists():
            print(f"{name}: no licence ({found}, package {package})", file=sys.stderr)
            failed = True
            continue
        shutil.copy(text, licences / f"{name.split('.so')[0]}.txt")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
