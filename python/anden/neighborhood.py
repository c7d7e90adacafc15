"""The part of a view that a picture shows."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anden import View
    from anden._anden import _Key

#: A picture of more vertices shows a sample.
MAX_VERTICES = 10_000


@dataclass
class Neighborhood:
    """Some vertices of a view, with the edges between them."""

    keys: list[_Key]
    #: Pairs of positions in `keys`, one row an edge.
    edges: NDArray[np.int64]
    #: The number of vertices before the sample was taken.
    num_found: int

    @property
    def title(self) -> str:
        """The number of vertices, and the size of the sample if it is one."""
        shown = len(self.keys)
        if shown < self.num_found:
            return f"sample of {shown:,} of {self.num_found:,} vertices, {len(self.edges):,} edges"
        return f"{shown:,} vertices, {len(self.edges):,} edges"


def neighborhood(view: View, vertices: Any, *, hops: int, limit: int, seed: int) -> Neighborhood:
    """The vertices within `hops` steps of `vertices`; None: the whole graph.

    The given vertices are always shown. The rest is a sample if there are more than `limit`.
    """
    if not 1 <= limit <= MAX_VERTICES:
        raise ValueError(f"limit must be from 1 to {MAX_VERTICES:,}, not {limit}")
    if hops < 0:
        raise ValueError(f"hops must not be negative, but is {hops}")
    given = [] if vertices is None else list(dict.fromkeys(_as_keys(vertices)))
    found = dict.fromkeys(given)
    if vertices is None:
        found.update(dict.fromkeys(view))
    else:
        for key in given:
            found.update(dict.fromkeys(_plain(view.khop(key, hops))))
    keys = _sample(list(found), len(given), limit, seed)
    return Neighborhood(keys, _edges_between(view, keys), len(found))


def _as_keys(vertices: Any) -> Iterable[_Key]:
    is_one = isinstance(vertices, (str, int, np.integer))
    return [vertices] if is_one else _plain(vertices)


def _plain(keys: Any) -> list[_Key]:
    """Keys as Python integers and strings."""
    tolist = getattr(keys, "tolist", None) or getattr(keys, "to_pylist", None)
    return tolist() if tolist is not None else list(keys)


def _sample(keys: list[_Key], num_given: int, limit: int, seed: int) -> list[_Key]:
    if len(keys) <= limit:
        return keys
    if num_given >= limit:
        return keys[:limit]
    # NumPy crashes on some objects that are no number.
    others = np.arange(num_given, len(keys))
    chosen = np.random.default_rng(operator.index(seed)).choice(others, limit - num_given, replace=False)
    return keys[:num_given] + [keys[place] for place in np.sort(chosen).tolist()]


def _edges_between(view: View, keys: Sequence[_Key]) -> NDArray[np.int64]:
    place = {key: index for index, key in enumerate(keys)}
    pairs = []
    for source, key in enumerate(keys):
        for neighbor in _plain(view.neighbors(key)):
            target = place.get(neighbor)
            # An undirected edge is in both lists.
            if target is not None and (view.directed or source <= target):
                pairs.append((source, target))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def values_of(view: View, keys: Sequence[_Key], what: Any, name: str) -> list[Any]:
    """A value for each key: from an array by vertex id, a result, a dictionary by key, or a property by its name."""
    if isinstance(what, str):
        what = view.vertex_property(what)
    if isinstance(what, Mapping):
        return [what.get(key) for key in keys]
    values = _plain(getattr(what, "values", what))
    if len(values) != view.vertex_bound:
        raise ValueError(f"{name} has {len(values)} values, but the graph has {view.vertex_bound} vertex ids")
    return [values[vertex] for vertex in view.ids(list(keys)).tolist()]
