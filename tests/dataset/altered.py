"""A copy of a data set to tamper with, and all the hashes and counts that a careful forger would make anew."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.published import RejectedRow, TripletRow
from tasks.dataset.card import render_card
from tasks.dataset.croissant import croissant
from tasks.dataset.rows import row_digest
from tasks.dataset.texts import checksums, digests, json_bytes
from tasks.dataset.verify import verify
from tasks.engine.fingerprint import fingerprint

DATA, REJECTED = "data/train-00000-of-00001.parquet", "rejected/train-00000-of-00001.parquet"
KIND = {DATA: TripletRow, REJECTED: RejectedRow}
STAGES = ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish")
# How much the forger makes anew: each level also what the ones before do.
LEVELS = ("nothing", "checksums", "rows", "everything")

Rows = list[dict[str, Any]]


class Altered:
    """A copy of a data set.

    Args:
        original: The data set, left alone.
        folder: Where the copy goes.
    """

    def __init__(self, original: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(original, folder)

    def faults(self) -> set[tuple[str, str]]:
        """(where, rule) of every fault; each must also print as one short line."""
        found = verify(self.folder)
        assert all(len(str(fault)) < 1000 and str(fault).isprintable() for fault in found)
        return {(fault.where, fault.rule) for fault in found}

    def rows(self, name: str) -> Rows:
        return pq.read_table(self.folder / name).to_pylist()  # type: ignore[no-any-return]

    def write(self, name: str, rows: Rows, *, group: int = 100, page_index: bool = True) -> None:
        """Write rows as the data set has them: schema and its metadata, row groups, page index."""
        schema = pq.read_schema(self.folder / name)
        with pq.ParquetWriter(
            self.folder / name,
            schema,
            compression="zstd",
            use_dictionary=False,
            write_page_index=page_index,
            use_content_defined_chunking=True,
        ) as writer:
            for start in range(0, len(rows), group):
                table = pa.Table.from_pylist(rows[start : start + group], schema=schema)
                writer.write_table(table, row_group_size=group)

    def change(self, name: str, change: Callable[[Rows], object], level: str = "nothing") -> None:
        """Change rows of one file, then make anew what the level says."""
        rows = self.rows(name)
        change(rows)
        if level in LEVELS[2:]:
            for row in rows:
                with suppress(ValueError):  # no hash is defined over what is not a number
                    row["row_sha256"] = row_digest(KIND[name].model_validate(row))
        self.write(name, rows)
        self.remake(level)

    def change_manifest(self, change: Callable[[Any], object], level: str = "nothing") -> None:
        manifest = self.manifest()
        change(manifest)
        (self.folder / "manifest.json").write_text(json.dumps(manifest, sort_keys=True))
        if level != "nothing":
            (self.folder / "README.md").write_text(render_card(self.manifest()))
            self.remake("checksums")

    def manifest(self) -> Any:
        return json.loads((self.folder / "manifest.json").read_text())

    def remake(self, level: str) -> None:
        if level == "everything":
            self.change_manifest(self._recount, "checksums")
        elif level != "nothing":
            if (self.folder / "croissant.json").exists():
                with suppress(Exception):  # of a manifest that is none
                    described = croissant(self.manifest(), digests(self.folder))
                    (self.folder / "croissant.json").write_bytes(json_bytes(described))
            (self.folder / "checksums.sha256").write_text(checksums(self.folder))

    def _recount(self, manifest: Any) -> None:
        """Every number of the manifest from the rows, counted on another way than the writer's and the verifier's."""
        triplets, rejected = self.rows(DATA), self.rows(REJECTED)
        manifest["files"] = {DATA: len(triplets), REJECTED: len(rejected)}
        manifest["rows_sha256"] = fingerprint(sorted(row["row_sha256"] for row in triplets + rejected))
        manifest["triplets"] = len(triplets)
        manifest["sources"] = len({(row["pool"], row["source_id"]) for row in triplets + rejected})
        cells = Counter((row["source_expression"], row["target_expression"]) for row in triplets)
        selected_from = [*triplets, *(row for row in rejected if row["stage"] == "publish")]
        natural = Counter((row["source_expression"], row["target"]) for row in selected_from)
        manifest["cells"] = [
            {"source": cell[0], "target": cell[1], "survivors": natural[cell], "triplets": cells[cell], "short": 0}
            for cell in sorted({*cells, *natural})
        ]
        for pool in manifest["pools"]:
            own = {(row["source_id"], row["licence"]) for row in triplets + rejected if row["pool"] == pool["name"]}
            pool["licences"] = dict(sorted(Counter(licence for _, licence in own).items()))
        candidates = [row for row in triplets + rejected if row["target"]]
        for place, line in enumerate(manifest["funnel"]):
            here = [row for row in rejected if row["stage"] == line["stage"]]
            line |= {status: sum(row["status"] == status for row in here) for status in ("rejected", "failed")}
            line["reasons"] = dict(Counter(row["reason"] for row in here))
            if place:
                line["kept"] = sum("stage" not in row or row["stage"] in STAGES[place + 1 :] for row in candidates)
            else:
                line["kept"] = manifest["sources"] - len(here)
            line["owed"] = line["kept"] + len(here)
