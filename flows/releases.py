"""What the verbs that pass a data set on print."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.text import Text

from flows.console import ERR, OUT, print_json
from schemas.config import BuildConfig
from schemas.published import PICTURES
from tasks.dataset.export import Format, Prompt, export
from tasks.dataset.hydrate import hydrate
from tasks.dataset.read import data_set
from tasks.dataset.release import check_acknowledged, note_released, packed, released
from tasks.engine.errors import ConfigError
from tasks.engine.places import fetched, shown
from tasks.engine.store import Store
from tasks.results import saved_config


def publish_and_show(
    workspace: Path,
    name: str | None,
    release: Literal["full", "index"],
    *,
    pack: bool,
    rejected: bool,
    acknowledge: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> None:
    """Write a release and perhaps the pack; say where they lie and what comes next."""
    config = saved_config(workspace, name)
    local = fetched(workspace / "datasets" / config.name / config.edition)
    if not local.is_dir():
        raise ConfigError(f"{shown(local)} is gone", "run `fedbench build` again; what was computed is kept")
    if release == "full":
        check_acknowledged(data_set(local), {*config.publish.acknowledge_licences, *acknowledge})
    folder = out or workspace / "releases" / config.name / config.edition
    pictures = PICTURES if rejected else PICTURES[:2]
    made: dict[str, Path] = {release: released(local, folder / release, pictures if release == "full" else ())}
    if pack:
        made["pack"] = packed(local, folder / "pack", pictures)
    note_released(Store(workspace), data_set(local))
    if as_json:
        print_json({kind: shown(path) for kind, path in made.items()})
        return
    for kind, path in made.items():
        OUT.print(Text(f"{kind:<9} {shown(path)}"), soft_wrap=True)
    if pack:
        OUT.print("The pack's README.md holds the hub's gate: publish it gated, never open.", soft_wrap=True)
        if release == "index":
            index, gated = shown(made[release]), shown(made["pack"])
            again = f"next      fedbench hydrate {index} --pack {gated} --config POOLS.yaml --out FULL"
            OUT.print(Text(again), soft_wrap=True)


def hydrate_and_show(index: Path, pack: Path, config: BuildConfig, out: Path, *, as_json: bool) -> bool:
    """Rebuild a full data set; list what is missing; whether nothing is."""
    result = hydrate(index, pack, config, out)
    done = not result.faults
    if as_json:
        print_json(
            {
                "ok": done,
                "folder": str(out) if done else None,
                "triplets": result.triplets,
                "identical": result.identical,
                "note": result.note,
                "faults": [vars(fault) for fault in result.faults],
            }
        )
    elif done:
        OUT.print(Text(f"data set  {out}  ({result.triplets} triplets)"), soft_wrap=True)
        OUT.print(Text(result.note or "It is the full release, byte for byte."), soft_wrap=True)
    else:
        for fault in result.faults:
            ERR.print(Text(str(fault)), soft_wrap=True)
        ERR.print(f"{len(result.faults)} things are missing or different; nothing was written.", style="red")
    return done


def export_and_show(folder: Path, shape: Format, out: Path, prompt: Prompt, *, as_json: bool) -> None:
    """Write an export and say how much of the data set it holds."""
    made = export(folder, shape, out, prompt)
    if as_json:
        print_json({"folder": str(made.folder), "rows": made.rows, "triplets": made.triplets})
        return
    OUT.print(Text(f"export    {made.folder}  ({made.rows} rows of {made.triplets} triplets)"), soft_wrap=True)
    if made.rows < made.triplets:
        OUT.print("The others have no finalist that review did not choose, or not its picture.", soft_wrap=True)
