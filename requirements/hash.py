"""Writes hashes/*.txt: what each lock pins, with the sha256 of the file that pip takes on Linux (x86-64, Python 3.11).

    python requirements/hash.py [base api dev ray s3 studio torch]     # all locks, unless some are named

Nothing is installed: pip resolves and reports. Run it after a lock has changed; tests/security/test_locks.py says when.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
HEAD: Final = "# Made by hash.py from ../{name}.txt; for: pip install --no-deps --require-hashes -r\n"
# What is installed with all that it brings; the rest of every lock stands alone.
WITH_REQUIREMENTS: Final = re.compile(r"^(?:torch|torchvision)==.*$", re.MULTILINE)


def report(*words: str) -> list[dict[str, Any]]:
    """What pip would install, with the hashes of the files."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*command, *words], check=True, stdout=subprocess.PIPE, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return found


def lines(lock: Path) -> list[str]:
    """The lock's lines, each with its hash."""
    text = lock.read_text()
    roots = WITH_REQUIREMENTS.findall(text)
    installs = report(*roots) if roots else []
    names = [line for line in text.splitlines() if line and not line.startswith("#") and line not in roots]
    installs += report("--no-deps", *names)
    by_name = {}
    for one in installs:
        pin = f"{one['metadata']['name']}=={one['metadata']['version']}"
        by_name[pin.lower()] = f"{pin} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}"
    return [by_name[pin] for pin in sorted(by_name)]


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.txt")):
        made = HEAD.format(name=name) + "".join(f"{line}\n" for line in lines(HERE / f"{name}.txt"))
        (HERE / "hashes" / f"{name}.txt").write_text(made)
