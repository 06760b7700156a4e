"""What only a real API server refuses, and what the client makes of it: permissions, sizes, a history cut short."""

import base64
import json
from pathlib import Path

import pytest
from tests.builders import node_pool, pod, requirement
from tests.contract.servers import over_http
from tests.contract.test_client import unnamed
from tools.controlplane.certificates import kubeconfig
from tools.controlplane.cluster import Cluster

from joiner.kube.client import Client
from joiner.kube.errors import Forbidden, Gone, Invalid, NotFound, Unauthorized
from joiner.kube.http.client import HttpClient, path_of
from joiner.kube.http.transport import Request
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod

pytestmark = pytest.mark.cluster
NAMESPACE, ACCOUNT = "contract-refusals", "contract-stranger"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def stranger(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of an account that may get Nodes, and nothing else."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    resources = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    role = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": ACCOUNT}}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT}
    real_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    real_cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
    )
    real_cluster.apply({**role, "kind": "ClusterRole", "rules": resources})
    real_cluster.apply({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [account]})
    return real_cluster.token_kubeconfig(tmp_path_factory.mktemp("stranger") / "token", NAMESPACE, ACCOUNT)


def test_what_is_not_allowed_is_told_with_who_asked_for_what(stranger: Path) -> None:
    async def test(client: Client) -> None:
        for ask in (
            client.list(Pod),
            client.create(unnamed(Node())),
            client.delete(Node, "contract-missing"),
            client.evict("default", "contract-missing"),
        ):
            with pytest.raises(Forbidden, match=USER):
                await ask
        with pytest.raises(Forbidden, match='cannot watch resource "nodes"'):
            async for _ in client.watch(Node, "0"):
                pass
        with pytest.raises(NotFound):
            await client.get(Node, "contract-missing")

    over_http(stranger, test)


def test_a_token_that_is_none_is_told_apart(real_cluster: Cluster, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "none", real_cluster.server, real_cluster.pki / "ca.crt", {"token": "none"})

    async def test(client: Client) -> None:
        with pytest.raises(Unauthorized):
            await client.get(Node, "contract-missing")
        with pytest.raises(Unauthorized):
            async for _ in client.watch(Node, "0"):
                pass

    over_http(file, test)


def test_every_cause_is_told_with_its_field(real_cluster: Cluster) -> None:
    async def test(client: Client) -> None:
        odd = unnamed(pod(nodeSelector={"no key": "x"}, overhead={"no name": "1"}), namespace="default")
        with pytest.raises(Invalid) as refused:
            await client.create(odd)
        fields = {each.partition(":")[0] for each in refused.value.causes}
        assert fields == {"spec.nodeSelector", "spec.overhead.limits[no name]"}

    over_http(real_cluster.kubeconfig, test)


@pytest.mark.parametrize("megabytes", [2, 4])
def test_what_is_too_large_is_wrong_and_not_tried_again(real_cluster: Cluster, megabytes: int) -> None:
    """The API server takes three megabytes, etcd one and a half."""
    values = [f"{number:063}" for number in range(megabytes * 1_000_000 // 66)]
    pool = unnamed(node_pool(requirements=[requirement("example.com/large", "In", *values)]))

    async def test(client: Client) -> None:
        with pytest.raises(Invalid, match="large"):
            await client.create(pool)

    over_http(real_cluster.kubeconfig, test)


def test_a_page_of_a_moment_that_is_forgotten_cannot_be_had(real_cluster: Cluster) -> None:
    """Pages are of one moment. Here it is one from before there was such a kind."""
    real_cluster.compact()
    mark = {"v": "meta.k8s.io/v1", "rv": 1, "start": "contract"}
    asked = {"limit": "1", "continue": base64.urlsafe_b64encode(json.dumps(mark).encode()).decode().rstrip("=")}

    async def test(client: Client) -> None:
        assert isinstance(client, HttpClient)
        with pytest.raises(Gone):
            await client.transport.send(Request("GET", path_of(NodeClaim), asked))

    over_http(real_cluster.kubeconfig, test)
