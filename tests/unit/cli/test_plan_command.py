"""`joiner plan`: from manifests to what would be bought, and from scenarios to answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

POOL = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: there}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""


def containers(cpu: str) -> str:
    return f"containers: [{{name: c, resources: {{requests: {{cpu: {cpu!r}, memory: 1Gi}}}}}}]"


def deployment(name: str = "web", replicas: int = 3, cpu: str = "1", more: str = "") -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{{containers(cpu)}{more}}}
"""


def pod(name: str, cpu: str = "1", node: str = "", uid: str = "", owner: str = "") -> str:
    owners = f", ownerReferences: [{{kind: Deployment, name: {owner}, controller: true}}]" if owner else ""
    bound = f"nodeName: {node}, " if node else ""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, uid: "{uid}"{owners}}}
spec: {{{bound}{containers(cpu)}}}
"""


def plan(*documents: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["plan", "-f", "-", *arguments], input="---\n".join(documents))
    return result.exit_code, result.output


def planned(*documents: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["plan", "-f", "-", "-o", "json"], input="---\n".join(documents))
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# -- manifests -----------------------------------------------------------------------------------------------------------


def test_the_table_tells_what_is_bought_where_pods_go_and_what_it_costs() -> None:
    code, text = plan(POOL, deployment())

    assert code == 0
    assert text.startswith("1 node to buy at ")
    assert "a month of 730 hours); 3 of 3 pods placed: 3 on new nodes\n  prices: " in text
    assert "Deployment web     3  3 on new " in text


def test_existing_nodes_are_used_first() -> None:
    found = planned(POOL, NODE, pod("old", cpu="2500m", node="there", uid="x"), deployment(replicas=1))

    assert found["summary"]["newNodes"] == 0
    assert found["existingNodes"] == [{"name": "there", "pods": ["default/web-0"]}]


def test_workloads_are_not_counted_twice_when_their_pods_are_there() -> None:
    living = pod("web-x", node="there", uid="x", owner="web")
    found = planned(POOL, NODE, living, deployment(replicas=2))

    assert found["summary"]["pods"] == 1


def test_a_pod_that_finds_no_place_is_left_over_with_a_reason() -> None:
    code, text = plan(POOL, deployment("huge", cpu="10000"), deployment("fine"))

    assert code == 0
    assert "; 3 left over\n" in text
    assert "What is left over, and why\n" in text
    assert "Deployment huge     3  NodePool default: " in text


def test_what_had_to_be_assumed_is_said() -> None:
    volumes = ", volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
    found = planned(POOL, deployment(replicas=1, more=volumes))

    assert found["summary"]["podsOnNewNodes"] == 1
    assert found["notes"] == [
        "PersistentVolumeClaim default/data is not in these files; it is taken as not bound yet",
        "a default StorageClass is not in these files; its volumes are taken to be possible in every zone",
    ]


def test_data_holds_every_option_and_the_costs() -> None:
    found = planned(POOL, deployment())
    (claim,) = found["claims"]
    prices = [option["price"] for option in claim["options"]]

    assert prices == sorted(prices)
    assert found["summary"]["hourly"] == claim["price"] == prices[0]
    assert found["summary"]["monthly"] == pytest.approx(prices[0] * 730, abs=0.01)
    assert claim["pods"] == ["default/web-0", "default/web-1", "default/web-2"]


def test_daemons_take_their_part_of_every_new_node() -> None:
    daemon = (
        deployment("agent", cpu="100m").replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 3\n", "")
    )
    found = planned(POOL, daemon, deployment(replicas=1))

    assert found["summary"]["pods"] == 1
    assert found["claims"][0]["requests"]["cpu"] == "1100m"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(
            "web-0", "Pod web-0 (Deployment web) goes to a new node of NodePool default\n  bought as:", id="new"
        ),
        pytest.param("default/tiny-0", "Pod tiny-0 (Deployment tiny) goes to node there, which", id="existing"),
        pytest.param("huge-0", "Pod huge-0 (Deployment huge) finds no place\nWHO", id="refused"),
        pytest.param("web-00", "Error: no pod web-00 is waiting for a node; did you mean web-0?", id="unknown"),
    ],
)
def test_explain_tells_the_story_of_one_pod(name: str, words: str) -> None:
    world = (POOL, NODE, deployment("huge", 1, "10000"), deployment("web", 1, "8"), deployment("tiny", 1, "100m"))

    assert words in plan(*world, arguments=("--explain", name))[1]


def test_explain_speaks_json_too() -> None:
    text = plan(POOL, deployment(), arguments=("--explain", "web-1", "-o", "json"))[1]
    found = json.loads(text)

    assert (found["pod"], found["workload"]) == ("default/web-1", "Deployment web")
    assert found["claim"]["nodePool"] == "default"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(
            [],
            "Name manifests with -f, a live cluster with --cluster, or a scenario file with --scenario.",
            id="nothing",
        ),
        pytest.param(["--scenario", "x", "-f", "y"], "--scenario stands alone", id="both"),
        pytest.param(["--scenario", "-"], "<stdin>: holds no scenario: it is empty", id="an empty scenario"),
        pytest.param(["--scenario", "x", "-o", "yaml"], "lines of JSON, not as yaml: leave out -o", id="no JSON"),
        pytest.param(["--scenario", "gone.json"], "gone.json: cannot be read: No such file", id="no such file"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(cli, ["plan", *arguments])

    assert result.exit_code in (1, 2)
    assert words in result.output


def test_an_object_of_the_wrong_shape_is_told_with_its_place() -> None:
    code, text = plan(POOL, deployment().replace("replicas: 3", "replicas: many"))

    assert code == 1
    assert "<stdin>:21: error: Deployment/web: spec.replicas: must be a whole number, not the text 'many'" in text


def test_what_an_api_server_would_refuse_is_told_with_its_place() -> None:
    skewed = ", topologySpreadConstraints: [{topologyKey: a, maxSkew: 0, whenUnsatisfiable: Never}]"
    code, text = plan(POOL, deployment(replicas=-5, more=skewed), pod("taking", cpu="-1"))

    assert code == 1
    assert "<stdin>:21: error: Deployment/web: spec.replicas: -5 is less than 0; 0 or more is allowed" in text
    assert "topologySpreadConstraints[0].maxSkew: 0 is less than 1" in text
    assert "'Never' is not one of the allowed values\n    allowed: DoNotSchedule, ScheduleAnyway" in text
    assert "Pod/taking: spec.containers[0].resources.requests.cpu: -1 is less than 0" in text


def test_a_number_of_pods_that_nobody_means_is_refused() -> None:
    code, text = plan(POOL, deployment(replicas=10**9))

    assert code == 1
    assert "Deployment web wants 1,000,000,000 pods; plans are made for at most 1,000,000" in text


BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, replicas: 2}
"""


def test_room_for_buffers_is_planned_for() -> None:
    found = planned(POOL, deployment(), BUFFER)

    assert [pod for claim in found["claims"] for pod in claim["pods"] if "spare" in pod] == [
        "default/capacity-buffer-spare-0",
        "default/capacity-buffer-spare-1",
    ]


def test_the_headline_tells_how_many_pods_are_spare() -> None:
    said = "5 of 5 pods placed: 5 on new nodes; 2 of the pods only keep room for a CapacityBuffer\n"

    assert said in plan(POOL, deployment(), BUFFER)[1]
    assert "CapacityBuffer" not in plan(POOL, deployment())[1]
    assert planned(POOL, deployment(), BUFFER)["summary"]["sparePods"] == 2


# -- scenarios -----------------------------------------------------------------------------------------------------------


def scenario(name: str, *pods: str, **more: Any) -> dict[str, Any]:
    keys = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "zone-1"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in keys.items()]
    kind = {
        "name": "four",
        "requirements": requirements,
        "offerings": [{"requirements": requirements, "price": 0.2, "available": True}],
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
    }
    waiting = [
        {"metadata": {"name": each}, "spec": {"containers": [{"resources": {"requests": {"cpu": "3"}}}]}}
        for each in pods
    ]
    return {
        "name": name,
        "nodePools": [{"metadata": {"name": "default"}}],
        "instanceTypes": [kind],
        "pods": waiting,
        **more,
    }


def answers(text: str, *arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["plan", "--scenario", *(arguments or ("-",)), "--output", "json"], input=text)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == any("failure" in each for each in found), result.output
    return found


def test_every_scenario_gets_one_line_in_order_and_a_bad_one_does_not_stop_the_others() -> None:
    text = "\n".join(
        [json.dumps(scenario("a", "p", "q")), '{"name": "b", "pods": 1}', json.dumps(scenario("c"), indent=2)]
    )
    a, b, c = answers(text)

    assert (a["name"], a["summary"]["newNodes"], a["summary"]["totalCheapestPrice"]) == ("a", 2, 0.4)
    assert (b["name"], b["failure"]) == ("b", "this is no scenario: Expected `array`, got `int` - at `$.pods`")
    assert (c["name"], c["newNodeClaims"]) == ("c", [])


def test_files_that_a_scenario_names_are_looked_for_beside_it(tmp_path: Path) -> None:
    whole = scenario("a", "p")
    (tmp_path / "types.json").write_text(json.dumps({"instanceTypes": whole.pop("instanceTypes")}))
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({**whole, "instanceTypesFile": "types.json"}))
    (found,) = answers("", str(path))

    assert found["newNodeClaims"][0]["instanceTypes"] == ["four"]


def test_a_pod_on_a_node_is_told_with_the_node() -> None:
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "5"}}}
    (found,) = answers(json.dumps(scenario("a", "p", nodes=[node])))

    assert found["existingNodes"] == [{"name": "n", "pods": ["p"]}]
    assert found["summary"]["podsOnExistingNodes"] == 1


def test_a_strict_plan_fails_when_somebody_is_left_over() -> None:
    lesson = str(Path(__file__).resolve().parents[3] / "examples" / "17-a-first-plan")

    assert CliRunner().invoke(cli, ["plan", "-f", lesson]).exit_code == 0
    assert CliRunner().invoke(cli, ["plan", "-f", lesson, "--strict"]).exit_code == 1


WORKLOAD_ELSEWHERE = deployment().replace("{name: web}", "{name: web, namespace: shop}", 1)
DAEMONS = deployment("agent").replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 3\n", "")
GATED = pod("gated").replace("spec: {", "spec: {schedulingGates: [{name: budget}], ")
DONE = pod("done") + "status: {phase: Succeeded}\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(
            "web", "no pod web is waiting for a node: it is a Deployment; did you mean shop/web-0?", id="workload"
        ),
        pytest.param("shop/web", "it is a Deployment; did you mean shop/web-0?", id="workload in a namespace"),
        pytest.param("web-00", "no pod web-00 is waiting for a node; did you mean shop/web-0?", id="a slip"),
        pytest.param("other/web", "no pod other/web is waiting for a node", id="another namespace"),
        pytest.param(
            "elephant",
            "elephant is waiting for a node; there are shop/web-0, shop/web-1, shop/web-2",
            id="nothing like it",
        ),
        pytest.param("there-0", "there-0 is not waiting for a node: it is on node there already", id="running"),
        pytest.param(
            "gated", "gated is not waiting for a node: it is held back by scheduling gates: budget", id="gated"
        ),
        pytest.param("done", "done is not waiting for a node: it has run to its end (Succeeded)", id="done"),
        pytest.param("agent", "it is a DaemonSet, and its pods come with every node", id="daemons"),
    ],
)
def test_who_is_asked_about_and_does_not_wait_is_told_what_it_does(name: str, words: str) -> None:
    world = (POOL, NODE, pod("there-0", node="there"), GATED, DONE, DAEMONS, WORKLOAD_ELSEWHERE)
    code, text = plan(*world, arguments=("--explain", name))

    assert code == 1
    assert words in text


def test_effort_that_is_spent_leaves_pods_untried_and_says_so() -> None:
    several = [deployment(name, replicas=1, cpu=cpu) for name, cpu in (("a", "30"), ("b", "20"), ("c", "10"))]

    code, text = plan(POOL, *several, arguments=("--effort", "2"))

    assert code == 0
    assert "2 of 3 pods placed" in text
    assert "1 pod was not tried: the effort was spent before their turn" in text
