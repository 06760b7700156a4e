"""Default spread constraints: who gets them, who is spread with whom, and which configurations are refused."""

import re
from typing import Any

import pytest
from tests.builders import node_pool, pod, problem

from joiner.model.clusterobjects import Service
from joiner.model.codec import decode
from joiner.model.labels import HOSTNAME, ZONE
from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod
from joiner.model.workload import ReplicaSet, ReplicationController, StatefulSet
from joiner.scheduling.pods.defaultspread import ConfigProblem, Controller, Selectors, configured, with_defaults
from joiner.scheduling.schedule import schedule

BY_HOST = {"topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def config(*constraints: Any, name: str = "default-scheduler", **more: Any) -> dict[str, Any]:
    args = {"defaultingType": "List", "defaultConstraints": list(constraints), **more}
    profile = {"schedulerName": name, "pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def service(name: str, **selector: str) -> Service:
    return decode({"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}}, Service)


def controller(kind: type[Controller], selector: Any) -> Any:
    return decode({"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector}}, kind)


def owned(kind: str = "", **labels: str) -> Pod:
    owners = (OwnerReference(kind=kind, name="web", controller=True),) if kind else ()
    made = pod("p", labels=labels)
    return replace(made, metadata=replace(made.metadata, owner_references=owners))


def spread(one: Pod, *sources: Any, raw: Any = None) -> Pod:
    services = [each for each in sources if isinstance(each, Service)]
    controllers = [each for each in sources if not isinstance(each, Service)]
    (found,) = with_defaults([one], configured(raw or config(BY_HOST)), Selectors(services, controllers))
    return found


# -- selectors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "sources", "chosen", "passed"),
    [
        pytest.param(
            owned(app="web", tier="x"), [service("a", app="web")], {"app": "web"}, {"app": "db"}, id="a Service"
        ),
        pytest.param(
            owned(app="web", tier="x"),
            [service("a", app="web"), service("b", tier="x"), service("c", app="db")],
            {"app": "web", "tier": "x"},
            {"app": "web"},
            id="all Services that choose the pod",
        ),
        pytest.param(
            owned("ReplicaSet", app="web"),
            [controller(ReplicaSet, {"matchLabels": {"app": "web"}})],
            {"app": "web"},
            {"app": "db"},
            id="the ReplicaSet",
        ),
        pytest.param(
            owned("StatefulSet", app="web", tier="x"),
            [controller(StatefulSet, {"matchLabels": {"app": "web"}}), service("b", tier="x")],
            {"app": "web", "tier": "x"},
            {"app": "web"},
            id="Service and StatefulSet together",
        ),
        pytest.param(
            owned("ReplicationController", app="web"),
            [controller(ReplicationController, {"app": "other"}), service("a", app="web")],
            {"app": "other"},
            {"app": "web"},
            id="a ReplicationController has the last word",
        ),
    ],
)
def test_pods_are_spread_with_those_that_service_and_controller_choose(
    one: Pod, sources: list[Any], chosen: dict[str, str], passed: dict[str, str]
) -> None:
    (constraint,) = spread(one, *sources).spec.topology_spread_constraints

    assert constraint.label_selector is not None
    assert constraint.label_selector.matches(chosen)
    assert not constraint.label_selector.matches(passed)


@pytest.mark.parametrize(
    ("one", "sources"),
    [
        pytest.param(owned(app="web"), [], id="nobody chooses it"),
        pytest.param(owned(app="web"), [service("headless")], id="a Service without a selector"),
        pytest.param(owned("Job", app="web"), [], id="a controller that says nothing"),
        pytest.param(
            pod("p", labels={"app": "web"}, topologySpreadConstraints=[{**BY_HOST, "topologyKey": ZONE}]),
            [service("a", app="web")],
            id="it has constraints of its own",
        ),
        pytest.param(
            pod("p", labels={"app": "web"}, schedulerName="mine"), [service("a", app="web")], id="another scheduler"
        ),
    ],
)
def test_other_pods_stay_as_they_are(one: Pod, sources: list[Any]) -> None:
    assert spread(one, *sources) is one


def test_each_scheduler_has_its_own_defaults() -> None:
    one = pod("p", labels={"app": "web"}, schedulerName="mine")

    assert spread(one, service("a", app="web"), raw=config(BY_HOST, name="mine")).spec.topology_spread_constraints


def test_karpenters_own_form_is_for_the_pods_of_every_scheduler() -> None:
    raw = {"podTopologySpread": {"defaultConstraints": [BY_HOST]}}

    for scheduler in ("default-scheduler", "another"):
        (found,) = with_defaults(
            [pod(labels={"app": "web"}, schedulerName=scheduler)],
            configured(raw),
            Selectors([service("a", app="web")], []),
        )
        assert [each.topology_key for each in found.spec.topology_spread_constraints] == [BY_HOST["topologyKey"]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"podTopologySpread": {}, "more": 1}, "more: is no field"),
        ({"podTopologySpread": {"defaultingType": "List"}}, "podTopologySpread.defaultingType: is no field"),
        ({"podTopologySpread": 3}, "podTopologySpread: expected a mapping"),
        (
            {"podTopologySpread": {"defaultConstraints": [{**BY_HOST, "maxSkew": 0}]}},
            "podTopologySpread.defaultConstraints[0].maxSkew",
        ),
    ],
)
def test_mistakes_in_karpenters_form_are_told_with_the_field(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigProblem, match=re.escape(message)):
        configured(raw)


def test_pods_that_share_a_spec_still_do() -> None:
    made = pod("p", labels={"app": "web"})
    twin = replace(made, metadata=replace(made.metadata, name="q"))
    one, other = with_defaults([made, twin], configured(config(BY_HOST)), Selectors([service("a", app="web")], []))

    assert one.spec is other.spec


@pytest.mark.parametrize(("services", "nodes"), [([service("a", app="web")], 3), ([], 1)])
def test_spread_by_default_means_a_node_each(services: list[Service], nodes: int) -> None:
    pods = [pod(f"p-{n}", "100m", labels={"app": "web"}) for n in range(3)]
    asked = with_defaults(pods, configured(config(BY_HOST)), Selectors(services, []))

    assert len(schedule(problem(asked, node_pool())).claims) == nodes


# -- the configuration ---------------------------------------------------------------------------------------------------


def test_the_schedulers_own_defaults_are_not_planned_for() -> None:
    raw = config()
    raw["profiles"][0]["pluginConfig"][0]["args"] = {"defaultingType": "System"}

    assert configured(raw) == {}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, "this is Pod of v1, not a KubeScheduler", id="another kind"),
        pytest.param(config({**BY_HOST, "maxSkew": 0}), r"defaultConstraints\[0\].maxSkew: is 0", id="skew"),
        pytest.param(config({**BY_HOST, "topologyKey": "a b"}), "topologyKey: 'a b' must have", id="key"),
        pytest.param(config({**BY_HOST, "whenUnsatisfiable": "Maybe"}), "allowed are DoNotSchedule and", id="action"),
        pytest.param(config({**BY_HOST, "labelSelector": {}}), "labelSelector: must not be given", id="selector"),
        pytest.param(config({**BY_HOST, "matchLabelKeys": ["a"]}), "matchLabelKeys: must not be", id="label keys"),
        pytest.param(config(BY_HOST, {**BY_HOST, "maxSkew": 2}), r"of defaultConstraints\[0\]; only one", id="twins"),
        pytest.param(config(BY_HOST, defaultingType="System"), "defaultingType: must be List", id="system and list"),
        pytest.param(config({"maxSkew": 1}), "topologyKey", id="no key"),
        pytest.param({**config(), "profiles": 7}, "profiles: Expected", id="no list"),
    ],
)
def test_a_bad_configuration_is_refused_with_the_field(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigProblem, match=message):
        configured(raw)


def test_all_problems_of_a_configuration_are_told_at_once() -> None:
    with pytest.raises(ConfigProblem) as told:
        configured(config({**BY_HOST, "maxSkew": -1, "matchLabelKeys": ["a"]}))

    assert len(told.value.problems) == 2
