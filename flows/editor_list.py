"""Lists all editors, and says of each whether this machine can run it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from schemas.hosted import shipped_editors
from tasks.editors import EDITORS
from tasks.editors.table import shipped
from tasks.engine import weights
from tasks.engine.errors import FedbenchError
from tasks.engine.secrets import secret


@dataclass(frozen=True)
class Listed:
    """One editor. `memory_gb` and `dollars` (of an edit) are None where they are not known; `why` says what lacks."""

    name: str
    kind: str
    family: str
    licence: str
    memory_gb: float | None
    dollars: float | None
    here: bool
    why: str


def listed() -> Iterator[Listed]:
    """All editors: those of this program, the open ones, the hosted ones."""
    for name in EDITORS.names():
        adapter = EDITORS.adapter_class(name)
        if name not in ("api", "diffusion"):
            gone = [weight for weight in adapter.weights if weights.state(weight) not in ("ready", "derivable")]
            licence = ", ".join(dict.fromkeys(weights.entry(weight).licence for weight in adapter.weights))
            lacks = f"no model file {', '.join(gone)}" if gone else ""
            why = lacks or {"outputs": "give it `root`"}.get(name, "")
            yield Listed(name, "here, CPU", adapter.family, licence or "–", 0, 0, not gone, why)
    for row in shipped():
        if row.runs == "here":
            why = _lacks("diffusion", {"model": row.name}) or _too_small(row.memory_gb)
            yield Listed(row.name, "open", row.family, row.licence, row.memory_gb, 0, not why, why)
    sizes = {row.name: row.memory_gb for row in shipped()}
    for name, hosted in shipped_editors().items():
        route = hosted.routes[0]
        keyed = not route.key_env or bool(secret(route.key_env))
        why = _lacks("api", {"model": name}) or ("" if keyed else f"{route.key_env} is not set")
        own = route.key_env is None
        price = EDITORS.adapter_class("api").dollars(EDITORS.parse("api", {"model": name}))
        licences = {row.name: row.licence for row in shipped()}
        licence = licences.get(name, "the provider's terms")
        where = "your server" if own else "hosted"
        why = why or (f"asked at {route.api_base}" if own else "")
        yield Listed(name, where, route.family, licence, sizes.get(name) if own else 0, price, keyed and not own, why)


def _lacks(kind: str, params: Mapping[str, Any]) -> str:
    try:
        EDITORS.check(kind, params)
    except FedbenchError as error:
        return error.message.replace(f"the editor '{params['model']}' ", "")
    return ""


def _too_small(needed: float | None) -> str:
    """Why an open editor that is all there cannot run: no GPU, or one that is too small."""
    import torch

    if not torch.cuda.is_available():
        return "no GPU"
    there = torch.cuda.get_device_properties(0).total_memory / 1e9
    return f"needs {needed:g} GB, the GPU has {there:.0f}" if needed and needed > there else ""


def show_editors(*, as_json: bool) -> None:
    """All editors as a table, or as JSON."""
    found = list(listed())
    if as_json:
        print_json([asdict(one) for one in found])
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("editor", no_wrap=True)
    for name in ("runs", "family", "licence"):
        table.add_column(name, overflow="fold")
    for name in ("GB", "$ an edit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("on this machine", overflow="fold")
    for one in found:
        state = Text("yes" if one.here else one.why, style="green" if one.here else "yellow")
        if one.here and one.why:
            state = Text(f"yes: {one.why}", style="green")
        table.add_row(one.name, one.kind, one.family, one.licence, _known(one.memory_gb), _known(one.dollars), state)
    OUT.print(table)
    OUT.print(Text("? is not known; GB are those of the weights, dollars the provider's list price.", style="dim"))


def _known(value: float | None) -> str:
    return "?" if value is None else "–" if value == 0 else f"{value:.2g}" if value < 1 else f"{value:.0f}"
