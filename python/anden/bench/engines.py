"""How each database and table engine does each task.

They have no functions for graphs, so a task is a loop of joins, as their users write it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import DAMPING, ITERATIONS
from .tool import MAX_ROUNDS, Tool


class DuckDB(Tool):
    name = "duckdb"
    module = "duckdb"

    def load(self) -> Any:
        self.graph = self.peer.connect(str(self.given.scratch / "graph.duckdb"))
        self.graph.execute("SET enable_progress_bar = false")
        columns = "columns = {'u': 'INTEGER', 'v': 'INTEGER'}, header = false, delim = ' '"
        self.graph.execute(f"CREATE TABLE half AS FROM read_csv('{self.given.edges}', {columns})")
        self.graph.execute("CREATE TABLE e AS SELECT u, v FROM half UNION ALL SELECT v, u FROM half")
        return self._one("SELECT count(DISTINCT u) FROM e"), self._one("SELECT count(*) FROM half")

    def _one(self, query: str) -> Any:
        return self.graph.execute(query).fetchone()[0]

    def pagerank(self) -> Any:
        run, n = self.graph.execute, self.given.num_vertices
        run("CREATE OR REPLACE TABLE d AS SELECT u, count(*) AS degree FROM e GROUP BY u")
        run(f"CREATE OR REPLACE TABLE r AS SELECT u, 1.0::DOUBLE / {n} AS rank FROM d")
        for _ in range(ITERATIONS):
            run(
                f"CREATE OR REPLACE TABLE r AS SELECT e.v AS u, {(1 - DAMPING) / n} + {DAMPING} * sum(share) AS rank "
                "FROM e JOIN (SELECT u, rank / degree AS share FROM r JOIN d USING (u)) s ON e.u = s.u GROUP BY e.v"
            )
        return run("SELECT u, rank FROM r").fetchnumpy()

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return self.spread(answer["u"], answer["rank"])

    def bfs(self) -> Any:
        run = self.graph.execute
        run(f"CREATE OR REPLACE TABLE seen AS SELECT {self.given.source} AS v, 0 AS hops")
        for level in range(1, MAX_ROUNDS):
            found = run(
                f"INSERT INTO seen SELECT DISTINCT e.v, {level} FROM e JOIN seen ON e.u = seen.v "
                f"WHERE seen.hops = {level - 1} AND e.v NOT IN (SELECT v FROM seen)"
            ).fetchone()[0]
            if found == 0:
                break
        return run("SELECT v, hops FROM seen").fetchnumpy()

    def as_bfs(self, answer: Any) -> np.ndarray:
        return self.spread(answer["v"], answer["hops"])

    def components(self) -> Any:
        run = self.graph.execute
        run("CREATE OR REPLACE TABLE c AS SELECT DISTINCT u, u AS label FROM e")
        before = -1
        for _ in range(MAX_ROUNDS):
            run(
                "CREATE OR REPLACE TABLE c AS SELECT c.u, least(c.label, min(other.label)) AS label "
                "FROM c JOIN e ON c.u = e.u JOIN c AS other ON e.v = other.u GROUP BY c.u, c.label"
            )
            total = self._one("SELECT sum(label) FROM c")
            if total == before:
                break
            before = total
        return self._one("SELECT count(DISTINCT label) FROM c")

    def triangles(self) -> Any:
        # Edges lead from the smaller degree to the larger one, which keeps the join small.
        self.graph.execute(
            "CREATE OR REPLACE TABLE up AS WITH d AS (SELECT u, count(*) AS degree FROM e GROUP BY u) "
            "SELECT e.u, e.v FROM e JOIN d a ON e.u = a.u JOIN d b ON e.v = b.u WHERE (a.degree, e.u) < (b.degree, e.v)"
        )
        return self._one("SELECT count(*) FROM up a JOIN up b ON a.u = b.u JOIN up c ON a.v = c.u AND b.v = c.v")


class Polars(Tool):
    name = "polars"
    module = "polars"

    def load(self) -> Any:
        pl = self.peer
        half = pl.read_csv(self.given.edges, separator=" ", has_header=False, new_columns=["u", "v"])
        self.graph = pl.concat([half, half.select(u="v", v="u")])
        return self.graph["u"].n_unique(), len(half)

    def pagerank(self) -> Any:
        pl, n = self.peer, self.given.num_vertices
        degrees = self.graph.group_by("u").len("degree")
        ranks = degrees.select("u", rank=pl.lit(1 / n))
        for _ in range(ITERATIONS):
            shares = ranks.join(degrees, on="u").select("u", share=pl.col("rank") / pl.col("degree"))
            pulled = self.graph.join(shares, on="u").group_by("v").agg(pl.col("share").sum())
            ranks = pulled.select(u="v", rank=(1 - DAMPING) / n + DAMPING * pl.col("share"))
        return ranks

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return self.spread(answer["u"], answer["rank"])

    def bfs(self) -> Any:
        pl = self.peer
        frontier = pl.DataFrame({"v": [self.given.source], "hops": [0]})
        seen = frontier
        for level in range(1, MAX_ROUNDS):
            found = self.graph.join(frontier, left_on="u", right_on="v", how="semi").select("v").unique()
            frontier = found.join(seen, on="v", how="anti").with_columns(hops=pl.lit(level, pl.Int64))
            if frontier.is_empty():
                break
            seen = pl.concat([seen, frontier])
        return seen

    def as_bfs(self, answer: Any) -> np.ndarray:
        return self.spread(answer["v"], answer["hops"])

    def components(self) -> Any:
        pl = self.peer
        labels = self.graph.select("u").unique().with_columns(label=pl.col("u"))
        for _ in range(MAX_ROUNDS):
            neighbors = self.graph.join(labels, left_on="v", right_on="u").group_by("u").agg(pl.col("label").min())
            after = labels.join(neighbors, on="u").select("u", label=pl.min_horizontal("label", "label_right"))
            if after["label"].sum() == labels["label"].sum():
                break
            labels = after
        return labels["label"].n_unique()

    def triangles(self) -> Any:
        pl = self.peer
        degrees = self.graph.group_by("u").len("degree")
        ends = self.graph.join(degrees, on="u").join(degrees, left_on="v", right_on="u")
        is_up = (pl.col("degree") < pl.col("degree_right")) | (
            (pl.col("degree") == pl.col("degree_right")) & (pl.col("u") < pl.col("v"))
        )
        up = ends.filter(is_up).select("u", "v").lazy()
        paths = up.join(up, on="u").select(u="v", v="v_right")
        return paths.join(up, on=["u", "v"]).select(pl.len()).collect(engine="streaming").item()


class Ladybug(Tool):
    """The maintained fork of Kùzu. Its functions for graphs are in an extension that no package registry serves."""

    name = "ladybug"
    module = "ladybug"

    def load(self) -> Any:
        kuzu, folder = self.peer, self.given.scratch
        self.graph = kuzu.Connection(kuzu.Database(str(folder / "graph.ladybug")))
        vertices = folder / "vertices.csv"
        vertices.write_text("\n".join(map(str, range(self.given.num_vertices))) + "\n")
        self.graph.execute("CREATE NODE TABLE V(id INT64, PRIMARY KEY(id))")
        self.graph.execute("CREATE REL TABLE E(FROM V TO V)")
        self.graph.execute(f"COPY V FROM '{vertices}'")
        self.graph.execute(f"COPY E FROM '{self.given.edges}' (DELIM=' ', HEADER=false, file_format='csv')")
        counts = ("MATCH (v:V) RETURN count(*)", "MATCH ()-[e:E]->() RETURN count(*)")
        return tuple(self.graph.execute(query).get_next()[0] for query in counts)

    def bfs(self) -> Any:
        query = "MATCH (a:V)-[e:E* SHORTEST 1..30]-(b:V) WHERE a.id = $source RETURN b.id AS v, length(e) AS hops"
        return self.graph.execute(query, {"source": self.given.source}).get_as_arrow()

    def as_bfs(self, answer: Any) -> np.ndarray:
        hops = self.spread(answer["v"], answer["hops"])
        hops[self.given.source] = 0
        return hops

    def triangles(self) -> Any:
        query = "MATCH (a:V)-[:E]-(b:V)-[:E]-(c:V)-[:E]-(a) WHERE a.id < b.id AND b.id < c.id RETURN count(*)"
        return self.graph.execute(query).get_next()[0]
