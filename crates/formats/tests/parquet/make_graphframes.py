"""Writes the folder graphframes with pyarrow, with names as Spark gives them.

usage: make_graphframes.py (needs the package pyarrow)
"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(__file__).parent / "graphframes"
vertices = pa.table({"name": ["Ann", "Bob", None], "id": ["a", "b", "c"], "age": pa.array([34, None, 30], pa.int32())})
parts = [
    pa.table({"relationship": ["friend", "follow"], "src": ["a", "b"], "dst": ["b", "c"]}),
    pa.table({"relationship": pa.array([None], pa.string()), "src": ["c"], "dst": ["a"]}),
]
for name, tables in {"vertices": [vertices], "edges": parts}.items():
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "_SUCCESS").touch()
    for number, table in enumerate(tables):
        part = f"part-{number:05}-5a3c-c000.snappy.parquet"
        pq.write_table(table, folder / name / part, compression="snappy")
        (folder / name / f".{part}.crc").write_bytes(b"crc\0")
