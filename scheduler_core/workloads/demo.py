"""The living demo: a small cluster in which something of every kind happens all the time.

Services come and go, jobs arrive in bursts, some pods are gated or fit nowhere, gangs wait for
members, for room or for a person. The number of objects stays bounded for hours, also while no
scheduler runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler_core.api.pod import DEFAULT_SCHEDULER_NAME
from scheduler_core.ports import Json, NotFound

from .base import WorkloadCluster, create_if_absent, create_set, delete_if_present
from .demo_catalog import (
    GANGS,
    MISFITS,
    NAMESPACES,
    PEOPLE,
    SERVICES,
    GangShape,
    Service,
    demo_nodes,
    image,
)
from .manifests import (
    GPU,
    REQUESTED_BY,
    WORKLOAD_LABEL,
    gang,
    member_label,
    namespace,
    pod,
)
from .streams import Draw, Moment, Stream, StreamWorkload

__all__ = ["DemoWorkload"]

_GATE: Final = "demo.example/quota-review"

#: pods that have not ended; no more arrive while there are so many
_MOST_PODS: Final = 260
_MOST_GANGS: Final = 8
_MOST_GATED: Final = 5

_MINUTE: Final = 60.0
_SHORTEST_RUN: Final = 20.0
_MISFIT_SECONDS: Final = 8 * _MINUTE
#: a gang and its members are removed after this, whatever became of them
_GANG_SECONDS: Final = 20 * _MINUTE
_GANG_TIMEOUT: Final = 900
_LATE_MEMBER_SECONDS: Final = 75.0

_BURST: Final = (8, 18)


class DemoWorkload(StreamWorkload):
    """See the module. `pace`: 2.0 makes twice as much happen in the same time."""

    name = "demo"

    def __init__(
        self,
        *,
        seed: int = 1,
        start: float | None = None,
        pace: float = 1.0,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    ) -> None:
        """
        Raises:
            ValueError: `pace` is not positive.
        """
        super().__init__(seed=seed, start=start)
        if not pace > 0:
            raise ValueError(f"the demo's pace must be positive, not {pace}")
        self._pace = pace
        self._scheduler_name = scheduler_name

    def _set_up(self, cluster: WorkloadCluster) -> None:
        create_set(cluster, [*map(namespace, NAMESPACES), *demo_nodes()])

    def _streams(self) -> Mapping[str, Stream]:
        return {
            "service": Stream(self._start_service, self._around(2.2)),
            "burst": Stream(self._start_burst, self._around(55.0), 1.0),
            "gated": Stream(self._start_gated, self._around(35.0), 4.0),
            "misfit": Stream(self._start_misfit, self._around(110.0), 3.0),
            "gang": Stream(self._start_gang, self._around(28.0), 2.0),
        }

    def _around(self, seconds: float) -> _Pause:
        return _Pause(seconds / self._pace)

    # -- what happens ----------------------------------------------------------------------------

    def _start_service(self, moment: Moment) -> None:
        if not _has_room(moment.cluster):
            return
        (service,) = moment.draw.choices(SERVICES, [service.share for service in SERVICES])
        self._create_service_pod(service, moment)

    def _start_burst(self, moment: Moment) -> None:
        """A rollout, or a batch of reports: many alike at once, so that the queue fills."""
        if not _has_room(moment.cluster):
            return
        plain = [s for s in SERVICES if not s.gpus and not s.spec]
        service = moment.draw.choice(plain)
        for _ in range(moment.draw.randint(*_BURST)):
            self._create_service_pod(service, moment)

    def _create_service_pod(self, service: Service, moment: Moment) -> None:
        draw = moment.draw
        requests = {"cpu": draw.choice(service.cpu), "memory": draw.choice(service.memory)}
        if service.gpus:
            requests[GPU] = service.gpus
        run = max(_SHORTEST_RUN, draw.expovariate(1 / (service.minutes * _MINUTE)))
        create_if_absent(
            moment.cluster,
            pod(
                f"{service.name}-{draw.suffix(9)}-{draw.suffix()}",
                service.namespace,
                requests,
                workload=self.name,
                run_seconds=round(run),
                image=service.image,
                labels={"app": service.name},
                spec=service.spec,
                scheduler_name=self._scheduler_name,
            ),
        )

    def _start_gated(self, moment: Moment) -> None:
        pods = _pods(moment.cluster)
        gated = [p for p in pods if p["spec"].get("schedulingGates")]
        if len(pods) >= _MOST_PODS or len(gated) >= _MOST_GATED:
            return
        draw = moment.draw
        name = f"quota-import-{draw.suffix(9)}-{draw.suffix()}"
        obj = pod(
            name,
            "analytics",
            {"cpu": "1", "memory": "2Gi"},
            workload=self.name,
            run_seconds=90,
            image=image("quota-import"),
            labels={"app": "quota-import"},
            spec={"schedulingGates": [{"name": _GATE}]},
            scheduler_name=self._scheduler_name,
        )
        create_if_absent(moment.cluster, obj)
        self._put_off(moment.now + draw.uniform(45, 120), "ungate", {"name": name})

    def _start_misfit(self, moment: Moment) -> None:
        what, where, requests, spec = MISFITS[moment.number % len(MISFITS)]
        name = f"{what}-{moment.draw.suffix(9)}-{moment.draw.suffix()}"
        obj = pod(
            name,
            where,
            requests,
            workload=self.name,
            run_seconds=120,
            image=image(what),
            labels={"app": what},
            spec=spec,
            scheduler_name=self._scheduler_name,
        )
        create_if_absent(moment.cluster, obj)
        about = {"namespace": where, "name": name}
        self._put_off(moment.now + _MISFIT_SECONDS, "withdraw", about)

    def _start_gang(self, moment: Moment) -> None:
        """Most gangs are whole; every third misses a member for a while, which holds all back."""
        selector = f"{WORKLOAD_LABEL}={self.name}"
        open_gangs = [
            group
            for group in moment.cluster.list("PodGroup", label_selector=selector).items
            if (group.get("status") or {}).get("phase") not in ("Finished", "Failed")
        ]
        if len(open_gangs) >= _MOST_GANGS:
            return
        draw = moment.draw
        shape = draw.choice(GANGS)
        name = f"{shape.name}-{draw.suffix(4)}"
        size = draw.choice(shape.members)
        # Every other one asks for approval, so that the waiting page has something from the start.
        person = f"{draw.choice(PEOPLE)}@demo.example" if moment.number % 2 == 0 else ""
        late = 1 if moment.number % 3 == 2 else 0
        create_if_absent(
            moment.cluster,
            gang(
                name,
                shape.namespace,
                size,
                workload=self.name,
                timeout_seconds=_GANG_TIMEOUT,
                requested_by=person,
            ),
        )
        members = [self._member(name, shape, index, person) for index in range(size)]
        for member in members[: size - late]:
            create_if_absent(moment.cluster, member)
        about = {"namespace": shape.namespace, "name": name}
        if late:
            self._put_off(moment.now + _LATE_MEMBER_SECONDS, "join", members[-1])
        self._put_off(moment.now + _GANG_SECONDS, "disband", about)

    def _member(self, name: str, shape: GangShape, index: int, person: str) -> Json:
        requests = {"cpu": shape.cpu, "memory": shape.memory}
        spec: Json = {}
        if shape.gpus:
            requests[GPU] = str(shape.gpus)
            spec["tolerations"] = [{"key": GPU, "operator": "Exists"}]
        return pod(
            f"{name}-{index}",
            shape.namespace,
            requests,
            workload=self.name,
            run_seconds=round(shape.minutes * _MINUTE),
            image=image(shape.name),
            labels={"app": shape.name, **member_label(name)},
            annotations={REQUESTED_BY: person} if person else {},
            spec=spec,
            scheduler_name=self._scheduler_name,
        )

    # -- what follows later ----------------------------------------------------------------------

    def _do_later(self, what: str, about: Json, cluster: WorkloadCluster, now: float) -> None:
        if what == "ungate":
            _ungate(cluster, str(about["name"]))
        elif what == "withdraw":
            delete_if_present(cluster, "Pod", about["namespace"], about["name"])
        elif what == "join":
            create_if_absent(cluster, about)
        elif what == "disband":
            _disband(cluster, about["namespace"], about["name"])


class _Pause:
    """Waiting times between arrivals that do not know of each other, never far off the mean."""

    def __init__(self, mean: float) -> None:
        self._mean = mean

    def __call__(self, draw: Draw) -> float:
        return min(draw.expovariate(1 / self._mean), 3 * self._mean)


def _pods(cluster: WorkloadCluster) -> list[Json]:
    """The demo's pods that have not ended."""
    found = cluster.list("Pod", label_selector=f"{WORKLOAD_LABEL}={DemoWorkload.name}").items
    return [p for p in found if p["status"].get("phase") not in ("Succeeded", "Failed")]


def _has_room(cluster: WorkloadCluster) -> bool:
    return len(_pods(cluster)) < _MOST_PODS


def _ungate(cluster: WorkloadCluster, name: str) -> None:
    try:
        cluster.patch("Pod", "analytics", name, {"spec": {"schedulingGates": []}})
    except NotFound:
        return


def _disband(cluster: WorkloadCluster, in_namespace: str, name: str) -> None:
    key, value = next(iter(member_label(name).items()))
    members = cluster.list("Pod", in_namespace, label_selector=f"{key}={value}").items
    for member in members:
        delete_if_present(cluster, "Pod", in_namespace, member["metadata"]["name"])
    delete_if_present(cluster, "PodGroup", in_namespace, name)
