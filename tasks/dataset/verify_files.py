"""What must hold for the files of a data set: those that are listed, as they were written, with their texts."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.dataset.parquet import BYTES_PER_GROUP, ROWS_PER_GROUP
from tasks.dataset.rules import Fault
from tasks.dataset.texts import file_sha256, said_checksums


def part_of(name: str) -> str:
    """Which table a file belongs to: "data", "rejected", or "" for a name that no data set has."""
    found = re.fullmatch(r"(data|rejected)/(?:train|test)-\d{5}-of-\d{5}\.parquet", name)
    return found[1] if found else ""


def listing_faults(folder: Path, files: Mapping[str, int], split: str, texts: Sequence[str]) -> Iterator[Fault]:
    """The files must be the manifest's and the texts, under the names that tables have."""
    listed, present = {*files, *texts}, _present(folder)
    for name in sorted(listed - present):
        yield Fault(name, "present", "the file is missing")
    for name in sorted(present - listed):
        yield Fault(name, "listed", "the manifest does not know this file")
    for part in ("data", "rejected"):
        names = sorted(name for name in files if part_of(name) == part)
        wanted = [f"{part}/{split}-{place:05d}-of-{len(names):05d}.parquet" for place in range(len(names))]
        for name, right in zip(names, wanted, strict=True):
            if name != right:
                yield Fault(name, "name", f"it should be {right}")
    yield from (Fault(name, "name", "no data set has it") for name in sorted(files) if not part_of(name))


def _present(folder: Path) -> set[str]:
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    # The hub and git keep notes of their own beside a data set.
    return {name for name in present if not name.startswith(".git")}


def contents(
    folder: Path, names: Sequence[str], texts: Sequence[str], faults: list[Fault]
) -> tuple[dict[str, str], dict[str, bytes]]:
    """sha256 of each of these files that is there, and the bytes of the texts among them.

    Args:
        folder: The data set.
        names: Files to read.
        texts: Which of them are texts.
        faults: Told what cannot be read, and what `checksums.sha256` says otherwise.
    """
    hashes: dict[str, str] = {}
    data: dict[str, bytes] = {}
    for name in sorted(set(names) & _present(folder)):
        try:
            if not (folder / name).is_file():
                raise OSError("it is no plain file")
            hashes[name] = file_sha256(folder / name)
            if name in texts:
                data[name] = (folder / name).read_bytes()
        except OSError as error:
            faults.append(Fault(name, "readable", error.strerror or str(error)))
    if "checksums.sha256" in data:
        said = said_checksums(data["checksums.sha256"])
        for name in sorted({*hashes, *said} - {"checksums.sha256"}):
            if said.get(name) != hashes.get(name):
                faults.append(Fault(name, "checksum", "checksums.sha256 and the file differ"))
    return hashes, data


def group_rows(path: Path, name: str, schema: pa.Schema, faults: list[Fault]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, values) of every row of one file, whose schema and row groups must be as the hub likes them."""
    file = pq.ParquetFile(path)
    if file.schema_arrow != schema or file.schema_arrow.metadata != schema.metadata:
        faults.append(Fault(name, "schema", "columns, types or the huggingface metadata differ"))
        return
    number = 0
    for group in range(file.num_row_groups):
        facts = file.metadata.row_group(group)
        if facts.num_rows > ROWS_PER_GROUP or facts.total_byte_size > 2 * BYTES_PER_GROUP:
            faults.append(Fault(name, "row group", f"{facts.num_rows} rows, {facts.total_byte_size} bytes"))
            return
        if facts.num_rows and not facts.column(0).has_offset_index:
            faults.append(Fault(name, "page index", "there is none"))
        for value in file.read_row_group(group).to_pylist():
            number += 1
            yield number, value


@contextmanager
def readable(name: str, faults: list[Fault]) -> Iterator[None]:
    """A file that cannot be read in here becomes a fault."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        faults.append(Fault(name, "readable", str(error).partition("\n")[0]))


def rendered_fault(name: str, found: bytes | None, render: Callable[[], bytes]) -> Iterator[Fault]:
    """A text that follows from the manifest must be what it gives; None stands for one that is not there."""
    if found is None:
        return
    try:
        right = render()
    except (jinja2.TemplateError, LookupError, TypeError, AttributeError, StopIteration):
        right = None  # the config is valid, but not as this program writes one
    if found != right:
        yield Fault(name, "card" if name == "README.md" else "rendered", "it is not what the manifest renders to")
