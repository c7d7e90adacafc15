"""The graph of the comparison, written as text files that every tool can read."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import anden

from . import DAMPING, ITERATIONS, NUM_SOURCES
from .tool import Input

Pairs: TypeAlias = NDArray[np.int64]

#: The probabilities of the quadrants in Graph500.
RMAT = (0.57, 0.19, 0.19)
#: Weights are whole numbers from 1 to this one.
LARGEST_WEIGHT = 255
#: Lines that are made at a time.
CHUNK = 1 << 20


def rmat(scale: int, degree: int, seed: int) -> Pairs:
    """The edges of an R-MAT graph (D. Chakrabarti, Y. Zhan, C. Faloutsos, SDM 2004) with permuted vertices."""
    generator = np.random.default_rng(seed)
    num_edges = degree << scale
    a, b, c = RMAT
    pairs = np.zeros((num_edges, 2), dtype=np.int64)
    for _ in range(scale):
        draw = generator.random(num_edges)
        is_low = draw >= a + b
        is_right = ((draw >= a) & ~is_low) | (draw >= a + b + c)
        pairs[:, 0] = 2 * pairs[:, 0] + is_low
        pairs[:, 1] = 2 * pairs[:, 1] + is_right
    return generator.permutation(1 << scale)[pairs]


def read(path: Path) -> Pairs:
    """The edges of a file in any format that Anden loads, over the numbers of the vertices."""
    with anden.load(None, path, undirected=True, properties="none") as db:
        offsets, targets = db.view().csr()[:2]
        sources = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return np.stack((sources, targets), axis=1).astype(np.int64)


def simplify(pairs: Pairs) -> Pairs:
    """Each undirected edge once, without loops, over the vertices 0 to n - 1 that have an edge."""
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    names, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(-1, 2)
    codes = np.unique(places[:, 0] * len(names) + places[:, 1])
    return np.stack((codes // len(names), codes % len(names)), axis=1)


def write(pairs: Pairs, folder: Path, seed: int) -> Input:
    """Writes the edges, their weights, and the sources: the vertex of the largest degree first."""
    generator = np.random.default_rng(seed)
    weights = generator.integers(1, LARGEST_WEIGHT, len(pairs), endpoint=True)
    degrees = np.bincount(pairs.ravel())
    others = generator.choice(len(degrees), min(NUM_SOURCES, len(degrees)), replace=False)
    sources = np.unique(np.concatenate(([degrees.argmax()], others)), return_index=True)
    ordered = sources[0][np.argsort(sources[1])][:NUM_SOURCES]
    np.save(folder / "sources.npy", ordered)
    np.save(folder / "size.npy", np.array([len(degrees)]))
    np.save(folder / "tolerance.npy", np.array([tolerance(pairs, degrees)]))
    _write_rows(folder / "edges.txt", pairs)
    _write_rows(folder / "weighted.txt", np.column_stack((pairs, weights)))
    return Input(folder)


def tolerance(pairs: Pairs, degrees: NDArray[np.int64]) -> float:
    """The change for a vertex that PageRank passes in its last iteration, and not in the one before."""
    n = len(degrees)
    ranks, changes = np.full(n, 1 / n), []
    for _ in range(ITERATIONS):
        shares = ranks / degrees
        pulled = np.bincount(pairs[:, 0], shares[pairs[:, 1]], n) + np.bincount(pairs[:, 1], shares[pairs[:, 0]], n)
        before, ranks = ranks, (1 - DAMPING) / n + DAMPING * pulled
        changes.append(float(np.abs(ranks - before).sum()))
    # The geometric mean lies between both. Where all degrees are equal, nothing changes.
    return max(float(np.sqrt(changes[-1] * changes[-2])), np.finfo(float).tiny) / n


def _write_rows(path: Path, rows: Pairs) -> None:
    line = " ".join(["%d"] * rows.shape[1]) + "\n"
    with path.open("w") as file:
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            file.write(line * len(part) % tuple(part.ravel().tolist()))
