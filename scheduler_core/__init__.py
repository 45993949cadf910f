"""kube-scheduler's scheduling framework in pure Python and numpy.

What lives here: API objects, the framework runtime, the scheduling queue and cache, the
plugins, the scheduling and binding cycle, and the cluster adapters. What does not: Django,
Celery, Channels, Redis. Those observe through the ports in :mod:`scheduler_core.ports`.
"""
