"""A lookup by property and two hops: `anden` against LadybugDB, the maintained fork of Kùzu, on LDBC's social network.

Usage: python ladybug_snb.py --anden target/release/anden --snb FOLDER [--pairs 5]

FOLDER has `Person.parquet` and `Person_knows_Person.parquet` of LDBC's SNB generator. The question: how many persons are
within two KNOWS steps of the person with this e-mail address? LadybugDB (`pip install real_ladybug`) runs in this process
and answers a prepared statement. `anden` answers two commands, `query find` on an index and `query khop`; each runs in a
process of its own, and its time is what the command says, from the open database to the answer. The sides alternate;
medians of the time of a question are printed, and the ratio of LadybugDB's to ours.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import real_ladybug

QUESTION = """
MATCH (p:Person {email: $email})-[:KNOWS*1..2]-(q:Person)
WHERE q.id <> p.id RETURN count(DISTINCT q.id)
"""


def anden(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout else None


def prepare(program, persons, knows, folder):
    database = str(folder / "snb.anden")
    columns = ["--source-column", "Person1Id", "--target-column", "Person2Id"]
    anden(program, "load", database, "--edges", f"KNOWS={knows}", "--vertices", f"Person={persons}", "--undirected", *columns)
    anden(program, "index", database, "create", "vertex", "email", "--unique")
    peer = real_ladybug.Connection(real_ladybug.Database(str(folder / "snb.lbug")))
    peer.execute("CREATE NODE TABLE Person(id INT64, email STRING, PRIMARY KEY(id))")
    peer.execute("CREATE REL TABLE KNOWS(FROM Person TO Person)")
    peer.execute(f"COPY Person FROM (LOAD FROM '{persons}' RETURN id, email)")
    peer.execute(f"COPY KNOWS FROM (LOAD FROM '{knows}' RETURN Person1Id, Person2Id)")
    return database, peer


def rows(result):
    while result.has_next():
        yield result.get_next()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--anden", required=True)
    parser.add_argument("--snb", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        persons, knows = (options.snb / f"{name}.parquet" for name in ["Person", "Person_knows_Person"])
        database, peer = prepare(options.anden, persons, knows, pathlib.Path(made))
        emails = [row[0] for row in rows(peer.execute("MATCH (p:Person) RETURN p.email ORDER BY p.id"))]
        prepared = peer.prepare(QUESTION)

        def ours(email):
            found = anden(options.anden, "query", database, "find", "email", email)
            key = str(found["result"][0])
            hops = anden(options.anden, "query", database, "khop", key, "2", "--type", "KNOWS", "--count")
            return found["seconds"] + hops["seconds"], hops["result"]

        def theirs(email):
            start = time.perf_counter()
            answer = next(rows(peer.execute(prepared, {"email": email})))[0]
            return time.perf_counter() - start, answer

        times, other_times = [], []
        for _ in range(options.pairs):
            for email in emails:
                (taken, answer), (other_taken, other_answer) = ours(email), theirs(email)
                if answer != other_answer:
                    raise SystemExit(f"{email}: anden says {answer}, LadybugDB {other_answer}")
                times.append(taken)
                other_times.append(other_taken)
        ours_median, other_median = statistics.median(times), statistics.median(other_times)
        print(f"lookup and two hops: anden {1e6 * ours_median:.0f} µs, LadybugDB {1e6 * other_median:.0f} µs, "
              f"ratio {other_median / ours_median:.1f}; {len(emails)} persons")


if __name__ == "__main__":
    main()
