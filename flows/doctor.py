"""What is installed, reachable and missing on this machine, and what each absence costs."""

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows import server
from flows.console import OUT, print_json
from tasks.engine import weights
from tasks.engine.errors import WorkspaceError
from tasks.engine.store import Store

# Module → what its absence costs, and whether the base can do without it.
PACKAGES: Final[dict[str, tuple[str, bool]]] = {
    "prefect": ("no flow runs", False),
    "cv2": ("no picture is read or written", False),
    "mediapipe": ("no embedded faces, voters, editor or describer", False),
    "onnxruntime": ("no identity model", False),
    "insightface": ("no identity model, and six sample photos fewer", False),
    "ai_edge_litert": ("no `fer` voter", False),
    "torch": ("no `vlm` voter: `make torch`", True),
    "transformers": ("no `vlm` voter: `make torch`", True),
    "feat": ("no sample photos, so no demo", True),
    "datasets": ("data sets cannot be loaded here with load_dataset; building and verifying need it not", True),
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `cost` says what its absence costs; empty where nothing is amiss."""

    what: str
    state: str
    ok: bool
    needed: bool
    cost: str = ""


def findings(workspace: Path) -> Iterator[Finding]:
    """Everything the doctor looks at; the only outside address asked is the one in PREFECT_API_URL."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    right = sys.version_info[:2] == (3, 11)
    yield Finding("python", version, right, True, "" if right else "the lock is for Python 3.11")
    for module, (cost, optional) in PACKAGES.items():
        there = importlib.util.find_spec(module) is not None
        yield Finding(module, _version(module) if there else "missing", there, not optional, "" if there else cost)
    for row in weights.table():
        ready = row["state"] in ("ready", "derivable")
        wrong = row["state"] == "wrong hash"
        cost = "" if ready else f"what needs it cannot run: {row['purpose']}"
        yield Finding(f"model {row['name']}", row["state"], ready, wrong, cost)
    yield _prefect()
    yield _workspace(workspace)


def _version(module: str) -> str:
    owners = _owners().get(module, [])
    return f"{owners[0]} {metadata.version(owners[0])}" if owners else "installed"


@cache
def _owners() -> Mapping[str, list[str]]:
    """Module → distributions; reads the metadata of everything that is installed, so once must do."""
    return metadata.packages_distributions()


def _prefect() -> Finding:
    url = server.address()
    if not url:
        return Finding("prefect server", "none set: a temporary one per build", True, False, "10 to 20 s per build")
    why = server.trouble(url)
    cost = "builds fail: start it, or unset PREFECT_API_URL" if why else ""
    return Finding("prefect server", f"{url} {why}", not why, True, cost)


def _workspace(workspace: Path) -> Finding:
    name = f"workspace {workspace}"
    try:
        existed = workspace.exists()
        store = Store(workspace)
        store.write("tmp/doctor", b"")
        store.path("tmp/doctor").unlink()
        if not existed:
            shutil.rmtree(workspace)
    except WorkspaceError as error:
        return Finding(name, error.message, False, True, error.hint)
    free = shutil.disk_usage(workspace if existed else workspace.absolute().parent).free / 1e9
    return Finding(name, f"writable, {free:.0f} GB free", True, True)


def show_health(workspace: Path, *, as_json: bool) -> bool:
    """Print the findings; whether nothing that is needed is missing."""
    found = list(findings(workspace))
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        table = Table("what", "state", "what its absence costs")
        for finding in found:
            style = "green" if finding.ok else ("red" if finding.needed else "yellow")
            table.add_row(finding.what, Text(finding.state, style=style, overflow="fold"), finding.cost)
        OUT.print(table)
    return all(finding.ok for finding in found if finding.needed)
