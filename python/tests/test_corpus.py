"""The check of a folder of graph files finds what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scipy")
corpus = pytest.importorskip("anden.corpus", reason="pandas is not installed")


def files(folder: Path) -> None:
    (folder / "pairs.csv").write_text("source|target\n1|2\n2|3\n2|3\n")
    (folder / "list.txt").write_text("# a comment\nann bob\nbob cy\n")
    (folder / "matrix.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n4 4 2\n2 1 0.5\n3 2 1\n")
    (folder / "roads.gr").write_text("c roads\np sp 3 2\na 1 2 5\na 2 3 6\n")
    (folder / "notes.md").write_text("one, two, three and four words\n")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["corpus", *arguments])
    return int(corpus.main())


def test_files_are_compared_with_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path)
    assert run(monkeypatch, str(tmp_path)) == 0
    lines = {Path(line.split(": ", 1)[0]).name: line for line in capsys.readouterr().out.splitlines()}
    assert "3 vertices, 2 edges; compared with pandas" in lines["pairs.csv"]
    assert "3 vertices, 2 edges; compared with pandas" in lines["list.txt"]
    assert "4 vertices, 2 edges; compared with SciPy" in lines["matrix.mtx"]
    assert "3 vertices, 2 edges; compared with pandas" in lines["roads.gr"]
    assert "refused" in lines["notes.md"]


def test_differences_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path)
    one_edge = corpus.Reading("another", corpus.text([1]), corpus.text([2]))
    monkeypatch.setitem(corpus.READERS, ".csv", lambda path, report: one_edge)
    columns = corpus.rows
    monkeypatch.setattr(corpus, "rows", lambda view, **options: columns(view, **options)[: 2 - ("keys" in options)])
    assert run(monkeypatch, str(tmp_path), "--formats", "mtx") == 1
    output = capsys.readouterr().out
    assert "DIFFERS another: 1 edges in place of 2" in output
    assert "DIFFERS mtx: the edges differ" in output
