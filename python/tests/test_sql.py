"""SQL by DuckDB and Polars over views and databases."""

from __future__ import annotations

import subprocess
import sys

import pytest

import anden

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def db() -> anden.Database:
    db = anden.from_edges([("ann", "ben", 1.0), ("ben", "cleo", 2.0), ("cleo", "ann", 4.0)])
    db.append(["dan"], ["ann"], weights=[8.0], name="second")
    return db


def test_tables(db: anden.Database) -> None:
    view = db.view()
    assert view.sql("SELECT sum(weight) FROM edges").fetchall()[0] == (15.0,)
    assert view.sql("SELECT count(*) FROM vertices").fetchall()[0] == (4,)
    assert view.sql("SELECT in_degree FROM degrees WHERE key = 'ann'").fetchall() == [(2,)]
    assert db.sql("SELECT number, name FROM snapshots ORDER BY number").fetchall() == [(1, None), (2, "second")]
    assert view.sql("FROM edges SELECT * WHERE source = 'dan'").fetchall() == [("dan", "ann", 8.0)]


def test_kernels_and_queries_are_functions(db: anden.Database) -> None:
    view = db.view()
    assert view.sql("SELECT key, value FROM bfs('ann') ORDER BY value, key").fetchall() == [
        ("ann", 0),
        ("ben", 1),
        ("cleo", 2),
        ("dan", None),
    ]
    ranks = view.sql("SELECT sum(value) FROM pagerank(iterations := 20, damping := 0.9)").fetchall()[0]
    assert ranks[0] == pytest.approx(1.0)
    assert view.sql("SELECT count(DISTINCT value) FROM wcc()").fetchall()[0] == (1,)
    assert view.sql("SELECT key FROM khop('ann', 1 + 1) ORDER BY ALL").fetchall() == [("ben",), ("cleo",)]
    depths = view.sql("SELECT key, depth FROM khop('ann', 2, depths := true) ORDER BY ALL").fetchall()
    assert depths == [("ben", 1), ("cleo", 2)]
    assert view.sql("SELECT count FROM fof('ann', ranked := true)").fetchall() == [(1,)]
    assert len(view.sql("SELECT key, degree FROM top_degrees(1)").fetchall()) == 1
    assert view.sql("SELECT step, key FROM path('dan', 'ben') ORDER BY step").fetchall() == [
        (0, "dan"),
        (1, "ann"),
        (2, "ben"),
    ]
    assert view.sql("SELECT sum(value) FROM triangles()").fetchall()[0] == (3,)


def test_functions_join_with_tables_and_each_other(db: anden.Database) -> None:
    query = """
        WITH near AS (SELECT key FROM khop('ann', 1))
        SELECT e.source, a.value AS here, b.value AS there
        FROM edges e JOIN bfs('ann') a ON e.source = a.key JOIN bfs('ben') b ON e.source = b.key
        WHERE e.source IN (FROM near) AND e.weight > (SELECT min(weight) FROM edges)
    """
    assert db.sql(query).fetchall() == [("ben", 1, 0)]


def test_versions(db: anden.Database) -> None:
    count = "SELECT count(*) FROM edges"
    versions = ({}, {"snapshot": 1}, {"window": (2, 2)})
    assert [db.sql(count, **version).fetchall()[0][0] for version in versions] == [4, 3, 1]
    assert db.sql("SELECT count(*) FROM edges AT (VERSION => 1)").fetchall()[0] == (3,)
    assert db.sql("SELECT change, source FROM diff(1, 2)").fetchall() == [("added", "dan")]
    assert db.view(snapshot=1).sql("SELECT target FROM diff(1, 'second')").fetchall() == [("ann",)]


def test_parameters(db: anden.Database) -> None:
    view = db.view()
    query = "SELECT target FROM edges WHERE source = $buyer OR source IN (SELECT key FROM khop($start, $hops)) ORDER BY 1"
    found = view.sql(query, {"buyer": "dan", "start": "ann", "hops": 1}).fetchall()
    assert found == [("ann",), ("cleo",)]
    assert view.sql("SELECT target FROM edges WHERE source = ?", ["ann"]).fetchall() == [("ben",)]
    assert view.sql("SELECT key FROM khop(?, ?) WHERE key > ?", ["ann", 2, "b"]).fetchall() == [("ben",), ("cleo",)]
    with pytest.raises(anden.InvalidInput, match="the query has 1 parameters, but 2 values are given"):
        view.sql("FROM edges WHERE source = ?", ["ann", "ben"])
    with pytest.raises(anden.InvalidInput, match=r"\$start, which is not given"):
        view.sql("FROM khop($start, 1)", {"other": 1})


def test_variables_and_connections_of_the_caller(db: anden.Database) -> None:
    view = db.view()
    pandas = pytest.importorskip("pandas")
    ages = pandas.DataFrame({"name": ["ann", "dan"], "age": [30, 40]})
    assert view.sql("SELECT age FROM edges JOIN ages ON source = name ORDER BY age").fetchall() == [(30,), (40,)]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE cities AS SELECT 'ann' AS name, 'Bonn' AS city")
    query = "SELECT city FROM edges JOIN cities ON target = name WHERE source = 'dan'"
    assert view.sql(query, connection=connection).fetchall() == [("Bonn",)]
    del ages


def test_relations_are_those_of_duckdb(db: anden.Database) -> None:
    # The view has no other name, so the relation keeps it.
    relation = db.view().sql("SELECT source, weight FROM edges")
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert relation.filter("weight > 3").aggregate("count(*)").fetchall()[0] == (2,)
    assert relation.columns == ["source", "weight"]


def test_only_the_columns_of_the_query_are_read(db: anden.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from anden import sql

    seen: list[list[str]] = []
    projected = sql._Statement._projected

    def note(self: sql._Statement, table: anden.Table) -> anden.Table:
        made = projected(self, table)
        seen.append(made.columns)
        return made

    monkeypatch.setattr(sql._Statement, "_projected", note)
    view = db.view()
    view.sql("SELECT target FROM edges WHERE weight > 1").fetchall()
    view.sql("SELECT count(*) FROM edges").fetchall()
    view.sql("SELECT * FROM edges").fetchall()
    assert seen == [["target", "weight"], ["source"], ["source", "target", "weight"]]


def test_one_list_is_read_for_one_source(db: anden.Database) -> None:
    from anden import sql

    def tables(query: str, params: sql.Parameters = None) -> tuple[set[str], list[tuple[object, ...]]]:
        cursor = sql._connection(duckdb).cursor()
        tree = sql._parsed(cursor, query)
        assert tree is not None
        statement = sql._Statement(cursor, sql._Names(db.view()), tree, params)
        statement.resolve()
        return set(statement.known), sorted(cursor.sql(statement.text(), params=statement.parameters()).fetchall())

    assert tables("SELECT target FROM edges WHERE source = 'ann'") == ({"edges 'ann'"}, [("ben",)])
    assert tables("SELECT target FROM edges e WHERE 'dan' = e.source AND weight > 9") == ({"edges 'dan'"}, [])
    assert tables("SELECT target FROM edges WHERE source = 'eve'") == ({"edges 'eve'"}, [])
    assert tables("FROM edges WHERE source = $s", {"s": "dan"})[0] == {"edges 'dan'"}
    assert tables("SELECT key FROM vertices WHERE key = 'ben'") == ({"vertices 'ben'"}, [("ben",)])
    assert tables("SELECT target FROM edges WHERE source = 'ann' AND weight < 0") == ({"edges 'ann'"}, [])
    assert tables("SELECT target FROM edges WHERE source = 'ann' OR weight = 8") == ({"edges"}, [("ann",), ("ben",)])
    assert tables("SELECT target FROM edges WHERE source = target") == ({"edges"}, [])
    joined = tables("SELECT b.target FROM edges a JOIN edges b ON a.target = b.source WHERE a.source = 'ann'")
    assert joined == ({"edges 'ann'", "edges"}, [("cleo",)])


def test_names_of_the_query_come_first(db: anden.Database) -> None:
    assert db.sql("WITH edges AS (SELECT 1 AS x) SELECT x FROM edges").fetchall() == [(1,)]


def test_errors_come_from_duckdb_and_from_the_kernels(db: anden.Database) -> None:
    view = db.view()
    with pytest.raises(duckdb.Error):
        view.sql("SELEC 1")
    with pytest.raises(duckdb.Error):
        view.sql("SELECT nothing FROM edges")
    with pytest.raises(duckdb.Error):
        view.sql("SELECT * FROM pagerankk()")
    with pytest.raises(anden.NotFound, match="absent"):
        view.sql("FROM bfs('absent')")
    with pytest.raises(TypeError, match="dampin"):
        view.sql("FROM pagerank(dampin := 0.5)")
    with pytest.raises(TypeError, match="query is a str"):
        view.sql(7)  # type: ignore[arg-type]


def test_polars_serves_where_duckdb_is_missing() -> None:
    pytest.importorskip("polars")
    code = """
import sys
sys.modules["duckdb"] = None
import anden
view = anden.from_edges([(1, 2), (2, 3)]).view()
print(view.sql("SELECT count(*) AS n FROM edges").collect()["n"][0])
sys.modules["polars"] = None
try:
    view.sql("SELECT 1")
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["2", "SQL needs DuckDB: pip install 'anden[sql]'"]
