"""The implementation against its OpenAPI document: made-up requests, good and bad."""

from __future__ import annotations

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dashboard.models import SchedulerRun, WaitingPod
from dashboard.rest import tokens
from tests.dashboard.rest.conftest import SCHEMA
from tests.dashboard.told_waits import gang, waiting

pytestmark = pytest.mark.django_db(transaction=True)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [item.ok() for item in SCHEMA.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: item.label)
def test_every_answer_is_one_that_the_schema_describes(
    run: SchedulerRun, operator: User, operation: schemathesis.schemas.APIOperation
) -> None:
    waiting(run, "web")
    gang(run, "a", "b")
    token = tokens.issue(operator, name="b", scopes=["read", "decide"], days=7, by=operator).text
    headers = {"Authorization": f"Bearer {token}"}
    application = get_wsgi_application()
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    for mode in modes:

        @settings(
            max_examples=15,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @_given(operation, mode)
        def check(case: schemathesis.Case) -> None:
            response = case.call(app=application, headers={**(case.headers or {}), **headers})
            case.validate_response(response, checks=CHECKS)

        check()
    assert WaitingPod.objects.count() == 3


def _given(operation: schemathesis.schemas.APIOperation, mode: schemathesis.GenerationMode):
    from hypothesis import given

    return given(case=operation.as_strategy(generation_mode=mode))
