"""The data set in Croissant (JSON-LD of MLCommons), made of the manifest and the tables' schemas alone."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from schemas.published import RejectedRow, TripletRow
from tasks.dataset.parquet import left_out, published_schema

# Names as the specification 1.0 has them; mlcroissant warns of any other.
CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES: Final = {pa.string(): "sc:Text", pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.bool_(): "sc:Boolean"}
_TABLES: Final = (("data", "triplets", TripletRow), ("rejected", "rejected", RejectedRow))


def croissant(manifest: dict[str, Any], hashes: Mapping[str, str]) -> dict[str, Any]:
    """The description of a data set.

    Args:
        manifest: Of the data set, as plain values.
        hashes: sha256 of (at least) the tables' files, by name.
    """
    editors = [f"{role['adapter']} {role['version']}" for role in manifest["roles"] if role["role"] == "editor"]
    licences = sorted({licence for pool in manifest["pools"] for licence in pool["licences"]})
    said = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": f"{manifest['name']}-{manifest['edition']}",
        "description": f"{manifest['triplets']} triplets for facial-expression editing: source photo, instruction, "
        f"synthetic ground truth. Made with fedbench {manifest['fedbench']}; see README.md."
        + ("" if manifest["pictures"] else " This is the index: it holds no picture."),
        "license": licences or ["unknown"],
        "keywords": ["facial-expression-editing", "image-editing", "synthetic"],
        "isLiveDataset": False,
        "rai:dataCollection": "Photos of the pools "
        + ", ".join(pool["name"] for pool in manifest["pools"])
        + f", screened by machine: {manifest['funnel'][0]['kept']} of {manifest['sources']} were kept.",
        "rai:dataAnnotationProtocol": "Votes of "
        + ", ".join(role["adapter"] for role in manifest["roles"] if role["role"] == "voter")
        + "; identity and background measured; review: "
        + str(manifest["config"]["review"]["measure"]["board"]["name"])
        + ". README.md has the counts, the conflicts between model families and the limits.",
        "rai:machineAnnotationTools": [
            f"{role['role']}: {role['adapter']} {role['version']}" for role in manifest["roles"]
        ],
        "rai:dataManipulationProtocol": f"Synthetic edits by {' and '.join(editors)}.",
        "rai:dataUseCases": "Training and judging editors of facial expressions in pictures.",
        "rai:dataLimitations": "Polarity votes cannot tell two negative expressions apart; captions and dense "
        "instructions are machine-written.",
        "rai:dataBiases": "Pools show few people often, and actors where they come from films; expressions are not "
        "evenly spread (README.md, source and target expressions).",
        "rai:personalSensitiveInformation": "Faces of real people. Identity vectors are not published.",
        "distribution": list(_distribution(manifest, hashes)),
        "recordSet": [_records(manifest, *table) for table in _TABLES],
        "version": _version(manifest["edition"]),
    }
    day = manifest["config"]["publish"].get("generated_on")
    return {**said, "dateCreated": day} if day else said


def _version(edition: str) -> str:
    """An edition as MAJOR.MINOR.PATCH where it is a number ("v1" is 1.0.0), else as it is."""
    found = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", edition)
    return ".".join(part or "0" for part in found.groups()) if found else edition


def _distribution(manifest: dict[str, Any], hashes: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name in sorted(manifest["files"]):
        yield {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "encodingFormat": "application/x-parquet",
            "sha256": hashes.get(name, ""),
        }
    for folder, table, _ in _TABLES:
        yield {
            "@type": "cr:FileSet",
            "@id": f"{table}-files",
            "name": f"{table}-files",
            "encodingFormat": "application/x-parquet",
            "includes": f"{folder}/{manifest['split']}-*.parquet",
        }


def _records(manifest: dict[str, Any], folder: str, table: str, row: type[Any]) -> dict[str, Any]:
    schema = published_schema(row, left_out(row, manifest["pictures"]))
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "description": f"One record per row of {folder}/.",
        "key": {"@id": f"{table}/id"},
        "field": [_field(table, field.name, (), field.type) for field in schema],
    }


def _field(table: str, column: str, below: tuple[str, ...], kind: pa.DataType) -> dict[str, Any]:
    """A column, or a part of one: structs become sub-fields, lists repeat, pictures are their bytes."""
    repeated = pa.types.is_list(kind)
    inner = kind.value_type if repeated else kind
    picture = pa.types.is_struct(inner) and inner.get_field_index("bytes") >= 0
    path = ".".join((*below, "bytes") if picture else below)
    said: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": "/".join((table, column, *below)),
        "name": "/".join((table, column, *below)),
    }
    if pa.types.is_struct(inner) and not picture:
        parts = [_field(table, column, (*below, part.name), part.type) for part in inner]
        return said | {"subField": parts} | ({"repeated": True} if repeated else {})
    source: dict[str, Any] = {"fileSet": {"@id": f"{table}-files"}, "extract": {"column": column}}
    if path:
        source["transform"] = {"jsonPath": path}
    said |= {"dataType": "sc:ImageObject" if picture else _TYPES[inner], "source": source}
    return said | ({"repeated": True} if repeated else {})
