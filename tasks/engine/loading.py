"""Words for files of weights that a library cannot load: torn ones above all."""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.engine.errors import ConfigError, FedbenchError


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Around what loads somebody's files; an error of the house passes as it is.

    Args:
        what: "the model 'mine'".

    Raises:
        ConfigError: Anything else was raised. The libraries have no error in common: safetensors derives its own from
            nothing narrower than Exception, tokenizers raises Exception itself, onnxruntime a dozen kinds.
    """
    try:
        yield
    except FedbenchError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a library says of foreign files is the finding
        raise ConfigError(
            f"{what} cannot be loaded: {first_line(error)}", "if a file of it is torn or not whole, fetch it anew"
        ) from None


def first_line(error: BaseException) -> str:
    """The first line of an error's text, its kind where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
