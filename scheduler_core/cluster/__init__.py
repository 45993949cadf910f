"""Clusters behind the `Cluster` port: the sandbox (an in-memory API server) and its parts.

Start reading at `sandbox.py`. Layers, from the inside out: `objects`, `resources`, `errors`,
`selection` and `patches` are plain functions; `journal` and `store` hold state; `verbs`, `pods`
and `events` are what an API server does with one request; `watch` and `commit` say who sees a
write and when; `sandbox` puts them behind the port; `remote` serves it over a socket.
"""

from __future__ import annotations
