#!/usr/bin/env python3
"""Writes the folder `blog` with pyarrow: a graph as GraphAr's libraries write it, with chunks of two vertices.

usage: make_graphar.py (needs the package pyarrow)
"""

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent / "blog"


def text(name: str, content: str) -> None:
    (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / name).write_text(content)


def count(name: str, number: int) -> None:
    (ROOT / name).write_bytes(struct.pack("<q", number))


def chunk(place: str, **columns: object) -> None:
    (ROOT / place).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), ROOT / place, compression="snappy", store_schema=False)


text(
    "blog.graph.yml",
    "name: blog\nvertices:\n  - person.vertex.yml\n  - post.vertex.yml\n"
    "edges:\n  - person_knows_person.edge.yml\n  - person_likes_post.edge.yml\nversion: gar/v1\n",
)
text(
    "person.vertex.yml",
    """type: person
chunk_size: 2
prefix: vertex/person/
property_groups:
  - properties:
      - name: id
        data_type: int64
        is_primary: true
    file_type: parquet
  - prefix: names/
    properties:
      - name: name
        data_type: string
        is_primary: false
      - name: scores
        data_type: list<float>
        is_primary: false
    file_type: parquet
version: gar/v1
""",
)
index = [pa.array([0, 1]), pa.array([2])]
for number, (ids, names) in enumerate([([7, 8], ["Ann", None]), ([9], ["Cid"])]):
    chunk(f"vertex/person/id/chunk{number}", _graphArVertexIndex=index[number], id=pa.array(ids))
    scores = pa.array([[0.5]] * len(ids), pa.list_(pa.float32()))
    chunk(f"vertex/person/names/chunk{number}", _graphArVertexIndex=index[number], name=pa.array(names), scores=scores)
count("vertex/person/vertex_count", 3)
text(
    "post.vertex.yml",
    """type: post
chunk_size: 2
prefix: vertex/post/
property_groups:
  - properties:
      - name: length
        data_type: int64
    file_type: parquet
version: gar/v1
""",
)
chunk("vertex/post/length/chunk0", _graphArVertexIndex=index[0], length=pa.array([140, 280]))
count("vertex/post/vertex_count", 2)
for name, target, groups in [("knows", "person", True), ("likes", "post", False)]:
    properties = "property_groups:\n  - file_type: parquet\n    properties:\n"
    properties += "      - name: weight\n        data_type: double\n      - name: since\n        data_type: date\n"
    text(
        f"person_{name}_{target}.edge.yml",
        f"src_type: person\nedge_type: {name}\ndst_type: {target}\nchunk_size: 2\nsrc_chunk_size: 2\n"
        f"dst_chunk_size: 2\ndirected: true\nprefix: edge/person_{name}_{target}/\nadj_lists:\n"
        + ("  - ordered: true\n    aligned_by: dst\n    file_type: csv\n" if groups else "")
        + f"  - ordered: {'true' if groups else 'false'}\n    aligned_by: src\n    file_type: parquet\n"
        + (properties if groups else "")
        + "version: gar/v1\n",
    )
knows = "edge/person_knows_person/ordered_by_source"
parts = [([0, 0], [1, 2], [0.5, 1.5], [10, 11]), ([1], [0], [2.5], [None]), ([2], [0], [3.5], [12])]
for place, (sources, targets, weights, days) in zip(["part0/chunk0", "part0/chunk1", "part1/chunk0"], parts):
    chunk(f"{knows}/adj_list/{place}", _graphArSrcIndex=pa.array(sources), _graphArDstIndex=pa.array(targets))
    chunk(f"{knows}/weight_since/{place}", weight=pa.array(weights), since=pa.array(days, pa.date32()))
for part, (num_edges, offsets) in enumerate([(3, [0, 2, 3]), (1, [0, 1])]):
    count(f"{knows}/edge_count{part}", num_edges)
    chunk(f"{knows}/offset/chunk{part}", _graphArOffset=pa.array(offsets))
likes = "edge/person_likes_post/unordered_by_source"
chunk(f"{likes}/adj_list/part1/chunk0", _graphArSrcIndex=pa.array([2]), _graphArDstIndex=pa.array([1]))
