"""What goes wrong with an extender."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_TEXT", "ExtenderError", "cut"]

#: Longest text of an extender's that is kept, in characters: reasons go into conditions, events
#: and the database, and an extender may send megabytes of them.
MAX_TEXT: Final = 2_048


def cut(text: str) -> str:
    """A text of an extender's, at most ``MAX_TEXT`` characters of it."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 4]} ..."


class ExtenderError(Exception):
    """An extender did not answer, or not as it should. The text, cut, is for the pod's user."""

    def __init__(self, text: str) -> None:
        super().__init__(cut(text))
