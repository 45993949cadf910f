"""What waits to be sent to one browser: one frame in flight per topic, the rest merged.

No I/O and no clock of its own: the consumer hands in the time and sends what it is given. What a
stalled page costs is one frame per topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from dashboard import frames, groups, heatmap, merging

#: Seconds between two frames of a topic, where that is more than the browser's own pace: counters
#: and charts of seconds must not take the place of decisions, which people wait for.
PACES: Final = {groups.OVERVIEW: 1.0}


@dataclass(slots=True)
class _Box:
    pace: float = 0.0
    pending: frames.Frame | bytes | None = None
    in_flight: int | None = None
    next_at: float = 0.0

    @property
    def is_ready(self) -> bool:
        return self.pending is not None and self.in_flight is None


class Outbox:
    """Frames of the given topics for one browser, at most one per ``interval`` seconds."""

    def __init__(self, topics: Iterable[str], interval: float) -> None:
        self._interval = interval
        self._boxes = {topic: _Box(PACES.get(topic, 0.0)) for topic in topics}
        self._next_at = 0.0
        #: The heatmap that the browser draws, and the one that is on its way there.
        self._drawn: heatmap.Heatmap | None = None
        self._sent: heatmap.Heatmap | None = None

    def offer(self, topic: str, frame: frames.Frame | bytes) -> None:
        """A frame has arrived; it waits, merged with what waits already."""
        box = self._boxes.get(topic)
        if box is None:
            return
        known = box.pending
        box.pending = frame if known is None else merging.merge(topic, known, frame)

    def ack(self, topic: str, seq: int) -> None:
        """The browser has drawn the frame in flight; any other number is ignored."""
        box = self._boxes.get(topic)
        if box is None or box.in_flight != seq:
            return
        box.in_flight = None
        if topic == groups.HEATMAP:
            self._drawn = self._sent

    def delay(self, now: float) -> float | None:
        """Seconds until ``take`` has something; None: not before an ack or an offer."""
        times = [box.next_at for box in self._boxes.values() if box.is_ready]
        if not times:
            return None
        return max(0.0, self._next_at - now, min(times) - now)

    def take(self, now: float) -> str | bytes | None:
        """The next message, text or bytes, or None where ``delay`` is not 0."""
        if now < self._next_at:
            return None
        topic = self._ready(now)
        if topic is None:
            return None
        # The topic goes to the end of the line, so that a busy one does not starve the others.
        box = self._boxes.pop(topic)
        self._boxes[topic] = box
        frame, box.pending = box.pending, None
        # A moment that was not used may be used once: two topics that come together both go out.
        self._next_at = max(self._next_at, now - self._interval) + self._interval
        box.next_at = now + box.pace
        if isinstance(frame, bytes):
            return self._matrix(box, frame)
        return self._json(box, frame)

    def _ready(self, now: float) -> str | None:
        for topic, box in self._boxes.items():
            if box.is_ready and box.next_at <= now:
                return topic
        return None

    def _json(self, box: _Box, frame: Any) -> str:
        box.in_flight = frame["seq"]
        return orjson.dumps(frame).decode()

    def _matrix(self, box: _Box, frame: bytes) -> bytes:
        """The full frame, or a delta against the matrix that the browser draws."""
        self._sent = heatmap.decode(frame)
        box.in_flight = self._sent.seq
        if self._drawn is None:
            return frame
        return heatmap.encode_delta(self._sent, self._drawn) or frame
