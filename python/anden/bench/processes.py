"""The processes of the tools, and the limits of their time and memory."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from .lines import Line
from .tool import Input, Tool

#: A process may take this share of the machine's memory, so that the system goes on.
MEMORY_SHARE = 0.75
#: Seconds between two looks at the memory of a process.
LOOK_SECONDS = 0.05


def run(tool: type[Tool], given: Input, tasks: Sequence[str], limit: float) -> Iterator[Line]:
    """The lines of one tool. After a task beyond a limit, a new process loads again and goes on."""
    left = [task for task in tasks if task != "load"]
    is_first = True
    while left or is_first:
        num_done = 0
        for line in _process(tool, given, ["load", *left], limit):
            if line.task != "load" or is_first:
                yield line
            num_done += line.task != "load"
        if num_done == 0:
            return
        left = left[num_done:]
        is_first = False


def _process(tool: type[Tool], given: Input, tasks: Sequence[str], limit: float) -> Iterator[Line]:
    """The lines of one process, which ends with its tasks, or with one that fails to end."""
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        command = [sys.executable, "-m", "anden.bench.worker", tool.name, str(given.folder), scratch, *tasks]
        # NetworkX is measured without the backend of Anden.
        environment = os.environ | {"NETWORKX_BACKEND_PRIORITY": ""}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            answers: queue.Queue[str] = queue.Queue()
            reader = threading.Thread(target=_read_lines, args=(process.stdout, answers))
            reader.start()
            try:
                yield from _lines(tool.name, tasks, _Answers(process.pid, answers, limit))
            finally:
                process.kill()
                reader.join()


def _lines(tool: str, tasks: Sequence[str], answers: _Answers) -> Iterator[Line]:
    for task in tasks:
        try:
            found = answers.next()
        except _OutOfLimitsError as error:
            yield Line(tool, task, missing=str(error))
            return
        line = Line(tool, **found)
        yield line
        if task == "load" and line.seconds is None:
            return


def _read_lines(output: IO[str], answers: queue.Queue[str]) -> None:
    for text in output:
        answers.put(text)
    # An empty line says that the process has ended.
    answers.put("")


class _OutOfLimitsError(Exception):
    """The process takes too long or too much memory, or has ended."""


class _Answers:
    """The answers of a process within its limits."""

    def __init__(self, pid: int, answers: queue.Queue[str], limit: float) -> None:
        self.pid = pid
        self.answers = answers
        self.limit = limit
        self.memory = MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def next(self) -> dict[str, object]:
        """The answer of the next task."""
        end = time.monotonic() + self.limit
        while True:
            try:
                text = self.answers.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._check(end)
                continue
            if not text:
                raise _OutOfLimitsError("the process ended")
            found = json.loads(text)
            if found:
                return found
            # A preparation or a run has ended.
            end = time.monotonic() + self.limit

    def _check(self, end: float) -> None:
        if time.monotonic() > end:
            raise _OutOfLimitsError(f"> {self.limit:g} s")
        try:
            resident = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return
        if resident > self.memory:
            raise _OutOfLimitsError(f"> {self.memory / 1e9:.0f} GB")
