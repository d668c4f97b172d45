"""Checks a pack of edited pictures: files, texts, and every picture against its hash."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from schemas.packs import PackedEdit, PackedTruth, PackManifest
from schemas.records import Key
from tasks.dataset.card import render_pack_card
from tasks.dataset.parquet import published_schema
from tasks.dataset.pictures import cell_faults
from tasks.dataset.read import first_fault
from tasks.dataset.release import PACK_TEXTS, PACKED
from tasks.dataset.rules import Fault
from tasks.dataset.verify_files import contents, group_rows, listing_faults, part_of, readable, rendered_fault
from tasks.engine.fingerprint import sha256


def verify_pack(folder: Path, manifest: PackManifest) -> list[Fault]:
    """Every fault of a pack; empty if it is whole."""
    faults = list(listing_faults(folder, manifest.files, manifest.split, PACK_TEXTS))
    _, texts = contents(folder, [*manifest.files, *PACK_TEXTS], PACK_TEXTS, faults)
    values = manifest.model_dump(mode="json")
    faults += rendered_fault("README.md", texts.get("README.md"), lambda: render_pack_card(values).encode())
    seen: set[str] = set()
    for name in sorted(manifest.files):
        part = part_of(name)
        if part and PACKED[part][0] not in manifest.pictures:
            faults.append(Fault(name, "pictures", f"the manifest says that there are no {PACKED[part][0]} pictures"))
        elif part and (folder / name).is_file():
            with readable(name, faults):
                rows = list(_rows(folder, name, faults))
                if len(rows) != manifest.files[name]:
                    faults.append(Fault(name, "count", f"{len(rows)} rows, the manifest says {manifest.files[name]}"))
                faults += [Fault(id_, "unique", "it is there twice") for id_ in rows if id_ in seen]
                seen |= set(rows)
    return faults


def _rows(folder: Path, name: str, faults: list[Fault]) -> Iterator[str]:
    """The ids in one file, whose pictures are checked and let go."""
    column, kind = PACKED[part_of(name)]
    for number, value in group_rows(folder / name, name, published_schema(kind), faults):
        try:
            row: PackedTruth | PackedEdit = kind.model_validate(value)  # type: ignore[assignment]
        except ValidationError as error:
            faults.append(Fault(f"{name} row {number}", "column", first_fault(error)))
            continue
        key = Key(row.pool, row.source_id, row.target, row.editor, row.attempt)
        if row.id != str(key):
            faults.append(Fault(row.id, "id", f"its columns say {key}"))
        faults += cell_faults(row.id, key, column, getattr(row, column))
        if sha256(getattr(row, column).bytes) != getattr(row, f"{column}_sha256"):
            faults.append(Fault(row.id, f"{column} hash", f"the picture is not the one of {column}_sha256"))
        yield row.id
