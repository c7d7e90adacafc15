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

from . import explore as _explore
from . import plot as _plot
from ._anden import (
    Conflict,
    Corrupt,
    Database,
    Diff,
    Error,
    Exists,
    InvalidInput,
    Io,
    Locked,
    MemoryLimit,
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
    set_progress,
)

__all__ = [
    "Conflict",
    "Corrupt",
    "Database",
    "Diff",
    "Error",
    "Exists",
    "InvalidInput",
    "Io",
    "Locked",
    "MemoryLimit",
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
    "kernels",
    "load",
    "open",
    "set_progress",
]

# Methods in Python. Their libraries are imported when a method is called.
View.plot_degrees = _plot.plot_degrees
View.plot = _plot.plot
View.explore = _explore.explore
Database.plot_history = _plot.plot_history
Result.plot = _plot.plot_result

# A database that was not closed makes its last snapshot at the end of the interpreter.
_atexit.register(_close_all)
