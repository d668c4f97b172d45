"""What a Prefect server watches for us: runs that were lost are marked crashed, and whoever wants to know is told."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ActionTypes, CallWebhook, ChangeFlowRunState, DoNothing
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.types import SecretDict
from pydantic import SecretStr

from flows.states import OUR_ENDS, STOPPED, WAITING_FOR_REVIEW
from tasks.engine.secrets import secret

# An address that takes a POST of {"text": ...}, such as Slack's. It is a secret: it stays in a block of the server.
WEBHOOK: Final = "FEDBENCH_ALERT_WEBHOOK"
# Three heartbeats of `flows.quiet`: a busy machine may miss one.
LOST_AFTER: Final = timedelta(seconds=90)
# Sub-flows have no tags, so ours are known by name: those of deployments, and their segments.
FLOWS: Final = (
    *("build-dataset", "rebuild-benchmark", "open-review", "collect-review", "score-editors"),
    *("screen", "generate-to-instruct", "score-shards"),
)
_ENDS: Final = ("Completed", "Failed", "Cancelled", "Crashed", "Suspended", "Paused", *OUR_ENDS)
# By name: the state, and the tag of those runs. Collecting answers also ends waiting, every few minutes: no news.
_ALERTS: Final = {
    "fedbench: a run failed": ("Failed", "fedbench"),
    "fedbench: a run crashed": ("Crashed", "fedbench"),
    "fedbench: a run was stopped (budget, quota, pilot)": (STOPPED, "fedbench"),
    "fedbench: a build waits for review": (WAITING_FOR_REVIEW, "build"),
}
_TEXT: Final = (
    'deployment.name ~ ": run " ~ flow_run.name ~ " is " ~ flow_run.state.name ~ ". " ~ (flow_run.state.message or "")'
)
_RUNS: Final = ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"})


def set_up_automations() -> list[str]:
    """Make the automations, or bring those of the same name up to date; what a user switched off stays off.

    Returns:
        Their names.
    """
    names = []
    with get_client(sync_client=True) as client:
        for wanted in _automations(_alert_action()):
            names.append(wanted.name)
            there = client.read_automations_by_name(wanted.name)
            if not there:
                client.create_automation(wanted)
            for one in there:
                client.update_automation(one.id, wanted.model_copy(update={"enabled": one.enabled}))
    return names


def _automations(alert: ActionTypes) -> Iterator[AutomationCore]:
    yield AutomationCore(
        name="fedbench: lost runs are crashed",
        description="A run whose heartbeats cease has lost its process or its machine. Run it again: it goes on.",
        trigger=EventTrigger(
            match=_RUNS,
            match_related=ResourceSpecification(
                {"prefect.resource.role": "flow", "prefect.resource.name": list(FLOWS)}
            ),
            for_each={"prefect.resource.id"},
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{end}" for end in _ENDS)},
            posture=Posture.Proactive,
            threshold=1,
            within=LOST_AFTER,
        ),
        actions=[
            ChangeFlowRunState(
                name="Crashed",
                state=StateType.CRASHED,
                message="no heartbeat: its process or its machine is gone; run it again, and it goes on",
                force=False,
            )
        ],
    )
    for name, (state, tag) in _ALERTS.items():
        yield AutomationCore(
            name=name,
            description=f"Tells the address in {WEBHOOK}, where `fedbench server automations` was given one.",
            trigger=EventTrigger(
                match=_RUNS,
                match_related=_tagged(tag),
                for_each={"prefect.resource.id"},
                expect={f"prefect.flow-run.{state}"},
                posture=Posture.Reactive,
                threshold=1,
                within=timedelta(0),
            ),
            actions=[alert],
        )


def _tagged(tag: str) -> ResourceSpecification:
    return ResourceSpecification({"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"})


def _alert_action() -> ActionTypes:
    """Calling the address; without one nothing, but the automation shows in the UI's event feed when it triggers."""
    url = secret(WEBHOOK)
    if not url:
        return DoNothing()
    block = Webhook(method="POST", url=SecretStr(url), headers=SecretDict({"Content-Type": "application/json"}))
    saved = block.save("fedbench-alerts", overwrite=True)
    assert isinstance(saved, UUID), "called from no event loop"
    return CallWebhook(
        block_document_id=saved,
        payload=f'{{"text": {{{{ ({_TEXT}) | tojson }}}}}}',
    )
