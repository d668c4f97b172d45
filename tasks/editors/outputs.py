"""An editor that edits nothing: it looks up pictures that a model of the user's made elsewhere."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.outcomes import FailureKind
from tasks.editors import EditRequest
from tasks.editors.outputs_found import Found, NotOne, contents_of, found_in
from tasks.engine.calls import Calls
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, ItemFailed, UnreadableImage
from tasks.engine.registry import Adapter


class OutputsEditor(Adapter):
    """Pictures of a folder, or of a JSONL or Parquet table, matched to candidates by pool, source id and target.

    In a folder a picture is found by its name below the root: `pattern` without the extension (any of the usual ones).
    Case and the two spellings of an `é` do not matter, unless two names differ in nothing else. A table has `key`
    (`samples/astronaut:sad`, also with `@editor#attempt`, which is not read), or `pool`, `source_id`, `target` and
    perhaps `attempt`; and `path`, relative to the table, or `image` with the bytes (or the struct that Hugging Face
    has of a picture).

    `fedbench outputs check` says before a build what is missing, double, unreadable or left over.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Where the pictures are.

        Attributes:
            root: The folder, or the table.
            pattern: Name of a picture below the folder, without its extension, made of {pool}, {source_id},
                {source_stem} (the id without an extension), {target} and {attempt}.
            name: What people call the model that made them.
            family: Of that model: voters and captioners of the same one cannot vouch for it.
        """

        root: str = ""
        pattern: str = Field(default="{pool}/{source_id}/{target}", min_length=1)
        name: str = ""
        family: str = ""

    version = 1
    local = ("root",)
    uses_seed = False
    needs_face = False
    seconds = 0.02
    params: Params

    @classmethod
    def check(cls, params: Params) -> None:
        """Raise a ConfigError where the folder or table is wrong, or has two pictures of one name or key."""
        found = found_in(params.root, params.pattern)
        if found.doubled:
            first = "; ".join(" and ".join(names) for names in found.doubled[:3])
            raise ConfigError(
                f"editor 'outputs': {len(found.doubled)} names or keys in {params.root} have several pictures: {first}",
                "keep one of each",
            )

    @classmethod
    def contents(cls, params: Params) -> str:
        """Digest of the pictures' names and bytes; empty where there are none, which `check` says."""
        return contents_of(params.root)

    @classmethod
    def family_of(cls, params: Params) -> str:
        """As the user says."""
        return params.family

    @cached_property
    def _found(self) -> Found:
        return found_in(self.params.root, self.params.pattern)

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | ItemFailed]:
        """The pictures as they are; BAD_OUTPUT, with the key, where there is none, several, or none to read."""
        return [self._given(request) for request in requests]

    def _given(self, request: EditRequest) -> NDArray[np.uint8] | ItemFailed:
        key = request.key._replace(target=str(request.target))
        try:
            return decode(self._found.read(self._found.one(key)))
        except NotOne as error:
            return ItemFailed(FailureKind.BAD_OUTPUT, str(error))
        except UnreadableImage as error:
            return ItemFailed(FailureKind.BAD_OUTPUT, f"the output for {key} cannot be read: {error.reason}, {error}")
