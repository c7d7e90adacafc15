"""Writes the folder lists with pyarrow and DuckDB.

usage: make_lists.py (needs the packages pyarrow and duckdb)
"""

import datetime
import pathlib

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(__file__).parent / "lists"
folder.mkdir(exist_ok=True)
count = 20
lists = {
    "tags": (pa.string(), [["a", "ü"], []]),
    "counts": (pa.int64(), [[1, None], None]),
    "scores": (pa.float64(), [[0.5], [None]]),
    "days": (pa.date32(), [[datetime.date(2024, 2, 29)], []]),
}
numbers = {name: pa.array(range(2 * count), pa.int64()) for name in ["source", "target"]}
table_of_lists = pa.table(numbers | {name: pa.array(rows * count, pa.list_(item)) for name, (item, rows) in lists.items()})
small = {"data_page_size": 60, "write_batch_size": 3, "row_group_size": 30, "store_schema": False}
pq.write_table(table_of_lists, folder / "pyarrow_1.parquet", data_page_version="1.0", **small)
pq.write_table(table_of_lists, folder / "pyarrow_2.parquet", data_page_version="2.0", compression="zstd", **small)
pq.write_table(table_of_lists, folder / "older_names.parquet", use_compliant_nested_type=False, use_dictionary=False, **small)
duckdb.sql(f"copy (from table_of_lists) to '{folder}/duckdb.parquet' (format parquet)")

# The first byte of a seed chooses options, as those of make_parquet.py do.
seed = pathlib.Path(__file__).parents[4] / "fuzz" / "seeds" / "parquet" / "lists"
few = table_of_lists.slice(0, 4).select(["source", "target", "tags", "counts"])
pq.write_table(few, seed, compression="none", write_statistics=False, store_schema=False)
seed.write_bytes(bytes([14]) + seed.read_bytes())
