"""Anden: a graph engine for one machine.

Graphs may be larger than memory, change while algorithms run on an older version, and survive a crash.

>>> import anden
>>> db = anden.create(None, ids="string")
>>> with db.transaction() as tx:
...     tx.add_edge("ann", "ben")
...     tx.add_edge("ben", "cleo")
>>> g = db.view()
>>> g.neighbors("ann")
['ben']
>>> g.khop("ann", 2)
['ben', 'cleo']
"""

from __future__ import annotations

import atexit as _atexit

from . import convert as _convert
from . import explore as _explore
from . import plot as _plot
from . import sql as _sql
from ._anden import (
    Conflict,
    Corrupt,
    Database,
    Diff,
    EpochGone,
    Error,
    Exists,
    InvalidInput,
    Io,
    Locked,
    MemoryLimit,
    NewEdge,
    NotFound,
    Pending,
    ReadOnly,
    Result,
    Snapshot,
    Table,
    Transaction,
    UniqueViolation,
    Unsupported,
    Update,
    View,
    __version__,
    _close_all,
    create,
    kernels,
    load,
    open,
    repair,
    restore,
)
from ._progress import set_progress, show_in_notebooks as _show_in_notebooks
from .convert import from_arrow, from_edges, from_networkx, from_numpy, from_pandas, from_polars, from_scipy

__all__ = [
    "Conflict",
    "Corrupt",
    "Database",
    "Diff",
    "EpochGone",
    "Error",
    "Exists",
    "InvalidInput",
    "Io",
    "Locked",
    "MemoryLimit",
    "NewEdge",
    "NotFound",
    "Pending",
    "ReadOnly",
    "Result",
    "Snapshot",
    "Table",
    "Transaction",
    "UniqueViolation",
    "Unsupported",
    "Update",
    "View",
    "__version__",
    "create",
    "from_arrow",
    "from_edges",
    "from_networkx",
    "from_numpy",
    "from_pandas",
    "from_polars",
    "from_scipy",
    "kernels",
    "load",
    "open",
    "repair",
    "restore",
    "set_progress",
]

# Methods in Python. Their libraries are imported when a method is called.
for _class, _name, _method in (
    (View, "plot_degrees", _plot.plot_degrees),
    (View, "plot", _plot.plot),
    (View, "explore", _explore.explore),
    (View, "sql", _sql.view_sql),
    (View, "to_networkx", _convert.to_networkx),
    (View, "to_scipy", _convert.to_scipy),
    (Database, "plot_history", _plot.plot_history),
    (Database, "sql", _sql.database_sql),
    (Result, "plot", _plot.plot_result),
):
    setattr(_class, _name, _method)

# A database that was not closed makes its last snapshot at the end of the interpreter.
_atexit.register(_close_all)
_show_in_notebooks()
