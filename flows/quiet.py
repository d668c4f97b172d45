"""No outside call and no chatter: telemetry, look-ups and log noise of the libraries are off in our commands."""

import os
from typing import Final

from flows import logs

# Read by the libraries when they are imported, so `settle` runs first. What a user has set stays as it is.
SETTINGS: Final = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    "PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "false",
    # Batched records: by default the server records 40 task runs a second and forgets what queues up beyond 3,300.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "200",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    # So that a lost run is noticed (`flows.automations`), and what it held is freed even if the server died with it.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # From 1.29 on onnxruntime reports to Microsoft, in native code, and keeps a device id under ~/.cache.
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "NO_ALBUMENTATIONS_UPDATE": "1",
    "GLOG_minloglevel": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "OPENCV_LOG_LEVEL": "ERROR",
    # One thread per worker and inference: more of them only spin (a 15 ms edit became 160 ms on a busy machine).
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENCV_FOR_THREADS_NUM": "1",
}


def settle(*, verbose: bool = False) -> None:
    """Set what is not set yet, for this process and the ones it starts.

    Args:
        verbose: Leave Prefect's own log on the console.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    logs.settle()
    logs.listen()
    if not verbose:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
