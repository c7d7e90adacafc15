"""The comparison as a table in Markdown."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

import numpy as np

from . import TASKS
from .lines import NO_FUNCTION, Line, compare
from .tool import Tool

Lines = dict[tuple[str, str], Line]


def markdown(title: str, tools: Sequence[type[Tool]], lines: Lines) -> str:
    """A row for each task, a column for each tool: seconds of the first tool, multiples of these for the others."""
    names = [tool.name for tool in tools]
    rows = [["", f"{names[0]}, s", *(f"{name}, ×" for name in names[1:])], ["---"] * (len(names) + 1)]
    for task in TASKS:
        found = [lines.get((name, task)) for name in names]
        if any(found):
            rows.append([task, *(_cell(found[0], line) for line in found)])
    rows.append(["peak, MB", *(_peak(name, lines) for name in names)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{title}\n\n{table}\n\n{' '.join(_notes(tools, lines))}\n"


def _cell(own: Line | None, line: Line | None) -> str:
    if line is None or line.missing == NO_FUNCTION:
        return ""
    if line.seconds is None:
        return line.missing if line.missing.startswith(">") else "failed"
    if own is None or own is line or not own.seconds:
        return _figure(line.seconds)
    return _figure(line.seconds / own.seconds)


def _figure(value: float) -> str:
    """Two digits at least, and no exponent."""
    if value < 10:
        return np.format_float_positional(value, precision=2, unique=False, fractional=False, trim="-")
    return f"{value:,.0f}"


def _peak(name: str, lines: Lines) -> str:
    peak = max((line.peak_bytes for (tool, _), line in lines.items() if tool == name), default=0)
    return f"{peak / 1e6:,.0f}" if peak else ""


def _notes(tools: Sequence[type[Tool]], lines: Lines) -> list[str]:
    """The versions, what is not comparable, and what failed or differs."""
    notes = [f"{', '.join(f'{tool.name} {version(tool)}'.strip() for tool in tools)}."]
    notes += [f"{tool.note}." for tool in tools if tool.note]
    failures = [
        f"{line.tool}, {line.task}: {line.missing}."
        for line in lines.values()
        if line.missing and line.missing != NO_FUNCTION and not line.missing.startswith(">")
    ]
    differing = [f"{text}." for text in differences(lines)]
    return notes + failures + (differing or ["All answers agree."])


def differences(lines: Lines) -> list[str]:
    """The answers that differ from those of the first tool."""
    texts = []
    for line in lines.values():
        agrees, text = compare(reference(lines, line.task), line)
        if not agrees:
            texts.append(f"{line.tool}, {line.task}: {text}")
    return texts


def reference(lines: Lines, task: str) -> Line | None:
    """The line that the others of a task are compared with: that of the first tool that has one."""
    return next((line for line in lines.values() if line.task == task and line.seconds is not None), None)


def version(tool: type[Tool]) -> str:
    """The version of the package; nothing for a folder on the path."""
    try:
        return importlib.metadata.version(tool.name)
    except importlib.metadata.PackageNotFoundError:
        return ""
