"""How each component of a control plane is started: its flags and its configuration file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tools.controlplane.certificates import HOST

PORTS = ("apiserver", "etcd", "peer", "controller-manager", "scheduler", "kwok")
SERVICES = "10.96.0.0/16"
PODS = "10.128.0.0/12"


class Layout(NamedTuple):
    """What the flags of all components are made of."""

    folder: Path
    ports: Mapping[str, int]
    data: Path
    """Where etcd keeps its data."""
    full: bool
    controllers: str
    """Which controllers the controller-manager runs, as its flag has them."""
    audited: str
    stages: Sequence[Path]

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.folder / "pki"

    def write(self, name: str, *documents: Any) -> Path:
        """A configuration file; documents that are text stay as they are."""
        path = self.folder / name
        texts = (each if isinstance(each, str) else yaml.safe_dump(each) for each in documents)
        path.write_text("\n---\n".join(texts), encoding="utf-8")
        return path


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def etcd(layout: Layout) -> list[str]:
    """On loopback, without waiting for the disk."""
    client, peer = (f"http://{HOST}:{layout.ports[name]}" for name in ("etcd", "peer"))
    return [
        "--unsafe-no-fsync",
        *_flags(
            {
                "name": "joiner",
                "data-dir": layout.data,
                "log-level": "warn",
                "listen-client-urls": client,
                "advertise-client-urls": client,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": f"joiner={peer}",
                "quota-backend-bytes": 4 << 30,
            }
        ),
    ]


def apiserver(layout: Layout) -> list[str]:
    """With RBAC, and an audit log of one user."""
    pki = layout.pki
    flags: dict[str, object] = {
        "etcd-servers": f"http://{HOST}:{layout.ports['etcd']}",
        "bind-address": HOST,
        "advertise-address": HOST,
        "endpoint-reconciler-type": "none",  # it would refuse to publish a loopback address
        "secure-port": layout.ports["apiserver"],
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-client-certificate": pki / "kubelet-client.crt",
        "kubelet-client-key": pki / "kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",  # some clusters have it: our role must do
        "anonymous-auth": "false",
        "allow-privileged": "true",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki / "service-accounts.pub",
        "service-account-signing-key-file": pki / "service-accounts.key",
        "service-cluster-ip-range": SERVICES,
        "max-requests-inflight": 1600,
        "max-mutating-requests-inflight": 800,
        "shutdown-delay-duration": "0s",
        "profiling": "false",
    }
    if not layout.full:  # nothing would make the default ServiceAccount that the plug-in insists on
        flags["disable-admission-plugins"] = "ServiceAccount"
    if layout.audited:
        rule = {"level": "Metadata", "users": [layout.audited], "omitStages": ["RequestReceived"]}
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule, {"level": "None"}]}
        flags["audit-policy-file"] = layout.write("audit-policy.yaml", policy)
        flags["audit-log-path"] = layout.folder / "audit.log"
    return _flags(flags)


def controller_manager(layout: Layout) -> list[str]:
    """Without leader election."""
    config = layout.pki / "controller-manager.kubeconfig"
    return _flags(
        {
            "kubeconfig": config,
            "authentication-kubeconfig": config,
            "authorization-kubeconfig": config,
            "bind-address": HOST,
            "secure-port": layout.ports["controller-manager"],
            "leader-elect": "false",
            "controllers": layout.controllers,
            "use-service-account-credentials": "true",
            "root-ca-file": layout.pki / "ca.crt",
            "service-account-private-key-file": layout.pki / "service-accounts.key",
            "client-ca-file": layout.pki / "ca.crt",
            "tls-cert-file": layout.pki / "component.crt",
            "tls-private-key-file": layout.pki / "component.key",
            "kube-api-qps": 300,
            "kube-api-burst": 600,
            "allocate-node-cidrs": "false",
            "profiling": "false",
        }
    )


def scheduler(layout: Layout) -> list[str]:
    """The default profile."""
    kubeconfig = str(layout.pki / "scheduler.kubeconfig")
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 300, "burst": 600},
        "leaderElection": {"leaderElect": False},
    }
    return _flags(
        {
            "config": layout.write("scheduler.yaml", content),
            "bind-address": HOST,
            "secure-port": layout.ports["scheduler"],
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "client-ca-file": layout.pki / "ca.crt",
            "tls-cert-file": layout.pki / "component.crt",
            "tls-private-key-file": layout.pki / "component.key",
        }
    )


def kwok(layout: Layout) -> list[str]:
    """Kubelet of every node with the annotation `kwok.x-k8s.io/node: fake`. It does nothing that is not in a Stage."""
    options = {
        "manageNodesWithAnnotationSelector": "kwok.x-k8s.io/node=fake",
        "nodeIP": HOST,
        "nodePort": layout.ports["kwok"],
        "cidr": PODS,
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "enableDebuggingHandlers": True,
        "nodeLeaseDurationSeconds": 40,
        "nodeLeaseParallelism": 4,
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 8,
    }
    config = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    texts = [path.read_text(encoding="utf-8") for path in layout.stages]
    return _flags(
        {
            "kubeconfig": layout.pki / "admin.kubeconfig",
            "config": layout.write("kwok.yaml", config, *texts),
            "server-address": f"{HOST}:{layout.ports['kwok']}",
        }
    )
