"""The sandboxes' Kubernetes API over HTTPS: certificates, tokens, kubeconfigs and the server.

What a request means is in `scheduler_core/cluster/api/`; here it travels. Nothing in here needs
the database except `addresses` and `access`, which the product's pages use.
"""

from __future__ import annotations
