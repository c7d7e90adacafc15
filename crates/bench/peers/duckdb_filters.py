"""Filters with a question behind them: `anden` on a database against DuckDB on the same edges.

Usage: python duckdb_filters.py --anden target/release/anden [--scale 18] [--degree 10] [--pairs 5] [--folder FOLDER]

DuckDB (`pip install duckdb`) runs in this process, on its own table and on the Parquet file that `anden` loaded. Each
question to `anden` is a command. Degrees and two hops are timed as it says, with the filter and without the start of
the program, as DuckDB's are; components are the whole command. The sides alternate; medians are printed, and the ratio
of DuckDB's time to ours.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import duckdb

PREDICATE = "amount < 100000 AND kind = 'wire'"
COMPONENTS = """
WITH RECURSIVE links AS MATERIALIZED (
    SELECT source AS a, target AS b FROM {edges} WHERE {predicate}
    UNION ALL SELECT target, source FROM {edges} WHERE {predicate}
), labels(vertex, label) USING KEY (vertex) AS (
    SELECT a, least(a, min(b)) FROM links GROUP BY a
    UNION
    SELECT links.a, min(labels.label) FROM labels
    JOIN links ON links.b = labels.vertex
    JOIN recurring.labels AS known ON known.vertex = links.a
    WHERE labels.label < known.label GROUP BY links.a
)
SELECT count(DISTINCT label) FROM labels
"""


def anden(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout else None


def prepare(program, scale, degree, folder):
    """The edges of an R-MAT graph as a Parquet file, as a database, and as a table of DuckDB."""
    text, parquet, database = folder / "edges.el", folder / "edges.parquet", folder / "edges.anden"
    anden(program, "generate", "rmat", "--scale", scale, "--degree", degree, "--output", str(text))
    duck = duckdb.connect(str(folder / "edges.duckdb"))
    duck.execute("SET threads = 2")
    kinds = ", ".join(f"'{kind}'" for kind in ["wire", "cash", "card", "giro", "fee"])
    duck.execute(
        f"""COPY (
            SELECT source, target, number * 7919 % 1000000 AS amount, [{kinds}][1 + number % 5] AS kind
            FROM (SELECT source, target, row_number() OVER (ORDER BY hash(source * 4294967296 + target)) AS number
                  FROM (SELECT DISTINCT column0 AS source, column1 AS target
                        FROM read_csv('{text}', header = false, delim = ' ')))
        ) TO '{parquet}' (FORMAT parquet)"""
    )
    duck.execute(f"CREATE OR REPLACE TABLE edges AS FROM '{parquet}'")
    anden(program, "load", str(database), str(parquet))
    return duck, parquet, database


def questions(duck, program, database, sources):
    """For each question: its name, the time and the answer of `anden`, and what DuckDB does with these edges."""

    def ask(*arguments):
        return lambda: anden(program, arguments[0], str(database), *arguments[1:], "--where-edge", PREDICATE)

    def degrees(edges):
        counted = f"SELECT count(*) AS degree FROM {edges} WHERE {PREDICATE} GROUP BY source"
        return lambda: duck.execute(f"SELECT max(degree) FROM ({counted})").fetchone()[0]

    def two_hops(edges):
        found = f"""
            WITH passing AS (SELECT source, target FROM {edges} WHERE {PREDICATE}),
                 first AS (SELECT DISTINCT target FROM passing WHERE source = $1),
                 second AS (SELECT passing.target FROM first JOIN passing ON passing.source = first.target)
            SELECT count(*) FROM (SELECT target FROM first UNION SELECT target FROM second) WHERE target <> $1"""
        return lambda: [duck.execute(found, [source]).fetchone()[0] for source in sources]

    def components(edges):
        return lambda: duck.execute(COMPONENTS.format(edges=edges, predicate=PREDICATE)).fetchone()[0]

    def khop():
        found = [ask("query", "khop", str(source), "2", "--count")() for source in sources]
        return sum(each["seconds"] for each in found), [each["result"] for each in found]

    def largest():
        found = ask("query", "degrees")()
        return found["seconds"], found["result"]["max"]

    vertices = f"(SELECT source FROM edges WHERE {PREDICATE} UNION SELECT target FROM edges WHERE {PREDICATE})"
    num_connected = duck.execute(f"SELECT count(*) FROM {vertices}").fetchone()[0]

    def wcc():
        taken, found = seconds(ask("run", "wcc"))
        # DuckDB's components are those of vertices with edges.
        return taken, found["result"]["components"] - (found["vertices"] - num_connected)

    return [
        ("degrees", largest, degrees),
        ("two hops", khop, two_hops),
        ("components", wcc, components),
    ]


def seconds(body):
    start = time.perf_counter()
    answer = body()
    return time.perf_counter() - start, answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--anden", required=True)
    parser.add_argument("--scale", default="18")
    parser.add_argument("--degree", default="10")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or pathlib.Path(made)
        duck, parquet, database = prepare(options.anden, options.scale, options.degree, folder)
        busiest = f"SELECT source FROM edges WHERE {PREDICATE} GROUP BY source ORDER BY hash(source) LIMIT 10"
        sources = [row[0] for row in duck.execute(busiest).fetchall()]
        for name, ours, theirs in questions(duck, options.anden, database, sources):
            for edges, where in [("edges", "its table"), (f"'{parquet}'", "the Parquet file")]:
                times, other_times = [], []
                for _ in range(options.pairs):
                    taken, answer = ours()
                    times.append(taken)
                    taken, other_answer = seconds(theirs(edges))
                    other_times.append(taken)
                    if answer != other_answer:
                        raise SystemExit(f"{name}: anden says {answer}, DuckDB {other_answer}")
                ours_median, other_median = statistics.median(times), statistics.median(other_times)
                print(
                    f"{name:<12} anden {ours_median:8.4f} s   DuckDB, {where:<17} {other_median:8.4f} s"
                    f"   {other_median / ours_median:6.2f} times"
                )


if __name__ == "__main__":
    main()
