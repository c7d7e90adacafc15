"""Writes the files of this folder, and the seeds of fuzzing, with pyarrow and DuckDB: every encoding, codec and
kind of page, small.

usage: make_parquet.py (needs the packages pyarrow and duckdb)
"""

import datetime
import pathlib
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
rng = random.Random(1)
count = 60


def sparse(values):
    return [None if rng.random() < 0.2 else value for value in values]


columns = {
    "from": pa.array([f"v{rng.randrange(9)}" for _ in range(count)]),
    "to": pa.array([f"ü{rng.randrange(40)}" for _ in range(count)]),
    "w": pa.array([rng.randrange(-8, 8) / 4 for _ in range(count)], pa.float64()),
    "small": pa.array(sparse([rng.randrange(-(2**31), 2**31) for _ in range(count)]), pa.int32()),
    "unsigned": pa.array([rng.randrange(2**32) for _ in range(count)], pa.uint32()),
    "large": pa.array(sparse([rng.randrange(-(2**60), 2**60) for _ in range(count)]), pa.int64()),
    "flag": pa.array(sparse([rng.random() < 0.5 for _ in range(count)])),
    "day": pa.array(sparse([datetime.date(1960, 1, 1) + datetime.timedelta(rng.randrange(30000)) for _ in range(count)])),
    "time": pa.array(sparse([rng.randrange(-(10**15), 10**15) for _ in range(count)]), pa.timestamp("us", "UTC")),
    "bytes": pa.array(sparse([rng.randbytes(rng.randrange(5)) for _ in range(count)])),
    "nothing": pa.array([None] * count, pa.int64()),
}
table = pa.table(columns)


def text(name, value):
    if value is None:
        return ""
    if name == "w":
        return f"{value:g}"
    if name == "flag":
        return str(value).lower()
    if name == "bytes":
        return "0x" + value.hex()
    if name == "time":
        date, _, rest = value.isoformat().partition("T")
        rest = rest.removesuffix("+00:00")
        return f"{date}T{rest.rstrip('0') if '.' in rest else rest}Z"
    return str(value)


rows = zip(*(table[name].to_pylist() for name in columns))
lines = ("|".join(text(name, value) for name, value in zip(columns, row)) for row in rows)
(here / "expected.txt").write_text("".join(line + "\n" for line in lines))

for codec in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]:
    version = "2.0" if codec in ("none", "gzip", "brotli") else "1.0"
    pq.write_table(table, here / f"{codec}.parquet", compression=codec, data_page_version=version, row_group_size=25, store_schema=False)
plain = {"use_dictionary": False, "data_page_size": 100, "write_batch_size": 10, "store_schema": False}
numbers = ["small", "unsigned", "large", "day", "time", "nothing"]
texts = ["from", "to", "bytes"]
encodings = {name: "DELTA_BINARY_PACKED" for name in numbers} | {name: "DELTA_LENGTH_BYTE_ARRAY" for name in texts}
pq.write_table(table, here / "delta.parquet", column_encoding=encodings, **plain)
encodings = {name: "DELTA_BYTE_ARRAY" for name in texts} | {"w": "BYTE_STREAM_SPLIT", "large": "BYTE_STREAM_SPLIT", "flag": "RLE"}
pq.write_table(table, here / "split.parquet", column_encoding=encodings, data_page_version="2.0", **plain)
pq.write_table(table, here / "plain.parquet", **plain)
rows_of_table = table
duckdb.sql("set timezone = 'UTC'")
duckdb.sql(f"copy (from rows_of_table) to '{here}/duckdb.parquet' (format parquet)")

# The first byte of a seed chooses options: text or numbers as keys, weights, properties.
seeds = here.parents[3] / "fuzz" / "seeds" / "parquet"
seeds.mkdir(exist_ok=True)
few = pa.table(
    {
        "from": pa.array([1, 2, 3, 3, 9], pa.int32()),
        "to": pa.array([5, 4, 5, 7, 2**40], pa.int64()),
        "w": pa.array([0.5, None, 2.5, -1.0, 3.0]),
        "name": pa.array(["a", None, "bb", "a", ""]),
    }
)
texts = few.set_column(0, "from", pa.array(["x", "y", "x", "ü", "z"]))
lean = {"store_schema": False, "write_statistics": False}
delta = {"from": "DELTA_BINARY_PACKED", "to": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "w": "BYTE_STREAM_SPLIT"}
forms = {
    "plain": (14, few, {"compression": "none", "use_dictionary": False}),
    "snappy": (10, few, {"compression": "snappy"}),
    "second": (8, few, {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 2}),
    "delta": (14, few, {"compression": "lz4", "use_dictionary": False, "column_encoding": delta}),
    "texts": (13, texts, {"compression": "gzip"}),
    "brotli": (9, texts, {"compression": "brotli", "use_dictionary": False, "column_encoding": {"from": "DELTA_BYTE_ARRAY", "to": "PLAIN", "name": "DELTA_LENGTH_BYTE_ARRAY"}}),
}
for name, (choice, table, options) in forms.items():
    pq.write_table(table, seeds / name, **options, **lean)
    (seeds / name).write_bytes(bytes([choice]) + (seeds / name).read_bytes())
