"""The command ``anden``, which runs in the process of Python."""

import os
import signal
import sys

from anden._anden import run_command


def main() -> None:
    """Run the command line with the arguments of the process, and end the process."""
    # Python's handler would only note Ctrl-C. The command has a handler of its own, unless the signal is ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = run_command(["anden", *sys.argv[1:]])
    # Nothing of Python is left to do, and a thread of the command may still run.
    os._exit(status)


if __name__ == "__main__":
    main()
