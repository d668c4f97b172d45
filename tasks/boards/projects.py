"""One project per annotator: found or made, kept as it should be, and filled with the tasks that it lacks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import prompts
from schemas.records import Record
from schemas.reviewing import LONGEST, ReviewCut
from schemas.reviews import Answer, Question
from schemas.studies import PairAnswer
from tasks.boards.access import ADMIN, Access
from tasks.boards.addresses import ADDRESS, Addresses
from tasks.boards.blind import files_of, item_of, keyed, task
from tasks.boards.pictures import guide_files, show, show_guide
from tasks.boards.questions import GUIDE, remember
from tasks.boards.served import add_folder, serve
from tasks.boards.studio import Studio
from tasks.boards.votes import verdict
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.folder_lock import in_turn
from tasks.engine.places import settled
from tasks.engine.store import Store

KNOWN: Final = "review/projects.json"
BATCH: Final = 1000
# Told after every batch: project, tasks there, tasks in all.
Tell = Callable[[str, int, int], None]
# A question and the answers that there are.
Asked = tuple[Question, Sequence[Answer | PairAnswer]]


@dataclass(frozen=True)
class Opened:
    """A project: whose, where, how many tasks it holds, how many of them are new."""

    annotator: str
    single: bool
    id: int
    tasks: int = 0
    added: int = 0
    url: str = ""


@contextmanager
def one_at_a_time(store: Store, what: str = "lock") -> Iterator[None]:
    """Wait until nobody else on this workspace opens or collects (or does `what`, a file name)."""
    # A server that listens would hold a bucket for as long as it does.
    with in_turn(store.path(f"review/{what}")), settled():
        yield


def accounts(studio: Studio, names: Sequence[str]) -> dict[str, int]:
    """Account number by annotator: whose address, or its part before the @, is that name.

    Raises:
        ConfigError: Somebody has no account, or two.
    """
    users = studio.users()
    found = {}
    for name in names:
        numbers = [number for number, email in users.items() if name in (email, email.split("@")[0])]
        if len(numbers) != 1:
            what = "has no account" if not numbers else "has two accounts"
            raise ConfigError(
                f"annotator '{name}' {what} at {studio.url}",
                "fedbench review up --with-annotators 3 makes ann1 to ann3",
            )
        found[name] = numbers[0]
    return found


def people(cut: ReviewCut) -> list[str]:
    """Who is asked."""
    return [*cut.annotators, *cut.adjudicators]


def wanted(name: str, answers: Sequence[Answer], cut: ReviewCut) -> bool:
    """Whether somebody is to be asked a question, given the answers to it: what the others decided needs nobody."""
    decided = verdict([one for one in answers if one.annotator != name], cut)
    return decided.usable is None and (decided.split or name not in cut.adjudicators)


class Known(Record):
    """What a workspace remembers of a project, so that a full one is not read again.

    Attributes:
        id: Its number.
        tasks: How many tasks it had when it was full.
        filled: Digest of the tasks that were wanted then; empty while it is not full.
        signer, ends: Who signed the addresses of its pictures, and when the first of them ends (Unix seconds).
    """

    id: int
    tasks: int = 0
    filled: str = ""
    signer: str = ""
    ends: int = 0


def remembered(store: Store, url: str) -> dict[str, Known]:
    """The projects that were made at a server, by mark."""
    return (store.read_as(KNOWN, dict[str, dict[str, Known]]) or {}).get(url, {})


def remember_project(store: Store, url: str, mark: str, known: Known) -> None:
    values = store.read_json(KNOWN) or {}
    store.write_json(KNOWN, values | {url: values.get(url, {}) | {mark: known.model_dump(mode="json")}})


def mark_of(key: bytes, run: str, name: str, *, single: bool) -> str:
    """What a project is found by, in its description."""
    return keyed(key, "project", run, name, "single" if single else "pair")


def find_projects(studio: Studio, store: Store, marks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The projects that are there, by mark: as this workspace remembers them, or by their description."""
    there = {project["id"]: project for project in studio.projects()}
    known = remembered(store, studio.url)
    found = {}
    for mark in marks:
        described = [number for number, project in there.items() if mark in (project.get("description") or "")]
        if mark in known and known[mark].id in there:
            found[mark] = there[known[mark].id]
        elif described:
            found[mark] = there[min(described)]
    return found


@dataclass(frozen=True)
class Desk:
    """What opening takes.

    Attributes:
        store: The workspace.
        access: The door.
        run: The run's name.
        cut: Who is asked.
        tell: Is told of progress.
        days: How long the presigned addresses of a bucket's pictures last.
    """

    store: Store
    access: Access
    run: str
    cut: ReviewCut
    tell: Tell
    days: float = LONGEST

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.store, self.days)

    def open(self, asked: Sequence[Asked], golds: Mapping[str, Asked] | None = None) -> list[Opened]:
        """Ask everybody what they are to be asked; what is there already stays.

        Args:
            asked: The run's questions, each with the answers that there are.
            golds: By the digest of the question that they are hidden beside, gold tasks with the answers to them.

        Raises:
            ConfigError, WorkspaceError: In words; the next call does the rest.
        """
        access, golds = self.access, golds or {}
        every = [question for question, _ in (*asked, *golds.values())]
        with one_at_a_time(self.store), Studio(access.url, access.token(ADMIN)) as studio:
            mark = {
                (name, single): mark_of(access.key, self.run, name, single=single)
                for name in people(self.cut)
                for single in (False, True)
            }
            # One look at the server for all of them: what a second opening takes is mostly such looks.
            found, served = find_projects(studio, self.store, list(mark.values())), False
            if any(not found.keys() & {mark[name, False], mark[name, True]} for name in people(self.cut)):
                accounts(studio, people(self.cut))
            remember(self.store, every)
            dues = {name: self._due(name, asked, golds) for name in people(self.cut)}
            show(self.store, access.key, ((one, name) for name, due in dues.items() for one, _ in due))
            show_guide(self.store)
            opened = []
            for name, due in dues.items():
                for single in (False, True):
                    mine = {
                        item_of(access.key, question, name): (question, any(one.annotator == name for one in answers))
                        for question, answers in due
                        if (len(question.finalists) == 1) is single
                    }
                    if mine:
                        one = mark[name, single]
                        settings = self.addresses.of(self.settings(name, one, single=single), found.get(one))
                        project = _kept(self.store, studio, found.get(one), one, settings)
                        if not served:
                            path, image = files_of(access.key, next(iter(mine.values()))[0], name)["left"]
                            serve(self.addresses, studio, project["id"], path, image)
                            served = True
                        opened.append(self._fill(studio, project, one, Opened(name, single, project["id"]), mine))
            return opened

    def _due(self, name: str, asked: Sequence[Asked], golds: Mapping[str, Asked]) -> list[Asked]:
        """What somebody is to be asked; gold tasks test annotators, beside what is still wanted of them."""
        due = [one for one in asked if self.wants(name, one[1])]
        gold = [golds[question.digest] for question, _ in due if question.digest in golds]
        return due + gold if name in self.cut.annotators else due

    def wants(self, name: str, answers: Sequence[Answer | PairAnswer]) -> bool:
        """As `wanted`; a study wants everybody."""
        return wanted(name, [one for one in answers if isinstance(one, Answer)], self.cut)

    def settings(self, name: str, mark: str, *, single: bool) -> dict[str, Any]:
        """What somebody's project is like."""
        return _settings(self.run, name, mark, single)

    def _fill(
        self,
        studio: Studio,
        project: Mapping[str, Any],
        mark: str,
        opened: Opened,
        mine: Mapping[str, tuple[Question, bool]],
    ) -> Opened:
        """Somebody's project, with a task for each of these questions (by item) that they have not answered yet."""
        number = opened.id
        known = remembered(self.store, studio.url)[mark]
        due = sorted(item for item, (_, answered) in mine.items() if not answered)
        title = f"{opened.annotator}{' (single)' if opened.single else ''}"
        full = known.filled == fingerprint(due) and known.tasks == project["task_number"]
        if full and (not due or self.addresses.last(known.signer, known.ends)):
            return self._told(studio, title, replace(opened, tasks=known.tasks))
        there = {each["data"].get("item"): each for each in studio.tasks(number)}
        # Keyed hashes: sorted by them, everybody has an order of their own.
        missing = [item for item in due if item not in there]
        total = len(there) + len(missing)
        self.tell(title, len(there), total)
        if missing and there:
            accounts(studio, people(self.cut))  # there is work again: perhaps for somebody who left
        datas = {}
        for item in due:
            plain = task(self.access.key, mine[item][0], opened.annotator, ADDRESS)["data"]
            datas[item] = self.addresses.of(plain, there[item]["data"] if item in there else None)
        self._renew(studio, {there[item]["id"]: (there[item]["data"], datas[item]) for item in due if item in there})
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            studio.add_tasks(number, [{"data": datas[item]} for item in part])
            self.tell(title, len(there) + start + len(part), total)
        signer, ends = self.addresses.ends(datas.values())
        filled = Known(id=number, tasks=total, filled=fingerprint(due), signer=signer, ends=ends)
        remember_project(self.store, studio.url, mark, filled)
        return self._told(studio, title, replace(opened, tasks=total, added=len(missing)))

    def _renew(self, studio: Studio, tasks: Mapping[int, tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """Give tasks (by number: their data, and as it is to be) other addresses of pictures, and nothing else."""
        for number, (data, wanted) in tasks.items():
            images = {name: value for name, value in wanted.items() if name.endswith("_image")}
            if images.items() - data.items():
                studio.write("PATCH", f"/api/tasks/{number}/", {"data": {**data, **images}})

    def _told(self, studio: Studio, title: str, opened: Opened) -> Opened:
        if not opened.added:
            self.tell(title, opened.tasks, opened.tasks)
        return replace(opened, url=f"{studio.url}/projects/{opened.id}/data")


def _settings(run: str, name: str, mark: str, single: bool) -> dict[str, Any]:
    """What a project of ours is like; the title is 3 to 50 characters long."""
    return {
        "title": f"{run[:24]} · {name[:12]}{' · single' if single else ''}",
        "description": f"Review of run {run} by {name}. fedbench finds it by {mark}; leave that here.",
        "label_config": prompts.render("review_screen", single="yes" if single else ""),
        "expert_instruction": prompts.render(
            GUIDE, **{face: ADDRESS + path for face, (path, _) in guide_files().items()}
        ),
        "show_instruction": True,
        "maximum_annotations": 1,
        "show_skip_button": False,
        "enable_empty_annotation": False,
        "show_collab_predictions": False,
        "sampling": "Sequential sampling",
    }


def _kept(
    store: Store, studio: Studio, project: dict[str, Any] | None, mark: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """A project as it should be: made, or, where it was edited by hand, brought back; and remembered."""
    if project is None:
        project = {"task_number": 0, **studio.write("POST", "/api/projects/", settings)}
    elif changed := {name: value for name, value in settings.items() if project.get(name) != value}:
        studio.write("PATCH", f"/api/projects/{project['id']}/", changed)
    known = remembered(store, studio.url).get(mark)
    if known is None or known.id != project["id"]:
        remember_project(store, studio.url, mark, Known(id=project["id"]))
        add_folder(store, studio, project["id"])
    return project
