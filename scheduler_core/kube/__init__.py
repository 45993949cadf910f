"""A real cluster behind the `Cluster` port, on the official `kubernetes` client.

Start reading at `cluster.py`. From the inside out: `timing`, `transport` and `statuses` know
nothing of the cluster; `access` and `connect` (the one module that imports `kubernetes`) make
connections of what people know of a cluster; `api` sends one request with rate limit, fence and
repetition; `binding`, `pod_status`, `event_writer` and `reflector` are the things that a scheduler
does; `election` and `fence` say who may write. Why so: docs/design/012.
"""

from __future__ import annotations
