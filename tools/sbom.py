#!/usr/bin/env python3
"""sbom.py wheel TREE OUT.json | sbom.py root FOLDER OUT.json: an SPDX 2.3 list of what an
unpacked wheel, or a system of Debian in a folder (an image), carries: each package with
its version, and its licences as far as Debian's copyright file names them by their
short names."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

from wheel_licences import own_name, package_of, system_files

# Debian's short names that are others in SPDX; those that are the same need no row.
SPDX_NAMES = {
    "Expat": "MIT",
    "GPL-2": "GPL-2.0-only",
    "GPL-2+": "GPL-2.0-or-later",
    "GPL-3": "GPL-3.0-only",
    "GPL-3+": "GPL-3.0-or-later",
    "LGPL-2+": "LGPL-2.0-or-later",
    "LGPL-2.1": "LGPL-2.1-only",
    "LGPL-2.1+": "LGPL-2.1-or-later",
    "LGPL-3+": "LGPL-3.0-or-later",
    "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause",
    "Apache-2.0": "Apache-2.0",
    "MIT": "MIT",
    "Zlib": "Zlib",
}


def licences(copyright_file: Path) -> str:
    """The licences of a package as an SPDX expression; NOASSERTION where one of them has
    no name that SPDX knows."""
    if not copyright_file.exists():
        return "NOASSERTION"
    text = copyright_file.read_text(errors="replace")
    names = sorted(set(re.findall(r"^License: *(\S.*?) *$", text, re.M)))
    known = [SPDX_NAMES.get(name) for name in names]
    if not names or None in known:
        return "NOASSERTION"
    return " AND ".join(sorted({name for name in known if name}))


def package(name: str, version: str, licence: str, where: str) -> dict[str, object]:
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "comment": where,
    }


def version_of_tranche() -> str:
    header = Path(__file__).parent.parent / "include/tranche/version.h"
    numbers = re.findall(
        r"^#define TRANCHE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read_text(), re.M
    )
    return ".".join(numbers)


def installed(root: Path) -> list[list[str]]:
    """Name, version and architecture of each package of a system."""
    listed = subprocess.run(
        ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W"]
        + ["-f", "${Package}\t${Version}\t${Architecture}\t${db:Status-Status}\n"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    return [row[:3] for row in rows if row[3] == "installed"]


def of_root(root: Path) -> list[dict[str, object]]:
    return [
        package(name, version, licences(root / "usr/share/doc" / name / "copyright"), arch)
        for name, version, arch in installed(root)
    ]


def of_wheel(tree: Path) -> list[dict[str, object]]:
    system, versions = system_files(), {row[0]: row[1] for row in installed(Path("/"))}
    files = [*sorted(tree.glob("*.libs/*")), *sorted(tree.glob("tranche/lib/libgomp*"))]
    found: dict[str, list[str]] = {}
    for file in files:
        name = own_name(file)
        owner = package_of(system[name]) if name in system else None
        if owner is None:
            sys.exit(f"sbom: {file}: no package of this system has it")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        found.setdefault(owner, []).append(f"{file.relative_to(tree)} sha256:{digest}")
    return [
        package(
            owner,
            versions[owner],
            licences(Path("/usr/share/doc") / owner / "copyright"),
            "; ".join(places),
        )
        for owner, places in sorted(found.items())
    ]


def main() -> None:
    kind, tree, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    carried = of_wheel(tree) if kind == "wheel" else of_root(tree)
    own = [each for each in carried if each["name"] == "tranche"]
    if not own:
        own = [package("tranche", version_of_tranche(), "MIT", kind)]
        carried = own + carried
    names = json.dumps([[each["name"], each["versionInfo"]] for each in carried])
    digest = hashlib.sha256(names.encode()).hexdigest()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tranche-{kind}-{version_of_tranche()}",
        "documentNamespace": f"https://spdx.org/spdxdocs/tranche-{kind}-{digest}",
        "creationInfo": {
            "created": "2026-01-01T00:00:00Z",
            "creators": ["Tool: tranche tools/sbom.py"],
        },
        "packages": carried,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": own[0]["SPDXID"],
            }
        ]
        + [
            {
                "spdxElementId": own[0]["SPDXID"],
                "relationshipType": "DEPENDS_ON" if kind == "root" else "CONTAINS",
                "relatedSpdxElement": each["SPDXID"],
            }
            for each in carried
            if each is not own[0]
        ],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(f"{out}: {len(carried)} packages")


if __name__ == "__main__":
    main()
