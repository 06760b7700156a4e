"""A cluster with Joiner in it, for a person to try: a NodeClass, a NodePool, and `joiner run` as a process."""

import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.controlplane.binaries import binaries
from tools.controlplane.cluster import Refused
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import ControlPlane
from tools.controlplane.processes import free_ports, spawn, tail
from tools.pretendaws.kubelets import Kubelets
from tools.pretendaws.server import PretendAws

DISCOVERY = [{"tags": {"karpenter.sh/discovery": "prod"}}]
REFERENCE = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
OBJECTS: tuple[dict[str, Any], ...] = (
    {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}, "spec": {}},
    {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"nodeClassRef": REFERENCE, "requirements": []}}},
    },
)
AWS_REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
AWS_OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": DISCOVERY,
            "securityGroupSelectorTerms": DISCOVERY,
        },
    },
    {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"nodeClassRef": AWS_REFERENCE, "requirements": []}}},
    },
)
AWS_TEXT = """
Its machines are those of a pretended account in EC2, which listens at {url} and answers as AWS does:

  AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x aws ec2 describe-instances --region us-east-1 --endpoint-url {url}
"""
TEXT = """
A Kubernetes {version} with Joiner in it. Its nodes are pretended by kwok: pods run nowhere, and cost nothing.

  export KUBECONFIG={kubeconfig}

  {kubectl} create deployment web --image=web --replicas=20
  {kubectl} set resources deployment web --requests=cpu=500m,memory=1Gi
  {kubectl} get nodeclaims,nodes,pods
  {kubectl} scale deployment web --replicas=3
  {joiner} consolidate --cluster

Joiner writes its log to {log}, and its metrics are at http://127.0.0.1:{metrics}/metrics. Ctrl-C ends everything.
"""


def tryout(*, aws: bool = False) -> int:
    """Run until Ctrl-C, or until Joiner ends; with `aws`, over a pretended account. Raises CannotBuild, CannotStart, Refused."""
    kubectl = shutil.which("kubectl") or str(binaries("kubectl") / "kubectl")
    folder = Path(tempfile.mkdtemp(prefix="joiner-cluster-"))
    try:
        with ControlPlane(folder / "control-plane") as cluster, ExitStack() as ends:
            install_crds(cluster)
            for each in AWS_OBJECTS if aws else OBJECTS:
                cluster.apply(each)
            account = ends.enter_context(PretendAws()) if aws else None
            if account is not None:
                ends.callback(Kubelets(account, cluster).close)
            log, (metrics, health) = folder / "joiner.log", free_ports(2)
            environment = {
                **os.environ,
                "KUBECONFIG": str(cluster.kubeconfig),
                "LEADER_ELECTION_NAMESPACE": "kube-system",
                "METRICS_PORT": str(metrics),
                "HEALTH_PROBE_PORT": str(health),
                **(account.environment() if account is not None else {}),
            }
            provider = "aws" if aws else "kwok"
            process = spawn([sys.executable, "-m", "joiner", "run", "--provider", provider], log, env=environment)
            version = cluster.request("GET", "/version")[1]["gitVersion"]
            joiner = Path(sys.executable).with_name("joiner")
            programs = {"kubectl": kubectl, "joiner": joiner}
            print(TEXT.format(version=version, kubeconfig=cluster.kubeconfig, log=log, metrics=metrics, **programs))
            if account is not None:
                print(AWS_TEXT.format(url=account.url))
            sys.stdout.flush()
            try:
                while process.poll() is None:
                    time.sleep(0.5)
                raise Refused(f"Joiner ended with code {process.returncode}; the end of its log:\n{tail(log)}")
            finally:
                process.terminate()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
