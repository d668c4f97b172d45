"""For tests of the model extra, which `make torch` installs."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tiny tensors on many threads only wait for each other."""
    import torch

    torch.set_num_threads(1)
