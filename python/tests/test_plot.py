"""Pictures show what the graph has, and say when they show a sample."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot

import anden
from anden.neighborhood import MAX_VERTICES
from anden.plot import force_layout


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture
def view() -> anden.View:
    return anden.from_edges([("ann", "ben"), ("ben", "cleo"), ("cleo", "dan"), ("eve", "fay")], ids="string").view()


def test_import_leaves_matplotlib_out() -> None:
    code = "import sys, anden, anden.plot, anden.explore; sys.exit(bool({'matplotlib', 'networkx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_degrees_are_shares_of_vertices() -> None:
    view = anden.from_numpy([0, 0, 1], [1, 2, 2]).view()
    (line,) = view.plot_degrees().lines
    assert line.get_xdata().tolist() == [0, 1, 2]
    assert np.allclose(line.get_ydata(), [1, 2 / 3, 1 / 3])
    assert view.plot_degrees(direction="in").get_xlabel() == "in-degree"
    assert view.plot_degrees(direction="both").get_xlabel() == "degree"
    with pytest.raises(ValueError, match="'sideways'"):
        view.plot_degrees(direction="sideways")


def test_history_has_a_point_for_each_snapshot() -> None:
    db = anden.create(None)
    db.append([1], [2])
    db.append([2, 3], [3, 4])
    lines = db.plot_history().lines
    # The first snapshot is that of the empty database.
    assert [list(line.get_ydata()) for line in lines] == [[0, 2, 4], [0, 1, 3]]


def test_plot_shows_the_neighborhood(view: anden.View) -> None:
    axes = view.plot("ann", hops=2)
    assert axes.get_title() == "3 vertices, 2 edges"
    assert sorted(text.get_text() for text in axes.texts) == ["ann", "ben", "cleo"]
    assert view.plot(["ann", "eve"]).get_title() == "4 vertices, 2 edges"
    assert view.plot().get_title() == "6 vertices, 4 edges"
    with pytest.raises(anden.NotFound):
        view.plot("annn")


def test_colors_and_sizes_come_from_arrays_results_and_dictionaries(view: anden.View) -> None:
    ranks = view.pagerank()
    for values in (ranks, view.pagerank(details=True), dict(zip(view.keys(), ranks, strict=True))):
        dots = view.plot("ann", color=values, size=values).collections[-1]
        assert np.allclose(dots.get_array(), ranks[view.ids(["ann", "ben"])])
        assert dots.get_sizes()[0] < dots.get_sizes()[1]
    with pytest.raises(ValueError, match="color has 2 values"):
        view.plot(color=[1, 2])


def test_colors_come_from_vertex_properties() -> None:
    db = anden.from_edges([("ann", "ben")], ids="string")
    with db.transaction() as tx:
        tx.set("ann", "team", "red")
        tx.set("ben", "team", "blue")
    dots = db.view().plot(color="team").collections[-1]
    assert dots.get_array().tolist() == [1, 0]


def test_large_neighborhood_is_a_sample_that_says_so() -> None:
    view = anden.from_numpy(np.zeros(50, dtype=np.int64), np.arange(1, 51)).view()
    axes = view.plot(0, limit=20)
    assert axes.get_title() == "sample of 20 of 51 vertices, 19 edges"
    assert "0" in [text.get_text() for text in axes.texts]
    for limit in (0, MAX_VERTICES + 1):
        with pytest.raises(ValueError, match="limit must be"):
            view.plot(0, limit=limit)


def test_results_are_drawn_by_kind(view: anden.View) -> None:
    assert view.wcc(details=True).plot().get_ylabel() == "vertices in the group"
    axes = view.bfs("ann", details=True).plot()
    # Vertices that are not reached have no bar.
    assert sum(bar.get_height() for bar in axes.patches) == 4
    assert axes.get_title() == "bfs: 6 vertices"


def test_layout_puts_neighbors_near_each_other() -> None:
    cliques = [(a + base, b + base) for base in (0, 10) for a in range(10) for b in range(a)]
    points = force_layout(20, np.array([*cliques, (0, 10)]), seed=1)
    within = np.linalg.norm(points[:10] - points[:10].mean(axis=0), axis=1).mean()
    between = np.linalg.norm(points[:10].mean(axis=0) - points[10:].mean(axis=0))
    assert np.isfinite(points).all()
    assert between > within
    assert force_layout(0, np.zeros((0, 2), dtype=np.int64)).shape == (0, 2)
    assert np.isfinite(force_layout(1_500, np.zeros((0, 2), dtype=np.int64))).all()


def test_explore_gives_the_widget_the_sample(view: anden.View, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("networkx")
    shown = {}
    widget = types.ModuleType("ipysigma")
    widget.Sigma = lambda graph, **options: shown.update(graph=graph, **options)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ipysigma", widget)
    view.explore("ann", hops=3, color=view.pagerank(), limit=3)
    assert len(shown["graph"]) == 3
    assert shown["name"] == "sample of 3 of 4 vertices, 2 edges"
    assert len(shown["node_color"]) == 3


def test_explore_names_the_command_that_installs_it(view: anden.View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipysigma", None)
    with pytest.raises(ImportError, match=r"pip install 'anden\[explore\]'"):
        view.explore("ann")


def test_scores_of_several_magnitudes_have_a_logarithmic_axis() -> None:
    view = anden.from_numpy(np.arange(1, 500), np.zeros(499, dtype=np.int64)).view()
    assert view.pagerank(details=True).plot().get_xscale() == "log"
    assert view.bfs(1, details=True).plot().get_xscale() == "linear"
