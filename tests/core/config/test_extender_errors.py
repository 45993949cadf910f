"""Faults in extenders, in kube-scheduler's words, and what they take from NodeResourcesFit."""

from __future__ import annotations

import pytest

from .documents import names


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param(
            [{"urlPrefix": "http://a", "prioritizeVerb": "p"}],
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="weight",
        ),
        pytest.param(
            [
                {"urlPrefix": "http://a", "bindVerb": "b"},
                {"urlPrefix": "http://b", "bindVerb": "b"},
            ],
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender '
            "can implement bind",
            id="two binders",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "managedResources": [{"name": "cpu"}]}],
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended '
            "resource name",
            id="no extended resource",
        ),
        pytest.param(
            [
                {
                    "urlPrefix": "http://a",
                    "managedResources": [{"name": "e.com/x"}, {"name": "e.com/x"}],
                }
            ],
            'extenders[0].managedResources[1].name: Invalid value: "e.com/x": duplicate extender '
            "managed resource name",
            id="a resource twice",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "tlsConfig": {"keyData": "secret!"}}],
            "extenders[0].tlsConfig.keyData: Invalid value: must be base64",
            id="a key is never shown",
        ),
        pytest.param(
            [{"urlPrefix": "http://a", "tlsConfig": {"keyData": ["secret!"]}}],
            "extenders[0].tlsConfig.keyData: Invalid value: must be base64",
            id="nor is one in a list",
        ),
    ],
)
def test_extenders(faults, extenders, expected):
    assert faults(extenders=extenders) == [expected]


def test_what_extenders_look_after_is_taken_from_node_resources_fit(load):
    managed = [{"name": "e.com/gpu", "ignoredByScheduler": True}, {"name": "e.com/nic"}]
    config = load(
        extenders=[{"urlPrefix": "http://a", "filterVerb": "f", "managedResources": managed}],
        profiles=[
            {
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["e.com/z"]}}
                ]
            }
        ],
    )
    args = config.profiles[0].plugin_args["NodeResourcesFit"]
    assert args["ignoredResources"] == ["e.com/gpu"]


def test_that_needs_node_resources_fit(faults):
    managed = [{"name": "e.com/gpu", "ignoredByScheduler": True}]
    lines = faults(
        extenders=[{"urlPrefix": "http://a", "managedResources": managed}],
        profiles=[{"plugins": {"multiPoint": {"disabled": names("NodeResourcesFit")}}}],
    )
    assert lines == ["can't find NodeResourcesFitArgs in plugin config"]
