"""Checks a published data set by recomputing what its rows say, not by comparing checksums alone."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

import prompts
from schemas.config import BuildConfig
from schemas.packs import PackManifest
from schemas.published import PICTURES, Manifest, TripletRow
from tasks.dataset.card import render_card
from tasks.dataset.croissant import croissant
from tasks.dataset.cross_rules import core_faults, run_faults
from tasks.dataset.parquet import left_out, published_schema
from tasks.dataset.pictures import picture_faults
from tasks.dataset.read import EMPTY, KINDS, config_of, filled, first_fault, read_manifest
from tasks.dataset.recount import audit_faults_of, back_checks_of, cells_of, funnel_of, sample_of
from tasks.dataset.roles import cast_of
from tasks.dataset.rules import Fault, Row, column_faults, key_of, row_faults
from tasks.dataset.texts import json_bytes
from tasks.dataset.verify_files import contents, group_rows, listing_faults, part_of, readable, rendered_fault
from tasks.dataset.verify_pack import verify_pack
from tasks.dataset.write import TEXTS
from tasks.engine.fingerprint import fingerprint
from tasks.sources import POOLS, redistributable

__all__ = ["Fault", "verified_words", "verify"]


def verify(folder: Path) -> list[Fault]:
    """Every fault of a data set, a release of one, or a pack; empty if it is whole.

    Hashes prove that nothing changed since they were made; whoever makes them anew is found out only where one
    column follows from others. Nothing vouches for captions, dense instructions, votes' raw texts and the pixels of
    ground truths but the hashes. What needs pictures is left out where a release has none: see `verified_words`.

    Raises:
        ConfigError: The folder is no data set of this schema version.
    """
    manifest = read_manifest(folder)
    if isinstance(manifest, PackManifest):
        return verify_pack(folder, manifest)
    config = config_of(folder, manifest)
    faults = list(_files(folder, manifest))
    rows: dict[str, list[Row]] = {}
    for name in sorted(manifest.files):
        if part_of(name) and (folder / name).is_file():
            with readable(name, faults):
                rows[name] = list(_table(folder, name, manifest, faults))
    faults += _counts(rows, manifest)
    every = [row for in_file in rows.values() for row in in_file]
    sound, known_prompt = [], _known_prompt(manifest)
    for row in every:
        wrong = list(column_faults(row))
        faults += wrong or row_faults(row, config, known_prompt=known_prompt)
        if not wrong:
            sound.append(row)
    faults += run_faults(sound, config, frozenset(manifest.core.triplets) if manifest.core else ())
    faults += _roles(manifest, config)
    if len(sound) == len(every):
        faults += core_faults(sound, manifest, config)
        faults += _funnel(sound, manifest)
        faults += _cells(sound, manifest, config)
        faults += _pools(sound, manifest)
    return faults


def verified_words(folder: Path) -> str:
    """What a folder without faults is, what was recomputed, and what could not be."""
    manifest = read_manifest(folder)
    if isinstance(manifest, PackManifest):
        return "whole: its pictures are those of their hashes. Whether they belong to an index is seen by hydrating it."
    told = "instructions" if _known_prompt(manifest) else "(but not instructions: their template is not installed)"
    recomputed = f"hashes, votes, verdicts, ranks, {told} and counts were recomputed"
    missing = [column for column in PICTURES if column not in manifest.pictures]
    if len(missing) == len(PICTURES):
        return (
            f"a whole index: votes, verdicts, ranks, {told} and counts were recomputed. It has no pictures, so "
            "their hashes, sizes and pixels were not checked: `fedbench hydrate` does."
        )
    if missing:
        return f"whole: {recomputed}. It has no {', '.join(missing)} pictures, so those were not checked."
    return f"whole: {recomputed}."


def _known_prompt(manifest: Manifest) -> bool:
    """Whether the simple instructions came from the template that is installed here, and from no other."""
    here = prompts.sha256_of("simple_instruction")
    return all(here in one.uses for one in manifest.stages.get("generate", ()))


def _files(folder: Path, manifest: Manifest) -> Iterator[Fault]:
    """The files must be those of the manifest and of checksums.sha256, and the texts what the manifest gives."""
    if manifest.pictures != tuple(column for column in PICTURES if column in manifest.pictures):
        yield Fault("manifest.json", "pictures", f"{', '.join(manifest.pictures)}: not as {', '.join(PICTURES)}")
    yield from listing_faults(folder, manifest.files, manifest.split, TEXTS)
    faults: list[Fault] = []
    hashes, texts = contents(folder, [*manifest.files, *TEXTS], TEXTS, faults)
    yield from faults
    values = manifest.model_dump(mode="json")
    yield from rendered_fault("README.md", texts.get("README.md"), lambda: render_card(values).encode())
    if not faults and manifest.files.keys() <= hashes.keys():
        found = texts.get("croissant.json")
        yield from rendered_fault("croissant.json", found, lambda: json_bytes(croissant(values, hashes)))


def _table(folder: Path, name: str, manifest: Manifest, faults: list[Fault]) -> Iterator[Row]:
    """The rows of one file without their pictures, which are checked and let go."""
    part = part_of(name)
    kind = KINDS[part]
    schema = published_schema(kind, left_out(kind, manifest.pictures))
    for number, value in group_rows(folder / name, name, schema, faults):
        try:
            row: Row = kind.model_validate(filled(value, part))  # type: ignore[assignment]
        except ValidationError as error:
            faults.append(Fault(f"{name} row {number}", "column", first_fault(error)))
            continue
        faults += picture_faults(row, manifest.pictures)
        yield row.model_copy(update={column: EMPTY for column in PICTURES if getattr(row, column, None)})


def _counts(rows: dict[str, list[Row]], manifest: Manifest) -> Iterator[Fault]:
    """Rows per file, and all rows together, must be the manifest's."""
    for name, count in manifest.files.items():
        if name in rows and len(rows[name]) != count:
            yield Fault(name, "count", f"{len(rows[name])} rows, the manifest says {count}")
    if fingerprint(sorted(row.row_sha256 for in_file in rows.values() for row in in_file)) != manifest.rows_sha256:
        yield Fault("manifest.json", "rows", "the rows are not those it was made from")


def _funnel(rows: Sequence[Row], manifest: Manifest) -> Iterator[Fault]:
    """Sources, triplets, cells and funnel, counted again from where every row ended."""
    sources = {key_of(row).source() for row in rows}
    triplets = [row for row in rows if isinstance(row, TripletRow)]
    if (len(sources), len(triplets)) != (manifest.sources, manifest.triplets):
        yield Fault("manifest.json", "count", f"{len(sources)} sources and {len(triplets)} triplets are there")
    for said, counted in zip(manifest.funnel, funnel_of(rows, [line.stage for line in manifest.funnel]), strict=True):
        if counted != said:
            yield Fault("manifest.json", "funnel", f"{said.stage}: the rows give {counted.model_dump()}")


def _cells(rows: Sequence[Row], manifest: Manifest, config: BuildConfig) -> Iterator[Fault]:
    """The natural and the published mix, outcomes of back checks, and what people found in a sample, counted again."""
    if cells_of(rows, config) != manifest.cells:
        yield Fault("manifest.json", "count", "survivors or triplets by source and target expression differ")
    if (checks := back_checks_of(rows)) != manifest.back_checks:
        yield Fault("manifest.json", "count", f"the rows' back checks are {checks}")
    if (sample := sample_of(rows, config)) != manifest.sample:
        yield Fault("manifest.json", "review", f"of the sample, the rows give {sample and sample.model_dump()}")
    yield from (
        Fault("manifest.json", "review", f"audit: {words}") for words in audit_faults_of(rows, manifest, config)
    )


def _pools(rows: Sequence[Row], manifest: Manifest) -> Iterator[Fault]:
    """Sources by pool and licence, counted again; and whether a pool may be passed on, as its kind says here."""
    licences: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        licences[row.pool][row.licence].add(row.source_id)
    counted = {pool: {licence: len(ids) for licence, ids in by.items()} for pool, by in licences.items()}
    if counted != {pool.name: pool.licences for pool in manifest.pools if pool.licences}:
        yield Fault("manifest.json", "pools", f"the rows give {counted}")
    for pool in manifest.pools:
        if pool.kind in POOLS.names() and pool.redistributable != redistributable(pool.kind):
            yield Fault("manifest.json", "pools", f"'{pool.kind}' says otherwise of passing '{pool.name}' on")


def _roles(manifest: Manifest, config: BuildConfig) -> Iterator[Fault]:
    """The makers and checkers must be the config's."""
    said = {(role.role, role.adapter, role.called): None for role in manifest.roles}
    if list(said) != list({(role, label, called): None for role, label, called, _ in cast_of(config)}):
        yield Fault("manifest.json", "roles", "they are not those of the config")
