"""A sandbox across processes: its owner serves it, everyone else connects.

See `remote_server` and `remote_client` (over `connections`); the words they exchange are in
`wire`.
"""

from __future__ import annotations

from .remote_client import RemoteSandbox
from .remote_server import SandboxServer

__all__ = ["RemoteSandbox", "SandboxServer"]
