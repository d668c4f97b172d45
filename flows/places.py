"""Where the runs of a server are done and find things."""

import os
from typing import Final

# The workspace of a run that names none; `fedbench server up` sets it for what it deploys and starts.
WORKSPACE: Final = os.environ.get("FEDBENCH_WORKSPACE") or "workspace"
# Where reports are served over HTTP, since browsers follow no link from a web page to a file.
REPORTS_URL: Final = "FEDBENCH_REPORTS_URL"
# The work pools: runs that may use the GPU go to the second, which lets in one per GPU.
CPU: Final = "cpu"
GPU: Final = "gpu"
