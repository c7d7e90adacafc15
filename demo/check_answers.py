#!/usr/bin/env python3
"""Asks a database that demo/run.sh has loaded, and compares with the facts stated in README.md.

Those facts are found by test_debian_graph.py with code of its own, so this compares two independent answers.
usage: ANDEN=PROGRAM demo/check_answers.py DB
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def ask(*arguments: str) -> dict:
    """Runs a command with --json and gives its one object; ends the program if the command fails."""
    command = [os.environ.get("ANDEN", "anden"), *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return json.loads(done.stdout)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    db = sys.argv[1]
    facts = dict(re.findall(r"^\| ([^|]+?) \| `?([^|`]+?)`? \|$", (HERE / "README.md").read_text(), re.M))

    def fact(name: str) -> int:
        return int(facts[name].replace(",", ""))

    info = ask("info", db)
    components = ask("run", db, "wcc", "--check")["result"]
    ranks = ask("run", db, "pagerank", "--check")["result"]
    reach = ask("run", db, "bfs", "--source", "libc6", "--check")["result"]
    path = ask("query", db, "path", "libc6", "gimp")["result"]
    back = ask("query", db, "path", "gimp", "libc6")["result"]
    asked_for = ask("query", db, "neighbors", "libc6", "--in")["result"]

    most_asked_for, in_degree = facts["largest in-degree"].rsplit(", ", 1)
    comparisons = [
        ("vertices", info["vertices"], fact("packages with an edge")),
        ("edges", info["edges"], fact("edges")),
        ("weak components", components["components"], fact("weak components")),
        ("largest weak component", components["largest"], fact("vertices of the largest")),
        ("top of PageRank", ranks["top"][0][0], most_asked_for),
        ("sum of PageRank", round(ranks["sum"], 6), 1.0),
        ("reached from libc6", reach["reached"], fact("packages that libc6 reaches, itself included")),
        ("depth from libc6", reach["depth"], fact("steps to the farthest of them")),
        ("length libc6 to gimp", path["length"], fact("steps from libc6 to gimp")),
        ("ends of the path", [path["vertices"][0], path["vertices"][-1]], ["libc6", "gimp"]),
        ("vertices of the path", len(path["vertices"]), path["length"] + 1),
        ("length gimp to libc6", back["length"], fact("steps from gimp to libc6")),
        ("in-degree of libc6", len(asked_for), int(in_degree.replace(",", ""))),
    ]
    failed = [(name, found, expected) for name, found, expected in comparisons if found != expected]
    for name, found, expected in failed:
        print(f"{name}: found {found!r}, expected {expected!r}")
    print(f"{len(comparisons) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
