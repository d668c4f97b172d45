"""`python -m tests.scaling.on_ray WORKSPACE CONFIG`: builds with the fakes, here and on every worker."""

import sys
from pathlib import Path

from flows import quiet

if __name__ == "__main__":
    quiet.settle()
    from flows import runner
    from flows.build import build_dataset
    from flows.server import reached
    from flows.states import answer
    from schemas.config import BuildConfig
    from tests import fakes
    from tests.scaling import plugged

    fakes.install()
    runner.work = plugged.work
    config = BuildConfig.model_validate_json(Path(sys.argv[2]).read_text())
    with reached():
        print(answer(build_dataset(config, sys.argv[1])).dataset)
