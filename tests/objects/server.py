"""An S3 store on this machine: moto's server in a process of its own; prints its port, and ends with its parent."""

import logging
import sys

from moto.server import ThreadedMotoServer


def main() -> None:
    """Serve until stdin closes."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
