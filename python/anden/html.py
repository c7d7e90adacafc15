"""What a notebook shows of a database, a view, a snapshot and a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from anden import Database, Result, Snapshot, View

#: The newest snapshots that a table lists.
MAX_SNAPSHOTS = 10
#: A degree histogram of a larger graph would delay the notebook.
MAX_HISTOGRAM_VERTICES = 5_000_000
BAR_WIDTH, BAR_HEIGHT = 14, 40


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _counts(view: View) -> str:
    kind = "directed" if view.directed else "undirected"
    return f"{view.num_vertices:,} vertices, {view.num_edges:,} edges, {kind}"


def view(view: View) -> str:
    """The counts of a view, and a small histogram of its degrees."""
    return f"<div><b>View</b>: {_counts(view)}{_histogram(view)}</div>"


def _histogram(view: View) -> str:
    """Bars for the degrees 0, 1, 2 to 3, 4 to 7 and so on. Heights are logarithms of the numbers of vertices."""
    if not 0 < view.num_vertices <= MAX_HISTOGRAM_VERTICES:
        return ""
    degrees = np.diff(np.asarray(view.csr()[0]).astype(np.int64))
    bins = np.bincount(np.ceil(np.log2(degrees + 1)).astype(np.int64))
    heights = np.log1p(bins) / np.log1p(bins.max()) * BAR_HEIGHT
    bars = []
    for place, (count, height) in enumerate(zip(bins.tolist(), heights.tolist(), strict=True)):
        low, high = (0, 0) if place == 0 else (1 << (place - 1), (1 << place) - 1)
        label = f"degree {low}" if low == high else f"degrees {low} to {high}"
        bars.append(
            f'<rect x="{place * BAR_WIDTH}" y="{BAR_HEIGHT - height:.1f}" width="{BAR_WIDTH - 2}" height="{height:.1f}" '
            f'fill="steelblue"><title>{label}: {count:,} vertices</title></rect>'
        )
    width = len(bars) * BAR_WIDTH
    drawing = f'<svg width="{width}" height="{BAR_HEIGHT}" role="img" aria-label="degrees">{"".join(bars)}</svg>'
    return f"<div>{drawing}<br><small>out-degrees, by powers of two</small></div>"


def database(db: Database) -> str:
    """The counts of a database, and its newest snapshots."""
    snapshots = db.snapshots()
    more = len(snapshots) - MAX_SNAPSHOTS
    note = f"<small>and {more:,} older snapshots</small>" if more > 0 else ""
    place = escape(str(db.path)) if db.path is not None else "in memory"
    return f"<div><b>Database</b> {place}: {_counts(db.view())}{_snapshots(snapshots[-MAX_SNAPSHOTS:])}{note}</div>"


def _snapshots(snapshots: Sequence[Snapshot]) -> str:
    rows = ((s.number, s.name, s.time, s.vertices, s.edges, s.bytes) for s in snapshots)
    return _table(("snapshot", "name", "time", "vertices", "edges", "bytes"), rows)


def snapshot(snapshot: Snapshot) -> str:
    """A snapshot as a table of one line."""
    return _snapshots([snapshot])


def result(result: Result) -> str:
    """The vertices with the highest values."""
    head = f"{escape(result.kernel)}: {len(result.values):,} values in {result.seconds:.3g} s"
    return f"<div><b>{head}</b>{_table(('vertex', result.value_name), _rows(result))}</div>"


def _rows(result: Result) -> Iterable[Sequence[Any]]:
    return [(str(key), value) for key, value in result.top(10)]
