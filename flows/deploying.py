"""What a Prefect server is given: work pools, deployments, automations. Twice is as good as once."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolCreate, WorkPoolUpdate
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker

from flows.automations import set_up_automations
from flows.places import CPU, GPU
from tasks.engine.errors import WorkspaceError

ROOT: Final = Path(__file__).parents[1]


def set_up(gpus: int) -> list[str]:
    """Give the server that is set all it needs, as far as it is not there.

    Args:
        gpus: Runs at once in the pool `gpu`, which is how a GPU is kept to one run.

    Returns:
        The deployments, as `flow/name`.

    Raises:
        WorkspaceError: The server refused something.
    """
    with get_client(sync_client=True) as client:
        _pool(client, CPU, None)
        _pool(client, GPU, gpus)
    _deploy()
    set_up_automations()
    with get_client(sync_client=True) as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        found = [one for one in client.read_deployments() if "fedbench" in one.tags]
        for one in found:
            # Of a parameter's name that is misspelt Prefect would only know when the run starts: by a crash.
            schema = (one.parameter_openapi_schema or {}) | {"additionalProperties": False}
            client.update_deployment(one.id, DeploymentUpdate(parameter_openapi_schema=schema))
    return sorted(f"{flows.get(one.flow_id, '?')}/{one.name}" for one in found)


def _pool(client: SyncPrefectClient, name: str, limit: int | None) -> None:
    """Make a work pool of processes; of one that is there only the limit is ours, whatever its type."""
    try:
        there = client.read_work_pool(name)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        pool = WorkPoolCreate(name=name, type="process", base_job_template=template, concurrency_limit=limit)
        client.create_work_pool(pool)
        return
    if limit is not None and there.concurrency_limit != limit:
        client.update_work_pool(name, WorkPoolUpdate(concurrency_limit=limit))


def _deploy() -> None:
    if not (ROOT / "prefect.yaml").exists():
        raise WorkspaceError(f"no prefect.yaml in {ROOT}", "run fedbench from its repository to deploy")
    # In a process of its own: Prefect's own reader of prefect.yaml is its command.
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise WorkspaceError(f"prefect deploy --all failed: {' '.join(lines[-3:])}", "see prefect.yaml")
