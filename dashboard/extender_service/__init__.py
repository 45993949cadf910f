"""The runs of this worker as extenders of a stock kube-scheduler, over HTTP.

``/extender/RUN/PROFILE/VERB``; see docs/extenders.md. The decisions are made in
``scheduler_core.extender_service``.
"""
