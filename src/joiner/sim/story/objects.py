"""The objects that the words of a story stand for, as Kubernetes would have them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model import codec, labels, patch, quantity
from joiner.model.meta import KubeObject
from joiner.model.nodepool import NodePool
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.workload import DaemonSet, Deployment, Job, StatefulSet
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.kubelet.podlifecycle import RUNS_FOR
from joiner.sim.story import ec2
from joiner.sim.story.document.format import DaemonSetStep, Deploy, JobStep, PodWords, StatefulSetStep
from joiner.sim.story.document.given import Given, PoolWords

K = TypeVar("K", bound=KubeObject)
NAMESPACE: Final = "default"
DAWN: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""A beginning, for those who do not mind which."""
CLASS: Final = "default"
"""The NodeClass of every pool that a story names in a few words."""
APP: Final = "app"
"""The label by which a workload's pods are known."""

_KEYS: Final = {"zone": labels.ZONE, "hostname": labels.HOSTNAME, "node": labels.HOSTNAME}


def called(server: ApiServer, kind: type[K], name: str) -> list[K]:
    """The objects of a kind and name: the one of the namespace of stories, or else those of all namespaces."""
    found = server.find(kind, name, NAMESPACE if kind.namespaced else "")
    return [each for each in server.objects(kind) if each.name == name] if found is None else [found]


def pools(given: Given) -> Iterator[NodePool]:
    """The pools that a story names in a few words."""
    yield from (pool(each, own_class(given)) for each in given.nodepools)


def own_class(given: Given) -> type[KWOKNodeClass] | type[EC2NodeClass]:
    """The kind of NodeClass that the provider of a story reads."""
    return EC2NodeClass if ec2.is_meant(given) else KWOKNodeClass


def pool(words: PoolWords, own: type[KWOKNodeClass] | type[EC2NodeClass] = KWOKNodeClass) -> NodePool:
    """The pool that a few words stand for."""
    return codec.decode(_pool(words, own), NodePool)


def node_class(given: Given, folder: Path, begins: datetime = DAWN) -> KWOKNodeClass:
    """The one NodeClass of a story, with its catalogue and reservations, some of which end a while after the beginning."""
    reservations: list[dict[str, Any]] = []
    for each in given.reservations:
        told: dict[str, Any] = {
            "id": each.id, "instanceType": each.instance_type, "zone": each.zone, "count": each.count,
        }  # fmt: skip
        if each.until is not None:
            told["endTime"] = (begins + each.until.timedelta).isoformat()
        reservations.append(told)
    spec = {"instanceTypes": given.catalog, "capacityReservations": reservations}
    return codec.decode({"metadata": {"name": CLASS}, "spec": spec}, KWOKNodeClass).written_in(folder)


def _pool(words: PoolWords, own: type[KubeObject]) -> dict[str, Any]:
    wanted = (
        (labels.CAPACITY_TYPE, words.capacity_types),
        (labels.INSTANCE_TYPE, words.instance_types),
        (labels.ZONE, words.zones),
    )
    requirements = [{"key": key, "operator": "In", "values": list(values)} for key, values in wanted if values]
    template: dict[str, Any] = {
        "requirements": [*requirements, *map(dict, words.requirements)],
        "nodeClassRef": {"group": own.group, "kind": own.kind, "name": CLASS},
        "expireAfter": words.expire_after.text(),
        "taints": list(map(dict, words.taints)),
        "startupTaints": list(map(dict, words.startup_taints)),
    }
    if words.termination_grace_period is not None:
        template["terminationGracePeriod"] = words.termination_grace_period.text()
    spec: dict[str, Any] = {
        "template": {
            "metadata": {"labels": dict(words.labels), "annotations": dict(words.annotations)},
            "spec": template,
        },
        "disruption": {
            "consolidateAfter": words.consolidate_after.text(),
            "consolidationPolicy": words.consolidation_policy,
            "budgets": list(map(dict, words.budgets)),
        },
        "limits": dict(words.limits),
    }
    for name in ("weight", "replicas"):
        if getattr(words, name) is not None:
            spec[name] = getattr(words, name)
    metadata: dict[str, Any] = {"name": words.name}
    if words.eviction_cost is not None:
        metadata["annotations"] = {labels.EVICTION_COST: words.eviction_cost.text()}
    return {"metadata": metadata, "spec": spec}


def workload(step: PodWords) -> tuple[KubeObject, ...]:
    """The workload that a step begins, with its disruption budget if it has one."""
    if isinstance(step, Deploy):
        made: KubeObject = codec.decode(_replicated(step.deploy, step, step.replicas), Deployment)
    elif isinstance(step, StatefulSetStep):
        made = codec.decode(_stateful(step), StatefulSet)
    elif isinstance(step, DaemonSetStep):
        made = codec.decode(_body(step.daemon_set, step, {}), DaemonSet)
    else:
        assert isinstance(step, JobStep)
        made = codec.decode(_job(step), Job)
    return (made, *_budget(made.name, step))


def _replicated(name: str, words: PodWords, replicas: int) -> dict[str, Any]:
    return _body(name, words, {"replicas": replicas})


def _stateful(step: StatefulSetStep) -> dict[str, Any]:
    body = _replicated(step.stateful_set, step, step.replicas)
    if step.volume:
        claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": step.volume}}
        body["spec"]["volumeClaimTemplates"] = [claim]
        body["spec"]["template"]["spec"].pop("volumes", None)
    return body


def _job(step: JobStep) -> dict[str, Any]:
    body = _body(step.job, step, {"completions": step.completions, "parallelism": step.parallelism})
    del body["spec"]["selector"]
    return body


def _body(name: str, words: PodWords, spec: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {APP: name, **words.labels}
    annotations = dict(words.annotations)
    if words.do_not_disrupt:
        annotations[labels.DO_NOT_DISRUPT] = "true"
    if words.runs_for is not None:
        annotations[RUNS_FOR] = words.runs_for.text()
    pod = patch.apply(words.spec, _pod_spec(name, words))
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {APP: name}},
        "spec": {
            **spec,
            "selector": {"matchLabels": {APP: name}},
            "template": {"metadata": {"labels": chosen, "annotations": annotations}, "spec": pod},
        },
    }


def _pod_spec(name: str, words: PodWords) -> dict[str, Any]:
    asked = {key: codec.encode({key: amount})[key] for key, amount in words.requests.items()}
    if words.cpu:
        asked["cpu"] = quantity.text(words.cpu)
    if words.memory:
        asked["memory"] = codec.encode({"memory": words.memory})["memory"]
    selector = {"matchLabels": {APP: name}}
    terms = {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": _key(key), "labelSelector": selector}]
        }
        for kind, key in (("podAntiAffinity", words.apart), ("podAffinity", words.together))
        if key
    }
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": asked}}],
        "nodeSelector": dict(words.node_selector),
        "tolerations": list(map(dict, words.tolerations)),
        "affinity": terms,
        "topologySpreadConstraints": [
            {"topologyKey": _key(key), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            for key in words.spread
        ],
        "terminationGracePeriodSeconds": int(words.grace.seconds),
    }
    if words.volume:
        template = {"spec": {"storageClassName": words.volume}}
        spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]
    return spec


def _key(word: str) -> str:
    return _KEYS.get(word, word)


def _budget(name: str, words: PodWords) -> Iterable[PodDisruptionBudget]:
    if words.min_available is None:
        return ()
    raw = {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minAvailable": words.min_available, "selector": {"matchLabels": {APP: name}}},
    }
    return (codec.decode(raw, PodDisruptionBudget),)
