"""What AMI families differ in: their volumes, how pods are counted, which images they have."""

from typing import Final

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClassSpec
from joiner.cloud.aws.nodeclass.selectors import CUSTOM
from joiner.model.meta import Value
from joiner.model.quantity import MILLI

GIB: Final = (1 << 30) * MILLI


class Volume(Value):
    """A volume that a family has unless the class says otherwise."""

    device: str
    gib: int


class Family(Value):
    """One AMI family."""

    name: str
    volumes: tuple[Volume, ...] = ()
    ephemeral_device: str = ""
    """The device of what pods write to; empty where only the image knows."""
    pods_per_core: bool = True
    """Whether its kubelet takes podsPerCore."""
    reserved_by_actual_pods: bool = False
    """Whether memory is kept back for the pods that are allowed, rather than those that network interfaces allow."""
    any_kubelet_key: bool = False
    """Whether every setting of the kubelet reaches it, not only those that are known here."""


AL2: Final = Family(name="AL2", volumes=(Volume(device="/dev/xvda", gib=20),), ephemeral_device="/dev/xvda")
AL2023: Final = Family(
    name="AL2023",
    volumes=(Volume(device="/dev/xvda", gib=20),),
    ephemeral_device="/dev/xvda",
    any_kubelet_key=True,
)
BOTTLEROCKET: Final = Family(
    name="Bottlerocket",
    volumes=(Volume(device="/dev/xvda", gib=4), Volume(device="/dev/xvdb", gib=20)),
    ephemeral_device="/dev/xvdb",
    pods_per_core=False,
    reserved_by_actual_pods=True,
)
_CUSTOM: Final = Family(name=CUSTOM, any_kubelet_key=True)
_ALL: Final = {family.name: family for family in (AL2, AL2023, BOTTLEROCKET, _CUSTOM)}
_DEFAULT_GIB: Final = 20


def family_of(spec: EC2NodeClassSpec) -> Family:
    """The family of a class."""
    return _ALL.get(spec.family, _CUSTOM)


def ephemeral_volume(spec: EC2NodeClassSpec) -> int | None:
    """The size of the volume that pods write to, in thousandths of bytes; nothing where only a snapshot knows it."""
    family = family_of(spec)
    found = [each for each in spec.block_device_mappings if each.root_volume]
    if not found and family.name == CUSTOM:
        found = list(spec.block_device_mappings[-1:])
    if not found:
        found = [each for each in spec.block_device_mappings if each.device_name == family.ephemeral_device]
    if found:
        return found[0].ebs.size if found[0].ebs is not None else None
    usual = next((each.gib for each in family.volumes if each.device == family.ephemeral_device), _DEFAULT_GIB)
    return usual * GIB
