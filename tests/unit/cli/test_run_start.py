"""`joiner run` when it cannot start: one sentence with what to do, an exit code, no traceback, no credential."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.loopback import Answer, Asked, Loopback, listening, status

from joiner.cli.main import cli
from joiner.options import Options, flag_of

SECRET = "the-secret-token"
KINDS = {
    "/api/v1": ["pods", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims", "services", "podtemplates",
                "limitranges", "replicationcontrollers"],
    "/apis/karpenter.sh/v1": ["nodepools", "nodeclaims"],
    "/apis/karpenter.sh/v1alpha1": ["nodeoverlays", "instancetypes"],
    "/apis/karpenter.kwok.sh/v1alpha1": ["kwoknodeclasses"],
    "/apis/apps/v1": ["daemonsets", "deployments", "replicasets", "statefulsets"],
    "/apis/storage.k8s.io/v1": ["storageclasses", "csinodes", "volumeattachments"],
    "/apis/policy/v1": ["poddisruptionbudgets"],
    "/apis/scheduling.k8s.io/v1": ["priorityclasses"],
    "/apis/node.k8s.io/v1": ["runtimeclasses"],
    "/apis/autoscaling.x-k8s.io/v1beta1": ["capacitybuffers"],
}  # fmt: skip


class Cluster:
    """An API server as far as a start needs one, with something missing."""

    def __init__(
        self, *, minor: str = "36", without: str = "", denied: str = "", refuses: int = 0, renewed: str = ""
    ) -> None:
        self._minor, self._without, self._denied, self._refuses = minor, without, denied, refuses
        self._renewed = renewed
        self._asked_for_leases = 0

    def __call__(self, asked: Asked) -> Answer:
        if self._refuses:
            return status(self._refuses, "Unauthorized", "Unauthorized")
        if asked.path == "/version":
            return Answer({"major": "1", "minor": self._minor, "gitVersion": f"v1.{self._minor}.0"})
        if asked.path in KINDS:
            return Answer({"resources": [{"name": each} for each in KINDS[asked.path] if each != self._without]})
        if asked.path.endswith("/selfsubjectaccessreviews"):
            wanted = asked.document["spec"]["resourceAttributes"]
            name = f"{wanted['verb']} {wanted['resource']}" + (
                f"/{wanted['subresource']}" if "subresource" in wanted else ""
            )
            return Answer({"status": {"allowed": name != self._denied}})
        if asked.path.endswith("/leases") and asked.method == "GET":
            return Answer({"metadata": {"resourceVersion": "1"}, "items": self._leases()})
        return status(404, "NotFound", "not found")

    def _leases(self) -> list[Any]:
        """Of another controller; `renewed` says whether it is alive."""
        self._asked_for_leases += 1
        second = self._asked_for_leases if self._renewed == "always" else 1
        spec = {"holderIdentity": "karpenter-abc_1", "renewTime": f"2030-01-07T00:00:0{second}.000000Z"}
        lease = {"metadata": {"name": "karpenter-leader-election", "namespace": "karpenter"}, "spec": spec}
        return [lease] if self._renewed else []


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "CLUSTER_NAME",
        *(flag_of(each).upper().replace("-", "_") for each in Options.__dataclass_fields__),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def config(folder: Path, server: str, token: str = SECRET) -> str:
    path = folder / "kubeconfig"
    data = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(data))
    return str(path)


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["run", *arguments], prog_name="joiner", env=environment)
    assert "Traceback" not in result.output
    assert SECRET not in result.output
    return result.exit_code, result.output


def started(folder: Path, cluster: Cluster, *arguments: str) -> tuple[int, str]:
    with listening(cluster) as server:
        return run("--kubeconfig", config(folder, server.url), "--metrics-port=0", "--health-probe-port=0", *arguments)


def last(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    code, text = run("--kubeconfig", str(tmp_path / "missing"))

    assert code == 1
    assert last(text) == f"Error: kubeconfig {tmp_path / 'missing'}: there is no such file; check the path"


def test_no_cluster_at_all() -> None:
    code, text = run()

    assert code == 1
    assert "name a kubeconfig with --kubeconfig" in last(text)


def test_a_context_that_is_not_there(tmp_path: Path) -> None:
    code, text = run("--kubeconfig", config(tmp_path, "https://127.0.0.1:1"), "--context", "y")

    assert code == 1
    assert "there are x" in last(text)


def test_a_server_that_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        code, text = run("--kubeconfig", config(tmp_path, f"https://127.0.0.1:{taken.getsockname()[1]}"))

    assert code == 1
    assert "cannot be reached" in last(text)
    assert "check kubeconfig" in last(text)


def test_a_token_that_has_expired(tmp_path: Path) -> None:
    code, text = started(tmp_path, Cluster(refuses=401))

    assert code == 1
    assert "have expired: log in again, or renew the token" in last(text)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
        Answer({"message": "welcome"}),
        Answer(text=b"<html>log in</html>", status=302, headers={"Location": "https://login.example.com"}),
    ],
)
def test_a_server_that_is_no_api_server(tmp_path: Path, answer: Answer) -> None:
    with listening(lambda asked: answer) as server:
        code, text = run("--kubeconfig", config(tmp_path, server.url))

    assert code == 1
    assert "not one of a Kubernetes API server" in last(text)
    assert "check kubeconfig" in last(text)


def test_without_an_election_a_controller_that_leads_is_an_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joiner.cli.run.checks.WATCHED_S", 0.0)
    monkeypatch.setenv("LEADER_ELECTION_NAMESPACE", "karpenter")
    code, text = started(tmp_path, Cluster(renewed="always"), "--disable-leader-election")

    assert code == 1
    assert "karpenter-abc_1 already works on this cluster" in last(text)


def test_a_server_that_is_too_old(tmp_path: Path) -> None:
    code, text = started(tmp_path, Cluster(minor="28+"))

    assert code == 1
    assert "has version v1.28+.0; Kubernetes 1.29 is the oldest that works: upgrade the cluster" in last(text)


def test_crds_that_are_missing(tmp_path: Path) -> None:
    code, text = started(tmp_path, Cluster(without="nodeclaims"))

    assert code == 1
    assert "nodeclaims.karpenter.sh; install them first: joiner crds | kubectl apply" in last(text)


@pytest.mark.parametrize(
    "denied", ["watch pods", "create nodeclaims", "patch nodeclaims/status", "create pods/eviction", "patch leases"]
)
def test_a_permission_that_is_missing(tmp_path: Path, denied: str) -> None:
    code, text = started(tmp_path, Cluster(denied=denied))

    assert code == 1
    assert f"may not {denied}" in last(text)
    assert "ClusterRole" in last(text)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken, listening(Cluster()) as server:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, text = run(
            "--kubeconfig", config(tmp_path, server.url), f"--metrics-port={port}", "--health-probe-port=0"
        )

    assert code == 1
    assert f"port {port} cannot be listened on" in last(text)
    assert "--metrics-port (METRICS_PORT)" in last(text)


def test_another_controller_with_a_lease_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joiner.cli.run.checks.WATCHED_S", 0.0)
    code, text = started(tmp_path, Cluster(renewed="always"))

    assert code == 1
    assert "karpenter-abc_1 already works on this cluster with the lease karpenter/karpenter-leader-election" in last(
        text
    )
    assert "stop it, or stand by for it with --leader-election-namespace=karpenter" in last(text)


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (("--provider=nowhere",), {}, "there is no provider 'nowhere'"),
        (("--batch-max-duration=soon",), {}, "expected a duration"),
        ((), {"FEATURE_GATES": "NodeRepair"}, "expected Name=true or Name=false"),
        ((), {"SCHEDULER_CONFIG": "a: ["}, "scheduler-config"),
        (("--log-output-paths=/no/such/folder/log",), {}, "log-output-paths"),
    ],
)
def test_settings_that_cannot_be_understood(
    arguments: tuple[str, ...], environment: dict[str, str], words: str
) -> None:
    code, text = run(*arguments, **environment)

    assert code == 1
    assert words in text


def test_flags_with_one_dash_are_those_with_two() -> None:
    code, text = run("-metrics-port=many", "-log-level", "loud", "-enable-profiling")

    assert code == 1
    assert "flag --metrics-port: 'many'" in text
    assert "flag --log-level: 'loud'" in text


def test_the_provider_and_why_is_the_first_line_of_the_log(tmp_path: Path) -> None:
    _, text = run("--kubeconfig", str(tmp_path / "missing"))

    first: dict[str, Any] = json.loads(text.splitlines()[0])
    assert first["message"] == "provider kwok"
    assert "CLUSTER_NAME is not set" in first["reason"]


@pytest.fixture
def empty_cluster() -> Iterator[Loopback]:
    cluster = Cluster(without="instancetypes")

    def handler(asked: Asked) -> Answer:
        if "sendInitialEvents" in asked.query:
            end = {"name": "", "resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
            return Answer(lines=[{"type": "BOOKMARK", "object": {"metadata": end}}])
        if "watch" in asked.query:
            return Answer(lines=[], stays=True)
        return cluster(asked)

    with listening(handler) as server:
        yield server


def test_a_dry_run_on_a_cluster_without_optional_kinds_ends_and_writes_nothing(
    tmp_path: Path, empty_cluster: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joiner.cli.run.process.SETTLE_S", 0.0)
    code, text = run("--kubeconfig", config(tmp_path, empty_cluster.url), "--dry-run", "--batch-max-duration=500ms")

    said = [json.loads(line)["message"] for line in text.splitlines()]
    assert (code, said[-1]) == (0, "dry run is over; nothing was written")
    assert "InstanceType objects are not read: the cluster has no such kind" in said
    writes = [asked for asked in empty_cluster.asked if asked.method != "GET" and "accessreviews" not in asked.path]
    assert not writes
    assert not [each for each in empty_cluster.asked if "instancetypes" in each.path]
