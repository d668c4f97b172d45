"""Looks up known vulnerabilities of everything that the locks pin; `make audit`.

    python requirements/audit.py                    # asks PyPI's advisories through pip-audit
    python requirements/audit.py --osv all.zip      # no network: OSV's export of the ecosystem PyPI, fetched elsewhere

Ends with 0 (nothing known), 1 (something is) or 7 (nobody could be asked). pip-audit calls a package fine that its
service does not know, and says "no known vulnerabilities" where no advisories can be reached at all; so a release with
a famous hole is asked about first, and a package that was skipped counts as not looked at.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from packaging.version import InvalidVersion, Version

HERE: Final = Path(__file__).parent
CANARY: Final = "jinja2==3.1.4"  # CVE-2024-56201 and others


def pinned() -> list[str]:
    """Every `name==version` of the locks, once; torch's companions stand in its hashes alone."""
    found = set()
    for path in sorted(HERE.glob("hashes/*.txt")):
        found |= {line.split()[0] for line in path.read_text().splitlines() if line and not line.startswith("#")}
    return sorted(found)


def ask(pins: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """(pin → identifiers of its vulnerabilities, pins that nobody could say anything of), by pip-audit."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "lock.txt")
        lock.write_text("".join(f"{pin}\n" for pin in pins))
        words = ["--requirement", str(lock), "--no-deps", "--disable-pip", "--format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", *words, "--progress-spinner", "off"],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print((done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1], file=sys.stderr)
        return {}, pins
    holes = {f"{one['name']}=={one['version']}": [v["id"] for v in one["vulns"]] for one in told if one.get("vulns")}
    return holes, [one["name"] for one in told if "skip_reason" in one]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_osv(path: Path, pins: list[str]) -> dict[str, list[str]]:
    """Pin → identifiers, from a zip with one OSV advisory per JSON file."""
    wanted = {normal(name): Version(version) for name, version in (pin.split("==") for pin in pins)}
    holes: dict[str, list[str]] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            advisory = json.loads(archive.read(name)) if name.endswith(".json") else {}
            for affected in [] if advisory.get("withdrawn") else advisory.get("affected", []):
                package = normal(affected.get("package", {}).get("name", ""))
                if package in wanted and hit(affected, wanted[package]):
                    holes.setdefault(f"{package}=={wanted[package]}", []).append(advisory["id"])
    return holes


def hit(affected: dict[str, Any], version: Version) -> bool:
    """Whether a version is listed, or lies in a range: introduced ≤ version < fixed, or ≤ last_affected."""
    if str(version) in affected.get("versions", []):
        return True
    for range_ in affected.get("ranges", []):
        inside = False
        for event, bound in events(range_) if range_.get("type") == "ECOSYSTEM" else ():
            if event == "introduced" and version >= bound:
                inside = True
            elif (event == "fixed" and version >= bound) or (event == "last_affected" and version > bound):
                inside = False
        if inside:
            return True
    return False


def events(range_: dict[str, Any]) -> Iterator[tuple[str, Version]]:
    """The range's events, from the lowest version on."""
    told = []
    for event in range_.get("events", []):
        for name, bound in event.items():
            try:
                told.append((Version(bound), name))
            except InvalidVersion:
                continue  # the listed versions are all there is to go by
    yield from ((name, bound) for bound, name in sorted(told))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--osv", type=Path, help="zip of OSV advisories of the ecosystem PyPI")
    osv = parser.parse_args().osv
    pins = pinned()
    if (read_osv(osv, [CANARY]) if osv else ask([CANARY])[0]) == {}:
        where = f"{osv} does not know" if osv else "the advisory service cannot be reached, or does not know"
        print(
            f"audit: {where} the holes of {CANARY}, so nothing was looked up of {len(pins)} packages", file=sys.stderr
        )
        print("  with network access run it again; without, give --osv a zip of OSV's PyPI advisories", file=sys.stderr)
        return 7
    holes, unknown = (read_osv(osv, pins), []) if osv else ask(pins)
    for pin, names in sorted(holes.items()):
        print(f"{pin}: {', '.join(names)}")
    for name in unknown:
        print(f"{name}: nobody could be asked")
    print(f"audit: {len(pins)} packages, {len(holes)} with known vulnerabilities, {len(unknown)} not looked at")
    return 1 if holes else 7 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
