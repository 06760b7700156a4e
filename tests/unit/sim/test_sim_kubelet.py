import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from tests.builders import pod

from joiner.kube.errors import NotFound
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model import codec, labels, resources
from joiner.model.codec import decode
from joiner.model.meta import OwnerReference, replace
from joiner.model.node import Node, NodeCondition, condition, is_ready
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.storage import CSINode, CSIVolumeSource, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from joiner.model.taints import UNREGISTERED, Taint
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.machines import CloudMachine, CloudTiming, MachineDefects, Machines
from joiner.sim.kubelet.assembly import INDEXES, node_people
from joiner.sim.kubelet.kubelet import NOT_READY, NodeTiming
from joiner.sim.kubelet.nodetaints import UNREACHABLE
from joiner.sim.kubelet.podlifecycle import RUNS_FOR, STOPS_AFTER
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop, run

STARTUP = Taint(key="example.com/preparing", effect="NoSchedule")
GPU = "example.com/gpu"


class World:
    """Machines, an API server, and the controllers between them."""

    def __init__(self, loop: VirtualLoop, **habits: Any) -> None:
        self.clock = VirtualClock(loop)
        self.trace = Trace()
        self.server = ApiServer(self.clock, Random(1), self.trace)
        self.machines = Machines(clock=self.clock, random=Random(2), trace=self.trace, pace=CloudTiming())
        self.client = self.server.client("somebody")
        self.failures: list[str] = []
        self.tasks = Tasks(failed=lambda name, error: self.failures.append(f"{name}: {error!r}"))
        client = self.server.client("kubelet")
        informers = Informers(client, INDEXES)
        people = node_people(
            client=client,
            informers=informers,
            machines=self.machines,
            clock=self.clock,
            random=Random(3),
            tasks=self.tasks,
            habits=NodeTiming(**habits),
        )
        self.tasks.start("people", Manager(informers, people, lambda name, key, error: None).run())

    def start(self, **said: Any) -> CloudMachine:
        amounts = resources.of(cpu=4, memory="16Gi", pods=20)
        usual = {
            "provider_id": "sim://a/m-1", "node_name": "node-1", "claim_name": "claim", "claim_uid": "uid",
            "pool": "default", "instance_type": "m5.xlarge", "zone": "a", "region": "r", "capacity_type": "spot",
            "architecture": "arm64", "operating_system": "linux", "launched_at": datetime(2030, 1, 7, tzinfo=UTC),
            "capacity": amounts, "allocatable": amounts,
        }  # fmt: skip
        machine = CloudMachine(**{**usual, **said})
        self.machines.start(machine)
        return machine

    async def node(self, **said: Any) -> Node:
        """A node that is ready and registered."""
        self.start(**said)
        await asyncio.sleep(90)
        await self.untaint()
        return self.server.get(Node, "node-1")

    async def untaint(self) -> None:
        node = self.server.get(Node, "node-1")
        await self.client.patch(node, replace(node, spec=replace(node.spec, taints=())))

    async def taint(self, *taints: Taint) -> None:
        node = self.server.get(Node, "node-1")
        await self.client.patch(node, replace(node, spec=replace(node.spec, taints=taints)))

    async def bind(self, thing: Pod) -> None:
        await self.client.create(thing)
        await self.client.bind("default", thing.name, node="node-1")

    def pod(self, name: str = "web") -> Pod | None:
        return self.server.find(Pod, name, "default")

    def phase(self, name: str = "web") -> str:
        found = self.pod(name)
        return "gone" if found is None else found.status.phase


def annotated(thing: Pod, **annotations: str) -> Pod:
    keys = {"runs_for": RUNS_FOR, "stops_after": STOPS_AFTER}
    said = {keys[name]: value for name, value in annotations.items()}
    return replace(thing, metadata=replace(thing.metadata, annotations=said))


def in_world(**habits: Any) -> Callable[[Callable[[World], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """A test that runs in a world of its own, on virtual time, in which nothing may break."""

    def decorate(tell: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def told(loop: VirtualLoop) -> None:
            world = World(loop, **habits)
            await tell(world)
            assert world.failures == []
            await world.tasks.close()

        def test() -> None:
            run(told)

        return test

    return decorate


def ready_of(pod: Pod | None) -> str:
    assert pod is not None
    return next(each.status for each in pod.status.conditions if each.type == "Ready")


@in_world()
async def test_a_node_joins_with_what_its_machine_knows_and_is_ready_later(world: World) -> None:
    world.start()
    while world.server.find(Node, "node-1") is None:
        await asyncio.sleep(1)
    young = world.server.get(Node, "node-1")
    await asyncio.sleep(15)
    node = world.server.get(Node, "node-1")

    assert (is_ready(young), is_ready(node)) == (False, True)
    assert young.spec.taints == (UNREGISTERED, *NOT_READY)
    assert node.spec.taints == (UNREGISTERED,)
    assert node.spec.provider_id == "sim://a/m-1"
    assert node.metadata.labels == {
        labels.HOSTNAME: "node-1", labels.ARCH: "arm64", labels.OS: "linux", labels.INSTANCE_TYPE: "m5.xlarge",
        labels.ZONE: "a", labels.REGION: "r",
        "beta.kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/instance-type": "m5.xlarge",
        "failure-domain.beta.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/region": "r",
        "topology.ebs.csi.aws.com/zone": "a",
    }  # fmt: skip


@in_world()
async def test_a_machine_that_never_joins_has_no_node(world: World) -> None:
    world.start(birth=MachineDefects(never_joins=True))

    await asyncio.sleep(3600)

    assert world.server.find(Node, "node-1") is None


@in_world()
async def test_a_late_machine_joins_late(world: World) -> None:
    world.start(birth=MachineDefects(late_s=600), registration_delay_s=60)

    await asyncio.sleep(660)
    assert world.server.find(Node, "node-1") is None
    await asyncio.sleep(60)

    assert world.server.find(Node, "node-1") is not None


@in_world()
async def test_a_node_may_have_less_than_promised_and_a_device_that_comes_late(world: World) -> None:
    amounts = {**resources.of(cpu=4, memory="16Gi"), GPU: 2000}
    birth = MachineDefects(missing=resources.of(memory="1Gi"), late={GPU: 300.0})
    node = await world.node(capacity=amounts, allocatable=amounts, birth=birth)

    assert node.status.allocatable == {**resources.of(cpu=4, memory="15Gi"), GPU: 0}
    await asyncio.sleep(300)

    assert world.server.get(Node, "node-1").status.allocatable[GPU] == 2000


@in_world(drivers={"ebs.csi": 25})
async def test_a_node_says_how_many_volumes_it_can_attach(world: World) -> None:
    await world.node(volume_limits={"efs.csi": 7})

    drivers = world.server.get(CSINode, "node-1").spec.drivers

    assert [(each.name, each.allocatable.count) for each in drivers] == [("ebs.csi", 25), ("efs.csi", 7)]


@in_world(prepares={STARTUP.key: 45.0})
async def test_somebody_removes_startup_taints(world: World) -> None:
    await world.node()
    await world.taint(STARTUP)

    await asyncio.sleep(40)
    assert world.server.get(Node, "node-1").spec.taints == (STARTUP,)
    await asyncio.sleep(10)

    assert world.server.get(Node, "node-1").spec.taints == ()


@in_world()
async def test_what_the_startup_taints_of_a_claim_wait_for_is_done_after_a_while(world: World) -> None:
    node = await world.node()
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": [], "startupTaints": [codec.encode(STARTUP)]}
    claim = await world.client.create(decode({"metadata": {"name": "claim"}, "spec": spec}, NodeClaim))
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodeClaim", name="claim", uid=claim.metadata.uid)
    owned = replace(node, metadata=replace(node.metadata, owner_references=(owner,)))
    await world.client.patch(node, owned)
    other = Taint(key="example.com/kept", effect="NoSchedule")

    await world.taint(STARTUP, other)
    await asyncio.sleep(20)

    assert world.server.get(Node, "node-1").spec.taints == (other,)


@in_world()
async def test_a_bound_pod_runs(world: World) -> None:
    await world.node()

    await world.bind(pod())
    await asyncio.sleep(10)

    found = world.pod()
    assert found is not None
    assert (found.status.phase, found.status.start_time is not None) == ("Running", True)
    assert {each.type for each in found.status.conditions if each.status == "True"} == {
        "PodScheduled", "Initialized", "ContainersReady", "Ready",
    }  # fmt: skip


@in_world()
async def test_a_pod_that_has_an_end_comes_to_it(world: World) -> None:
    await world.node()

    await world.bind(annotated(pod(), runs_for="5m"))
    await asyncio.sleep(280)
    assert world.phase() == "Running"
    await asyncio.sleep(40)

    assert world.phase() == "Succeeded"
    assert ready_of(world.pod()) == "False"


@pytest.mark.parametrize(
    ("needs", "grace", "left_s"), [("10s", 60, 10), ("5m", 60, 60), ("10s", 5, 5)], ids=["needs", "grace", "little"]
)
def test_a_deleted_pod_ends_when_it_is_ready_to_or_must(needs: str, grace: int, left_s: int) -> None:
    @in_world()
    async def test(world: World) -> None:
        await world.node()
        await world.bind(annotated(pod(terminationGracePeriodSeconds=grace), stops_after=needs))
        await asyncio.sleep(10)
        await world.client.delete(Pod, "web", "default")

        await asyncio.sleep(left_s - 2)
        assert world.phase() == "Running"
        await asyncio.sleep(3)

        assert world.phase() == "gone"

    test()


@in_world()
async def test_pods_do_not_mind_a_clock_that_is_set_back(world: World) -> None:
    await world.node()
    world.clock.step(-3600)
    await world.bind(annotated(pod(), runs_for="1m"))
    await asyncio.sleep(10)
    assert world.phase() == "Running"

    world.clock.step(-3600)
    await asyncio.sleep(60)

    assert world.phase() == "Succeeded"


@in_world()
async def test_a_reboot_shows_in_the_boot_id_and_in_a_short_absence(world: World) -> None:
    before = await world.node()
    await world.bind(pod())
    await asyncio.sleep(10)

    world.machines.reboot("sim://a/m-1", "one")
    seen = []
    for _ in range(120):
        await asyncio.sleep(1)
        seen.append((is_ready(world.server.get(Node, "node-1")), ready_of(world.pod())))

    after = world.server.get(Node, "node-1")
    assert (False, "False") in seen
    assert seen[-1] == (True, "True")
    assert after.status.node_info.boot_id != before.status.node_info.boot_id
    assert (after.metadata.uid, after.spec.taints, world.phase()) == (before.metadata.uid, (), "Running")


@pytest.mark.parametrize("incurable", [False, True], ids=["cured", "incurable"])
def test_a_reboot_cures_what_can_be_cured(incurable: bool) -> None:
    @in_world()
    async def test(world: World) -> None:
        node = await world.node(birth=MachineDefects(incurable=incurable))
        ill = NodeCondition(type="KWOKRebootRequired", status="True")
        status = replace(node.status, conditions=(*node.status.conditions, ill))
        await world.client.patch_status(node, replace(node, status=status))

        world.machines.reboot("sim://a/m-1", "one")
        await asyncio.sleep(120)

        after = world.server.get(Node, "node-1")
        assert is_ready(after)
        assert (condition(after, "KWOKRebootRequired") is not None) == incurable

    test()


@in_world()
async def test_a_vanished_machine_is_noticed_and_its_node_deleted_with_its_pods(world: World) -> None:
    await world.node()
    await world.bind(pod())
    await asyncio.sleep(10)

    world.machines.vanish("sim://a/m-1")
    await asyncio.sleep(45)

    node = world.server.get(Node, "node-1")
    ready = condition(node, "Ready")
    assert ready is not None
    assert (ready.status, node.spec.taints, ready_of(world.pod())) == ("Unknown", UNREACHABLE, "False")
    await asyncio.sleep(20)
    with pytest.raises(NotFound):
        world.server.get(Node, "node-1")
    assert world.phase() == "gone"
    assert world.server.find(CSINode, "node-1") is None


@in_world()
async def test_a_node_that_somebody_holds_is_only_asked_to_go(world: World) -> None:
    node = await world.node()
    await world.client.patch(node, replace(node, metadata=replace(node.metadata, finalizers=("example.com/held",))))
    await world.bind(pod())

    world.machines.vanish("sim://a/m-1")
    await asyncio.sleep(90)

    assert world.server.get(Node, "node-1").metadata.deletion_timestamp is not None
    assert world.phase() != "gone"


@in_world()
async def test_pods_endure_a_hanging_machine_for_five_minutes_and_then_wait_for_it(world: World) -> None:
    await world.node()
    await world.bind(pod())
    await asyncio.sleep(10)
    world.machines.break_down("sim://a/m-1")

    await asyncio.sleep(330)
    found = world.pod()
    assert found is not None
    assert found.metadata.deletion_timestamp is None
    await asyncio.sleep(600)

    found = world.pod()
    assert found is not None
    assert found.metadata.deletion_timestamp is not None  # nobody is there to end it
    world.machines.reboot("sim://a/m-1", "one")
    await asyncio.sleep(120)
    assert world.phase() == "gone"


TOLERATES = {"key": "example.com/out", "operator": "Exists"}


@pytest.mark.parametrize(
    ("tolerations", "at_once", "later"),
    [
        ([], "gone", "gone"),
        ([{**TOLERATES, "tolerationSeconds": 60}], "Running", "gone"),
        ([TOLERATES], "Running", "Running"),
    ],
    ids=["not tolerated", "for a minute", "for ever"],
)
def test_a_taint_that_drives_off_pods_is_endured_as_long_as_they_say(
    tolerations: list[dict[str, Any]], at_once: str, later: str
) -> None:
    @in_world()
    async def test(world: World) -> None:
        await world.node()
        await world.bind(annotated(pod(tolerations=tolerations), stops_after="1s"))
        await asyncio.sleep(10)

        await world.taint(Taint(key="example.com/out", effect="NoExecute"))
        await asyncio.sleep(30)
        assert world.phase() == at_once
        await asyncio.sleep(60)

        assert world.phase() == later

    test()


@in_world(waits_for_volumes=True)
async def test_a_pod_waits_for_its_volumes(world: World) -> None:
    await world.node()
    volume = decode({"metadata": {"name": "pv"}}, PersistentVolume)
    volume = replace(volume, spec=replace(volume.spec, csi=CSIVolumeSource(driver="ebs.csi")))
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    attachment = {
        "metadata": {"name": "va"},
        "spec": {"nodeName": "node-1", "source": {"persistentVolumeName": "pv"}},
        "status": {"attached": True},
    }
    world.server.load([volume, decode(claim, PersistentVolumeClaim)])
    await world.bind(pod(claims=["data"]))
    await asyncio.sleep(60)
    assert world.phase() == "Pending"

    world.server.load([decode(attachment, VolumeAttachment)])
    await asyncio.sleep(10)

    assert world.phase() == "Running"


@in_world()
async def test_a_steady_cluster_writes_nothing(world: World) -> None:
    await world.node()
    await world.bind(pod())
    await asyncio.sleep(60)
    before = len(world.trace)

    await asyncio.sleep(24 * 3600)

    assert len(world.trace) == before
