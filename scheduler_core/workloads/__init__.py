"""What happens in a sandbox: nodes and pods that come and go, made up or from a trace."""

from __future__ import annotations
