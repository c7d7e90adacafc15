#!/usr/bin/env python3
"""Runs every `anden` command that the front page shows, in a folder of its own with small inputs of the names shown.

A command that a reader copies must work; this fails when the page and the program part ways.
usage: ANDEN=PROGRAM demo/check_readme.py DB     (DB is the demo's database)
"""

import gzip
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FRONT_PAGE = Path(__file__).resolve().parent.parent / "README.md"

RING = [(vertex, vertex % 50 + 1) for vertex in range(1, 51)]
INPUTS = {
    "edges.txt.gz": gzip.compress("".join(f"{u} {v}\n" for u, v in RING).encode()),
    "roads.txt": "".join(f"{u} {v} {u + v}\n" for u, v in RING).encode(),
    "more.txt": b"1 30\n2 31\n51 1\n",
    "updates.txt": b"+ 1 30\n- 1 2\nv- 9\n",
    "gone.txt": b"3 4\n50\n",
    "flights.csv": b"source,target,distance,delay,day\nSEA,JFK,2422,-3.5,2001-01-01\nSEA,JFK,2422,10,2001-01-02\n",
    "people.csv": b"id,name\n1,Ann\n2,Bob\n",
    "posts.csv": b"id,text\n1,hello\n2,bye\n",
    "knows.csv": b"source,target,since\n1,2,2020-01-01\n",
    "likes.csv": b"source,target\n1,1\n2,1\n",
    "links.csv": "from,to\n".encode() + "".join(f"page{u},page{v}\n" for u, v in RING).encode(),
}


def commands(page: str) -> list[list[str]]:
    """The commands in the page's code blocks, without the comments behind them."""
    shown, inside = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside and line.startswith("anden "):
            shown.append(shlex.split(line, comments=True)[1:])
    return shown


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    anden = os.path.abspath(os.environ.get("ANDEN", "anden"))
    shown = commands(FRONT_PAGE.read_text(encoding="utf-8"))
    if not shown:
        sys.exit("README.md shows no command")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(sys.argv[1]), Path(folder, "demo.anden"))
        for name, data in INPUTS.items():
            Path(folder, name).write_bytes(data)
        for arguments in shown:
            done = subprocess.run([anden, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(f"anden {shlex.join(arguments)}: status {done.returncode}: {done.stderr.strip()}")
    print(f"{len(shown) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
