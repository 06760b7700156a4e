"""Finds the cluster as kubectl does: flags, then KUBECONFIG, then the service account of the pod, then the home folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from joiner.clock import Clock
from joiner.kube.http import kubeconfig
from joiner.kube.http.access import Access, AccessError
from joiner.kube.http.credentials import FileContent, StaticCredentials, TrustedCertificates, is_token
from joiner.kube.http.proxies import proxy_for

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find(
    *,
    kubeconfig_file: str | None = None,
    context: str | None = None,
    clock: Clock,
    environment: Mapping[str, str],
    home: Path,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The cluster and the identity to use. Raises AccessError that says where was looked."""
    files, named = kubeconfig.paths(kubeconfig_file, environment, home)
    if not named and not context and _in_cluster(environment, service_account):
        return in_cluster(clock, environment, service_account)
    config = kubeconfig.read(files, explicit=named)
    if not config.files:
        raise AccessError(
            f"no cluster was named: there is no --kubeconfig, no KUBECONFIG, no service account of a pod, and no {files[0]};"
            " name a kubeconfig with --kubeconfig"
        )
    return kubeconfig.access(config, context=context or "", clock=clock, environment=environment)


def _in_cluster(environment: Mapping[str, str], folder: Path) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").exists()


def in_cluster(clock: Clock, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access:
    """The API server of the cluster that this pod is in, as the pod's service account."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = folder / "namespace"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server=server,
        proxy=proxy_for(server, "", environment),
        credentials=StaticCredentials(
            token=FileContent(folder / "token", "the token of the service account", clock, valid=is_token)
        ),
        authority=TrustedCertificates(
            FileContent(folder / "ca.crt", "the certificate authority of the cluster", clock)
        ),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "",
        origin="the service account of this pod",
    )
