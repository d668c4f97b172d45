"""Logs as JSON lines: what they say, that each is one line, and that no secret is in any."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import logs
from tests import fakes
from tests.commands import environment, fedbench, run

PLANTED = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    ours = logging.getLogger("fedbench")
    before = list(ours.handlers), ours.level, ours.propagate
    yield
    ours.handlers[:], ours.level, ours.propagate = before


def written(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_failed_row_is_a_line_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(logs.FORMAT, "json")
    monkeypatch.setenv(logs.FILE, str(tmp_path / "log"))
    logs.listen()
    fakes.install()
    with logs.about(run="test"):
        built = fakes.build(tmp_path / "workspace", fakes.config(sources=30))
    lines = written(tmp_path / "log")
    failed = sum(commits["generate"].statuses.get("failed", 0) for commits in built.done)
    of_generate = [line for line in lines if line["stage"] == "generate"]
    assert len(of_generate) == failed > 0
    for line in of_generate:
        assert line["run"] == "test"
        assert isinstance(line["shard"], int)
        assert str(line["key"]).startswith("fake/")
        assert str(line["key"]) in str(line["message"])


def test_no_secret_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("SOME_API_KEY", PLANTED)
    monkeypatch.setenv(logs.FORMAT, "json")
    monkeypatch.setenv(logs.FILE, str(tmp_path / "log"))
    logs.listen()
    # What Prefect sends its server is the record after the loggers' filters.
    for name in ("fedbench", "prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.addHandler(caplog.handler)
        logger.setLevel(logging.INFO)
        try:
            logger.info("asked with %s\nand again", PLANTED)
            try:
                raise ValueError(f"bad key {PLANTED}")
            except ValueError:
                logger.exception("it broke")
        finally:
            logger.removeHandler(caplog.handler)
    assert PLANTED not in caplog.text
    assert caplog.text.count("bad key ***") >= 3
    lines = written(tmp_path / "log")
    assert lines[0]["message"] == "asked with ***\nand again"
    assert PLANTED not in (tmp_path / "log").read_text()


def test_the_command_logs_lines_and_its_errors_are_one(tmp_path: Path) -> None:
    command = fedbench("--log-format", "json", "build", "--preset", "demo", "--set", "seed=-1")
    made = run(command, environment(tmp_path / "home"), tmp_path)
    assert made.returncode == 2
    (line,) = [json.loads(line) for line in made.stderr.splitlines()]
    assert line["level"] == "error"
    assert line["message"].startswith("seed: ")
