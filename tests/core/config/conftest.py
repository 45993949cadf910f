from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    configuration_from,
)
from scheduler_core.framework.runtime.registry import Registry

from .fakes import fake_registry

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.fixture
def registry() -> Registry:
    return fake_registry()


@pytest.fixture
def load(registry: Registry) -> Callable[..., SchedulerConfiguration]:
    """load(parallelism=3, profiles=[...]): a configuration with these fields."""

    def load_fields(**fields: Any) -> SchedulerConfiguration:
        before = json.dumps(fields)
        answer = configuration_from({**HEAD, **fields}, registry)
        assert json.dumps(fields) == before, "the given document was changed"
        return answer

    return load_fields


@pytest.fixture
def faults(load: Callable[..., SchedulerConfiguration]) -> Callable[..., list[str]]:
    """faults(parallelism=0): the lines that such a configuration is refused with."""

    def faults_of(**fields: Any) -> list[str]:
        with pytest.raises(InvalidConfiguration) as caught:
            load(**fields)
        return caught.value.lines()

    return faults_of
