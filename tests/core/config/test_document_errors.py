"""Documents that are refused whole, and every fault of one at once."""

from __future__ import annotations

import pytest

from scheduler_core.config import InvalidConfiguration, load_configuration

from .documents import PROFILE, V1
from .fakes import fake_registry


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration",
            'no kind "KubeSchedulerConfiguration" is registered for version '
            '"kubescheduler.config.k8s.io/v1beta3" in scheme "kubescheduler.config.k8s.io"',
            id="another version",
        ),
        pytest.param(
            f"apiVersion: {V1}\nkind: Policy",
            f'no kind "Policy" is registered for version "{V1}" in scheme '
            '"kubescheduler.config.k8s.io"',
            id="another kind",
        ),
        pytest.param(
            f"apiVersion: {V1}",
            "Object 'Kind' is missing: kind must be KubeSchedulerConfiguration",
            id="no kind",
        ),
        pytest.param("", "must be a mapping with apiVersion and kind", id="empty"),
        pytest.param("- 1", "must be a mapping with apiVersion and kind", id="a list"),
        pytest.param(
            "a: 1\nb: [1,\n  2\nc: 3\n",
            "line 4, column 2: did not find expected ',' or ']' while parsing a flow sequence",
            id="no YAML",
        ),
        pytest.param(
            "a: 1\nb: 2\na: 3\n",
            'strict decoding error: yaml: unmarshal errors:\n  line 3: key "a" already set in map',
            id="a key twice in YAML",
        ),
        pytest.param(
            '{"a": 1, "a": 2}',
            'strict decoding error: duplicate field "a"',
            id="a key twice in JSON",
        ),
        pytest.param(
            "a: 2026-01-01\n",
            "a: a date is not allowed here; put it in quotes to make it text",
            id="a date",
        ),
        pytest.param(
            "a: 1\n---\nb: 1\n",
            "line 2, column 1: but found another document expected a single document in the stream",
            id="two documents",
        ),
        pytest.param(
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
            "the document is too large or nested too deeply",
            id="aliases that multiply",
        ),
        pytest.param(
            "a:\n  " + "[" * 50_000,
            "line 2, column 202: nested deeper than 200 levels",
            id="nested so deeply that the C loader would end the process",
        ),
        pytest.param(
            "a: &a [*a]\n",
            "the document is too large or nested too deeply",
            id="an alias of itself",
        ),
    ],
)
def test_documents_that_are_refused_whole(text, expected):
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(text, fake_registry(), source="scheduler.yaml")
    assert str(caught.value) == f"scheduler.yaml: {expected}"


def test_every_fault_is_listed_at_once_and_joined_as_the_reference_joins_them():
    text = f"""
apiVersion: {V1}
kind: KubeSchedulerConfiguration
foo: 1
parallelism: 0
profiles:
- plugins:
    filter: {{enabled: [{{name: Nope}}]}}
  pluginConfig:
  - name: InterPodAffinity
    args: {{hardPodAffinityWeight: 200}}
"""
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(text, fake_registry(), source="a.yaml")
    lines = [
        'strict decoding error: unknown field "foo"',
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid "
        "range [0, 100]",
        PROFILE + 'FilterPlugin "Nope" does not exist',
    ]
    assert caught.value.lines() == lines
    assert str(caught.value) == f"a.yaml: [{', '.join(lines)}]"
    assert [fault.path for fault in caught.value.faults][1] == "parallelism"
