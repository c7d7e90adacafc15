"""Progress bars of long calls, by tqdm."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from . import _anden

Reporter = Callable[[str | None, int, int | None, float], object]


class _Bars:
    """Shows the stage that a call is in, once the call takes longer than `delay` seconds."""

    def __init__(self, tqdm: Any, delay: float) -> None:
        self._tqdm = tqdm
        self._delay = delay
        self._bar: Any = None
        self._stage: str | None = None

    def __call__(self, stage: str | None, done: int, total: int | None, seconds: float) -> None:
        if stage is None or (self._bar is not None and stage != self._stage):
            self._close()
        if stage is None or seconds < self._delay:
            return
        if self._bar is None:
            self._stage = stage
            self._bar = self._tqdm(desc=stage, total=total, leave=False, unit_scale=True)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def set_progress(show: bool | Reporter | None = True, *, delay: float = 2.0) -> None:
    """Choose how the progress of long calls of the main thread is shown.

    In a notebook, calls of more than two seconds show a bar by default, if tqdm is installed.

    Parameters
    ----------
    show : bool or function
        True: bars by tqdm. False or None: nothing. A function is called about every 50 ms as
        ``show(stage, done, total, seconds)``, and with a stage of None at the end of a call that it has seen. If it
        raises, the call is cancelled and the exception passes through.
    delay : float
        The seconds until a bar appears.

    Examples
    --------
    >>> import anden
    >>> anden.set_progress(False)
    """
    if show is True:
        try:
            # tqdm has no types, and is not needed to check those of this module.
            tqdm = importlib.import_module("tqdm.auto")
        except ImportError as error:
            raise ImportError("progress bars need tqdm: pip install tqdm") from error
        _anden.set_progress(_Bars(tqdm.tqdm, delay))
    elif show is False or show is None:
        _anden.set_progress(None)
    else:
        _anden.set_progress(show)


def show_in_notebooks() -> None:
    """Show bars by default if this is a notebook and tqdm is installed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # Other shells of IPython are terminals, where a bar would mix with the prompt.
    if type(shell).__name__ != "ZMQInteractiveShell":
        return
    try:
        set_progress(True)
    except ImportError:
        pass
