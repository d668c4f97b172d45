"""The READMEs of data sets and packs: every number and name in them comes from the manifest."""

from pathlib import Path
from typing import Any, Final

import jinja2

from tasks.engine.fingerprint import fingerprint
from tasks.report.plain import in_markdown

TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    finalize=in_markdown,
)


def render_card(manifest: dict[str, Any]) -> str:
    """A data set's README."""
    return TEMPLATES.get_template("card.md.j2").render(manifest=manifest, digest=fingerprint(manifest)[:16])


def render_pack_card(manifest: dict[str, Any]) -> str:
    """A pack's README, with the gate that the hub shows to applicants."""
    return TEMPLATES.get_template("pack.md.j2").render(manifest=manifest, digest=fingerprint(manifest)[:16])
