"""What was measured, and whether the answers agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: Answers of floating-point tasks may differ by this share of the largest value.
CLOSE = 1e-6
#: The sum of absolute differences up to which PageRanks agree. Some tools compute in 32 bits, igraph until convergence.
CLOSE_RANKS = 0.05

#: Why a tool has no time for a task that it lacks.
NO_FUNCTION = "no such function"


@dataclass
class Line:
    """One task of one tool."""

    tool: str
    task: str
    #: The time of the fastest run.
    seconds: float | None = None
    peak_bytes: int = 0
    answer: Any = None
    #: Why there is no time.
    missing: str = ""

    def better(self, other: Line | None) -> Line:
        """The faster of two measurements, with the larger peak."""
        if other is None or other.seconds is None or self.seconds is None:
            return self
        peak = max(self.peak_bytes, other.peak_bytes)
        return Line(self.tool, self.task, min(self.seconds, other.seconds), peak, self.answer)


def compare(own: Line | None, other: Line) -> tuple[bool, str]:
    """Whether two answers agree, and a text that says how."""
    if own is None or own.seconds is None or other.seconds is None or own.tool == other.tool:
        return True, ""
    if not isinstance(own.answer, str):
        is_equal = own.answer == other.answer
        return is_equal, "equal" if is_equal else f"{other.answer}, not {own.answer}"
    a, b = np.load(own.answer), np.load(other.answer)
    if a.shape != b.shape:
        return False, f"{b.shape[0]} values, not {a.shape[0]}"
    if other.task == "pagerank":
        distance = float(np.abs(a - b).sum())
        return distance < CLOSE_RANKS, f"L1 distance {distance:.1e}"
    if (np.isinf(a) != np.isinf(b)).any():
        return False, "other vertices are unreached"
    finite = np.isfinite(a)
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0)) / max(float(np.abs(a[finite]).max(initial=0)), 1.0)
    return largest <= CLOSE, "equal" if largest == 0 else f"largest difference {largest:.1e}"
