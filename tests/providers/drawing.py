"""Edits by a loopback provider, asked for as a stage would; as a process of its own, for tests that kill it.

`python -m tests.providers.drawing FOLDER '{"url": ..., "edits": 100, ...}'` prints one line of JSON: how each ended.
"""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from schemas.expressions import Expression
from schemas.routes import CallSettings
from tasks.editors import Edit, EditRequest
from tasks.editors.api import ApiEditor
from tasks.engine.calls import Calls
from tasks.engine.errors import FedbenchError
from tasks.engine.fingerprint import sha256
from tests.providers.asking import KEY_ENV, picture

SIDE = 48
PRICE = {"input_per_mtok": 0.0, "output_per_mtok": 0.0, "per_image": 0.04, "as_of": "2026-11-01"}


def way(url: str, model: str = "hosted_vllm/m-1", **changes: Any) -> dict[str, Any]:
    """A route to a loopback provider; $0.04 a picture."""
    root = url.removesuffix("/v1")
    base = {"gemini": f"{root}/v1beta", "bfl": root}.get(model.partition("/")[0], url)
    values = {"model": model, "provider": "loopback", "api_base": base, "key_env": KEY_ENV, "pictures": "png"}
    limit = {"concurrency": 1024}
    return values | {"price": PRICE, "limit": limit, "timeout_s": 60, "temperature": None} | changes


def editor(*ways: dict[str, Any], **params: Any) -> ApiEditor:
    return ApiEditor(ApiEditor.Params.model_validate({"name": "drawer", "routes": ways, "seeded": True} | params))


def request(number: int = 0, seed: int | None = None, side: int = SIDE) -> EditRequest:
    words = "change the expression from happy to sad"
    return EditRequest(picture(number, side), Expression.HAPPY, Expression.SAD, words, number if seed is None else seed)


def edited(calls: Calls, by: ApiEditor, number: int) -> str:
    """How an edit ended: digest of its pixels, or the kind of failure; a stop passes through."""
    (result,) = by.edit([request(number)], calls)
    if isinstance(result, Edit):
        return sha256(result.pixels.tobytes())
    return f"{result.kind}{' for now' if result.retryable else ''}: {result}"


def edit_all(calls: Calls, by: ApiEditor, numbers: Sequence[int]) -> list[str]:
    """How every edit ended, asked for at once."""
    return calls.gather([partial(edited, calls, by, number) for number in numbers])


def main(folder: Path, order: dict[str, Any]) -> dict[str, Any]:
    calls = Calls(folder / "answers.sqlite", CallSettings.model_validate(order.get("settings", {})), "run")
    by = editor(way(order["url"], **order.get("route", {})))
    try:
        return {"ended": edit_all(calls, by, range(order["edits"])), "stopped": ""}
    except FedbenchError as error:
        return {"ended": [], "stopped": str(error)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]))))
