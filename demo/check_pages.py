#!/usr/bin/env python3
"""Runs every command that README.md, docs/guide.md and docs/cookbook.md show, and compares the output with what they show.

A command that a reader copies must work. Each page has a folder of its own with the files of demo/inputs and with the
demo's database. A command is a line of a code block that begins with `$ `, or with one of PROGRAMS. The lines below a
line with `$ ` are the first lines of its output; times, sizes and dates of today are left out of the comparison.
usage: ANDEN=PROGRAM demo/check_pages.py DB     (DB is the demo's database)
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
INPUTS = TOP / "demo" / "inputs"
PAGES = ["README.md", "docs/guide.md", "docs/cookbook.md"]
PROGRAMS = ("anden ", "echo ", "printf ", "zcat ")
SECONDS = 120
# The status of a program such as sort whose reader, such as head, has read enough.
CLOSED_PIPE = 128 + 13

# What differs from run to run, and from machine to machine.
CHANGING = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "TIME"),
    (re.compile(r"\b[\d.,]+ ?(ns|µs|us|ms|s)\b"), "DURATION"),
    (re.compile(r"\b[\d.,]+ ?(bytes|B|KB|MB|GB|KiB|MiB|GiB)(?!\w)"), "SIZE"),
    (re.compile(r"\b[\d,]+ edges a second"), "RATE"),
    (re.compile(r"\b\d+ threads?\b"), "THREADS"),
    # Digits that another processor may round otherwise.
    (re.compile(r"(\.\d{9})\d+"), r"\1"),
    (re.compile(r"\s+"), " "),
]


@dataclass
class Command:
    """A command, and the lines that a page shows below it; none where the page shows no output."""

    page: str
    number: int
    text: str
    shown: list[str] = field(default_factory=list)


def commands(page: str, text: str) -> list[Command]:
    """The commands in the code blocks of a page, in their order."""
    found: list[Command] = []
    # The line that opened the code block; none between blocks.
    fence, prompted = None, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence, prompted = (line if fence is None else None), False
        elif fence not in ("```sh", "```console"):
            # A block that names another language holds no commands.
            continue
        elif line.startswith("$ "):
            found.append(Command(page, number, line[2:]))
            prompted = True
        elif prompted:
            found[-1].shown.append(line)
        elif line.startswith(PROGRAMS):
            found.append(Command(page, number, line))
    return found


def without_changing(line: str) -> str:
    """A line of output, with a word in place of what differs from run to run."""
    for pattern, word in CHANGING:
        line = pattern.sub(word, line)
    return line.strip()


def difference(shown: list[str], output: str) -> str | None:
    """Where the output differs from what is shown of its beginning. A line `…` ends what is shown."""
    lines = output.splitlines()
    for place, line in enumerate(shown):
        if line == "…":
            return None if len(lines) > place else "the output ends where the page says that more follows"
        if place >= len(lines):
            return f"the page shows {line!r}, and the output ends"
        if without_changing(line) != without_changing(lines[place]):
            return f"the page shows {line!r}, and the output is {lines[place]!r}"
    if shown and len(lines) > len(shown):
        return f"the page ends, and the output goes on: {lines[len(shown)]!r}"
    return None


def fault(command: Command, folder: Path, environment: dict[str, str]) -> str | None:
    """Runs a command; what is wrong with it, if something is."""
    shell = ["bash", "-o", "pipefail", "-c", command.text]
    try:
        done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if done.returncode not in (0, CLOSED_PIPE):
        return f"status {done.returncode}: {done.stderr.strip()}"
    return difference(command.shown, done.stdout)


def prepare(folder: Path, database: str) -> None:
    """Puts the files into a folder that the commands of a page name."""
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
    (folder / "edges.txt.gz").write_bytes(gzip.compress((folder / "edges.txt").read_bytes()))
    # A copy: some commands change it.
    shutil.copytree(database, folder / "demo.anden")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    anden = shutil.which(os.path.abspath(os.environ["ANDEN"])) if "ANDEN" in os.environ else shutil.which("anden")
    if anden is None:
        sys.exit("there is no program anden: name it by ANDEN=PROGRAM")
    failed = 0
    for page in PAGES:
        shown = commands(page, (TOP / page).read_text(encoding="utf-8"))
        if not shown:
            sys.exit(f"{page} shows no command")
        with tempfile.TemporaryDirectory() as parent:
            programs, folder = Path(parent, "bin"), Path(parent, "page")
            programs.mkdir()
            (programs / "anden").symlink_to(anden)
            environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
            prepare(folder, sys.argv[1])
            faults = [(command, fault(command, folder, environment)) for command in shown]
        wrong = [(command, what) for command, what in faults if what is not None]
        failed += len(wrong)
        for command, what in wrong:
            print(f"{command.page}:{command.number}: {command.text}: {what}")
        print(f"{page}: {len(shown) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
