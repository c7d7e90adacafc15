"""Five figures side by side: `anden` against NetworkX, igraph, DuckDB and LadybugDB, the maintained fork of Kùzu.

Usage: python side_by_side.py --anden PROGRAM [--scale 18] [--degree 16] [--pairs 3] [--json FILE] [--svg FILE]
       python side_by_side.py --from FILE [--svg FILE]     (prints and draws the figures of an earlier `--json FILE`)

It needs `pip install networkx scipy igraph duckdb real_ladybug==0.15.3`, and Matplotlib for `--svg`. The input is the
text edge list of an R-MAT graph from `anden generate`. Every side reads this file into a directed graph and merges
parallel edges. Each figure of each side is measured in a new process: a command of `anden`, or a Python process. The
sides take turns in `--pairs` rounds; the table has medians. All sides must agree on the numbers of vertices and edges
and on the neighbors of a vertex. They must agree on the vertex with the highest PageRank, and on its score within 1 %.

load         From the text file to a graph that answers: for a database durable on disk, for a library in memory. For
             `anden` it is the whole command; for the others it is the call, without Python and its imports.
PageRank     Ten iterations on the loaded graph. For `anden` it is the time that the command reports; for the others it
             is the call. A second row has the whole process up to the answer, with imports and opening the graph.
peak memory  The largest resident set of the process that loads, and of the process that computes PageRank.
reopen       From the start of a new process to the neighbors of one vertex.
old version  The neighbors of this vertex before 1,000 edges were added to it, from the start of a new process.

Not fair to Anden: load includes the start of the program; the resident set includes mapped files.
Not fair to NetworkX and igraph: they store nothing, so each new process loads the text. NetworkX's PageRank converts
the graph to arrays first. igraph takes no number of iterations: its solver runs until the scores have converged.
Not fair to DuckDB, which is made for tables: an iteration of PageRank is an SQL statement over the table of edges.
Not fair to LadybugDB: its extension `algo` comes from its own server. Without the extension, PageRank has no figure.
Not fair to any peer: a new process includes the start of Python. Files are in the page cache, so no disk is measured.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata

# Peers and Matplotlib are imported where they are used: a child's peak begins with the memory of its parent.
ITERATIONS, DAMPING, NUM_ADDED = 10, 0.85, 1000
PACKAGES = {"NetworkX": "networkx", "igraph": "igraph", "DuckDB": "duckdb", "LadybugDB": "real_ladybug"}
SIDES = ["Anden", *PACKAGES]
# Title of a row of the table, figure, value of a measurement, unit.
ROWS = [
    ("load a text file", "load", "seconds", "s"),
    ("PageRank, ten iterations", "pagerank", "seconds", "s"),
    ("the same as a whole process", "pagerank", "process_seconds", "s"),
    ("peak memory of load", "load", "megabytes", "MB"),
    ("peak memory of PageRank", "pagerank", "megabytes", "MB"),
    ("new process to the first answer", "reopen", "process_seconds", "s"),
    ("an old version, new process to the answer", "old", "process_seconds", "s"),
]


# A peer is a generator. For load and PageRank it prepares, yields None (or a reason if there will be no figure), does
# what is timed, yields None, and yields what all sides must agree on. For reopen it yields the neighbors.


def networkx(figure, edges, _, vertex):
    """A graph in Python's memory."""
    import networkx

    if figure == "load":
        yield
    graph = networkx.read_edgelist(edges, create_using=networkx.DiGraph, nodetype=int, data=False)
    if figure == "load":
        yield
        yield graph.number_of_nodes(), graph.number_of_edges()
    elif figure == "reopen":
        yield list(graph.successors(vertex))
    import scipy.sparse  # noqa: F401 (otherwise NetworkX would import it within the time of PageRank)

    yield
    try:
        # A tolerance of 0 is never met, so exactly ten iterations run. NetworkX throws their scores away.
        networkx.pagerank(graph, alpha=DAMPING, max_iter=ITERATIONS, tol=0)
    except networkx.PowerIterationFailedConvergence:
        yield
    scores = networkx.pagerank(graph, alpha=DAMPING, tol=1e-10)
    yield max(scores.items(), key=lambda item: item[1])


def igraph(figure, edges, _, vertex):
    """A graph in memory. The reader makes a vertex of every number; those without edges are removed."""
    import igraph

    if figure == "load":
        yield
    graph = igraph.Graph.Read_Edgelist(edges, directed=True)
    graph.simplify(multiple=True, loops=False)
    graph.vs["key"] = range(graph.vcount())
    graph.delete_vertices(graph.vs.select(_degree=0))
    if figure == "load":
        yield
        yield graph.vcount(), graph.ecount()
    elif figure == "reopen":
        yield graph.vs[graph.successors(graph.vs.find(key=vertex).index)]["key"]
    yield
    scores = graph.pagerank(damping=DAMPING)
    yield
    yield max(zip(graph.vs["key"], scores), key=lambda item: item[1])


def duckdb(figure, edges, stored, vertex):
    """A table of edges in a database file. Each iteration of PageRank makes a table of scores."""
    import duckdb

    if figure == "load":
        yield
        with duckdb.connect(stored) as duck:
            read = f"read_csv('{edges}', header = false, delim = ' ', names = ['source', 'target'])"
            duck.execute(f"CREATE TABLE edges AS SELECT DISTINCT source, target FROM {read}")
            duck.execute("CHECKPOINT")
        yield
    duck = duckdb.connect(stored, read_only=True)
    if figure == "load":
        vertices = "SELECT source FROM edges UNION SELECT target FROM edges"
        yield duck.execute(f"SELECT (SELECT count(*) FROM ({vertices})), count(*) FROM edges").fetchone()
    elif figure == "reopen":
        yield [row[0] for row in duck.execute("SELECT target FROM edges WHERE source = $1", [vertex]).fetchall()]
    yield
    duck.execute(
        """CREATE TEMP TABLE vertices AS SELECT key, count(target) AS degree, count(*) OVER () AS n
           FROM (SELECT source AS key, target FROM edges UNION ALL SELECT DISTINCT target, NULL FROM edges)
           GROUP BY key"""
    )
    duck.execute("CREATE TEMP TABLE ranks AS SELECT key, degree, 1 / n AS score FROM vertices")
    for _ in range(ITERATIONS):
        duck.execute(
            f"""CREATE OR REPLACE TEMP TABLE ranks AS
               WITH incoming AS (SELECT target, sum(score / degree) AS score FROM edges JOIN ranks ON source = key
                                 GROUP BY target),
                    dangling AS (SELECT coalesce(sum(score), 0) AS score FROM ranks WHERE degree = 0)
               SELECT key, degree, {1 - DAMPING} / n + {DAMPING} * (coalesce(incoming.score, 0) + dangling.score / n)
                      AS score FROM vertices LEFT JOIN incoming ON target = key CROSS JOIN dangling"""
        )
    yield
    yield duck.execute("SELECT key, score FROM ranks ORDER BY score DESC, key LIMIT 1").fetchone()


def ladybug(figure, edges, stored, vertex):
    """A database with a table of vertices and a table of edges between them."""
    import real_ladybug

    if figure == "load":
        yield
        execute = real_ladybug.Connection(database := real_ladybug.Database(stored)).execute
        read = f"LOAD FROM '{edges}' (file_format = 'csv', header = false, delim = ' ')"
        execute("CREATE NODE TABLE Vertex(key INT64, PRIMARY KEY(key))")
        execute("CREATE REL TABLE Edge(FROM Vertex TO Vertex)")
        execute(f"COPY Vertex FROM ({read} UNWIND [column0, column1] AS key RETURN DISTINCT CAST(key AS INT64))")
        execute(f"COPY Edge FROM ({read} RETURN DISTINCT column0, column1)")
        execute("CHECKPOINT")
        database.close()
        yield
    execute = real_ladybug.Connection(real_ladybug.Database(stored, read_only=True)).execute
    if figure == "load":
        patterns = ["(:Vertex)", "(:Vertex)-[:Edge]->(:Vertex)"]
        yield [execute(f"MATCH {each} RETURN count(*)").get_next()[0] for each in patterns]
    elif figure == "reopen":
        yield [row[0] for row in execute(f"MATCH (:Vertex {{key: {vertex}}})-[:Edge]->(v) RETURN v.key").get_all()]
    try:
        execute("LOAD EXTENSION algo")
    except RuntimeError:
        yield "LadybugDB computes PageRank in its extension algo, not installed here"
    execute("CALL project_graph('Graph', ['Vertex'], ['Edge'])")
    yield
    call = f"page_rank('Graph', dampingFactor := {DAMPING}, maxIterations := {ITERATIONS}, tolerance := 0.0)"
    key, _ = execute(f"CALL {call} RETURN node.key, rank ORDER BY rank DESC LIMIT 1").get_next()
    yield
    # Vertices without out-edges are treated otherwise, so the score is another one.
    yield key, None


def measure(peer, figure, edges, stored, vertex):
    """Measures a figure of a peer in this process. Prints it as soon as it is known, then what the sides agree on."""
    sys.modules["matplotlib"] = None  # igraph would import it, which takes time and memory
    peers = {"NetworkX": networkx, "igraph": igraph, "DuckDB": duckdb, "LadybugDB": ladybug}
    steps = peers[peer](figure, edges, stored, int(vertex))
    if (first := next(steps)) is not None:
        print(json.dumps({"neighbors" if figure == "reopen" else "unavailable": first}))
        return
    start = time.perf_counter()
    next(steps)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "megabytes": peak * 1024 / 1e6}), flush=True)
    print(json.dumps({"counts" if figure == "load" else "top": next(steps)}))


def run(command):
    """Runs a command; its lines of JSON, the seconds from its start to the first line, and the peak of its memory."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=errors, text=True)
        lines = [process.stdout.readline()]
        seconds = time.perf_counter() - start
        lines += process.stdout.readlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise SystemExit(f"{' '.join(process.args)}: status {process.returncode}: {errors.read()}")
    found = {"process_seconds": seconds, "megabytes": usage.ru_maxrss * 1024 / 1e6}
    for line in lines:
        found.update(json.loads(line))
    return found


def anden(program, figure, edges, database, vertex):
    """A figure of `anden`. For an old version, edges are added first."""

    def verb(name, *arguments):
        return run([program, name, database, *arguments, "--json", "--quiet"])

    if figure == "load":
        found = verb("load", edges)
        return {**found, "seconds": found["process_seconds"], "counts": [found["vertices"], found["edges"]]}
    if figure == "pagerank":
        found = verb("run", "pagerank", "--iterations", ITERATIONS, "--damping", DAMPING)
        return {**found, "seconds": found["median_seconds"], "top": found["result"]["top"][0]}
    if figure == "reopen":
        found = verb("query", "neighbors", vertex)
        return {**found, "neighbors": found["result"]}
    verb("append", f"{edges}.added")
    found, now = verb("query", "neighbors", vertex, "--snapshot", 1), verb("query", "neighbors", vertex)
    if len(now["result"]) != len(found["result"]) + NUM_ADDED:
        raise SystemExit(f"{len(now['result'])} neighbors of {vertex} after {NUM_ADDED} edges were added")
    return {**found, "neighbors": found["result"]}


def agree(known, side, found):
    """Ends the program if a side found other counts, neighbors or another top vertex than a side before it."""
    for fact in {"counts", "top", "neighbors"} & found.keys():
        value = sorted(found[fact]) if fact == "neighbors" else found[fact]
        other, expected = known.setdefault(fact, (side, value))
        if fact == "top" and (value[1] is None or math.isclose(value[1], expected[1], rel_tol=0.01)):
            value, expected = value[0], expected[0]
        if value != expected:
            raise SystemExit(f"{fact}: {side} finds {str(value)[:200]}, {other} finds {str(expected)[:200]}")


def measure_all(options, folder):
    """Measures every figure of every side, in rounds."""
    edges, kept = folder / "edges.txt", ["seconds", "process_seconds", "megabytes", "unavailable"]
    shape = ["--scale", options.scale, "--degree", options.degree, "--output", edges]
    run([options.anden, "generate", "rmat", *shape, "--json"])
    with open(edges) as lines:
        vertex = next(lines).split()[0]
    added = range(2**options.scale, 2**options.scale + NUM_ADDED)
    pathlib.Path(f"{edges}.added").write_text("".join(f"{vertex} {key}\n" for key in added))
    known, measurements = {}, []
    for number, figure, side in itertools.product(range(options.pairs), ["load", "pagerank", "reopen", "old"], SIDES):
        stored = folder / f"{side}{number}"
        if side == "Anden":
            found = anden(options.anden, figure, edges, stored, vertex)
        elif figure == "old":
            found = {"unavailable": "NetworkX, igraph, DuckDB and LadybugDB keep no old versions"}
        else:
            found = run([sys.executable, __file__, "measure", side, figure, edges, stored, vertex])
        agree(known, side, found)
        values = {name: found[name] for name in kept if name in found}
        measurements.append({"round": number, "side": side, "figure": figure, **values})
    version = subprocess.run([options.anden, "--version"], capture_output=True, text=True, check=True).stdout
    (_, (vertices, num_edges)), scale, degree = known["counts"], options.scale, options.degree
    graph = {"scale": scale, "degree": degree, "vertices": vertices, "edges": num_edges}
    versions = {"Anden": version.split()[1], **{peer: metadata.version(name) for peer, name in PACKAGES.items()}}
    return {"graph": graph, "cores": os.cpu_count(), "versions": versions, "measurements": measurements}


def cell(report, side, row):
    """A cell as text, with the median that it shows, or "–" and the reason."""
    _, figure, value, unit = row
    found = [each for each in report["measurements"] if (each["side"], each["figure"]) == (side, figure)]
    if "unavailable" in found[0]:
        return "–", found[0]["unavailable"]
    median = statistics.median(each[value] for each in found)
    digits = 0 if unit == "MB" else max(0, 2 - math.floor(math.log10(median)))
    return f"{median:,.{digits}f}", median


def table(report):
    """The medians as a table in Markdown, and below it what was measured and why a cell is empty."""
    lines, reasons = [f"| | | {' | '.join(SIDES)} |", "| --- | --- |" + " ---: |" * len(SIDES)], {}
    for row in ROWS:
        cells = [cell(report, side, row) for side in SIDES]
        lines.append(f"| {row[0]} | {row[3]} | {' | '.join(text for text, _ in cells)} |")
        reasons |= {reason: None for text, reason in cells if text == "–"}
    graph, rounds = report["graph"], 1 + report["measurements"][-1]["round"]
    lines += ["", f"R-MAT, scale {graph['scale']}, degree {graph['degree']}: {graph['vertices']:,} vertices,"]
    lines[-1] += f" {graph['edges']:,} edges. {report['cores']} cores. Medians of {rounds} rounds. "
    lines[-1] += ", ".join(f"{side} {version}" for side, version in report["versions"].items()) + "."
    return "\n".join([*lines, *(f"–: {reason}." for reason in reasons)])


def draw(report, path):
    """Draws the seconds of load, PageRank and reopen as horizontal bars with one logarithmic scale."""
    import matplotlib

    style = {"backend": "svg", "svg.hashsalt": "anden", "font.family": "DejaVu Sans", "font.size": 10}
    style |= {"axes.grid": True, "axes.grid.axis": "x", "axes.axisbelow": True, "grid.color": "#e3e6ea"}
    style |= {f"axes.spines.{edge}": False for edge in ["top", "right", "left"]} | {"xtick.minor.size": 0}
    matplotlib.rcParams.update({**style, "svg.fonttype": "none", "ytick.major.size": 0})
    from matplotlib import pyplot

    panels = [(row, [cell(report, side, row) for side in SIDES]) for row in [ROWS[0], ROWS[1], ROWS[5]]]
    medians = [median for _, cells in panels for text, median in cells if text != "–"]
    low = 10 ** math.floor(math.log10(min(medians) / 1.5))
    # 525 pt are 700 pixels. The white ground keeps the picture readable on a dark page.
    picture, axes = pyplot.subplots(len(panels), 1, sharex=True, figsize=(525 / 72, 430 / 72), layout="constrained")
    for axis, (row, cells) in zip(axes, panels):
        axis.set_title(row[0][0].upper() + row[0][1:], loc="left", fontsize=11, fontweight="bold")
        axis.set(xscale="log", xlim=(low, 6 * max(medians)), yticks=range(len(SIDES)), yticklabels=SIDES)
        axis.xaxis.set_major_formatter("{x:g}")
        for place, (text, median) in enumerate(cells):
            end, shown = (low, f" – {median}") if text == "–" else (median, f" {text} s")
            axis.barh(place, end - low, left=low, height=0.75, color="#9aa4af" if place else "#0b6bcb")
            axis.text(end, place, shown, va="center", fontsize=10, fontweight="normal" if place else "bold")
        axis.invert_yaxis()
    axes[-1].set_xlabel(f"seconds, logarithmic: less is better; {report['graph']['edges']:,} edges")
    picture.savefig(path, facecolor="white", metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser()
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--anden")
    source.add_argument("--from", dest="earlier", type=pathlib.Path)
    for name, default in [("--scale", 18), ("--degree", 16), ("--pairs", 3)]:
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = options.earlier and json.loads(options.earlier.read_text())
        report = earlier or measure_all(options, pathlib.Path(folder))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))
    if options.svg:
        draw(report, options.svg)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        main()
