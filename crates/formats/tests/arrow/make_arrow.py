#!/usr/bin/env python3
"""Writes the Arrow files of the tests, with pyarrow and Polars."""
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow import feather, ipc

HERE = Path(__file__).resolve().parent

EDGES = {
    "source": ["a", "a", "bcdefghijklmnop", "c"],
    "target": ["bcdefghijklmnop", "c", "c", "a"],
    "weight": pa.array([0.5, 1.5, 2.5, 3.5], pa.float32()),
    "kind": pa.array(["x", None, "a text of more than twelve bytes", "x"]),
}


def write(name: str, table: pa.Table, codec: str | None = None, rows: int | None = None) -> None:
    make = ipc.new_stream if name.endswith(".arrows") else ipc.new_file
    options = ipc.IpcWriteOptions(compression=codec)
    with make(str(HERE / name), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


table = pa.table(EDGES)
feather.write_feather(table, str(HERE / "lz4.feather"), chunksize=3)
write("zstd.arrow", table, "zstd", 2)
write("stream.arrows", table, None, 3)
# Buffers are aligned by Polars, text is in views.
pl.DataFrame({name: pl.Series(name, column) for name, column in EDGES.items()}).write_ipc(HERE / "polars.arrow")
categories = table.set_column(3, "kind", table["kind"].dictionary_encode())
write("dictionary.arrow", categories, None, 3)
# A CSR of two batches: 3 vertices and 1, keys that are numbers. The second batch refers to rows of the first.
arcs = pa.StructArray.from_arrays(
    [pa.array([1, 2, 3, 0, 2], pa.int64()), pa.array([1, 2, 3, 4, 5], pa.uint32())], ["index", "weight"]
)
offsets = pa.array([0, 2, 3, 3], pa.int32())
lists = pa.ListArray.from_arrays(offsets, arcs.slice(0, 3))
last = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), arcs.slice(3))
csr = pa.table(
    {
        "id": pa.chunked_array([[10, 20, 30], [40]], pa.uint64()),
        "name": pa.chunked_array([["Ann", None, "Cid"], ["Dan"]]),
        "arcs": pa.chunked_array([lists, last]),
    }
)
write("lists.arrow", csr)
