"""Label Studio's webhooks: they say that something was answered, never what. Whoever is woken reads it all anew."""

from typing import Any, Final

from schemas.reviewing import ReviewCut
from tasks.boards.access import ADMIN, Access
from tasks.boards.blind import keyed
from tasks.boards.projects import find_projects, mark_of, one_at_a_time, people
from tasks.boards.studio import Studio
from tasks.engine.store import Store

# The path is known to infra/studio/server.py, which lets a webhook through to this machine nowhere else.
PATH: Final = "/fedbench-wake-up"
HEADER: Final = "X-Fedbench-Wake-Up"
# In Label Studio a hook without a list of actions is silent.
ACTIONS: Final = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED")


def secret_of(access: Access, run: str) -> str:
    """What a hook shows at the door. Whoever has an account can read it there, and can wake us with it, no more."""
    return keyed(access.key, "wake-up", run)


def set_up(store: Store, access: Access, run: str, cut: ReviewCut, url: str) -> int:
    """Have every project of a run wake whoever listens at `url`, and nobody who listened before.

    Returns:
        How many projects there are.

    Raises:
        ConfigError, WorkspaceError: In words; Label Studio refuses addresses on its own machine, unless it runs as
            `fedbench review up` runs it.
    """
    wanted = {
        "url": url,
        "headers": {HEADER: secret_of(access, run)},
        "send_payload": False,
        "send_for_all_actions": False,
        "is_active": True,
        "actions": list(ACTIONS),
    }
    with one_at_a_time(store), Studio(access.url, access.token(ADMIN)) as studio:
        numbers = _projects(studio, store, access, run, cut)
        for number in numbers:
            ours = _ours(studio, number)
            for hook in ours[1:]:
                studio.write("DELETE", f"/api/webhooks/{hook['id']}/", None)
            if not ours:
                studio.write("POST", "/api/webhooks/", {"project": number, **wanted})
            elif any(_told(ours[0][name]) != _told(value) for name, value in wanted.items()):
                studio.write("PATCH", f"/api/webhooks/{ours[0]['id']}/", wanted)
    return len(numbers)


def take_down(store: Store, access: Access, run: str, cut: ReviewCut, url: str) -> None:
    """Nobody listens at `url` any more. A hook that leads elsewhere belongs to somebody who came later, and stays."""
    with one_at_a_time(store), Studio(access.url, access.token(ADMIN)) as studio:
        for number in _projects(studio, store, access, run, cut):
            for hook in _ours(studio, number):
                if hook["url"] == url:
                    studio.write("DELETE", f"/api/webhooks/{hook['id']}/", None)


def pulse(store: Store, access: Access, run: str, cut: ReviewCut) -> list[Any]:
    """What changes whenever somebody answers, from one small look at each project; the server's clock is in it."""
    with Studio(access.url, access.token(ADMIN)) as studio:
        return [[number, *studio.newest(number)] for number in _projects(studio, store, access, run, cut)]


def _projects(studio: Studio, store: Store, access: Access, run: str, cut: ReviewCut) -> list[int]:
    names = [*people(cut), *cut.former]
    marks = [mark_of(access.key, run, name, single=single) for name in names for single in (False, True)]
    return sorted(project["id"] for project in find_projects(studio, store, marks).values())


def _ours(studio: Studio, number: int) -> list[dict[str, Any]]:
    """The hooks of ours that a project has, whatever they lead to."""
    hooks: list[dict[str, Any]] = studio.read("/api/webhooks/", project=number)
    return sorted((hook for hook in hooks if hook["url"].endswith(PATH)), key=lambda hook: hook["id"])


def _told(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value
