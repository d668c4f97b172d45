"""How long asking people takes: the first opening of a review on a real Label Studio, and one that finds all there.

The questions are those of a small build of fakes, again and again under other names: three people, a task each, every
picture under a name of its own. It fails only if tasks are missing or doubled, never on a clock.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flows import studio
from schemas.reviews import Question
from tasks.boards.access import ADMIN, read_access
from tasks.boards.collecting import collect
from tasks.boards.projects import Desk, Opened
from tasks.engine.errors import WaitingForReview
from tasks.engine.store import Store
from tests import fakes
from tests.commands import free_port
from tests.review.asking import config, many
from tests.review.conftest import Server


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A workspace whose build waits for people, and a Label Studio with three of them."""
    fakes.install()
    workspace, settings, port = folder / "workspace", config(sources=24), free_port()
    with suppress(WaitingForReview):
        fakes.build(workspace, settings)
    passwords = studio.make_accounts(Store(workspace), studio.install(), f"http://127.0.0.1:{port}", 3)
    server = Server(workspace, port, folder / "server.log", settings, passwords)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def busy(server: Server) -> float:
    """Seconds of CPU that this process and the server have used: what a busy machine leaves comparable."""
    assert server.process
    ticks = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def opened(server: Server, run: str, asked: list[Question]) -> tuple[float, float, list[Opened]]:
    """Seconds and seconds of CPU that an opening took, and what it says."""
    access, cut = read_access(server.store), server.config.review.cut
    began, used = time.monotonic(), busy(server)
    found = Desk(server.store, access, run, cut, lambda *_: None).open([(one, ()) for one in asked])
    return time.monotonic() - began, busy(server) - used, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[750, 20_000], help="How many sources are asked about.")
    parser.add_argument("--rounds", type=int, default=3, help="Openings that find all there; the median counts.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fedbench-review-") as name, serving(Path(name)) as server:
        opened(server, "warm-up", many(server.workspace, server.config, 3))
        print("sources   tasks   first: wall, CPU   again: wall, CPU (medians)   ratios", flush=True)
        for count in args.counts:
            asked, run = many(server.workspace, server.config, count), f"bench-{count}"
            wall, cpu, projects = opened(server, run, asked)
            assert [one.added for one in projects] == [count] * 3
            walls, cpus = [], []
            for _ in range(args.rounds):
                again, used, projects = opened(server, run, asked)
                walls.append(again)
                cpus.append(used)
                assert [(one.added, one.tasks) for one in projects] == [(0, count)] * 3
            with server.person(ADMIN) as admin:
                items = [task["data"]["item"] for task in admin.tasks(projects[0].id)]
            assert len(set(items)) == len(items) == count
            again, used = median(walls), median(cpus)
            print(
                f"{count:>7} {3 * count:>7} {wall:>11.2f} s {cpu:>5.2f} s {again:>11.2f} s {used:>5.2f} s"
                f" {again / wall:>14.1%} {used / cpu:.1%}",
                flush=True,
            )
            began = time.monotonic()
            assert collect(server.store, read_access(server.store), run, server.config.review.cut).fresh == 0
            print(f"        collecting nothing: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
