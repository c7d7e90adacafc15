#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets, a folder for each. The first byte of texts chooses options."""
import bz2
import gzip
import lzma
import struct
from pathlib import Path

HERE = Path(__file__).resolve().parent


def seed(target: str, name: str, data: bytes) -> None:
    folder = HERE / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)


def serialized(directed: int, num_arcs: int, sides: list[tuple[list[int], list[int]]]) -> bytes:
    data = struct.pack("<Bqq", directed, num_arcs, len(sides[0][0]) - 1)
    for offsets, neighbors in sides:
        data += struct.pack(f"<{len(offsets)}q", *offsets) + struct.pack(f"<{len(neighbors)}i", *neighbors)
    return data


EDGES = b"# SNAP\n% Konect\n0 1\n1\t2 1082008561\r\n\n 18446744073709551615 12345678901 \n3 4"
seed("edge_list", "integers", b"\0" + EDGES)
seed("edge_list", "weights", b"\2" + b"0 1 0.5\n1 2 -3e2\n2 3 7\n4 5 nan\n")
seed("edge_list", "strings", b"\1" + "ann böb\n// x\nböb c\n".encode())
seed("edge_list", "skip", b"\4" + b"0 1\nx\n2 3\n4\n")
seed("csv", "header", b"\0" + b"source,target,weight\n1,2,3\n\n4 , 5,6\r\n")
seed("csv", "quotes", b"\3" + b'from;to;cost\n"a ""b""";c;1.5\n " x" ;y;2\n')
seed("csv", "lines", b"\x0d" + b'u,v,note\n"a\n""b""","c\n",\r\nx,"y","\n"\n"d,e\nf,g\n')
seed("csv", "tabs", b"\6" + b"# made\n1\t2\t0.5\n3\tx\t1\n5\t6\t\n")
BULK = b'id:ID(P){label:Q},name:string,:LABEL,t:epoch_ms,tags:string[],x:IGNORE\n'
seed("csv", "bulk_vertices", b"\x0d" + BULK + b'a,Ann,"A;B",1300000000000,x;y,\nb,NA,,,,\n')
seed("csv", "bulk_edges", b"\x0d" + b":START_ID(P),:END_ID(Q),:TYPE,w:double\na,b,KNOWS,0.5\na,,X,\n")
seed("csv", "neptune", b"\x0d" + b"~id,~from,~to,~label,d:Date\ne1,a,b,knows,2020-01-01\n")
seed("csv", "ldbc", b"\x08" + b"Person.id|Person.id|creationDate\n933|4139|2010-03-13T07:37:21.718+0000\n")
seed("dimacs", "road", b"\2" + b"c road\np sp 4 3\na 1 2 803\nc x\na 2 1 803\na 4 1 7\n")
seed("dimacs", "lies", b"\0" + b"p sp 2 9\na 1 3 1\n")
BANNER = b"%%MatrixMarket matrix coordinate "
seed("matrix_market", "pattern", b"\0" + BANNER + b"pattern general\n% x\n\n4 4 3\n1 2\n3\t4\r\n% y\n 4 4 \n")
seed("matrix_market", "real", b"\2" + BANNER + b"real symmetric\n3 3 2\n2 1 0.5\n3 3 -1e3\n")
seed("matrix_market", "skew", b"\7" + BANNER + b"integer skew-symmetric\n3 3 3\n2 1 5\nx\n003 2 -7\n")
seed("metis", "plain", b"\0" + b"% x\n4 3\n2 3\n1 3\n1 2\n\n\n")
seed("metis", "weights", b"\2" + b"3 2 011 2\n7 8 2 10 3 20\n7 8 1 10\n% y\n7 8 1 20")
seed("metis", "sizes", b"\1" + b"3 1 100\n5 2\n5 1\n5\n")
GRAPHML = b"""<?xml version="1.0" encoding="UTF-8"?>
<graphml><key id="c" for="node" attr.name="c" attr.type="string"><default>y</default></key>
<key id="w" for="edge" attr.name="weight" attr.type="double"/><key id="n" attr.name="n" attr.type="int"/>
<graph edgedefault="directed"><node id="1"><data key="c">r&#x26;</data><port name="p"/></node><node id='&lt;2'/>
<edge source="1" target="2"><data key="w"> 1.5 </data><data key="n">7</data></edge><!-- x -->
<edge source="2" target="1" directed="true"><data key="w"><![CDATA[2]]></data></edge></graph></graphml>
"""
for choice in (10, 11, 15):
    seed("graphml", f"choice{choice}", bytes([choice]) + GRAPHML)
seed("graphml", "entity", b"\1" + b"<!DOCTYPE g [<!ENTITY a 'aa'>]><graphml><graph><node id='&a;'/></graph></graphml>")
GEXF = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<gexf><graph defaultedgetype="directed"><attributes class="node"><attribute id="0" title="n" type="integer">
<default>7</default></attribute></attributes><attributes class="edge"><attribute id="0" title="d" type="date"/></attributes>
<nodes><node id="1" label="\xe9"><attvalues><attvalue for="0" value="3"/></attvalues><nodes><node id="2" label="b"/>
</nodes></node></nodes><edges><edge source="1" target="2" weight="1.5" label="x"><attvalues><attvalue for="0"
value="2020-02-29"/></attvalues></edge><edge source="2" target="1" type="directed"/></edges></graph></gexf>
"""
GML = b"""# x
Creator "y"
graph [ directed 1
node [ id 1 label "a &#228;" n 3 graphics [ x 1.5 [ ] ] ]
node [ id 2 label "b" d "2020-02-29" n 4.5 n 5 ]
edge [ source 1 target 2 value 5 ] edge [ source 2 target 1 value -INF ] ]
"""
PAJEK = b"""% x
*Network y
*Vertices 4
1 "a b" 0.1 0.2 ellipse ic Red
3 "c" [1-3]
*Arcs :2 "r"
1 2 2.5 c Blue
3: 2 1
*Arcslist
4 1 2
"""
NODE_LINK = b"""{"directed": true, "multigraph": false, "graph": {"a": [1, {}]}, "nodes": [{"id": 1, "n": "\\u00e9]}"},
{"id": "2", "n": null, "l": [1, "]"]}], "links": [{"source": 1, "target": 2, "weight": 1.5, "ok": true},
{"source": 2, "target": 1, "weight": "inf"}]}
"""
for choice in (10, 11, 14, 15):
    seed("gexf", f"choice{choice}", bytes([choice]) + GEXF)
    seed("gml", f"choice{choice}", bytes([choice]) + GML)
    seed("pajek", f"choice{choice}", bytes([choice]) + PAJEK)
    seed("node_link", f"choice{choice}", bytes([choice]) + NODE_LINK)
seed("pajek", "mixed", b"\1" + b"*Vertices 3\n*Arcs\n1 2\n*Edgeslist\n2 3 1\n")
seed("node_link", "places", b"\0" + b'{"edges": [{"source": 0, "target": 1}], "nodes": [{}, {}], "directed": false}')
seed("compressed", "gzip", b"\0" + gzip.compress(EDGES, mtime=0) + gzip.compress(b"\n5 6\n", mtime=0))
seed("compressed", "bzip2", b"\0" + bz2.compress(EDGES))
seed("compressed", "xz", b"\0" + lzma.compress(EDGES))
# A frame of raw blocks, so that no zstd program is needed to make it.
seed("compressed", "zstd", b"\0" + b"\x28\xb5\x2f\xfd\x20\x08" + struct.pack("<I", 8 << 3 | 1)[:3] + b"1 2\n3 4\n")
seed("serialized", "undirected", serialized(0, 8, [([0, 2, 5, 7, 8, 8], [1, 2, 0, 2, 3, 0, 1, 1])]))
seed("serialized", "directed", serialized(1, 3, [([0, 2, 2, 3], [1, 2, 2]), ([0, 0, 1, 3], [0, 0, 2])]))
seed("serialized", "weighted", serialized(1, 2, [([0, 2, 2], [0, 5, 1, 6]), ([0, 1, 2], [0, 5, 0, 6])]))
PROPERTIES = b"""# tiny
graph.x.vertex-file = x.v
graph.x.edge-file = x.e
graph.x.meta.vertices = 3
graph.x.meta.edges = 2
graph.x.directed = true
graph.x.edge-properties.names = weight
"""
seed("graphalytics", "properties", PROPERTIES)
BVGRAPH = b"graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=200\narcs=1966\n"
CODES = b"OUTDEGREES_DELTA|REFERENCES_GAMMA|BLOCKS_UNARY|INTERVALS_DELTA|RESIDUALS_ZETA"
LAYOUT = b"minintervallength=2\nwindowsize=3\nzetak=5\ncompressionflags=" + CODES + b"\n"
for name, layout in (("default", b""), ("codes", LAYOUT)):
    lists = (HERE / "../../crates/formats/tests/bvgraph" / f"{name}.graph").read_bytes()
    seed("bvgraph", name, BVGRAPH + layout + b"\0" + lists)
ARROW = HERE / "../../crates/formats/tests/arrow"
for name, choice in (("lz4.feather", 11), ("polars.arrow", 9), ("dictionary.arrow", 13), ("lists.arrow", 10)):
    seed("arrow", name.split(".")[0], bytes([choice]) + (ARROW / name).read_bytes())
seed("arrow", "stream", b"\x0b" + (ARROW / "stream.arrows").read_bytes())
seed("log", "untouched", b"\0")
seed("log", "edited", b"\1" + bytes([0x48, 0, 2, 0x70, 0, 7]))
seed("log", "cut", b"\2" + bytes([0x90]))


def record(kind: int, count: int, entries: bytes) -> bytes:
    return struct.pack("<BI", kind, count) + entries


# Of integer keys: two vertices, an edge to and fro and away again, a property and its value, and a vertex that goes.
NEW_KEYS = record(5, 2, struct.pack("<QQ", 7, 8))
EDGES_OF_LOG = record(1, 2, struct.pack("<IIII", 0, 1, 1, 0)) + record(2, 1, struct.pack("<II", 0, 1))
NAME = record(7, 1, struct.pack("<Q", 3) + b"i64" + struct.pack("<Q", 4) + b"size")
VALUE = record(8, 1, struct.pack("<IIBq", 1, 0, 3, 5))
seed("log", "commit", b"\x80" + NEW_KEYS + EDGES_OF_LOG + NAME + VALUE + record(4, 1, struct.pack("<I", 0)))
seed("log", "strings", b"\x81" + record(5, 1, struct.pack("<Q", 1) + b"a") + record(1, 1, struct.pack("<IIf", 0, 0, 1)))
seed("log", "undirected", b"\x82" + NEW_KEYS + record(1, 1, struct.pack("<IIq", 0, 1, 4)) + record(3, 1, bytes(4)))
seed("log", "ordered", b"\x83" + NEW_KEYS + record(1, 2, struct.pack("<IIII", 1, 0, 1, 1)) + record(6, 9, b""))
