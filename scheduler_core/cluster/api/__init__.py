"""The sandbox as a Kubernetes API: what a request means, and what is answered. No sockets here.

Start reading at `server.py`, which takes a `Request` and gives an `Answer`. From the inside out:
`schema` (fields of the kinds), `decode` (a body becomes an object), `fields` and `managers` (who
owns which field), `strategic` and `json_patch`; `catalog` (what is served under which path);
`lists`, `writes`, `patching`, `applying`, `removals`, `streams`, `scale` and `binding` (one request
each); `tables`,
`discovery` and `openapi` (what kubectl asks for besides). `dashboard/sandbox_api/` puts HTTP
around it.
"""

from __future__ import annotations
