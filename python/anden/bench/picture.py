"""The comparison as a picture."""

from __future__ import annotations

from pathlib import Path

from . import TASKS
from .lines import Line


def plot_lines(lines: list[Line], file: Path) -> None:
    """Draws a dot for each task and tool, on a logarithmic axis of seconds."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs Matplotlib: pip install 'anden[plot]'") from error
    tools = list(dict.fromkeys(line.tool for line in lines))
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, tool in enumerate(tools):
        measured = [line for line in lines if line.tool == tool and line.seconds is not None]
        places = [TASKS.index(line.task) + 0.6 * (number / max(len(tools) - 1, 1) - 0.5) for line in measured]
        style = {"s": 90, "marker": "*", "zorder": 3} if number == 0 else {"s": 30}
        axes.scatter(places, [line.seconds or 0.0 for line in measured], label=tool, **style)
    axes.set_yscale("log")
    axes.set_xticks(range(len(TASKS)), TASKS)
    axes.set_ylabel("seconds (logarithmic; lower is better)")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=4, fontsize=8)
    figure.savefig(file, dpi=120)
