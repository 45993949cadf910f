"""A run that only observes answers as an extender too; it binds nothing."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from dashboard.extender_service.service import answer
from dashboard.metrics import carried
from dashboard.metrics.carried import CarriedRun
from dashboard.recorder import Recorder
from dashboard.worker_http.messages import Request
from scheduler_core.clock import RealClock
from scheduler_core.cluster.sandbox import SandboxCluster
from scheduler_core.config import default_configuration
from scheduler_core.observing import ObservingScheduler
from scheduler_core.plugins.registry import in_tree_registry
from scheduler_core.records import Outcome
from scheduler_core.testing.builders import make_node, make_pod
from scheduler_core.testing.observer import RecordingObserver

RUN = 11


@pytest.mark.django_db(transaction=True)
def test_an_observer_is_asked() -> None:
    cluster = SandboxCluster(RealClock())
    for name, pods in (("full", 2), ("free", 0)):
        cluster.create("Node", make_node(name).capacity(cpu="2").raw())
        for number in range(pods):
            cluster.create("Pod", make_pod(f"{name}-{number}").req(cpu=1).node(name).raw())
    cluster.create("Pod", make_pod("asked").req(cpu=1).scheduler_name("stock").raw())
    uid = cluster.get("Pod", "default", "asked")["metadata"]["uid"]
    run = CarriedRun(RUN, "observes", "sandbox", Recorder(RUN, fence=None, clock=lambda: 0.0))
    told = RecordingObserver()
    observer = ObservingScheduler(
        default_configuration(in_tree_registry()), cluster, observers=[told, run.metrics]
    )
    run.scheduler = observer
    stop = threading.Event()
    observer.start()
    thread = threading.Thread(target=observer.run, args=(stop.is_set,))
    thread.start()
    carried.publish(run)

    def call(verb: str, **fields: Any) -> Any:
        body = json.dumps(fields).encode()
        parts = [str(RUN), "default-scheduler", verb]
        path = f"/extender/{'/'.join(parts)}"
        found = answer(Request("POST", path, {}, {}, body, trusted=True), parts)
        return json.loads(found.body)

    try:
        while not observer.is_synced:
            stop.wait(0.01)
        pod = make_pod("asked").req(cpu=1).scheduler_name("stock").uid(uid).raw()
        filtered = call("filter", Pod=pod, NodeNames=["full", "free"])
        assert (filtered["NodeNames"], filtered["Error"]) == (["free"], "")
        assert call("prioritize", Pod=pod, NodeNames=["free"]) == [{"Host": "free", "Score": 10}]
        bound = call("bind", PodName="asked", PodNamespace="default", PodUID=uid, Node="free")
        assert bound["Error"]
        assert not cluster.get("Pod", "default", "asked")["spec"].get("nodeName")
        # Somebody else binds it: that is observed, and counted.
        cluster.bind("default", "asked", uid, "free")
        samples = run.metrics.samples
        for _ in range(500):
            if samples()["kubesched_observed_pods_total"].get(("agree",)):
                break
            stop.wait(0.01)
        assert samples()["kubesched_observed_pods_total"][("agree",)] == 1.0
    finally:
        carried.withdraw(run)
        stop.set()
        observer.wake()
        thread.join(10)
        observer.stop()
        cluster.close()
    assert [c.outcome for c in told.cycles] == [Outcome.ADVISED, Outcome.ADVISED, Outcome.ERROR]
