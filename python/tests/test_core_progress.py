"""Progress bars: when they appear, and what they show."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import anden
import pytest
from anden import _anden, _progress


class Bar:
    """Stands in for a bar of tqdm."""

    made: ClassVar[list[Bar]] = []

    def __init__(self, desc: str, total: int | None, **_: Any) -> None:
        self.desc, self.total, self.n, self.closed = desc, total, 0, False
        Bar.made.append(self)

    def update(self, amount: int) -> None:
        self.n += amount

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def tqdm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    Bar.made = []
    yield
    anden.set_progress(False)


def reporter_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """The function that `set_progress(True)` hands to the native module."""
    given: list[Any] = []
    monkeypatch.setattr(_anden, "set_progress", given.append)
    anden.set_progress(True, **options)
    monkeypatch.undo()
    return given[0]


def test_bar_appears_after_the_delay(tqdm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    report = reporter_of(monkeypatch)
    report("read", 10, 100, 1.9)
    assert Bar.made == []
    report("read", 20, 100, 2.1)
    report("read", 60, 100, 2.2)
    (bar,) = Bar.made
    assert (bar.desc, bar.total, bar.n, bar.closed) == ("read", 100, 60, False)


def test_each_stage_has_a_bar(tqdm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    report = reporter_of(monkeypatch, delay=0)
    report("read", 5, None, 0.1)
    report("sort", 1, 4, 0.2)
    report(None, 0, None, 0.3)
    assert [(bar.desc, bar.total, bar.closed) for bar in Bar.made] == [("read", None, True), ("sort", 4, True)]
    report(None, 0, None, 0.4)


def test_missing_tqdm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        anden.set_progress(True)


@pytest.mark.parametrize(("shell", "is_shown"), [("ZMQInteractiveShell", True), ("TerminalInteractiveShell", False)])
def test_only_notebooks_show_bars_by_default(
    tqdm: None, monkeypatch: pytest.MonkeyPatch, shell: str, is_shown: bool
) -> None:
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: type(shell, (), {})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    given: list[Any] = []
    monkeypatch.setattr(_anden, "set_progress", given.append)
    _progress.show_in_notebooks()
    assert len(given) == is_shown


def test_without_notebook_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    given: list[Any] = []
    monkeypatch.setattr(_anden, "set_progress", given.append)
    _progress.show_in_notebooks()
    assert given == []
