"""Kernels against answers computed by hand, and their results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anden
import numpy as np
import pytest

UNREACHED = 2**32 - 1


@pytest.fixture
def kite() -> anden.View:
    """A triangle 0, 1, 2 with a tail 2 – 3, and 4 alone; undirected, dense keys."""
    db = anden.create(None, directed=False, ids="dense")
    db.append([0, 1, 0, 2], [1, 2, 2, 3])
    with db.transaction() as tx:
        tx.add_vertex(4)
    return db.view()


def test_every_kernel_of_the_table_is_a_method() -> None:
    for name, kernel in anden.kernels().items():
        assert callable(getattr(anden.View, name)), name
        assert kernel["about"]


def test_bfs_hops_and_parents(kite: anden.View) -> None:
    assert kite.bfs(0).tolist() == [0, 1, 1, 2, UNREACHED]
    parents = kite.bfs(0, parents=True)
    assert parents.dtype == np.uint32 and parents[3] == 2


def test_components(kite: anden.View) -> None:
    assert kite.wcc().tolist() == [0, 0, 0, 0, 4]
    assert kite.scc().tolist() == [0, 0, 0, 0, 4]


def test_pagerank_sums_to_one(kite: anden.View) -> None:
    ranks = kite.pagerank(iterations=50)
    assert ranks.dtype == np.float64 and math.isclose(ranks.sum(), 1.0, abs_tol=1e-9)
    assert ranks.argmax() == 2
    personal = kite.pagerank(source=3, iterations=20)
    assert personal[4] == 0
    assert not np.allclose(kite.pagerank(damping=0.5), ranks)


def test_triangles_and_clustering(kite: anden.View) -> None:
    assert kite.triangles() == 1
    assert kite.triangles(per_vertex=True).tolist() == [1, 1, 1, 0, 0]
    assert np.allclose(kite.lcc(), [1, 1, 1 / 3, 0, 0])
    assert kite.kcore().tolist() == [2, 2, 2, 1, 0]


def test_sssp_by_weights() -> None:
    db = anden.create(None, weight_type="i64")
    db.append([0, 0, 1], [1, 2, 2], weights=[4, 9, 3])
    g = db.view()
    assert g.sssp(0).tolist() == [0, 4, 7]
    assert g.sssp(0, algorithm="bellman-ford").dtype == np.uint64
    assert g.sssp(2).tolist() == [2**64 - 1, 2**64 - 1, 0]
    with pytest.raises(anden.InvalidInput, match="delta"):
        g.sssp(0, delta=0)


def test_centralities_of_a_path() -> None:
    db = anden.create(None, directed=False, ids="dense")
    db.append([0, 1], [1, 2])
    g = db.view()
    scores = g.bc()
    assert scores[1] > scores[0] == scores[2] == 0
    assert np.allclose(g.bc([0, 2]), g.bc(source=[0, 2]))
    assert g.closeness().argmax() == 1
    assert len(g.bc(sources=2, seed=7)) == 3
    assert np.allclose(g.bc(sources="all"), scores)


def test_label_propagation(kite: anden.View) -> None:
    labels = kite.cdlp(iterations=5)
    assert labels[0] == labels[1] == labels[2] and labels[4] == 4


def test_results_own_their_memory(kite: anden.View) -> None:
    ranks = kite.pagerank()
    assert ranks.flags.writeable and ranks.flags.c_contiguous
    ranks[:] = 0
    assert kite.pagerank().sum() > 0


def test_details_tell_more(kite: anden.View) -> None:
    result = kite.pagerank(details=True)
    assert result.kernel == "pagerank" and result.name == "score"
    assert result.iterations > 0 and result.seconds >= 0
    assert result.keys.tolist() == [0, 1, 2, 3, 4]
    assert len(result) == 5 and result[2] == result.values[2]
    assert result.top(2)[0][0] == 2
    assert math.isclose(result.summary["sum"], 1.0, abs_tol=1e-6)
    assert "pagerank" in repr(result) and "score" in repr(result)
    assert "<table>" in result._repr_html_()


def test_details_of_other_values(kite: anden.View) -> None:
    hops = kite.bfs(0, details=True)
    assert hops.top(1) == [(3, 2)] and hops.iterations is None
    triangles = kite.triangles(details=True)
    assert triangles.values == 1 and triangles.summary == {"triangles": 1} and triangles.top() == []
    with pytest.raises(anden.Error, match="per_vertex"):
        triangles[0]


def test_largest_groups_are_named_by_key() -> None:
    db = anden.create(None, ids="string")
    db.append(["c", "b", "x"], ["b", "a", "y"])
    g = db.view()
    assert g.wcc(details=True).sizes() == [("a", 3), ("x", 2)]
    assert g.scc(details=True).sizes(2) == [("a", 1), ("b", 1)]
    assert g.kcore(details=True).sizes() == [(1, 5)]
    labels = g.cdlp(iterations=1, details=True)
    assert sum(size for _, size in labels.sizes(9)) == 5
    with pytest.raises(anden.Error, match="no groups"):
        g.pagerank(details=True).sizes()
    with pytest.raises(anden.Error, match="no groups"):
        g.bfs("a", details=True).sizes()


def test_results_are_stored_as_properties() -> None:
    db = anden.create(None)
    db.append([1, 2, 8], [2, 3, 9])
    g = db.view()
    assert g.wcc(details=True).store("component") == 3
    assert db.view().find_vertices("component", 8) == [8, 9]
    assert g.bfs(1, details=True).store("hops") == 4
    hops = [db.view().vertex(v)["properties"].get("hops") for v in (1, 3, 8)]
    assert hops == [0, 2, None]
    assert g.bfs(1, parents=True, details=True).store("parent") == 5
    assert db.view().find_vertices("parent", 2) == [3]
    g.pagerank(details=True).store("rank")
    assert db.view().filter(vertices="rank > 0.1 AND component = 8").num_vertices == 2
    with pytest.raises(anden.InvalidInput, match="component"):
        g.pagerank(details=True).store("component")
    with pytest.raises(anden.Error, match="per_vertex"):
        g.triangles(details=True).store("triangles")


HOSTILE: list[tuple[Callable[[anden.View], Any], type[BaseException], str]] = [
    (lambda g: g.bfs(), TypeError, "source"),
    (lambda g: g.bfs(99), anden.NotFound, "vertex 99"),
    (lambda g: g.bfs(-1), anden.InvalidInput, "-1"),
    (lambda g: g.bfs(2**70), anden.InvalidInput, "1180591620717411303424"),
    (lambda g: g.bfs(1.0), TypeError, "float"),
    (lambda g: g.bfs([0, 1]), anden.InvalidInput, "one source"),
    (lambda g: g.bfs(0, parent=True), TypeError, "did you mean 'parents'"),
    (lambda g: g.bfs(0, parents=1), TypeError, "parents"),
    (lambda g: g.wcc(iterations=3), anden.InvalidInput, "does not take iterations"),
    (lambda g: g.pagerank(iterations=-1), anden.InvalidInput, "iterations"),
    (lambda g: g.pagerank(iterations=2.5), TypeError, "iterations"),
    (lambda g: g.pagerank(damping=2), anden.InvalidInput, "from 0 to 1"),
    (lambda g: g.pagerank(damping=math.nan), anden.InvalidInput, "NaN"),
    (lambda g: g.pagerank(damping="x"), TypeError, "damping"),
    (lambda g: g.pagerank(tolerance=-1.0), anden.InvalidInput, "tolerance"),
    (lambda g: g.pagerank(algorithm="gapp"), anden.InvalidInput, "gapp"),
    (lambda g: g.pagerank(variant="dsk"), anden.InvalidInput, "did you mean 'disk'"),
    (lambda g: g.pagerank(weight="cost"), anden.NotFound, "cost"),
    (lambda g: g.bc(sources="many"), anden.InvalidInput, "many"),
    (lambda g: g.bc(sources=-3), anden.InvalidInput, "sources"),
    (lambda g: g.bc(sources=[0], source=1, seed=1), anden.Error, ""),
    (lambda g: g.sssp(0), anden.Unsupported, "weights"),
    (lambda g: g.cdlp(iterations="5"), TypeError, "iterations"),
    (lambda g: g.triangles(per_vertex="yes"), TypeError, "per_vertex"),
    (lambda g: g.kcore(5), TypeError, ""),
]


@pytest.mark.parametrize(("call", "error", "text"), HOSTILE)
def test_hostile_arguments_of_kernels(
    kite: anden.View, call: Callable[[anden.View], Any], error: type[BaseException], text: str
) -> None:
    with pytest.raises(error, match=text or None):
        call(kite)


def test_empty_graphs_have_empty_results() -> None:
    g = anden.create(None).view()
    for name in ("pagerank", "wcc", "scc", "lcc", "cdlp", "kcore", "bc", "closeness"):
        assert len(getattr(g, name)()) == 0, name
    assert g.triangles() == 0
    assert list(g) == [] and g.keys().tolist() == []
