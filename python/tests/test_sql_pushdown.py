"""Conditions of SQL that tables apply themselves: fewer rows leave the graph, and the results stay those of DuckDB."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import anden
from anden import sql

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")

#: For each graph.
NUM_QUERIES = 250
UTC = datetime.timezone.utc
NAN, INF = math.nan, math.inf
I64, U64 = 1 << 63, 1 << 64

TEXTS = ["wire", "card", "Wire", "", "o'hara", "it''s", 'a"b', "a\\b", "50%", "_a", "ä", "Äb\n", "\U0001f600", None]
DAYS = [datetime.date.min, datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date.max, None]
TIMES = [
    datetime.datetime(2024, 2, 29, 12, 30, 0, 5, UTC),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime.datetime(2024, 2, 29, tzinfo=UTC),
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    None,
]
#: Values of properties by column, with the values that comparisons get wrong most easily.
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "count": (pyarrow.int64(), [0, -1, 7, I64 - 1, -I64, (1 << 53) + 1, 1 << 53, None]),
    "size": (pyarrow.uint64(), [0, 7, I64, U64 - 1, (1 << 53) + 1, None]),
    "amount": (pyarrow.float64(), [0.0, -0.0, NAN, -NAN, INF, -INF, 0.1, 7.0, 5e-324, 2.0**53, 1e300, None]),
    "rate": (pyarrow.float32(), [0.0, -0.0, NAN, 0.5, 0.1, 3.4e38, 2.0**24, None]),
    "kind": (pyarrow.string(), TEXTS),
    "flag": (pyarrow.bool_(), [True, False, None]),
    "day": (pyarrow.date32(), DAYS),
    "time": (pyarrow.timestamp("us", tz="UTC"), TIMES),
}
#: Constants of SQL by the columns that they compare with.
CONSTANTS = {
    ("count", "size", "amount", "rate", "weight"): [
        *("0", "-1", "7", "7.0", "0.1", "0.5", "1e300", "-0.0", "5e-324", "9007199254740993", "9007199254740992.0"),
        *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "16777217"),
        *("'NaN'::DOUBLE", "'inf'::FLOAT", "0.1::FLOAT", "7::TINYINT", "0.10000000000000000555", "NULL", "TRUE"),
        *("18446744073709551616", "6 + 1", "abs(-7)", "'7'"),
    ],
    ("kind",): ["'wire'", "'WIRE'", "''", "'o''hara'", "'a\"b'", "'a\\b'", "'ä'", "'7'", "'b' COLLATE NOCASE", "NULL"],
    ("flag",): ["TRUE", "false", "NULL", "'t'::BOOLEAN", "1"],
    ("day", "time"): [
        *("DATE '2024-02-29'", "'infinity'::DATE", "DATE '9999-12-31'", "DATE '0001-01-01'", "'2024-02-29'"),
        *("TIMESTAMP '2024-02-29 12:30:00.000005'", "TIMESTAMPTZ '2024-02-29 00:00:00+00'", "'-infinity'::TIMESTAMP"),
        *("TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'", "TIMESTAMP '2024-02-29'", "TIMESTAMP_S '2024-02-29 00:00:00'"),
    ],
}
PARAMETERS: dict[str, list[Any]] = {
    "count": [0, 7, -1, I64 - 1, I64, U64 - 1, -I64, (1 << 53) + 1, 0.5, 7.0, NAN, INF, 2.0**53, Decimal("7"), None],
    "amount": [0, 7, (1 << 53) + 1, 0.5, 0.1, NAN, INF, -0.0, 2.0**53, Decimal("0.1"), Decimal("7"), None],
    "kind": ["wire", "ä", "o'hara", "7", "a\\b"],
    "day": [DAYS[0], DAYS[2], datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30), TIMES[1]],
    "flag": [True, False],
}
ALIKE = {"size": "count", "rate": "amount", "time": "day"}
PATTERNS = ["'w%'", "'%a%'", "'_a'", "'50\\%'", "'%''%'", "'%'", "''", "'_'", "'%\n'", "'Wire'", "'a_b'"]


def made(keys: Callable[[random.Random], Any], seed: int, **options: Any) -> anden.View:
    """A graph of random edges and vertices with every type of property."""
    rand = random.Random(seed)
    ends = {end: [keys(rand) for _ in range(300)] for end in ("source", "target")}
    kind = pyarrow.string() if options.get("ids") == "string" else pyarrow.uint64()
    edges: dict[str, Any] = {end: pyarrow.array(values, kind) for end, values in ends.items()}
    if options.get("weights"):
        edges["weight"] = [rand.choice([0.0, 0.5, 7.0, 1e300]) for _ in range(300)]
    vertices: dict[str, Any] = {"key": pyarrow.array(sorted({*ends["source"], *ends["target"]}), kind)}
    for columns in (edges, vertices):
        count = len(next(iter(columns.values())))
        for name, (kind, values) in VALUES.items():
            columns[name] = pyarrow.array([rand.choice(values) for _ in range(count)], kind)
    vertices = {"": pyarrow.table(vertices)}
    return anden.from_arrow(pyarrow.table(edges), vertices=vertices, **options).view()


def integer_key(rand: random.Random) -> int:
    return rand.choice([0, 7, 1 << 53, (1 << 53) + 1, I64 - 1, I64, U64 - 1, *range(20, 40)])


def text_key(rand: random.Random) -> str:
    return rand.choice([text for text in TEXTS if text] + [f"v{number}" for number in range(20)])


@pytest.fixture(scope="module", params=["integer", "string", "undirected"])
def view(request: pytest.FixtureRequest) -> anden.View:
    if request.param == "string":
        return made(text_key, 1, ids="string", multigraph=True)
    undirected = {"directed": False, "weights": True} if request.param == "undirected" else {}
    return made(integer_key, 2, duplicates="last", **undirected)


@pytest.fixture
def leaving(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that leave the tables of the graph, batch by batch."""
    rows: list[int] = []
    projected = sql._Statement._projected

    class Counted:
        def __init__(self, table: anden.Table) -> None:
            self.table = table

        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            reader = pyarrow.RecordBatchReader.from_stream(self.table)

            def batches() -> Iterator[Any]:
                for batch in reader:
                    rows.append(batch.num_rows)
                    yield batch

            return pyarrow.RecordBatchReader.from_batches(reader.schema, batches()).__arrow_c_stream__()

    monkeypatch.setattr(sql._Statement, "_projected", lambda self, table: Counted(projected(self, table)))
    return rows


def tables(view: anden.View, query: str, params: sql.Parameters = None) -> list[str]:
    """What a query reads of the graph."""
    cursor = sql._connection(duckdb).cursor()
    tree = sql._parsed(cursor, query)
    assert tree is not None
    statement = sql._Statement(cursor, sql._Names(view), tree, params)
    statement.resolve()
    return list(statement.known)


def rows(found: Any) -> list[str]:
    # As text, because NaN equals no NaN.
    return sorted(map(repr, found.fetchall()))


def one_condition(rand: random.Random, column: str, has_text_keys: bool, params: list[Any]) -> str:
    """A random condition on a column. Half of the constants are parameters."""

    def constant() -> str:
        # One constant in ten is of any type.
        of_keys = "kind" if has_text_keys else "size"
        usual = column if column in VALUES else {"weight": "amount"}.get(column, of_keys)
        like = usual if rand.random() < 0.9 else rand.choice(list(VALUES))
        value = rand.choice([*PARAMETERS[ALIKE.get(like, like)], *VALUES[like][1]])
        if rand.random() < 0.5:
            params.append(value)
            return "?"
        return rand.choice(next(constants for columns, constants in CONSTANTS.items() if like in columns))

    form = rand.randrange(12)
    operator = rand.choice(["=", "<>", "<", "<=", ">", ">="])
    if form < 5:
        return f"{column} {operator} {constant()}"
    if form == 5:
        return f"{constant()} {operator} {column}"
    if form == 6:
        return f"{column} IN ({', '.join(constant() for _ in range(rand.randrange(1, 10)))})"
    if form == 7:
        return f"{column} BETWEEN {constant()} AND {constant()}"
    if form == 8:
        return f"{column} IS {rand.choice(['', 'NOT '])}NULL"
    if form == 9:
        return f"kind {rand.choice(['', 'NOT '])}LIKE {rand.choice(PATTERNS)}"
    if form == 10:
        return f"({column} {operator} {constant()} OR {column} IS NULL)"
    return f"NOT ({column} {operator} {constant()})"


def random_query(rand: random.Random, view: anden.View) -> tuple[str, list[Any]]:
    table = rand.choice(["edges", "edges", "vertices"])
    columns = [*VALUES, *(["source", "target"] if table == "edges" else ["key"])]
    columns += ["weight"] if "weight" in view.edges().columns and table == "edges" else []
    has_text_keys = view.database.options["ids"] == "string"
    params: list[Any] = []
    name = rand.choice(["", "", "e."])
    conditions = []
    for _ in range(rand.randrange(1, 4)):
        column = rand.choice(columns)
        condition = one_condition(rand, column, has_text_keys, params)
        conditions.append(condition.replace(column, name + (column.upper() if rand.random() < 0.2 else column), 1))
    condition = " AND ".join(conditions)
    form = rand.randrange(5)
    alias = "e" if name or form > 1 else ""
    selected = "* EXCLUDE (time), epoch_us(time)"
    if form == 0:
        return f"WITH part AS (FROM {table} {alias} WHERE {condition}) SELECT {selected} FROM part", params
    if form == 1:
        return f"SELECT {selected} FROM {table} {alias} WHERE {condition}", params
    join = rand.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"])
    near = "SELECT key AS id FROM degrees WHERE out_degree > 2"
    end = "e.source" if table == "edges" else "e.key"
    return f"SELECT e.* EXCLUDE (time) FROM {table} e {join} ({near}) n ON {end} = n.id WHERE {condition}", params


def test_results_are_those_of_a_table_of_duckdb(view: anden.View) -> None:
    stored = duckdb.connect()
    for name in ("edges", "vertices", "degrees"):
        stored.register("stream", getattr(view, name)())
        stored.execute(f"CREATE TABLE {name} AS FROM stream")
    rand = random.Random(3)
    num_equal = num_narrowed = 0
    for _ in range(NUM_QUERIES):
        query, params = random_query(rand, view)
        try:
            expected = rows(stored.sql(query, params=params or None))
        except duckdb.Error:
            # Text that is no number, or types that do not compare.
            continue
        assert rows(view.sql(query, params or None)) == expected, (query, params)
        num_equal += 1
        read = tables(view, query, params or None)
        num_narrowed += any(" WHERE " in table and "out_degree" not in table for table in read)
    # Otherwise the test would compare little.
    assert num_equal > NUM_QUERIES / 2 and num_narrowed > NUM_QUERIES / 6, (num_equal, num_narrowed)


def test_only_passing_rows_leave_the_graph(leaving: list[int]) -> None:
    edges = {
        "source": list(range(1_000)),
        "target": [7] * 1_000,
        "amount": [float(number) for number in range(1_000)],
        "kind": ["wire" if number % 10 == 0 else "card" for number in range(1_000)],
    }
    view = anden.from_arrow(pyarrow.table(edges)).view()
    for condition, count in [
        ("amount >= 990", 10),
        ("amount >= 990.0 AND kind = 'wire'", 1),
        ("kind = 'wire' AND lower(kind) = 'card'", 100),
        ("kind LIKE 'w%'", 100),
        ("e.amount BETWEEN 1 AND 5", 5),
        ("3 > AMOUNT", 3),
        ("amount IN (1, 2, 5000)", 2),
        ("amount IS NULL", 0),
        ("target <> 7 OR amount = 1", 1_000),
    ]:
        query = "SELECT count(*), sum(amount), max(source) FROM edges e WHERE"
        found = view.sql(f"{query} {condition}").fetchall()
        assert sum(leaving) == count, condition
        # OR with a condition that is never true reads all rows, for the same result.
        assert found == view.sql(f"{query} ({condition}) OR 1 = 2").fetchall()
        assert sum(leaving) == count + 1_000
        leaving.clear()
    # Of the edges, DuckDB reads only the rows that can meet the conditions of the join. The keys are read anyway, and
    # DuckDB compares them itself.
    joined = "SELECT count(*) FROM edges e, vertices v WHERE e.source = v.key AND e.amount < 5 AND v.key < 100"
    assert view.sql(joined).fetchall()[0] == (5,)
    assert sorted(leaving) == [5, 1_000]


@pytest.fixture(scope="module")
def payments() -> anden.View:
    edges = {"source": ["ann", "ben"], "target": ["ben", "cleo"], "amount": [5, 9], "kind": ["wire", "Wire"]}
    return anden.from_arrow(pyarrow.table(edges), ids="string").view()


def test_conditions_that_are_pushed_down(payments: anden.View) -> None:
    def narrowed(query: str, params: sql.Parameters = None) -> list[str]:
        return [table.partition(" WHERE ")[2] for table in tables(payments, query, params)]

    assert narrowed("FROM edges WHERE amount > 5 AND kind <> 'x''y'") == ["\"amount\" > 5 AND \"kind\" <> 'x''y'"]
    assert narrowed("FROM edges WHERE amount > ? AND kind = ?", [5, "wire"]) == ["\"amount\" > 5 AND \"kind\" = 'wire'"]
    assert narrowed("FROM edges WHERE amount > $least", {"least": -3}) == ['"amount" > -3']
    assert narrowed("SELECT 1 FROM (FROM edges WHERE 2 * 3 = 6 AND amount <= 2)") == ['"amount" <= 2']
    # Nothing else is read, and DuckDB compares numbers faster.
    assert narrowed("SELECT sum(amount) FROM edges WHERE amount > 5") == [""]
    assert narrowed("FROM degrees WHERE out_degree >= 2") == ['"out_degree" >= 2']
    assert narrowed("FROM edges WHERE target IN ('ben', 'cleo')") == ["\"target\" IN ('ben', 'cleo')"]
    join = "SELECT 1 FROM edges e JOIN vertices v ON e.target = v.key AND e.amount > 3"
    assert narrowed(f"{join} WHERE key > 'a' AND kind = 'wire'") == [
        "\"kind\" = 'wire' AND \"amount\" > 3",
        "\"key\" > 'a'",
    ]
    assert tables(payments, f"{join} WHERE source = 'ann'") == ["edges 'ann'", "vertices"]
    assert tables(payments, "FROM edges AT (VERSION => 1) WHERE amount > 3") == ['edges_at_1 WHERE "amount" > 3']


@pytest.mark.parametrize(
    "query",
    [
        "FROM edges WHERE amount > 5 OR kind = 'wire'",
        "FROM edges WHERE NOT amount > 5",
        "FROM edges WHERE amount > 5.5",
        "FROM edges WHERE amount > '5'",
        "FROM edges WHERE amount > 9223372036854775808",
        "FROM edges WHERE amount = NULL",
        "FROM edges WHERE amount + 1 > 5",
        "FROM edges WHERE amount > (SELECT 5)",
        "FROM edges WHERE amount > random()",
        "FROM edges WHERE kind = 'wire' COLLATE NOCASE",
        "FROM edges WHERE kind > 7",
        "FROM edges WHERE kind LIKE 'a\\b'",
        "FROM edges TABLESAMPLE 50% WHERE amount > 5",
        "FROM edges WHERE amount > 5 USING SAMPLE 1",
        "SELECT amount AS a FROM edges WHERE a > 5",
        "FROM edges AS e(a, b, amount, d) WHERE amount > 5",
        "FROM edges LEFT JOIN (SELECT 1 AS x) ON TRUE WHERE amount IS NULL",
        "FROM (SELECT 'z' AS z) LEFT JOIN edges ON z = source WHERE amount IS NULL",
        "FROM edges, (SELECT 1 AS amount) WHERE amount > 5",
        "FROM edges a, edges b WHERE amount > 5",
        "SELECT (SELECT count(*) FROM (SELECT 1) WHERE e.amount > 5) FROM edges e",
        "SELECT * FROM edges HAVING amount > 5",
        "SELECT sum(amount) OVER () AS s FROM edges QUALIFY s > 5",
    ],
)
def test_conditions_that_only_duckdb_applies(payments: anden.View, query: str) -> None:
    assert {table.partition(" ")[0] for table in tables(payments, query)} == {"edges"}
    assert "WHERE" not in "".join(tables(payments, query))


def test_collations_are_left_to_duckdb(payments: anden.View) -> None:
    query = "SELECT count(*) FROM edges WHERE kind = 'WIRE'"
    connection = duckdb.connect()
    assert payments.sql(query, connection=connection).fetchall() == [(0,)]
    connection.execute("SET GLOBAL default_collation = 'NOCASE'")
    assert payments.sql(query, connection=connection).fetchall() == [(2,)]
    assert payments.sql("SELECT count(*) FROM edges WHERE source = 'ANN'", connection=connection).fetchall() == [(1,)]


def test_times_compare_by_the_zone_of_duckdb() -> None:
    time = datetime.datetime(2024, 1, 1, 23, tzinfo=UTC)
    times = pyarrow.array([time], pyarrow.timestamp("us", tz="UTC"))
    view = anden.from_arrow(pyarrow.table({"source": [1], "target": [2], "time": times})).view()
    query = "SELECT count(*) FROM edges WHERE time > DATE '2024-01-02'"
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'Asia/Tokyo'")
    assert view.sql(query, connection=connection).fetchall() == [(1,)]
    connection.execute("SET GLOBAL TimeZone = 'America/New_York'")
    assert view.sql(query, connection=connection).fetchall() == [(0,)]


def test_names_that_differ_in_case_and_hide_columns() -> None:
    edges = {"source": [1, 2], "target": [2, 3], "Amount": [5, 6], "amount": [1, 2], 'a"b': [1, 2], "x y": [3, 4]}
    view = anden.from_arrow(pyarrow.table(edges)).view()
    assert view.sql("SELECT target FROM edges WHERE amount > 4 ORDER BY 1").fetchall() == [(2,), (3,)]
    assert "WHERE" not in "".join(tables(view, "FROM edges WHERE amount > 4"))
    edges = {"src": [1, 2], "dst": [2, 3], "source": [9, 1], 'a"b': [1, 2], "x y": [3, 4]}
    view = anden.from_arrow(pyarrow.table(edges)).view()
    assert view.sql("SELECT target FROM edges WHERE source = 1").fetchall() == [(3,)]
    assert tables(view, "FROM edges WHERE source = 1") == ['edges WHERE "source" = 1']
    assert view.sql('SELECT target FROM edges WHERE "a""b" = 2 AND "X Y" > 3').fetchall() == [(3,)]


def test_long_conditions_are_left_to_duckdb(payments: anden.View) -> None:
    many = " AND ".join(f"amount <> {number}" for number in range(10, 3_000))
    assert payments.sql(f"SELECT count(*) FROM edges WHERE {many}").fetchall() == [(2,)]
    text = "_" * 3_000
    assert payments.sql("SELECT count(*) FROM edges WHERE kind LIKE ?", [text]).fetchall() == [(0,)]
    assert payments.sql("SELECT count(*) FROM edges WHERE kind < ?", ["z" * 10_000]).fetchall() == [(2,)]
    assert payments.sql("SELECT count(*) FROM edges WHERE amount IN (5, 9, 1, 2, 3, 4, 6, 7, 8)").fetchall() == [(2,)]


def test_filter_of_tables(payments: anden.View) -> None:
    edges = payments.edges()
    large = edges.select(["target"]).filter("amount > 5 AND source <> 'zoe'")
    assert (large.columns, len(large), large.to_numpy()["target"].tolist()) == (["target"], 1, ["cleo"])
    assert large.select(["kind"]).filter("kind = 'wire'").num_rows == 0
    assert len(payments.vertices().filter("out_degree > 0 AND key < 'b'")) == 1
    assert [table.num_rows for table in edges.filter("amount = 5")] == [1]
    assert "1 edges" in large._repr_html_()
    ranks = payments.bfs("ann", details=True).table().filter("value >= 1 AND key <> 'ben'")
    assert (ranks.types["value"], ranks.to_numpy()["key"].tolist()) == ("UInt32", ["cleo"])
    assert len(payments.snapshots_table().filter("number = 1 AND name IS NULL")) == 1
    with pytest.raises(anden.InvalidInput, match='over edges.*no column "amuont" of edges; did you mean "amount"'):
        edges.filter("amuont > 5")
    with pytest.raises(anden.InvalidInput, match='no column "valeu" of rows; did you mean "value"'):
        payments.bfs("ann", details=True).table().filter("valeu > 5")
    with pytest.raises(anden.InvalidInput, match="cannot be compared"):
        edges.filter("kind > 5")
    with pytest.raises(anden.InvalidInput, match="a calculation fails"):
        edges.filter("amount * 9223372036854775807 > 5").to_numpy()
    with pytest.raises(TypeError):
        edges.filter(7)  # type: ignore[arg-type]


def test_conditions_on_lists_are_those_of_duckdb() -> None:
    tags = [["a", "b"], [], None, ["b"]]
    ends = {"source": [1, 2, 3, 4], "target": [2, 3, 4, 5], "size": [1, 2, 3, 4]}
    view = anden.from_arrow(pyarrow.table({**ends, "tags": tags})).view()

    def sources(condition: str) -> list[int]:
        return [row[0] for row in view.sql(f"SELECT source FROM edges WHERE {condition} ORDER BY source").fetchall()]

    assert sources("tags IS NULL") == [3]
    assert sources("tags IS NOT NULL AND size > 1") == [2, 4]
    assert sources("list_contains(tags, 'b')") == [1, 4]
    assert sources("tags = ['b']") == [4]
    assert sources("tags <> ['b'] AND source < 3") == [1, 2]
    assert sources("tags IN (['b'], ['a', 'b'])") == [1, 4]
    assert sources("tags[1] = 'a'") == [1]
    assert sources("len(tags) = 0") == [2]
    assert view.sql("SELECT tags FROM edges ORDER BY source").fetchall() == [(value,) for value in tags]
    found = view.sql("SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM edges) GROUP BY tag ORDER BY tag")
    assert found.fetchall() == [("a", 1), ("b", 2)]
