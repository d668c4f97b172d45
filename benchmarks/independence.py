"""Two ways to ask three people about the same finalists, tried on a real Label Studio with all three writing at once.

`own`: a project for each, an answer a task. `shared`: one project, three answers a task (overlap 3). People pull tasks
from the labeling stream as the browser does, and answer. Said for each: what everybody was offered, how often a task
was not answered by three different people, what the server's counters say, whether a look by somebody else takes a
task out of people's hands, whether a second answer and a fourth person's are taken, and what one person is shown of
the others. `--browser FOLDER` keeps a picture of what ann1 sees in the data manager.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.review import serving
from tasks.boards.access import ADMIN, read_access
from tasks.boards.blind import in_order, share, task
from tasks.boards.pictures import show
from tasks.boards.projects import _settings, accounts
from tasks.boards.served import ADDRESS, add_folder
from tasks.boards.studio import Studio
from tasks.engine.errors import WorkspaceError
from tests.review.asking import many
from tests.review.conftest import Server

PEOPLE: Final = ("ann1", "ann2", "ann3")


def project_of(server: Server, admin: Studio, title: str, names: tuple[str, ...], count: int) -> int:
    """A project with a task for each question, in the first person's order, for as many answers as there are names."""
    settings = _settings("trial", title, f"trial {title}", single=False) | {"maximum_annotations": len(names)}
    number: int = admin.write("POST", "/api/projects/", settings)["id"]
    asked, key = many(server.workspace, server.config, count), read_access(server.store).key
    show(server.store, key, ((question, names[0]) for question in asked))
    add_folder(server.store, admin, number)
    admin.add_tasks(number, [task(key, question, names[0], ADDRESS) for question in asked])
    return number


def answer(studio: Studio, number: int) -> None:
    value = {"from_name": "decision", "to_name": "src_image", "type": "choices", "value": {"choices": ["left"]}}
    studio.write("POST", f"/api/tasks/{number}/annotations/", {"result": [value], "lead_time": 1.0})


def offered(studio: Studio, project: int) -> int | None:
    """The next task of the stream, which a look reserves; None where there is none."""
    found = studio.get(f"/api/projects/{project}/next/", missing=(404,))
    return int(found.json()["id"]) if found.status_code == 200 else None


def work(server: Server, name: str, project: int, got: dict[str, list[int]], trouble: list[str]) -> None:
    with server.person(name) as studio:
        while (number := offered(studio, project)) is not None:
            try:
                answer(studio, number)
            except WorkspaceError as error:
                trouble.append(str(error))
            got[name].append(number)


def run(server: Server, where: dict[str, int]) -> None:
    """Let three people empty their streams at once, and say what came of it."""
    got: dict[str, list[int]] = {name: [] for name in PEOPLE}
    trouble: list[str] = []
    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(server, name, where[name], got, trouble)) for name in PEOPLE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    total = sum(map(len, got.values()))
    each = ", ".join(f"{name} {len(one)}" for name, one in got.items())
    print(f"  offered and answered: {each}; {trouble or 'no errors'}")
    print(f"  {total / took:.1f} answers a second, all three at once")
    with server.person(ADMIN) as admin:
        tasks: list[dict[str, Any]] = []
        for project in sorted(set(where.values())):
            rows = admin.get("/api/tasks/", project=project, page_size=1000, fields="all").json()["tasks"]
            tasks += rows
    wanted = len(PEOPLE) if len(set(where.values())) == 1 else 1
    people = Counter(len({one["completed_by"] for one in row["annotations"]}) for row in tasks)
    doubled = sum(len(row["annotations"]) > len({one["completed_by"] for one in row["annotations"]}) for row in tasks)
    drifted = sum(row["total_annotations"] != len(row["annotations"]) for row in tasks)
    unlabeled = sum(len(row["annotations"]) >= wanted and not row["is_labeled"] for row in tasks)
    print(f"  people per task (wanted {wanted}): {dict(sorted(people.items()))}; twice by one person: {doubled}")
    print(f"  counters: {drifted} of {len(tasks)} totals wrong, {unlabeled} full tasks not called labeled")


def looks(server: Server, names: tuple[str, ...], where: dict[str, int]) -> None:
    """Does a look of the admin's into the stream take a task from people who have not answered it?"""
    with server.person(ADMIN) as admin:
        seen = offered(admin, where[names[0]])
    before: dict[str, list[int]] = {name: [] for name in names}
    threads = [threading.Thread(target=work, args=(server, name, where[name], before, [])) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missed = [name for name, numbers in before.items() if seen not in numbers]
    print(f"  the admin looked at one task: it was not offered to {', '.join(missed) or 'nobody'} until the lock ends")


def liberties(server: Server, where: dict[str, int]) -> None:
    """What the server lets people do that nobody should."""
    with server.person("ann1") as studio:
        number = next(iter(studio.tasks(where["ann1"])))["id"]
        answer(studio, number)
    taken = ["a second answer by one person"]
    with server.person(ADMIN) as fourth:
        answer(fourth, number)
        taken.append("an answer by somebody else")
    with server.person("ann1") as studio:
        rows = list(studio.tasks(where["ann1"], annotations=True))
        me = accounts(studio, ["ann1"])["ann1"]
        others = sum(one["completed_by"] != me for row in rows for one in row["annotations"] if row["id"] != number)
        elsewhere = 0 if where["ann2"] == where["ann1"] else len(list(studio.tasks(where["ann2"])))
    print(f"  taken without a word: {', '.join(taken)}")
    print(f"  ann1, in the data manager of their project, sees {others} answers of others beside their own")
    print(
        f"  ann1 can open another's project: {'yes, of ' + str(elsewhere) + ' tasks' if elsewhere else 'there is none'}"
    )


def order(server: Server, bias: float = 0.3, count: int = 4000) -> None:
    """How often the majority takes what the first person saw as A, of two equal finalists, if people lean to A."""
    key, asked = read_access(server.store).key, many(server.workspace, server.config, count)
    for label in ("own", "shared"):
        first = 0
        for question in asked:
            votes = Counter[str]()
            for name in PEOPLE:
                shown = in_order(key, question, name if label == "own" else PEOPLE[0])
                dice = share(b"luck", question.digest, name)
                votes[shown[0 if dice < 0.5 + bias / 2 else 1].image] += 1
            first += votes.most_common(1)[0][0] == in_order(key, question, PEOPLE[0])[0].image
        print(f"  {label} order: the majority takes what ann1 saw as A in {first / count:.1%} of {count} (fair: 50 %)")


def shot(server: Server, project: int, path: Path) -> None:
    from tests.review.browser import chromium
    from tests.review.test_browser import Chair

    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder) / "browser") as page:
        chair = Chair(page, server, "ann1", project)
        page.size(1440, 900)
        page.go(f"{server.url}/projects/{project}/data")
        chair.page.wait("document.querySelectorAll('.dm-table__row-wrapper, .table-row, [class*=row]').length > 5")
        page.see("new Promise(done => setTimeout(done, 3000))")
        page.shot(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100, help="Sources that everybody is asked about.")
    parser.add_argument("--browser", type=Path, help="Folder for pictures of the data manager.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fedbench-trial-") as name, serving(Path(name)) as server:
        with server.person(ADMIN) as admin:
            ways = {
                "own": [
                    {name: project_of(server, admin, f"{name} {n}", (name,), n) for name in PEOPLE}
                    for n in (args.tasks, 5)
                ],
                "shared": [
                    dict.fromkeys(PEOPLE, project_of(server, admin, f"all {n}", PEOPLE, n)) for n in (args.tasks, 5)
                ],
            }
        for label, (where, few) in ways.items():
            print(f"{label}:", flush=True)
            run(server, where)
            looks(server, PEOPLE if label == "shared" else ("ann1",), few)
            liberties(server, where)
            if args.browser:
                shot(server, where["ann1"], args.browser / f"manager-{label}.png")
        print("position bias: everybody takes A 30 points more often than B")
        order(server)


if __name__ == "__main__":
    main()
