"""Keeps native libraries from writing into a progress display."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_one_at_a_time = threading.Lock()


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Send the process's file descriptor 2 to nowhere for a moment: the C++ libraries ignore Python's stderr.

    One thread at a time; another thread's words of that moment are lost, so this wraps creation only.
    """
    with _one_at_a_time:
        sys.stderr.flush()
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)
