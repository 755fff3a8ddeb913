"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self


class Progress:
    """Context manager; call it as ``progress(done, total, text)``.

    Nothing is shown for work that ends within a second, or when ``quiet``.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._start = time.monotonic()
        self._last_line = self._start
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if self._quiet or (now - self._start < 1 and done < total):
            return
        if sys.stderr.isatty():
            self._draw(done, total, text)
        elif done < total and now - self._last_line >= 5:
            self._last_line = now
            print(f"{done}/{total} after {now - self._start:.0f} s: {text}", file=sys.stderr)

    def _draw(self, done: int, total: int, text: str) -> None:
        if self._bar is None:
            if done >= total:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(text, total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total, description=text)
