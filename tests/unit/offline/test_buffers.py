"""CapacityBuffers become virtual pods: how many, and what is left of their template."""

from typing import Any

import pytest

from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.codec import decode
from joiner.model.pod import Pod
from joiner.model.podrules import is_provisionable
from joiner.model.workload import Deployment, PodTemplate
from joiner.offline.workloads.buffers import Sources
from joiner.state.virtualpods import LOWEST_PRIORITY, is_virtual, virtual_pods

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "nodeName": "somewhere",
        "containers": [{"resources": {"requests": {"cpu": "2"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}, {"name": "scratch"}],
    },
}
METADATA = {"name": "web", "namespace": "team"}
SOURCES = Sources(
    [decode({"metadata": METADATA, "template": TEMPLATE}, PodTemplate)],
    [decode({"metadata": METADATA, "spec": {"replicas": 5, "template": TEMPLATE}}, Deployment)],
)
BY_TEMPLATE = {"podTemplateRef": {"name": "web"}}
BY_WORKLOAD = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}}


def pods(**spec: Any) -> tuple[Pod, ...] | None:
    return virtual_pods(decode({"metadata": METADATA, "spec": spec}, CapacityBuffer), SOURCES)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({**BY_TEMPLATE, "replicas": 3}, 3, id="a number"),
        pytest.param({**BY_WORKLOAD, "percentage": 30}, 2, id="a share, rounded up"),
        pytest.param({**BY_WORKLOAD, "percentage": 1}, 1, id="a share is at least one"),
        pytest.param({**BY_WORKLOAD, "percentage": 0}, 0, id="a share of nothing"),
        pytest.param({**BY_WORKLOAD, "percentage": 30, "replicas": 4}, 4, id="the larger of both"),
        pytest.param({**BY_TEMPLATE, "limits": {"cpu": "7"}}, 3, id="as many as the limits hold"),
        pytest.param(
            {**BY_TEMPLATE, "replicas": 9, "limits": {"cpu": "7", "memory": "1"}}, 3, id="never more than that"
        ),
        pytest.param(
            {**BY_TEMPLATE, "replicas": 3, "provisioningStrategy": "example.com/other"}, 0, id="somebody else's"
        ),
    ],
)
def test_room_is_kept_for_so_many_pods(spec: dict[str, Any], count: int) -> None:
    assert len(pods(**spec) or ()) == count


def test_a_virtual_pod_is_like_the_template_but_belongs_nowhere() -> None:
    (pod,) = pods(**BY_TEMPLATE, replicas=1) or ()

    assert is_provisionable(pod)
    assert is_virtual(pod)
    assert (pod.name, pod.metadata.namespace, pod.metadata.labels) == ("capacity-buffer-web-0", "team", {"app": "web"})
    assert (pod.spec.node_name, pod.spec.priority) == ("", LOWEST_PRIORITY)
    assert [volume.name for volume in pod.spec.volumes] == ["scratch"]


def test_a_buffer_for_something_that_is_not_there_is_known_as_such() -> None:
    assert pods(podTemplateRef={"name": "gone"}, replicas=1) is None
