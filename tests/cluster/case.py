"""One case on the real cluster: a namespace and a NodePool of its own, so that cases do not see each other."""

import time
from collections.abc import Callable
from typing import Any

from tools.controlplane.cluster import Cluster

Document = dict[str, Any]
PATIENCE_S = 300
"""For a machine that is busy with other things as well: whoever waits that long has waited in vain."""
NUDGE_S = 15
LABEL = "example.com/case"
NODECLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
KINDS = {
    "pods": "/api/v1/namespaces/{namespace}/pods",
    "nodes": "/api/v1/nodes",
    "nodeclaims": "/apis/karpenter.sh/v1/nodeclaims",
    "nodepools": "/apis/karpenter.sh/v1/nodepools",
    "events": "/api/v1/namespaces/{namespace}/events",
}


class Case:
    """What a case does to the cluster and sees of it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        self._made: list[Document] = []
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # -- doing -----------------------------------------------------------------------------------------------------------

    def apply(self, document: Document) -> Document:
        """Make an object, or change it."""
        found: Document = self.cluster.apply(document)
        self._made.append(document)
        return found

    def pool(self, *requirements: Document, template: Document | None = None, name: str = "", **spec: Any) -> Document:
        """A NodePool whose nodes only the pods of this case ask for."""
        inner = {"nodeClassRef": NODECLASS, "requirements": list(requirements), **(template or {})}
        body = {"template": {"metadata": {"labels": {LABEL: self.name}}, "spec": inner}, **spec}
        document = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name or self.name},
            "spec": {"disruption": {"consolidateAfter": "Never"}, **body},
        }
        return self.apply(document)

    def pod_spec(self, cpu: str = "1", **spec: Any) -> Document:
        """A pod that asks for the nodes of this case."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
        return {"containers": [container], "nodeSelector": {LABEL: self.name}, **spec}

    def deployment(self, replicas: int, name: str = "web", *, labels: Document | None = None, **spec: Any) -> Document:
        """A Deployment; its pods have the label `app` with its name."""
        return self.workload("Deployment", name, {"replicas": replicas}, labels, **spec)

    def workload(self, kind: str, name: str, more: Document, labels: Document | None = None, **spec: Any) -> Document:
        """A Deployment, a DaemonSet or the like."""
        template = {"metadata": {"labels": {"app": name, **(labels or {})}}, "spec": self.pod_spec(**spec)}
        if annotations := template["spec"].pop("annotations", None):
            template["metadata"]["annotations"] = annotations
        return self.apply(
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": self.name},
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **more},
            }
        )

    def budget(self, app: str = "web", **spec: Any) -> Document:
        """A PodDisruptionBudget."""
        return self.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": app, "namespace": self.name},
                "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
            }
        )

    def delete(self, document: Document) -> None:
        """Ask for an object to go."""
        self.cluster.request("DELETE", self.cluster.path_of(document))

    def delete_claim(self, name: str) -> None:
        """Ask for a NodeClaim to go."""
        self.cluster.request("DELETE", f"/apis/karpenter.sh/v1/nodeclaims/{name}")

    def breaks(self, node: str, condition: str, status: str = "True") -> None:
        """Give a node a condition, which no heartbeat takes away again."""
        broken = {"metadata": {"labels": {"example.com/broken": "true"}}}
        told = {"type": condition, "status": status, "reason": "Test", "lastTransitionTime": _now()}
        for path, body in ((node, broken), (f"{node}/status", {"status": {"conditions": [told]}})):
            content = "application/strategic-merge-patch+json"
            code, answer = self.cluster.request("PATCH", f"/api/v1/nodes/{path}", body, content=content)
            assert code == 200, answer

    # -- seeing ----------------------------------------------------------------------------------------------------------

    def all(self, kind: str) -> list[Document]:
        """Objects of a kind, all of the cluster or all of the namespace."""
        status, found = self.cluster.request("GET", KINDS[kind].format(namespace=self.name))
        while status == 429:  # an API server that has just started asks for patience
            time.sleep(1)
            status, found = self.cluster.request("GET", KINDS[kind].format(namespace=self.name))
        assert status == 200, found
        items: list[Document] = found["items"]
        return items

    def nodes(self) -> list[Document]:
        """The nodes of this case."""
        return [each for each in self.all("nodes") if each["metadata"]["labels"].get(LABEL) == self.name]

    def claims(self) -> list[Document]:
        """The NodeClaims of this case."""
        return [each for each in self.all("nodeclaims") if each["metadata"]["labels"].get(LABEL) == self.name]

    def pods(self, app: str = "") -> list[Document]:
        """The pods of this case that are not going."""
        found = [each for each in self.all("pods") if not each["metadata"].get("deletionTimestamp")]
        return [each for each in found if app in ("", each["metadata"]["labels"].get("app"))]

    def running(self, app: str = "") -> list[Document]:
        """The pods of this case that run."""
        return [each for each in self.pods(app) if each["status"].get("phase") == "Running"]

    def until(self, true: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait until it is true; returns what was found."""
        end = time.monotonic() + patience_s
        while not (found := true()):
            assert time.monotonic() < end, f"in vain: {what}\n{self.report()}"
            time.sleep(0.2)
        return found

    def until_running(self, count: int, app: str = "") -> list[Document]:
        """Wait until that many pods run, and no others are there."""
        nudged = time.monotonic()

        def run() -> bool:
            nonlocal nudged
            if time.monotonic() > nudged + NUDGE_S:
                nudged = time.monotonic()
                self._nudge(app)
            return len(self.running(app)) == count == len(self.pods(app))

        self.until(run, f"{count} pods of {app or 'all'} run")
        return self.running(app)

    def _nudge(self, app: str) -> None:
        """Change pods that are bound and do not start: a kubelet looks again by itself, kwok only at a change."""
        for each in self.pods(app):
            if each["spec"].get("nodeName") and each["status"].get("phase") == "Pending":
                path = f"{KINDS['pods'].format(namespace=self.name)}/{name_of(each)}"
                change = {"metadata": {"annotations": {"example.com/nudged": str(time.time())}}}
                self.cluster.request("PATCH", path, change, content="application/merge-patch+json")

    def until_ready(self, nodes: int) -> list[Document]:
        """Wait until there are that many nodes, all with a claim that is Initialized."""

        def ready() -> bool:
            claims = self.claims()
            return len(self.nodes()) == nodes == len(claims) and all(is_true(each, "Initialized") for each in claims)

        self.until(ready, f"{nodes} nodes are initialized")
        return self.nodes()

    def until_settled(self) -> list[Document]:
        """Wait until there are nodes, as many as claims, and all of them are Initialized, however many that are."""

        def settled() -> bool:
            claims = self.claims()
            return len(self.nodes()) == len(claims) > 0 and all(is_true(each, "Initialized") for each in claims)

        self.until(settled, "all nodes are initialized")
        return self.nodes()

    def until_gone(self, names: list[str]) -> None:
        """Wait until none of these nodes is left."""
        self.until(
            lambda: not set(names) & {each["metadata"]["name"] for each in self.all("nodes")}, f"{names} are gone"
        )

    def report(self) -> str:
        """How things stand, for the message of a test that fails."""
        pods = [(name_of(each), each["status"].get("phase"), each["spec"].get("nodeName")) for each in self.all("pods")]
        claims = [
            (name_of(each), [c["type"] for c in each.get("status", {}).get("conditions", ()) if c["status"] == "True"])
            for each in self.claims()
        ]
        events = sorted({f"{each['reason']}: {each['message'][:150]}" for each in self.all("events")})
        return f"pods {pods}\nclaims {claims}\nnodes {[name_of(each) for each in self.nodes()]}\nevents {events}"

    def close(self) -> None:
        """Remove what was made, and wait until it is gone."""
        for document in reversed(self._made):
            self.delete(document)
        # While a ReplicaSet still makes pods anew, nodes would be bought for them in the middle of the next case.
        self.until(lambda: not self.pods(), "the pods of the case go")
        for each in self.claims():
            self.delete_claim(name_of(each))
        self.until(lambda: not self.claims() and not self.nodes(), "the nodes of the case go")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def name_of(document: Document) -> str:
    """The name of an object."""
    return str(document["metadata"]["name"])


def is_true(document: Document, condition: str) -> bool:
    """Whether an object has a condition that is True."""
    found = document.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in found)


def requirement(key: str, operator: str, *values: str, **more: Any) -> Document:
    """A requirement of a NodePool."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}
