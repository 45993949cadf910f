"""The HTTP server of a loop worker: metrics, health, configurations, and the extender service.

Pages are the web process' business. What is asked here needs what a run has in memory, and lives
where the run lives. Always on a unix socket, for the web process of this machine; on a TCP address
too where ``KUBESCHED_WORKER_LISTEN`` names one, for Prometheus, probes and kube-schedulers.
"""
