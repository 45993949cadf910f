"""``/livez``, ``/readyz`` and ``/healthz``, as kube-scheduler answers them."""
