"""A run that a worker of `fedbench server up` has started ends with that command, however it ends."""

import os
import threading
import time
from pathlib import Path
from typing import Final

# The process id of the command; set for what it starts.
HOLDER: Final = "FEDBENCH_SERVER_PID"
_held = threading.Event()


def hold() -> None:
    """Watch the holder from now on, if there is one, and end this process once it is gone. Twice is as good as once.

    A worker starts every run in a session of its own, so that no signal to the command reaches it; the worker, killed
    with the command, cannot tell it either. Nothing needs tidying: what was published stays.
    """
    holder = int(os.environ.get(HOLDER) or 0)
    if holder and not _held.is_set():
        _held.set()
        threading.Thread(target=_watch, args=(holder,), daemon=True, name="leash").start()


def _watch(holder: int) -> None:
    while _alive(holder):
        time.sleep(1)
    os._exit(1)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    stat = Path(f"/proc/{pid}/stat")
    try:
        # Dead, and not yet collected by whoever started it.
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):  # another system, or gone this moment: the next look tells
        return True
