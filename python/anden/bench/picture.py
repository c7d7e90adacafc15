"""The comparison as a picture."""

from __future__ import annotations

from pathlib import Path

from . import TASKS
from .lines import Line


def plot_lines(lines: list[Line], title: str, file: Path) -> None:
    """Draws a dot for each task and tool, on a logarithmic axis of seconds."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs Matplotlib: pip install 'anden[plot]'") from error
    tools = list(dict.fromkeys(line.tool for line in lines))
    tasks = [task for task in TASKS if any(line.task == task for line in lines)]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    colors = matplotlib.colormaps["tab20"]
    for number, tool in enumerate(tools):
        measured = [line for line in lines if line.tool == tool and line.seconds is not None]
        places = [tasks.index(line.task) + 0.6 * (number / max(len(tools) - 1, 1) - 0.5) for line in measured]
        style = {"s": 90, "marker": "*", "zorder": 3} if number == 0 else {"s": 30}
        axes.scatter(places, [line.seconds or 0.0 for line in measured], label=tool, color=colors(number), **style)
    axes.set_yscale("log")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_ylabel("seconds (logarithmic; lower is better)")
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    # Text stays text, and equal figures give equal files.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "anden"}):
        figure.savefig(file, dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)
