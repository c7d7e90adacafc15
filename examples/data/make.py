#!/usr/bin/env python3
"""Makes the data sets beside it, and their outputs by the definitions of LDBC Graphalytics, step by step.

Slow and plain on purpose, and of its own: it shares nothing with the program that it checks.
"""

from collections import Counter
from fractions import Fraction
from pathlib import Path

UNREACHED = 9223372036854775807
VERTICES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
EDGES = [
    (2, 3, "0.5"), (3, 2, "1.25"), (2, 5, "2"), (3, 5, "0.25"), (5, 7, "1"), (7, 3, "0.125"), (7, 11, "4"), (5, 11, "1.5"),
    (11, 5, "0.75"), (3, 11, "3.5"), (13, 17, "1"), (17, 19, "2.5"), (19, 13, "0.5"), (17, 13, "1"), (23, 19, "6"),
]
DAMPING, ITERATIONS, ROUNDS, SOURCE = Fraction(85, 100), 8, 3, 2


def arcs(directed):
    """Every arc with its weight; an undirected edge is two, and leads from its smaller end in the file."""
    if directed:
        return {(u, v): Fraction(w) for u, v, w in EDGES}
    kept = {}
    for u, v, w in EDGES:
        kept.setdefault((min(u, v), max(u, v)), Fraction(w))
    return kept | {(v, u): w for (u, v), w in kept.items()}


def bfs(out):
    hops, level, depth = {SOURCE: 0}, [SOURCE], 0
    while level:
        depth += 1
        level = sorted({v for u in level for v in out[u]} - set(hops))
        hops |= {v: depth for v in level}
    return {v: hops.get(v, UNREACHED) for v in VERTICES}


def sssp(weights):
    far = {v: None for v in VERTICES} | {SOURCE: Fraction(0)}
    for _ in VERTICES:
        for (u, v), w in weights.items():
            if far[u] is not None and (far[v] is None or far[u] + w < far[v]):
                far[v] = far[u] + w
    return {v: "infinity" if d is None else float(d) for v, d in far.items()}


def pr(out):
    n = len(VERTICES)
    rank = {v: Fraction(1, n) for v in VERTICES}
    for _ in range(ITERATIONS):
        dangling = sum(rank[v] for v in VERTICES if not out[v])
        base = (1 - DAMPING) / n + DAMPING * dangling / n
        rank = {v: base + DAMPING * sum(rank[u] / len(out[u]) for u in VERTICES if v in out[u]) for v in VERTICES}
    return {v: float(r) for v, r in rank.items()}


def wcc(out):
    label = {v: v for v in VERTICES}
    for _ in VERTICES:
        for u in VERTICES:
            for v in out[u]:
                label[u] = label[v] = min(label[u], label[v])
    return label


def cdlp(out, directed):
    into = {v: [u for u in VERTICES if v in out[u]] for v in VERTICES}
    label = {v: v for v in VERTICES}
    for _ in range(ROUNDS):
        counts = {v: Counter(label[u] for u in [*out[v], *(into[v] if directed else [])]) for v in VERTICES}
        label = {v: min(c, key=lambda x: (-c[x], x)) if (c := counts[v]) else label[v] for v in VERTICES}
    return label


def lcc(out):
    near = {v: {u for u in VERTICES if u != v and (u in out[v] or v in out[u])} for v in VERTICES}
    joined = {v: sum(w in out[u] for u in near[v] for w in near[v] if u != w) for v in VERTICES}
    return {v: joined[v] / (len(near[v]) * (len(near[v]) - 1)) if len(near[v]) > 1 else 0.0 for v in VERTICES}


def properties(name, directed, num_edges):
    lines = {
        "vertex-file": f"{name}.v", "edge-file": f"{name}.e", "meta.vertices": len(VERTICES), "meta.edges": num_edges,
        "directed": str(directed).lower(), "edge-properties.names": "weight", "edge-properties.types": "real",
        "algorithms": "bfs, cdlp, lcc, pr, sssp, wcc", "bfs.source-vertex": SOURCE, "cdlp.max-iterations": ROUNDS,
        "pr.damping-factor": 0.85, "pr.num-iterations": ITERATIONS, "sssp.weight-property": "weight",
        "sssp.source-vertex": SOURCE,
    }
    return "".join(f"graph.{name}.{key} = {value}\n" for key, value in lines.items())


def main():
    folder = Path(__file__).parent
    for directed in (True, False):
        name = "primes-directed" if directed else "primes-undirected"
        weights = arcs(directed)
        edges = [(u, v, w) for (u, v), w in weights.items() if directed or u < v]
        out = {v: sorted(t for s, t in weights if s == v) for v in VERTICES}
        (folder / f"{name}.v").write_text("".join(f"{v}\n" for v in VERTICES))
        (folder / f"{name}.e").write_text("".join(f"{u} {v} {float(w)}\n" for u, v, w in edges))
        (folder / f"{name}.properties").write_text(properties(name, directed, len(edges)))
        outputs = {"BFS": bfs(out), "SSSP": sssp(weights), "PR": pr(out), "WCC": wcc(out), "CDLP": cdlp(out, directed), "LCC": lcc(out)}
        for algorithm, values in outputs.items():
            (folder / f"{name}-{algorithm}").write_text("".join(f"{v} {values[v]}\n" for v in VERTICES))


if __name__ == "__main__":
    main()
