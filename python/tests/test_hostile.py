"""Hostile arguments for every public callable: an error of ours or a standard one, never a crash or a panic.

The callables are those that the modules have. A new parameter without an example fails these tests.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anden
import numpy as np
import pytest
from anden import _anden, nx as anden_nx

#: Exceptions that a caller may expect. `MemoryError` and `OSError` are those of sizes and paths.
EXPECTED = (
    anden.Error, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, ImportError, OSError,
    MemoryError, NotImplementedError, RuntimeError,
)  # fmt: skip
# A wrong query is refused by the engine that runs it.
if importlib.util.find_spec("duckdb") is not None:
    EXPECTED = (*EXPECTED, importlib.import_module("duckdb").Error)
#: Texts of faults of ours, in errors of any type.
FAULTS = ("please report", "panicked", "PanicException", "internal error")

#: A valid argument for each name of a required parameter.
EXAMPLES: dict[str, Any] = {
    "A": lambda: pytest.importorskip("scipy.sparse").csr_array(np.array([[0, 1], [1, 0]])),
    "G": lambda: pytest.importorskip("networkx").path_graph(3),
    "a": lambda: 1,
    "arguments": lambda: ["anden", "--version"],
    "arrays": lambda: [1, 2],
    "b": lambda: 2,
    "backups": lambda: "backup",
    "changes": lambda: next(feed()),
    "columns": lambda: ["source"],
    "database": lambda: "damaged.anden",
    "dst": lambda: [2, 3],
    "durability": lambda: "none",
    "edges": lambda: [(1, 2), (2, 3)],
    "expression": lambda: "source > 1",
    "first": lambda: 1,
    "file": lambda: "out.csv",
    "frame": lambda: {"source": [1], "target": [2]},
    "function": lambda: (lambda tx: tx.add_edge(5, 6)),
    "graph": lambda: pytest.importorskip("networkx").path_graph(3),
    "hops": lambda: 2,
    "id": lambda: 0,
    "inputs": lambda: "edges.txt",
    "k": lambda: 1,
    "key": lambda: 1,
    "kind": lambda: None,
    "kernels": lambda: "pagerank",
    "labels": lambda: "person",
    "matrix": lambda: pytest.importorskip("scipy.sparse").csr_array(np.array([[0, 1], [1, 0]])),
    "name": lambda: "size",
    "of": lambda: "vertex",
    "path": lambda: "new.anden",
    "policy": lambda: "off",
    "query": lambda: "SELECT count(*) FROM edges",
    "reporter": lambda: None,
    "result": lambda: None,
    "retention": lambda: "all",
    "second": lambda: 2,
    "size": lambda: "1M",
    "snapshot": lambda: 1,
    "snapshots": lambda: 1,
    "source": lambda: 1,
    "sources": lambda: [1, 2],
    "src": lambda: [1, 2],
    "table": lambda: {"source": [1], "target": [2]},
    "target": lambda: 2,
    "targets": lambda: [2, 3],
    "to": lambda: "new.anden",
    "types": lambda: "KNOWS",
    "updates": lambda: [anden.Update.add_edge(1, 2)],
    "value": lambda: 3,
    "vertex": lambda: 1,
    "vertices": lambda: [1],
    "view": lambda: database().view(),
    "weight": lambda: 1.5,
}
#: They end or replace the process, or wait for its input.
LEFT_OUT = {"run_command"}


def database() -> anden.Database:
    db = anden.create(None, weighted=True, edge_properties=True, multigraph=True)
    with db.transaction() as tx:
        tx.add_edge(1, 2, 0.5, amount=3)
        tx.add_edge(2, 3, 1.5, amount=4)
        tx.add_vertex(1, size=3)
    db.checkpoint()
    return db


def new_edge() -> anden.NewEdge:
    with database().transaction() as tx:
        edge = tx.add_edge(1, 2, 1.0)
    assert edge is not None
    return edge


def feed() -> Any:
    db = anden.create(Path(tempfile.mkdtemp(dir=".")) / "primary.anden")
    db.apply([anden.Update.add_edge(1, 2)])
    return db.changes(since=0)


#: An object of each public class that has methods.
OBJECTS: dict[str, Callable[[], Any]] = {
    "ChangeFeed": feed,
    "ChangeSet": lambda: next(feed()),
    "Database": database,
    "Diff": lambda: database().diff(1, 2),
    "DiffIterator": lambda: database().diff(1, 2).added(),
    "KeyIterator": lambda: iter(database().view()),
    "Lease": lambda: database().lease(1),
    "NewEdge": new_edge,
    "Pending": lambda: database().submit([anden.Update.add_vertex(1)]),
    "Result": lambda: database().view().pagerank(details=True),
    "RollingWindows": lambda: database().rolling(1),
    "Snapshot": lambda: database().snapshots()[0],
    "Table": lambda: database().view().edges(),
    "TableIterator": lambda: iter(database().view().edges()),
    "Transaction": lambda: database().transaction(),
    "Update": lambda: anden.Update.add_vertex(1),
    "View": lambda: database().view(),
}
#: Dunder methods of the object protocol that take a caller's arguments.
OPERATORS = ("__getitem__", "__contains__", "__exit__", "__arrow_c_stream__", "__eq__")


class Raising:
    """Raises whatever is asked of it."""

    def refuse(self, *_: Any) -> Any:
        raise ZeroDivisionError("hostile")

    __len__ = __iter__ = __index__ = __float__ = __int__ = __fspath__ = __hash__ = refuse  # type: ignore[assignment]
    __arrow_c_stream__ = __arrow_c_array__ = __array__ = __repr__ = __str__ = __call__ = refuse
    __eq__ = __bool__ = refuse  # type: ignore[assignment]


class Liar:
    """Claims to be long, and holds itself."""

    def __len__(self) -> int:
        return 1 << 40

    def __iter__(self) -> Iterator[Any]:
        return iter([self])

    def __arrow_c_stream__(self, _: object = None) -> str:
        return "no capsule"


def closed() -> anden.Database:
    db = database()
    db.close()
    return db


def read_only() -> Any:
    array = np.array([1, 2, 3])
    array.flags.writeable = False
    return array


def recursive() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


HOSTILE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "2**70": lambda: 2**70,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "-inf": lambda: float("-inf"),
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "long text": lambda: "x" * 10_000,
    "zero byte": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"\xff",
    "list": lambda: [],
    "tuple": lambda: (1, "x", None),
    "dict": lambda: {"source": [1], "target": [2, 3]},
    "unhashable": lambda: [{}],
    "recursive": recursive,
    "type": lambda: int,
    "object": object,
    "function that raises": lambda: (lambda *_: 1 / 0),
    "raising": Raising,
    "list of raising": lambda: [Raising()],
    "liar": Liar,
    "non-contiguous": lambda: np.arange(6)[::2],
    "read-only": read_only,
    "big-endian": lambda: np.array([1, 2, 3], dtype=">i8"),
    "object dtype": lambda: np.array([1, None, "x"], dtype=object),
    "no values": lambda: np.array([], dtype=np.int64),
    "two dimensions": lambda: np.ones((2, 2)),
    "no dimension": lambda: np.array(3),
    "nan weights": lambda: np.array([np.nan, 1.0]),
    "complex dtype": lambda: np.ones(2, dtype=complex),
    "record dtype": lambda: np.zeros(2, dtype=[("a", "i4")]),
    "huge ids": lambda: np.array([2**64 - 1, 2**63], dtype=np.uint64),
    "negative ids": lambda: np.array([-1, -(2**63)]),
    "closed database": closed,
    "view of a closed database": lambda: _closed_view(),
    "view of another database": lambda: database().view(),
    "snapshot of another database": lambda: database().snapshots()[1],
    "ended transaction": lambda: _ended(),
}


def _closed_view() -> anden.View:
    db = database()
    g = db.view()
    db.close()
    return g


def _ended() -> anden.Transaction:
    tx = database().transaction()
    tx.rollback()
    return tx


def functions() -> dict[str, Callable[[], Any]]:
    """Each public function of the package, by name."""
    found: dict[str, Callable[[], Any]] = {}
    public = set(anden.__all__) | {name for name in vars(_anden) if not name.startswith("_")}
    for name in sorted(public - LEFT_OUT):
        value = getattr(anden, name, None) or getattr(_anden, name)
        if callable(value) and not isinstance(value, type):
            found[name] = lambda value=value: value  # type: ignore[misc]
    for name in ("of_networkx", "of_view"):
        found[f"nx.Graph.{name}"] = lambda name=name: getattr(anden_nx.Graph, name)  # type: ignore[misc]
    for name in ("convert_from_nx", "convert_to_nx"):
        found[f"nx.{name}"] = lambda name=name: getattr(anden_nx.BackendInterface, name)  # type: ignore[misc]
    return found


def methods() -> dict[str, Callable[[], Any]]:
    """Each public method of an object of each public class, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for class_name in sorted(vars(anden) | vars(_anden)):
        known = getattr(anden, class_name, None) or getattr(_anden, class_name)
        if not isinstance(known, type) or issubclass(known, BaseException) or class_name.startswith("_"):
            continue
        make = OBJECTS[class_name]
        for name in sorted(vars(known)):
            is_public = not name.startswith("_") or name in OPERATORS
            if is_public and callable(getattr(known, name)):
                found[f"{class_name}.{name}"] = lambda make=make, name=name: getattr(make(), name)  # type: ignore[misc]
    return found


CALLABLES = functions() | methods()


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters by the signature, which each of our functions has."""
    return list(inspect.signature(call).parameters.values())


def arguments(wanted: list[inspect.Parameter], replaced: str, value: Any) -> tuple[list[Any], dict[str, Any]]:
    """Valid arguments, but for one."""
    given, named = [], {}
    for one in wanted:
        if one.name != replaced and (one.default is not one.empty or one.kind is one.VAR_KEYWORD):
            continue
        argument = value if one.name == replaced else example(one.name)
        if one.kind is one.VAR_KEYWORD:
            named["anything"] = argument
        elif one.kind is one.KEYWORD_ONLY:
            named[one.name] = argument
        elif one.default is not one.empty and one.kind is not one.POSITIONAL_ONLY:
            named[one.name] = argument
        else:
            given.append(argument)
    return given, named


def example(name: str) -> Any:
    assert name.strip("_") in EXAMPLES or name.startswith("_"), f"add an example for the parameter '{name}'"
    return EXAMPLES.get(name.strip("_"), lambda: None)()


def outcome(call: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> str | None:
    """What is wrong with the answer of a call; none if all is well."""
    try:
        call(*given, **named)
    except EXPECTED as error:
        text = f"{type(error).__name__}: {error}"
        return text if any(fault in text for fault in FAULTS) else None
    except BaseException as error:  # noqa: BLE001 (a panic is a BaseException)
        return f"{type(error).__name__}: {error}"
    return None


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("edges.txt").write_text("1 2\n2 3\n")
    # A size or a name of 10,000 characters is data, not a wish of this test.
    yield
    anden.set_progress(False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_refuses_hostile_values(name: str) -> None:
    wanted = parameters(CALLABLES[name]())
    wrong = []
    for parameter in wanted:
        for kind, make in HOSTILE.items():
            found = outcome(CALLABLES[name](), *arguments(wanted, parameter.name, make()))
            if found is not None:
                wrong.append(f"{name}({parameter.name}: {kind}): {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", methods())
def test_objects_of_a_closed_database_refuse_use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[anden.Database] = []
    make = database

    def noted() -> anden.Database:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(f"{__name__}.database", noted)
    monkeypatch.setitem(OBJECTS, "Database", noted)
    call = CALLABLES[name]()
    for db in made:
        db.close()
    given, named = arguments(parameters(call), "", None)
    assert outcome(call, given, named) is None


ARRAYS: dict[str, Callable[[list[int]], Any]] = {
    "non-contiguous": lambda values: np.repeat(np.array(values), 2)[::2],
    "reversed": lambda values: np.array(values[::-1])[::-1],
    "read-only": lambda values: np.frombuffer(np.array(values).tobytes(), dtype=np.int64),
    "big-endian": lambda values: np.array(values, dtype=">u4"),
    "object dtype": lambda values: np.array(values, dtype=object),
    "small": lambda values: np.array(values, dtype=np.int8),
    "column of a table": lambda values: np.array([values, values]).T[:, 1],
    "unaligned": lambda values: np.frombuffer(b"x" + np.array(values).tobytes(), dtype=np.int64, offset=1),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_unusual_arrays_have_the_usual_edges(kind: str) -> None:
    sources, targets = ARRAYS[kind]([1, 2, 3]), ARRAYS[kind]([2, 3, 4])
    db = anden.create(None)
    db.append(sources, targets)
    db.append(sources[:0], targets[:0])
    assert [tuple(map(int, edge)) for edge in zip(*db.view().edges().to_numpy().values(), strict=True)] == [
        (1, 2), (2, 3), (3, 4),
    ]  # fmt: skip
