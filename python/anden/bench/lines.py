"""What was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Line:
    """One task of one tool."""

    tool: str
    task: str
    seconds: float | None = None
    peak_bytes: int | None = None
    answer: Any = None
    #: Why there is no time.
    missing: str | None = None
    #: The process gives no more lines.
    is_last: bool = False
