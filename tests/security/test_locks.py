"""Every lock has its hashes, and the audit never calls unasked what nobody could be asked about."""

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
LOCKS = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def pins(path: Path) -> set[str]:
    lines = [line.split()[0] for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {
        re.sub(r"[-_.]+", "-", name).lower() + f"=={version}" for name, version in (one.split("==") for one in lines)
    }


@pytest.mark.parametrize("name", LOCKS)
def test_the_hashes_are_of_the_lock(name: str) -> None:
    """If this fails: `make hashes`."""
    lock, hashed = pins(REQUIREMENTS / f"{name}.txt"), pins(REQUIREMENTS / "hashes" / f"{name}.txt")
    if name == "torch":  # what PyTorch brings with it is pinned by it alone
        assert lock < hashed
    else:
        assert lock == hashed
    lines = (REQUIREMENTS / "hashes" / f"{name}.txt").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_there_are_no_hashes_of_nothing() -> None:
    assert sorted(path.stem for path in (REQUIREMENTS / "hashes").glob("*.txt")) == LOCKS


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", REQUIREMENTS / "audit.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def advisory(package: str, **affected: object) -> dict[str, object]:
    return {"id": f"PYSEC-{package}", "affected": [{"package": {"name": package, "ecosystem": "PyPI"}, **affected}]}


def ranged(package: str, *events: dict[str, str]) -> dict[str, object]:
    return advisory(package, ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


CANARY = ranged("Jinja2", {"introduced": "0"}, {"fixed": "3.1.5"})


def osv(folder: Path, *advisories: dict[str, object]) -> Path:
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, one in enumerate(advisories):
            archive.writestr(f"{number}.json", json.dumps(one))
    return path


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, REQUIREMENTS / "audit.py", "--osv", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_export_without_the_known_hole_is_no_answer(tmp_path: Path) -> None:
    done = run(osv(tmp_path, ranged("pillow", {"introduced": "0"}, {"fixed": "1.0"})))
    assert done.returncode == 7
    assert "nothing was looked up" in done.stderr


def test_a_hole_is_named_and_fails(tmp_path: Path) -> None:
    clean = run(osv(tmp_path, CANARY))
    assert (clean.returncode, clean.stderr) == (0, "")
    assert "0 with known vulnerabilities, 0 not looked at" in clean.stdout
    done = run(osv(tmp_path, CANARY, ranged("Pillow", {"introduced": "9.0"})))
    assert done.returncode == 1
    assert re.search(r"^pillow==\S+: PYSEC-Pillow$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.9", False), ("1.0", True), ("1.9.1", True), ("2.0", False), ("3.0", True), ("3.5", True), ("3.6", False)],
)
def test_ranges_are_read_as_osv_writes_them(audit: ModuleType, version: str, expected: bool) -> None:
    ranges = [
        {"type": "ECOSYSTEM", "events": [{"introduced": "1.0"}, {"fixed": "2.0"}]},
        {"type": "ECOSYSTEM", "events": [{"last_affected": "3.5"}, {"introduced": "3.0"}]},
        {"type": "GIT", "events": [{"introduced": "0"}]},
    ]
    assert audit.hit({"ranges": ranges}, audit.Version(version)) is expected
    assert audit.hit({"versions": [version]}, audit.Version(version))


def test_a_service_that_knows_nothing_is_no_answer(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit says "no known vulnerabilities" where it reached no advisories: told apart by the known hole."""
    skipped = {"dependencies": [{"name": "jinja2", "skip_reason": "not found on PyPI"}]}
    told = subprocess.CompletedProcess([], 0, json.dumps(skipped), "No known vulnerabilities found")
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: told)
    monkeypatch.setattr(sys, "argv", ["audit.py"])
    assert audit.main() == 7
    assert "cannot be reached" in capsys.readouterr().err


def test_a_package_that_was_skipped_counts_as_not_looked_at(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hole = {"name": "jinja2", "version": "3.1.4", "vulns": [{"id": "CVE-2024-56201"}]}
    answers = iter([[hole], [{"name": "numpy", "version": "2", "vulns": []}, {"name": "odd", "skip_reason": "?"}]])
    monkeypatch.setattr(
        audit.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 0, json.dumps({"dependencies": next(answers)}), ""),
    )
    monkeypatch.setattr(sys, "argv", ["audit.py"])
    assert audit.main() == 7
    said = capsys.readouterr().out
    assert "odd: nobody could be asked" in said
    assert "1 not looked at" in said
