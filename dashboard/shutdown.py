"""The event that tells this process's loops to end: set when the worker is asked to stop."""

from __future__ import annotations

import threading

shutting_down = threading.Event()
