"""Logs as JSON lines, for machines; and no secret in any log, whoever reads it."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal

import typer

from tasks.engine.blotting import blotted

FORMAT: Final = "FEDBENCH_LOG"
FILE: Final = "FEDBENCH_LOG_FILE"
# What a line may say beside time, level, logger and message. The last two are Prefect's.
_FIELDS: Final = ("run", "stage", "shard", "key", "seconds", "rows", "flow_run_name", "flow_run_id", "task_run_name")
_LOGGERS: Final = ("fedbench", "prefect", "prefect.flow_runs", "prefect.task_runs")

# What everything that is logged now is about: run, stage, shard.
_about: ContextVar[dict[str, Any]] = ContextVar("_about", default={})  # noqa: B039 - never changed in place


def as_lines() -> bool:
    """Whether logs are JSON lines here."""
    return os.environ.get(FORMAT, "").lower() == "json"


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Within it every line says these fields, too: run, stage, shard."""
    token = _about.set(_about.get() | fields)
    try:
        yield
    finally:
        _about.reset(token)


class Lines(logging.Handler):
    """A record as one line of JSON, on stderr or at the end of the file that FEDBENCH_LOG_FILE names.

    Prefect makes one as well, in place of its console (`settle`), with words that this one does not need.
    """

    def __init__(self, stream: IO[str] | None = None, level: int = logging.NOTSET, **_: Any) -> None:
        super().__init__(level)
        self._path = os.environ.get(FILE, "")
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write it. A line is written at once, so that those of several processes do not mix."""
        try:
            line = as_line(record) + "\n"
            if self._path:
                with Path(self._path).open("a", encoding="utf-8") as file:
                    file.write(line)
            else:
                (self._stream or sys.stderr).write(line)
                (self._stream or sys.stderr).flush()
        except Exception:  # noqa: BLE001 - a log that cannot be written stops nothing; logging says so on stderr
            self.handleError(record)


def as_line(record: logging.LogRecord) -> str:
    """A record as JSON, without secrets. `time` is UTC; fields that do not apply are left out."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    line: dict[str, Any] = {
        "time": f"{moment}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    given = _about.get() | {name: getattr(record, name) for name in _FIELDS if getattr(record, name, None) is not None}
    line |= {name: given[name] for name in _FIELDS if name in given}
    if record.exc_info:
        line["error"] = logging.Formatter().formatException(record.exc_info)
    return blotted(json.dumps(line, ensure_ascii=False, default=str))


class _Blot(logging.Filter):
    """Blots secrets out of a record before any handler sees it, Prefect's to its server among them."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info)
            if blotted(trace) != trace:
                said, record.exc_info = f"{said}\n{trace}", None
        if blotted(said) != said:
            record.msg, record.args = blotted(said), ()
        return True


def settle() -> None:
    """Have Prefect, once it is imported, log as lines where that is wished; its own settings say how."""
    if as_lines():
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS", "flows.logs.Lines")
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")


def listen() -> None:
    """Keep secrets out of all logs from now on, and ours going to where they are wished. Twice is as good as once."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for place in (logger, *logger.handlers):
            if not any(isinstance(one, _Blot) for one in place.filters):
                place.addFilter(_Blot())
    ours = logging.getLogger("fedbench")
    if as_lines() and not any(isinstance(one, Lines) for one in ours.handlers):
        ours.addHandler(Lines())
        ours.setLevel(logging.INFO)
        ours.propagate = False


def log_options(
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(envvar=FORMAT, help="Of progress and logs on stderr: words, or JSON lines."),
    ] = "text",
    log_file: Annotated[Path | None, typer.Option(envvar=FILE, help="Append the JSON lines to this file.")] = None,
) -> None:
    """What stands before a verb: `fedbench --log-format json build ...`. Processes that it starts do the same."""
    os.environ[FORMAT] = "json" if log_file else log_format
    if log_file:
        os.environ[FILE] = str(log_file.absolute())
