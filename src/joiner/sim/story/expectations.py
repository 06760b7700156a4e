"""What a story says must be true, looked up in the world: on the server's objects and the cloud's books, never in ours."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from joiner.model import codec, labels
from joiner.model.clusterobjects import Event
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.apiserver.server import Write
from joiner.sim.story import objects
from joiner.sim.story.document.format import ClaimWords, Expectation
from joiner.sim.story.document.invariants import Law
from joiner.sim.story.phrases import counted
from joiner.sim.story.workloadpods import WorkloadPods
from joiner.sim.world import World


class Judge:
    """Says what is not as it should be; nothing when everything is."""

    def __init__(self, world: World, pods: WorkloadPods) -> None:
        self._world, self._pods = world, pods
        self._has_had: set[str] = set()
        self._made = 0
        world.server.observers.append(self._count)

    def _count(self, write: Write) -> None:
        self._made += isinstance(write.after, NodeClaim) and write.before is None

    def complaints(self, wanted: Expectation) -> list[str]:
        """Everything about an expectation that is not so now, each with what is so instead."""
        return [*self._about_pods(wanted), *self._about_nodes(wanted), *self._about_words(wanted)]

    def _about_pods(self, wanted: Expectation) -> Iterator[str]:
        for workload, number in wanted.running.items():
            found = self._pods.ready(workload)
            if found != number:
                yield f"{workload}: {counted(found, 'pod')} {'runs' if found == 1 else 'run'}, not {number}"
        for workload, number in wanted.pending.items():
            found = sum(not pod.spec.node_name for pod in self._pods.of(workload))
            if found != number:
                yield f"{workload}: {counted(found, 'pod')} without a node, not {number}"
        for workload, words in wanted.refused.items():
            told = self._refusals(workload)
            if not any(words in each for each in told):
                yield f"{workload}: no refusal says {words!r}; told: {'; '.join(told) or 'nothing'}"

    def _refusals(self, workload: str) -> list[str]:
        names = {pod.name for pod in self._pods.of(workload) if not pod.spec.node_name}
        return sorted(
            {
                event.message
                for event in self._world.server.objects(Event)
                if event.reason == "FailedScheduling" and event.involved_object.name in names
            }
        )

    def _about_nodes(self, wanted: Expectation) -> Iterator[str]:
        server = self._world.server
        if wanted.claims is not None:
            claims = list(server.objects(NodeClaim))
            if isinstance(wanted.claims, int):
                if len(claims) != wanted.claims:
                    yield f"claims: there {_are(len(claims))}, not {wanted.claims}"
            elif not _matched(list(wanted.claims), claims):
                yield f"claims are {'; '.join(map(_told, claims)) or 'none'}, not as said"
        if wanted.nodes is not None:
            nodes = Counter(map(_pool, server.objects(Node)))
            if isinstance(wanted.nodes, int):
                if nodes.total() != wanted.nodes:
                    yield f"nodes: there {_are(nodes.total())}, not {wanted.nodes}"
            else:
                for pool, number in wanted.nodes.items():
                    if nodes[pool] != number:
                        yield f"pool {pool} has {counted(nodes[pool], 'node')}, not {number}"
        if wanted.leaving is not None:
            leaving = sum(claim.metadata.deletion_timestamp is not None for claim in server.objects(NodeClaim))
            if leaving != wanted.leaving:
                yield f"claims that are being deleted: there {_are(leaving)}, not {wanted.leaving}"
        for key, number in wanted.tainted.items():
            found = sum(any(taint.key == key for taint in node.spec.taints) for node in server.objects(Node))
            if found != number:
                yield f"nodes with the taint {key}: there {_are(found)}, not {number}"
        yield from self._about_machines(wanted)

    def _about_machines(self, wanted: Expectation) -> Iterator[str]:
        known = self._world.cloud.machines
        if wanted.machines is not None and (machines := len(known.alive())) != wanted.machines:
            yield f"the cloud runs {counted(machines, 'machine')}, not {wanted.machines}"
        if wanted.reboots is not None and (reboots := known.reboots()) != wanted.reboots:
            yield f"machines came back from {counted(reboots, 'restart')}, not {wanted.reboots}"
        below = wanted.cost_per_hour_below
        if below is not None and self._cost() >= below:
            yield f"an hour costs {self._cost():.4f}, not less than {below}"

    def _about_words(self, wanted: Expectation) -> Iterator[str]:
        if wanted.event and not any(_fits(event, wanted.event) for event in self._world.server.objects(Event)):
            yield f"no event {' '.join(f'{key}={value}' for key, value in wanted.event.items())}"
        for each in self._meant(str(wanted.condition.get("of", ""))):
            yield from _about_condition(each, wanted.condition)
        for each in self._meant(wanted.field.get("of", "")):
            yield from _about_field(each, wanted.field)
        for word in (str(wanted.condition.get("of", "")), wanted.field.get("of", "")):
            if word and not self._meant(word):
                yield f"there is no {word}"

    def _meant(self, word: str) -> list[Any]:
        """The object that is meant by `kind/name`, or all of a kind by `kind/*`, by name."""
        kind, _, name = word.partition("/")
        known = self._world.kinds.get(kind.lower())
        if known is None:
            return []
        if name == "*":
            return sorted(self._world.server.objects(known), key=lambda each: each.name)
        return objects.called(self._world.server, known, name)

    # -- always ---------------------------------------------------------------------------------------------------

    def breach(self, law: Law) -> str:
        """How a law is broken now; empty when it holds. What must be at least so much must have been so much before."""
        found, told = self._measured(law)
        if law.least is not None:
            if found >= law.least:
                self._has_had.add(law.text)
            elif law.text in self._has_had:
                return told
        return told if law.most is not None and found > law.most else ""

    def never(self, law: Law) -> str:
        """Whether a law asks for something that there never was; empty when it does not."""
        if law.least and law.text not in self._has_had:
            return f"there were never so many; at the end {self._measured(law)[1]}"
        return ""

    def _measured(self, law: Law) -> tuple[float, str]:
        """How much there is of what a law is about, and the same as a sentence."""
        cloud, server = self._world.cloud, self._world.server
        if law.measure == "reservation":
            found = cloud.machines.in_reservation(law.subject)
            return found, f"it holds {found}"
        if law.measure == "nodes":
            found = sum(law.subject in ("", _pool(node)) for node in server.objects(Node))
            return found, f"{'it has' if law.subject else 'there are'} {found}"
        if law.measure == "claims":
            found = sum(1 for _ in server.objects(NodeClaim))
            return found, f"there are {found}"
        if law.measure == "made":
            return self._made, f"{self._made} were made"
        if law.measure == "running":
            found = self._pods.ready(law.subject)
            return found, f"{found} run"
        if law.measure == "cost":
            return self._cost(), f"it costs {self._cost():.4f}"
        refused = [event for event in server.objects(Event) if event.reason == "FailedScheduling"]
        told = refused[0] if refused else Event()
        return len(refused), f"{told.involved_object.name} is refused: {told.message}"

    def _cost(self) -> float:
        """What is paid for each hour, as things are now."""
        return self._world.cloud.ledger.rate(self._world.clock.now())


def _about_condition(thing: Any, wanted: Mapping[str, str | bool]) -> Iterator[str]:
    found = next((each for each in thing.status.conditions if each.type == wanted.get("type")), None)
    for word in ("status", "reason"):
        if word not in wanted:
            continue
        has = ("none" if word == "status" else "") if found is None else getattr(found, word)
        if has != str(wanted[word]):
            told = "not there" if found is None else f"{found.status} ({found.reason}: {found.message})"
            yield f"{thing.kind} {thing.name}: {wanted.get('type')} is {told}, {word} should be {wanted[word]}"


def _about_field(thing: KubeObject, wanted: Mapping[str, Any]) -> Iterator[str]:
    path = wanted.get("path", "")
    found = looked_up(codec.encode(thing), path)
    if str(found) != str(wanted.get("is")):
        yield f"{thing.kind} {thing.name}: {path} is {found}, not {wanted.get('is')}"


def looked_up(data: Any, path: str) -> Any:
    """What is at a path like `status.nodes`, `spec.taints[0].key` or `metadata.labels[team]`; nothing where nothing is."""
    for bracketed, plain in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path):
        key = bracketed or plain
        if isinstance(data, list):
            data = data[int(key)] if key.isdecimal() and int(key) < len(data) else None
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data


def _are(number: int) -> str:
    return f"{'is' if number == 1 else 'are'} {number}"


def _pool(thing: KubeObject) -> str:
    return thing.metadata.labels.get(labels.NODEPOOL, "")


def _said(claim: NodeClaim) -> dict[str, str]:
    known = claim.metadata.labels
    reservation = next((value for key, value in sorted(known.items()) if key.endswith("capacity-reservation-id")), "")
    return {
        "nodepool": known.get(labels.NODEPOOL, ""),
        "instance_type": known.get(labels.INSTANCE_TYPE, ""),
        "capacity_type": known.get(labels.CAPACITY_TYPE, ""),
        "zone": known.get(labels.ZONE, ""),
        "reservation": reservation,
    }


def _told(claim: NodeClaim) -> str:
    return f"{claim.name} ({', '.join(value for value in _said(claim).values() if value) or 'not launched'})"


def _matched(wanted: list[ClaimWords], claims: list[NodeClaim]) -> bool:
    """Whether every claim is one of those wanted, and the other way round: a small matching, by trying."""
    if not wanted or not claims:
        return not wanted and not claims
    first, rest = claims[0], claims[1:]
    said = _said(first)
    for place, words in enumerate(wanted):
        fits = all(getattr(words, name) in (None, value) for name, value in said.items())
        if fits and _matched(wanted[:place] + wanted[place + 1 :], rest):
            return True
    return False


def _fits(event: Event, wanted: Mapping[str, str]) -> bool:
    has = {"reason": event.reason, "kind": event.involved_object.kind, "name": event.involved_object.name}
    exact = all(has[key] == value for key, value in wanted.items() if key in has)
    return exact and wanted.get("message", "") in event.message
