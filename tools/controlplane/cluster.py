"""A running cluster as others see it: where it is, and requests to it as the administrator.

It can be described in a file, so that the processes of a test run share one cluster.
"""

import http.client
import json
import ssl
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tools.controlplane.certificates import HOST, kubeconfig


class Refused(Exception):
    """The API server did not do what it had to do here."""


class Cluster(NamedTuple):
    """An API server on loopback, and the folder with its certificates and logs."""

    folder: Path
    port: int
    etcd_port: int

    @classmethod
    def read(cls, path: Path) -> "Cluster":
        """The cluster that a file describes."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(Path(content["folder"]), content["port"], content["etcd_port"])

    def write(self, path: Path) -> None:
        """Describe it in a file, which appears when it is whole."""
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({**self._asdict(), "folder": str(self.folder)}), encoding="utf-8")
        unfinished.rename(path)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{HOST}:{self.port}"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.folder / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.pki / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """What the audited user asked for, a line of JSON each."""
        return self.folder / "audit.log"

    def request(
        self, method: str, path: str, body: Any = None, *, content: str = "application/json"
    ) -> tuple[int, Any]:
        """Ask as the administrator. Returns the status and the decoded answer."""
        status, raw = self.ask(self.port, method, path, body, content)
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw.decode(errors="replace")

    def ask(
        self,
        port: int,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        timeout: float = 30,
    ) -> tuple[int, bytes]:
        """Ask any component that serves with a certificate of this cluster."""
        connection = http.client.HTTPSConnection(HOST, port, context=_administrator(self.pki), timeout=timeout)
        try:
            payload = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": content})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def apply(self, document: Any) -> Any:
        """Server-side apply of one object whose kind is already served. Raises Refused."""
        status, answer = self.request(
            "PATCH",
            f"{self.path_of(document)}?fieldManager=joiner-tools&force=true",
            document,
            content="application/apply-patch+yaml",
        )
        if status >= 300:
            name = f"{document['kind']} {document['metadata']['name']}"
            raise Refused(f"{name} was refused: {status} {answer.get('message', answer)}")
        return answer

    def path_of(self, document: Any) -> str:
        """Where an object is served."""
        metadata = document["metadata"]
        return f"{self.folder_of(document, metadata.get('namespace', 'default'))}/{metadata['name']}"

    def folder_of(self, document: Any, namespace: str = "default") -> str:
        """Where objects of the kind are made, by asking the API server for its kinds. Raises Refused."""
        version, kind = document["apiVersion"], document["kind"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = _resource(self, base, kind)
        return f"{base}/namespaces/{namespace}/{plural}" if namespaced else f"{base}/{plural}"

    def token_kubeconfig(
        self, path: Path, namespace: str, account: str, *, seconds: int = 7200, server: str = ""
    ) -> Path:
        """A kubeconfig with a new token of a ServiceAccount; `server` where it is not reached directly."""
        where = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        status, answer = self.request("POST", where, {"spec": {"expirationSeconds": seconds}})
        if status != 201:
            raise Refused(f"no token for the ServiceAccount {namespace}/{account}: {status} {answer}")
        return kubeconfig(path, server or self.server, self.pki / "ca.crt", {"token": answer["status"]["token"]})

    def compact(self) -> None:
        """Make etcd forget its history, as it does by itself every few minutes."""
        revision = self._etcd("kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})

    def _etcd(self, path: str, body: Any) -> Any:
        connection = http.client.HTTPConnection(HOST, self.etcd_port, timeout=30)
        try:
            connection.request("POST", f"/v3/{path}", json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@cache
def _administrator(pki: Path) -> ssl.SSLContext:
    """Trusts the cluster and speaks as the administrator."""
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


@cache
def _resource(cluster: Cluster, base: str, kind: str) -> tuple[str, bool]:
    """Name in paths, and whether it has namespaces."""
    _, found = cluster.request("GET", base)
    for resource in found.get("resources", ()) if isinstance(found, dict) else ():
        if resource["kind"] == kind and "/" not in resource["name"]:
            return resource["name"], resource["namespaced"]
    raise Refused(f"the server does not serve {kind} in {base}")
