"""User data: what a machine is told at its first boot, so that its kubelet joins the cluster.

AL2023 gets a NodeConfig for nodeadm, AL2 a call of its bootstrap script, Bottlerocket settings in TOML, a custom image what the
user wrote. User data of the user is kept beside ours; where both set the same, ours counts.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.nodeclass.ec2nodeclass import RAID0, EC2NodeClass
from joiner.cloud.errors import LaunchFailed
from joiner.model.labels import DO_NOT_SYNC_TAINTS, in_domain
from joiner.model.meta import Value
from joiner.model.taints import UNREGISTERED, Taint

LIMIT: Final = 16_384
"""Bytes that EC2 takes."""
_BOUNDARY: Final = "//"
_FOREIGN: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
"""Domains whose labels a kubelet may not give its own node."""
_SEED_SIGNALS: Final = {
    "memoryAvailable": "memory.available",
    "nodefsAvailable": "nodefs.available",
    "nodefsInodesFree": "nodefs.inodesFree",
    "imagefsAvailable": "imagefs.available",
    "imagefsInodesFree": "imagefs.inodesFree",
    "pidAvailable": "pid.available",
}


_BY_NAME: Final = ("kubeReserved", "systemReserved", "evictionHard", "evictionSoft")
"""Settings whose values a user may write as numbers, and of which the kubelet takes nothing but text."""


class Boot(Value):
    """Everything that user data is made of."""

    family: str
    cluster_name: str
    cluster_endpoint: str
    ca_bundle: str = ""
    service_cidr: str = ""
    cluster_dns: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    """Taints of the claim, those that are taken off once the node is prepared as well."""
    kubelet: Mapping[str, Any] = {}
    max_pods: int | None = None
    instance_store_policy: str = ""
    image_name: str = ""
    """The name of the image, where it is known: old ones of Bottlerocket are told more."""
    custom: str = ""


def boot_of(node_class: EC2NodeClass, cluster: ClusterFacts) -> Boot:
    """What user data is made of that is the same for all machines of a class."""
    spec = node_class.spec
    return Boot(
        family=spec.family,
        cluster_name=cluster.name,
        cluster_endpoint=cluster.endpoint,
        ca_bundle=cluster.ca_bundle,
        service_cidr=cluster.service_cidr,
        cluster_dns=cluster.dns,
        kubelet=spec.kubelet,
        instance_store_policy=spec.instance_store_policy or "",
        custom=spec.user_data,
    )


def user_data(boot: Boot) -> str:
    """The text, before it is encoded. Raises `LaunchFailed` where it cannot be made."""
    maker = {"AL2023": _al2023, "AL2": _al2, "Bottlerocket": _bottlerocket}.get(boot.family)
    text = boot.custom if maker is None else maker(boot)
    if len(text.encode()) > LIMIT:
        size = len(text.encode())
        raise LaunchFailed("UserDataSizeLimitExceeded", f"user data has {size} bytes, and EC2 takes {LIMIT} at most")
    return text


def kubelet_settings(boot: Boot) -> dict[str, Any]:
    """The kubelet block in the kubelet's own words, with the number of pods that was planned with."""
    made: dict[str, Any] = {
        key: _texts(value) if key in _BY_NAME and value else value for key, value in boot.kubelet.items()
    }
    seed = made.pop("evictionThreshold", None) or {}
    for part, name in (("hard", "evictionHard"), ("soft", "evictionSoft")):
        given = _texts(seed.get(part) or {})
        signals = {_SEED_SIGNALS[key]: value for key, value in given.items() if key in _SEED_SIGNALS}
        if signals:
            made[name] = {**signals, **made.get(name, {})}
    if boot.max_pods is not None:
        made["maxPods"] = boot.max_pods
    if boot.cluster_dns and "clusterDNS" not in made:
        made["clusterDNS"] = [boot.cluster_dns]
    return made


def _texts(amounts: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(amount) for key, amount in amounts.items()}


def _labels(boot: Boot) -> dict[str, str]:
    kept = {key: value for key, value in boot.labels.items() if not any(in_domain(key, each) for each in _FOREIGN)}
    return {**kept, DO_NOT_SYNC_TAINTS: "true"}


def _taints(boot: Boot) -> tuple[Taint, ...]:
    known = any((each.key, each.effect) == (UNREGISTERED.key, UNREGISTERED.effect) for each in boot.taints)
    return boot.taints if known else (*boot.taints, UNREGISTERED)


def _written(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _node_labels(boot: Boot) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(_labels(boot).items()))


# -- MIME, AL2023 and AL2 ------------------------------------------------------------------------------------------------


def _mime(parts: Iterable[tuple[str, str]]) -> str:
    written = [f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n']
    written += [f"--{_BOUNDARY}\nContent-Type: {kind}\n\n{text.strip()}\n" for kind, text in parts]
    return "\n".join([*written, f"--{_BOUNDARY}--\n"])


def _parts_of(custom: str, plain: str) -> list[tuple[str, str]]:
    """The parts of user data that a user wrote: a MIME archive is taken apart, anything else is one part."""
    if not custom.strip():
        return []
    if not custom.lstrip().startswith(("MIME-Version:", "Content-Type: multipart")):
        return [(plain, custom)]
    from email import message_from_string  # only MIME archives need it

    found = []
    for part in message_from_string(custom.lstrip()).walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            text = payload.decode(errors="replace") if isinstance(payload, bytes) else str(part.get_payload())
            found.append((part.get("Content-Type", "text/x-shellscript"), text))
    return found


_SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
_NODEADM: Final = "application/node.eks.aws"
_NODE_CONFIG: Final = re.compile(r"""^[\s{]*["']?apiVersion["']?:\s*["']?node\.eks\.aws/""", re.MULTILINE)
"""What a NodeConfig has that a script has not; JSON is YAML as well."""


def _al2023(boot: Boot) -> str:
    if not boot.service_cidr:
        raise LaunchFailed("ClusterCIDRResolutionFailed", "AL2023 needs the range of service addresses of the cluster")
    plain = _NODEADM if _NODE_CONFIG.search(boot.custom) else _SHELL
    cluster = {
        "name": boot.cluster_name,
        "apiServerEndpoint": boot.cluster_endpoint,
        "certificateAuthority": boot.ca_bundle,
        "cidr": boot.service_cidr,
    }
    settings = {**kubelet_settings(boot), "registerWithTaints": [_written(each) for each in _taints(boot)]}
    spec: dict[str, Any] = {
        "cluster": cluster,
        "kubelet": {"config": settings, "flags": [f"--node-labels={_node_labels(boot)}"]},
    }
    if boot.instance_store_policy == RAID0:
        spec["instance"] = {"localStorage": {"strategy": RAID0}}
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    # JSON is YAML, and says the same on every machine.
    return _mime([*_parts_of(boot.custom, plain), (_NODEADM, json.dumps(config, indent=1, sort_keys=True))])


def _al2(boot: Boot) -> str:
    settings = kubelet_settings(boot)
    taints = ",".join(f"{each.key}={each.value}:{each.effect}" for each in _taints(boot))
    extra = [f'--node-labels="{_node_labels(boot)}"', f'--register-with-taints="{taints}"']
    if "maxPods" in settings:
        extra.append(f"--max-pods={settings['maxPods']}")
    extra += [f"--{flag}={_flag(flag, settings[key])}" for key, flag in _AL2_FLAGS.items() if key in settings]
    words = [
        f"/etc/eks/bootstrap.sh '{boot.cluster_name}'",
        f"--apiserver-endpoint '{boot.cluster_endpoint}'",
        *([f"--b64-cluster-ca '{boot.ca_bundle}'"] if boot.ca_bundle else []),
        *(["--ip-family ipv6"] if ":" in boot.cluster_dns else []),
        *([f"--dns-cluster-ip '{settings['clusterDNS'][0]}'"] if settings.get("clusterDNS") else []),
        "--use-max-pods false",
        f"--kubelet-extra-args '{' '.join(extra)}'",
        *(["--local-disks raid0"] if boot.instance_store_policy == RAID0 else []),
    ]
    script = "#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n"
    return _mime([*_parts_of(boot.custom, _SHELL), (_SHELL, script + " \\\n".join(words))])


_AL2_FLAGS: Final = {
    "systemReserved": "system-reserved",
    "kubeReserved": "kube-reserved",
    "evictionHard": "eviction-hard",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "evictionMaxPodGracePeriod": "eviction-max-pod-grace-period",
    "imageGCHighThresholdPercent": "image-gc-high-threshold",
    "imageGCLowThresholdPercent": "image-gc-low-threshold",
    "podsPerCore": "pods-per-core",
    "cpuCFSQuota": "cpu-cfs-quota",
}


_THRESHOLDS: Final = ("eviction-hard", "eviction-soft")
"""Flags that name what must be left; all others give values."""


def _flag(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        sign = "<" if name in _THRESHOLDS else "="
        return '"' + ",".join(f"{key}{sign}{item}" for key, item in sorted(value.items())) + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- Bottlerocket --------------------------------------------------------------------------------------------------------

_BOTTLEROCKET: Final = {
    "maxPods": "max-pods",
    "systemReserved": "system-reserved",
    "kubeReserved": "kube-reserved",
    "evictionHard": "eviction-hard",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "evictionMaxPodGracePeriod": "eviction-max-pod-grace-period",
    "imageGCHighThresholdPercent": "image-gc-high-threshold-percent",
    "imageGCLowThresholdPercent": "image-gc-low-threshold-percent",
    "cpuCFSQuota": "cpu-cfs-quota-enforced",
}


_PERCENTS: Final = ("image-gc-high-threshold-percent", "image-gc-low-threshold-percent")
"""Numbers that Bottlerocket wants as text."""
_STORAGE: Final = ("apiclient", "ephemeral-storage")
_DIRECTORIES: Final = ("--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
_CHOOSES_ITSELF: Final = (1, 46)
"""The first version that knows by itself which directories belong onto local disks."""
_VERSION: Final = re.compile(r"-v([0-9]+)\.([0-9]+)\.[0-9]+")


def _directories(image_name: str) -> tuple[str, ...]:
    version = _VERSION.search(image_name)
    is_old = version is not None and (int(version[1]), int(version[2])) < _CHOOSES_ITSELF
    return _DIRECTORIES if is_old else ()


def _bottlerocket(boot: Boot) -> str:
    try:
        made: dict[str, Any] = tomllib.loads(boot.custom)
    except tomllib.TOMLDecodeError as error:
        raise LaunchFailed("InvalidUserData", f"userData of Bottlerocket must be TOML: {error}") from None
    kubernetes = made.setdefault("settings", {}).setdefault("kubernetes", {})
    settings = kubelet_settings(boot)
    kubernetes.update({"api-server": boot.cluster_endpoint, "cluster-name": boot.cluster_name})
    if boot.ca_bundle:
        kubernetes["cluster-certificate"] = boot.ca_bundle
    if settings.get("clusterDNS"):
        kubernetes["cluster-dns-ip"] = settings["clusterDNS"][0]
    kubernetes["node-labels"] = {**kubernetes.get("node-labels", {}), **_labels(boot)}
    taints: dict[str, list[str]] = {}
    for each in _taints(boot):
        taints.setdefault(each.key, []).append(f"{each.value}:{each.effect}")
    kubernetes["node-taints"] = {**kubernetes.get("node-taints", {}), **taints}
    known = {name: settings[key] for key, name in _BOTTLEROCKET.items() if key in settings}
    kubernetes.update({name: str(value) if name in _PERCENTS else value for name, value in known.items()})
    if boot.instance_store_policy == RAID0:
        commands = made["settings"].setdefault("bootstrap-commands", {})
        commands["000-mount-instance-storage"] = {
            "commands": [[*_STORAGE, "init"], [*_STORAGE, "bind", *_directories(boot.image_name)]],
            "mode": "always",
            "essential": True,
        }
    return "\n".join(_toml(made, ())) + "\n"


def _toml(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterable[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and (plain or not table):
        yield f"[{'.'.join(map(_toml_key, path))}]"
    for key, value in sorted(plain.items()):
        yield f"{_toml_key(key)} = {_toml_value(value)}"
    for key, value in sorted(table.items()):
        if isinstance(value, Mapping):
            yield from _toml(value, (*path, key))


def _toml_key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value)).replace("\\u007f", "\\u007F")
