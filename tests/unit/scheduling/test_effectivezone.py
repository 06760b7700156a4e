"""The one word for the zone that a pod can run in."""

from typing import Any

import pytest
from tests.builders import pod

from joiner.model.codec import decode
from joiner.model.labels import ZONE, Vocabulary
from joiner.model.storage import PersistentVolumeClaim, StorageClass
from joiner.scheduling.pods.effectivezone import effective_zone
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Storage

CLASS = {
    "metadata": {"name": "gp3"},
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}]}],
}
DATA = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"storageClassName": "gp3"}}
STORAGE = Storage(claims=(decode(DATA, PersistentVolumeClaim),), classes=(decode(CLASS, StorageClass),))


@pytest.mark.parametrize(
    ("spec", "zone"),
    [
        pytest.param({}, "flexible", id="no demands"),
        pytest.param({"nodeSelector": {ZONE: "a"}}, "a", id="one zone"),
        pytest.param({"claims": ["data"]}, "flexible", id="two zones of its volume"),
        pytest.param({"claims": ["data"], "nodeSelector": {ZONE: "b"}}, "b", id="both together"),
        pytest.param({"claims": ["data"], "nodeSelector": {ZONE: "a"}}, "none", id="a contradiction"),
    ],
)
def test_demands_and_volumes_leave_a_zone(spec: dict[str, Any], zone: str) -> None:
    assert effective_zone(pod(**spec), VolumeIndex(STORAGE, Vocabulary()), Vocabulary()) == zone
