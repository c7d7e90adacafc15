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


def properties(db: str, diff: dict, facts: dict[str, str]) -> list[tuple[str, object, object]]:
    """What is found of properties, and what is expected; `diff` is that of the two snapshots."""

    def fact(name: str) -> int:
        return int(facts[name].replace(",", ""))

    def package(name: str, *selection: str) -> dict:
        return ask("query", db, "vertex", name, *selection)["result"]["properties"]

    changed = {change[0] for change in diff["changed_properties"]} - set(diff["added_vertices"])
    size = "installed size of chromium after the updates, KiB"
    ends = "libreoffice-common", "libreoffice-style-colibre"
    edge = ask("query", db, "edge", *ends)
    by_kinds = ask("query", db, "path", "libc6", "gimp", "--weight", "kinds", "--snapshot", "1")["result"]
    return [
        ("section of gimp", package("gimp", "--snapshot", "1")["section"], facts["section of gimp"]),
        ("size of libc6", package("libc6", "--snapshot", "1")["installed_size"], fact("installed size of libc6, KiB")),
        ("size of chromium now", package("chromium")["installed_size"], fact(size)),
        ("packages with other properties", len(changed), fact("packages of another size or section after the updates")),
        ("kinds of an edge", edge["properties"], [{"kinds": fact("kinds of {} to {}".format(*ends))}]),
        ("least sum of kinds", by_kinds["length"], fact("least sum of kinds from libc6 to gimp")),
    ]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    db = sys.argv[1]
    facts = dict(re.findall(r"^\| ([^|]+?) \| `?([^|`]+?)`? \|$", (HERE / "README.md").read_text(), re.M))

    def fact(name: str) -> int:
        return int(facts[name].replace(",", ""))

    info = ask("info", db)
    first, second = info["snapshots"]
    release = ["--snapshot", "1"]
    components = ask("run", db, "wcc", "--check", *release)["result"]
    strong = ask("run", db, "scc", "--check", *release)["result"]
    ranks = ask("run", db, "pagerank", "--check", *release)["result"]
    reach = ask("run", db, "bfs", "--source", "libc6", "--check", *release)["result"]
    path = ask("query", db, "path", "libc6", "gimp", *release)["result"]
    back = ask("query", db, "path", "gimp", "libc6", *release)["result"]
    asked_for = ask("query", db, "neighbors", "libc6", "--in", *release)["result"]
    asked_for_now = ask("query", db, "neighbors", "libc6", "--in")["result"]
    ranks_now = ask("run", db, "pagerank", "--check")["result"]
    diff = ask("diff", db, "1", "updates")
    window = ask("run", db, "wcc", "--window", "2..2", "--check")

    most_asked_for, in_degree = facts["largest in-degree"].rsplit(", ", 1)
    most_asked_for_now, in_degree_now = facts["largest in-degree after the updates"].rsplit(", ", 1)
    alone = fact("packages") - fact("packages with an edge")
    comparisons = [
        ("vertices", first["vertices"], fact("packages")),
        ("edges", first["edges"], fact("edges")),
        ("vertices now", info["vertices"], fact("packages, before or after")),
        ("edges now", info["edges"], fact("edges after the updates")),
        ("name of the second snapshot", second["name"], "updates"),
        ("added", second["added"], fact("edges that the updates add")),
        ("removed", second["removed"], fact("edges that the updates remove")),
        ("added, by diff", len(diff["added_edges"]), fact("edges that the updates add")),
        ("removed, by diff", len(diff["removed_edges"]), fact("edges that the updates remove")),
        ("edges of the window", window["edges"], fact("edges that the updates add")),
        ("vertices of the window", window["vertices"], fact("packages with an edge that the updates add")),
        ("weak components", components["components"], fact("weak components, with packages that stand alone")),
        ("largest weak component", components["largest"], fact("vertices of the largest")),
        ("strong components", strong["components"], fact("strong components") + alone),
        ("largest strong component", strong["largest"], fact("vertices of the largest strong one")),
        ("top of PageRank", ranks["top"][0][0], most_asked_for),
        ("sum of PageRank", round(ranks["sum"], 6), 1.0),
        ("reached from libc6", reach["reached"], fact("packages that libc6 reaches, itself included")),
        ("depth from libc6", reach["depth"], fact("steps to the farthest of them")),
        ("length libc6 to gimp", path["length"], fact("steps from libc6 to gimp")),
        ("ends of the path", [path["vertices"][0], path["vertices"][-1]], ["libc6", "gimp"]),
        ("vertices of the path", len(path["vertices"]), path["length"] + 1),
        ("length gimp to libc6", back["length"], fact("steps from gimp to libc6")),
        ("in-degree of libc6", len(asked_for), int(in_degree.replace(",", ""))),
        ("in-degree of libc6 now", len(asked_for_now), int(in_degree_now.replace(",", ""))),
        ("top of PageRank now", ranks_now["top"][0][0], most_asked_for_now),
    ]
    comparisons += properties(db, diff, facts)
    failed = [(name, found, expected) for name, found, expected in comparisons if found != expected]
    for name, found, expected in failed:
        print(f"{name}: found {found!r}, expected {expected!r}")
    print(f"{len(comparisons) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
