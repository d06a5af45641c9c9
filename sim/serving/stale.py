"""News that somebody has only some time after they happened.

Whoever asks sees things exactly as they were `stale_ps` ago, changes of that very instant included.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

News = TypeVar("News")


class Stale(Generic[News]):
    """Passes news on to `learn`, `stale_ps` after they were told."""

    def __init__(self, stale_ps: int, learn: Callable[[News], None]) -> None:
        self.stale_ps = stale_ps
        self._learn = learn
        self._waiting: deque[tuple[int, News]] = deque()

    def tell(self, now_ps: int, news: News) -> None:
        """Something has happened now."""
        if self.stale_ps:
            self._waiting.append((now_ps, news))
        else:
            self._learn(news)

    def catch_up(self, now_ps: int) -> int:
        """Learn all that is old enough; the instant that is seen."""
        waiting, seen_ps = self._waiting, now_ps - self.stale_ps
        while waiting and waiting[0][0] <= seen_ps:
            self._learn(waiting.popleft()[1])
        return seen_ps

    def forget(self) -> None:
        """Drop what has not been learnt yet."""
        self._waiting.clear()
