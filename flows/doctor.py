"""What is installed, reachable and missing on this machine, and what each absence costs."""

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows import server
from flows.console import OUT, print_json
from schemas.panels import shipped
from schemas.routes import Route
from tasks.engine import weights
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.secrets import secret
from tasks.engine.store import Store
from tasks.providers.routes import INSTALL

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
    "prefect_ray": ("no `runner: ray`: `make ray`", True),
    "feat": ("no sample photos, so no demo", True),
    "datasets": ("data sets cannot be loaded here with load_dataset; building and verifying need it not", True),
}


OUTSIDE: Final = "outside: "  # how the models of panels are told from the rest


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
    if importlib.util.find_spec("litellm") is None:
        yield Finding("litellm", "missing", False, False, f"no model outside is asked: {INSTALL}")
    for name, routes in shipped().models.items():
        yield _model(name, routes[0], datetime.now(UTC).date())


def _version(module: str) -> str:
    owners = _owners().get(module, [])
    return f"{owners[0]} {metadata.version(owners[0])}" if owners else "installed"


@cache
def _owners() -> Mapping[str, list[str]]:
    """Module → distributions; reads the metadata of everything that is installed, so once must do."""
    return metadata.packages_distributions()


def _model(name: str, route: Route, today: date) -> Finding:
    """A model of the panels that ship: whether its key is here, and until when it is served."""
    try:
        keyed = route.key_env is None or bool(secret(route.key_env))
        key = f"key {route.key_env} {'is set' if keyed else 'is not set'}" if route.key_env else "needs no key"
    except ConfigError as error:
        keyed, key = False, error.message
    gone = route.retires is not None and route.retires <= today
    served = f"; {'withdrawn' if gone else 'to be withdrawn'} on {route.retires}" if route.retires else ""
    panels = ", ".join(panel for panel, spec in shipped().panels.items() if name in spec.voters)
    cost = "" if keyed and not gone else f"no use of {panels}" if panels else "it cannot be asked"
    return Finding(f"{OUTSIDE}{name}", f"{key}{served}", keyed and not gone, False, cost)


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


def _table(title: str, found: list[Finding]) -> Table:
    table = Table(title, "state", "what its absence costs")
    for finding in found:
        style = "green" if finding.ok else ("red" if finding.needed else "yellow")
        table.add_row(
            finding.what.removeprefix(OUTSIDE), Text(finding.state, style=style, overflow="fold"), finding.cost
        )
    return table


def show_health(workspace: Path, *, as_json: bool) -> bool:
    """Print the findings; whether nothing that is needed is missing."""
    found = list(findings(workspace))
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        OUT.print(_table("what", [finding for finding in found if not finding.what.startswith(OUTSIDE)]))
        OUT.print(_table("model outside", [finding for finding in found if finding.what.startswith(OUTSIDE)]))
    return all(finding.ok for finding in found if finding.needed)
