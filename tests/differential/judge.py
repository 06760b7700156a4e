"""An independent judge of plans: a scenario and a result in, broken promises out.

It asks what a kube-scheduler would say if each claim came up as any node its requirements still allow.
It shares no code with the engine.
Preferences, weights and prices beyond "the price is real" are not its business.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from tests.differential import neighbours
from tests.differential.places import ClaimPlace, NodePlace, Place, Violation
from tests.differential.terms import (
    ABSENT,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ZONE,
    Amounts,
    Json,
    Labels,
    amounts,
    may_meet,
    meets,
    requirements,
    tolerates,
    total,
)
from tests.differential.world import Pod, Port, World, read

__all__ = ["QUIRKS", "Violation", "complaints", "judge"]

QUIRKS = {
    "type-without-reserved-offering": "a claim that holds a reservation lists types that have no reserved offering",
    "reserved-left-open": "a claim without a reservation still allows reserved capacity",
    "reservation-missing": "only reserved offerings match a claim that holds no reservation",
    "min-values-flag": "claims of one pool share the mark that says minValues was lowered",
    "min-values-unlaunchable": "minValues is counted over what types list, not over what can be launched",
    "spread-regrouped": "dropping a node affinity term opens a new spread group that has forgotten the others",
    "anti-affinity-uncounted": "a claim that leaves its domain open is not counted by anti-affinity",
    "limits-nodes": "the limit on nodes is not counted down within a run",
    "exclusion-lost": "excluded values beside a bound are not written to the claim",
    "existence-lost": "a label that must be there and not be something may in the end not be there at all",
    "contradiction": "a pod that contradicts itself counts as one that wants the label not to be there",
    "affinity-uncounted": "a claim that leaves its domain open is no company to others, so a group starts more than once",
    "daemon-terms-forgotten": "a daemon's node affinity terms are used up type by type; nodes are held against the first alone",
    "capacity-of-the-type": "an overlay's capacity counts for offerings that it does not match",
}
"""What the reference is known to do; each explains a violation found in its answers and none in ours."""


def judge(scenario: Json, result: Json, *, reference: bool = False) -> list[Violation]:
    """Every promise that the result breaks. `reference`: overlays as the reference reads them."""
    world = read(scenario, result.get("overlays"), reference)
    claims, nodes, wrong = _places(world, result)
    places: list[Place] = [*claims, *nodes]
    found = [*wrong, *_accounting(world, result, places)]
    for claim in claims:
        found += _claim(claim)
    for node in nodes:
        found += _node(world, node)
    found += _limits(world, claims)
    found += _reservations(world, claims)
    found += neighbours.judge(world, places)
    return found


def complaints(scenario: Json, result: Json) -> list[str]:
    """What the judge has against a plan of ours.

    A claim that takes a reservation was flexible before it did; the judge sees only what it was in the end.
    """
    reserved = {
        f"claim {number} ({claim['nodePool']})"
        for number, claim in enumerate(result["newNodeClaims"])
        if claim.get("reservationIDs")
    }
    found = judge(scenario, result)
    return [str(each) for each in found if not (each.rule.startswith("min-values") and each.where in reserved)]


def _places(world: World, result: Json) -> tuple[list[ClaimPlace], list[NodePlace], list[Violation]]:
    claims, nodes, wrong = [], [], []
    for index, written in enumerate(result.get("newNodeClaims") or ()):
        name = f"claim {index} ({written['nodePool']})"
        pods = [world.waiting[key] for key in written["pods"] if key in world.waiting]
        if written["nodePool"] not in world.pools:
            wrong.append(Violation("unknown", name, "no such pool"))
            continue
        pool = world.pools[written["nodePool"]]
        claims.append(ClaimPlace(name, pods, written, pool, world, list(written["instanceTypes"] or ())))
    for written in result.get("existingNodes") or ():
        pods = [world.waiting[key] for key in written["pods"] if key in world.waiting]
        if written["name"] in world.nodes:
            nodes.append(NodePlace(f"node {written['name']}", pods, world.nodes[written["name"]]))
        else:
            wrong.append(Violation("unknown", written["name"], "no such node"))
    return claims, nodes, wrong


def _accounting(world: World, result: Json, places: list[Place]) -> Iterator[Violation]:
    """Each pod is in one place, or is said not to be."""
    told: Counter[str] = Counter()
    for written in [*(result.get("newNodeClaims") or ()), *(result.get("existingNodes") or ())]:
        told.update(written["pods"])
    for part in ("errors", "ignored", "notAttempted"):
        told.update(list(result.get(part) or ()))
    for key in sorted(told.keys() | world.waiting.keys()):
        if key not in world.waiting:
            yield Violation("accounting", key, "the scenario has no such pod waiting")
        elif told[key] != 1:
            yield Violation("accounting", key, f"told {told[key]} times instead of once")
    for written in result.get("newNodeClaims") or ():
        if not written["pods"]:
            yield Violation("accounting", written["nodePool"], "a claim without pods")


def _claim(claim: ClaimPlace) -> Iterator[Violation]:
    yield from _claim_types(claim)
    yield from _claim_price(claim)
    yield from _claim_of_its_pool(claim)
    for pod in claim.pods:
        if not tolerates(pod.spec.get("tolerations"), claim.taints):
            yield Violation("pool-taints", claim.name, f"{pod.key} does not tolerate the pool's taints")
        yield from _wishes(claim, pod)
    yield from _claim_room(claim)
    yield from _flexibility(claim)


def _claim_types(claim: ClaimPlace) -> Iterator[Violation]:
    known = {kind.name for kind in claim.pool.kinds}
    launchable = {kind.name for kind, _ in claim.bought}
    matching = {kind.name for kind, _ in claim.matching}
    if not claim.types:
        yield Violation("types", claim.name, "no instance type")
    if len(claim.types) > claim.world.options.get("maxInstanceTypes", 600):
        yield Violation("types", claim.name, f"{len(claim.types)} instance types are more than a launch may name")
    if len(set(claim.types)) != len(claim.types):
        yield Violation("types", claim.name, "an instance type is listed twice")
    for name in claim.types:
        if name not in known:
            yield Violation("types", claim.name, f"the pool has no type {name}")
        elif name not in matching:
            quirk = "type-without-reserved-offering" if claim.reservations else ""
            yield Violation("launchable", claim.name, f"no offering of {name} matches its requirements", quirk)
        elif name not in launchable:
            quirk = "type-without-reserved-offering" if claim.reservations else _reserved_only(claim, name)
            yield Violation("launchable", claim.name, f"no matching offering of {name} can be launched", quirk)


def _reserved_only(claim: ClaimPlace, name: str) -> str:
    kinds = [kind for kind, _ in claim.matching if kind.name == name and kind.available]
    return "reservation-missing" if kinds and all(kind.capacity_type == "reserved" for kind in kinds) else ""


def _claim_price(claim: ClaimPlace) -> Iterator[Violation]:
    """The price is that of the cheapest offering it can be launched as, and the offering named has it."""
    told, named = claim.written.get("cheapestPrice"), claim.written.get("cheapest") or {}
    best = min((kind.price for kind, _ in claim.bought), default=-1.0)
    if told is None or not _close(told, best):
        yield Violation("price", claim.name, f"says {told}, the cheapest launchable offering costs {best}")
    if claim.bought and not any(
        kind.name == named.get("instanceType")
        and kind.capacity_type == named.get("capacityType")
        and kind.zone == named.get("zone")
        and _close(kind.price, best)
        for kind, _ in claim.bought
    ):
        yield Violation("price", claim.name, f"{named} is not an offering at {best}")


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def _claim_of_its_pool(claim: ClaimPlace) -> Iterator[Violation]:
    for key, accepted in claim.pool.requirements.items():
        if key == INSTANCE_TYPE:
            ok = claim.requirements[key].within(accepted)
        else:
            ok = all(node.get(key, ABSENT).within(accepted) for node in claim.forms)
        if not ok:
            quirk = _lost({key: accepted}, claim.requirements)
            yield Violation("pool-requirements", claim.name, f"{key} may be what the pool does not allow", quirk)
    if "taints" in claim.written:
        told = {(taint["key"], taint["effect"]) for taint in claim.written["taints"] or ()}
        if told != {(taint["key"], taint["effect"]) for taint in claim.taints}:
            yield Violation("claim-taints", claim.name, "its taints are not the pool's")


def _lost(wanted: Labels, told: Labels) -> str:
    """Which way of writing requirements down lost something of these."""
    if any(row.impossible for row in wanted.values()):
        return "contradiction"
    if any(told.get(key) == ABSENT and not row.absent for key, row in wanted.items()):
        return "existence-lost"
    return "exclusion-lost" if any(row.excluded for row in wanted.values()) else ""


def _wishes(place: Place, pod: Pod) -> Iterator[Violation]:
    """Node selector, required node affinity and volumes, on every node the place may become."""
    keys = {key for alternative in pod.alternatives for key in alternative}
    for form in _distinct(place.forms, keys):
        if not any(meets(form, alternative) for alternative in pod.alternatives):
            told = place.requirements if isinstance(place, ClaimPlace) else {}
            quirk = max(_lost(alternative, told) for alternative in pod.alternatives) if told else ""
            yield Violation("pod-requirements", place.name, f"{pod.key} does not accept {_words(form, keys)}", quirk)
            break


def _distinct(forms: list[Labels], keys: Iterable[str]) -> list[Labels]:
    wanted = sorted(keys)
    seen = {tuple(form.get(key) for key in wanted) for form in forms}
    return [{key: row for key, row in zip(wanted, values, strict=True) if row is not None} for values in seen]


def _words(form: Labels, keys: Iterable[str]) -> str:
    return ", ".join(f"{key}={sorted(form[key].values()) if key in form else 'absent'}" for key in sorted(keys))


def _volumes(world: World, place: Place) -> Iterator[Violation]:
    for pod in place.pods:
        for name in volume_claims(pod):
            choices = volume_choices(world, pod, name)
            keys = {key for choice in choices for key in choice}
            for form in _distinct(place.forms, keys):
                if choices and not any(meets(form, choice) for choice in choices):
                    yield Violation(
                        "volumes", place.name, f"the volume of {pod.key}/{name} is not at {_words(form, keys)}"
                    )
                    break


def volume_claims(pod: Pod) -> list[str]:
    """Names of the PersistentVolumeClaims of a pod."""
    name = pod.key.rpartition("/")[2]
    rows = pod.spec.get("volumes") or ()
    named = [row["persistentVolumeClaim"]["claimName"] for row in rows if "persistentVolumeClaim" in row]
    return [*named, *(f"{name}-{row['name']}" for row in rows if "ephemeral" in row)]


def volume_choices(world: World, pod: Pod, name: str) -> list[Labels]:
    """Where the volume can be reached, as alternatives; none when anywhere."""
    claim = world.objects.get(("PersistentVolumeClaim", pod.namespace, name), {"spec": {}})
    volume = world.objects.get(("PersistentVolume", "", claim["spec"].get("volumeName") or ""))
    if volume:
        required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
        return [requirements(term.get("matchExpressions")) for term in required.get("nodeSelectorTerms") or ()]
    storage = world.objects.get(("StorageClass", "", claim["spec"].get("storageClassName") or ""), {})
    return [
        requirements({**row, "operator": "In"} for row in term["matchLabelExpressions"])
        for term in storage.get("allowedTopologies") or ()
    ]


def _claim_room(claim: ClaimPlace) -> Iterator[Violation]:
    """Every offering it may be launched as holds its pods and the daemons that would run there."""
    yield from _volumes(claim.world, claim)
    asked = total(pod.requests for pod in claim.pods)
    told = claim.written.get("requests")
    if told is not None and _short(amounts(told), asked):
        yield Violation("requests", claim.name, f"asks for less than its pods do: {_short(amounts(told), asked)}")
    roomy: dict[str, bool] = {}
    cramped: dict[str, tuple[str, str]] = {}
    crowded = False
    for kind, node in claim.bought:
        daemons = [daemon for daemon in claim.world.daemons if _runs_on(claim, daemon, node)]
        lacking = _short(kind.allocatable, total([asked, *(daemon.requests for daemon in daemons)]))
        roomy[kind.name] = roomy.get(kind.name, False) or not lacking
        if lacking:
            cramped[kind.name] = (
                f"{kind.capacity_type} {kind.zone} lacks {lacking}",
                _forgotten(kind.allocatable, asked, daemons),
            )
        crowded = crowded or _clash([pod.ports for pod in [*claim.pods, *daemons]])
    for name, (words, quirk) in cramped.items():
        yield Violation(
            "resources", claim.name, f"{name} {words}", quirk or ("capacity-of-the-type" if roomy[name] else "")
        )
    if crowded:
        yield Violation("ports", claim.name, "two pods want the same host port")


def _forgotten(room: Amounts, asked: Amounts, daemons: list[Pod]) -> str:
    """Whether all would fit without the daemons that have several terms."""
    simple = [daemon.requests for daemon in daemons if len(daemon.alternatives) == 1]
    return "" if _short(room, total([asked, *simple])) else "daemon-terms-forgotten"


def _runs_on(claim: ClaimPlace, daemon: Pod, node: Labels) -> bool:
    tolerant = tolerates(daemon.spec.get("tolerations"), claim.taints)
    return tolerant and any(may_meet(node, alternative, claim.world.well_known) for alternative in daemon.alternatives)


def _short(room: Amounts, asked: Amounts) -> list[str]:
    return [name for name, value in asked.items() if value > room.get(name, Fraction(0)) and value > 0]


def _clash(ports: Iterable[list[Port]]) -> bool:
    taken: list[Port] = []
    for mine in ports:
        for protocol, number, address in mine:
            for other in taken:
                anywhere = {address, other[2]} & {"0.0.0.0", "::"}
                if (protocol, number) == other[:2] and (anywhere or address == other[2]):
                    return True
        taken += mine
    return False


def flexibility(claim: ClaimPlace) -> dict[str, tuple[int, int]]:
    """For each key with minValues: what the pool wants, and how many values can be launched."""
    offered = {ZONE, CAPACITY_TYPE, claim.world.options["reservationIDLabel"]}
    counts: dict[str, tuple[int, int]] = {}
    for row in claim.pool.rows:
        if not row.get("minValues"):
            continue
        key = row["key"]
        found: set[str] = set()
        for _, node in claim.freely:
            found |= node.get(key, ABSENT).values()
        wanted = max(row["minValues"], counts.get(key, (0, 0))[0])
        counts[key] = (
            wanted,
            len(found) if key in offered or key != INSTANCE_TYPE else len({k.name for k, _ in claim.freely}),
        )
    return counts


def _flexibility(claim: ClaimPlace) -> Iterator[Violation]:
    lacking = {key: pair for key, pair in flexibility(claim).items() if pair[1] < pair[0]}
    if claim.world.options.get("minValuesPolicy", "Strict") == "Strict":
        for key, (wanted, left) in lacking.items():
            quirk = "min-values-unlaunchable" if _listed_values(claim, key) >= wanted else ""
            yield Violation("min-values", claim.name, f"{key} wants {wanted} values, {left} can be launched", quirk)
        if claim.written.get("minValuesRelaxed"):
            yield Violation("min-values-flag", claim.name, "says that minValues was lowered under a strict policy")
    elif bool(lacking) != bool(claim.written.get("minValuesRelaxed")) and (lacking or not claim.reservations):
        yield Violation("min-values-flag", claim.name, f"lacking {lacking}, the mark says otherwise", "min-values-flag")


def _listed_values(claim: ClaimPlace, key: str) -> int:
    """As the reference counts: what the listed types say of themselves, launchable or not."""
    found: set[str] = set()
    for kind in claim.pool.kinds:
        if kind.name in claim.types:
            found |= kind.labels.get(key, ABSENT).values()
    return len(found)


def _node(world: World, place: NodePlace) -> Iterator[Violation]:
    node = place.node
    if node.deleting and place.pods:
        yield Violation("node-deleting", place.name, "is going away and takes no pods")
    for pod in place.pods:
        if not tolerates(pod.spec.get("tolerations"), node.taints):
            yield Violation("node-taints", place.name, f"{pod.key} does not tolerate the node's taints")
        yield from _wishes(place, pod)
    if not place.pods:
        return
    yield from _volumes(world, place)
    yield from _attachments(world, place)
    daemons = [
        daemon
        for daemon in world.daemons
        if tolerates(daemon.spec.get("tolerations"), node.taints)
        and any(meets(node.wanted, alternative) for alternative in daemon.alternatives)
    ]
    there = total(pod.requests for pod in node.pods if pod.daemon)
    asked = total(pod.requests for pod in [*node.pods, *place.pods])
    taken = total(pod.requests for pod in place.pods)
    to_come = _beyond(total(daemon.requests for daemon in daemons), there)
    lacking = [name for name in _short(node.allocatable, total([asked, to_come])) if taken.get(name)]
    if lacking:
        quirk = _forgotten(node.allocatable, asked, daemons)
        yield Violation("node-resources", place.name, f"lacks {lacking}", quirk)
    if _clash(pod.ports for pod in [*node.pods, *place.pods]):
        yield Violation("node-ports", place.name, "two pods want the same host port")


def _beyond(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(Fraction(0), value - other.get(name, Fraction(0))) for name, value in one.items()}


def _attachments(world: World, place: NodePlace) -> Iterator[Violation]:
    """How many volumes of each driver the node can hold."""
    csi = world.objects.get(("CSINode", "", place.node.name), {"spec": {}})
    attached: dict[str, set[str]] = {}
    for pod in [*place.node.pods, *place.pods]:
        for name in volume_claims(pod):
            attached.setdefault(_driver(world, pod, name), set()).add(f"{pod.namespace}/{name}")
    for row in csi["spec"].get("drivers") or ():
        most = (row.get("allocatable") or {}).get("count")
        if most is not None and len(attached.get(row["name"], ())) > most:
            yield Violation("node-volumes", place.name, f"more than {most} volumes of {row['name']}")


def _driver(world: World, pod: Pod, name: str) -> str:
    claim = world.objects.get(("PersistentVolumeClaim", pod.namespace, name), {"spec": {}})
    volume = world.objects.get(("PersistentVolume", "", claim["spec"].get("volumeName") or ""))
    if volume and "csi" in volume["spec"]:
        return str(volume["spec"]["csi"]["driver"])
    storage = world.objects.get(("StorageClass", "", claim["spec"].get("storageClassName") or ""), {})
    return str(storage.get("provisioner", ""))


def _limits(world: World, claims: list[ClaimPlace]) -> Iterator[Violation]:
    """Limits hold when every claim comes up as its smallest type, and no type is beyond what is left."""
    for pool in world.pools.values():
        limits = amounts(pool.spec.get("limits"))
        mine = [claim for claim in claims if claim.pool is pool]
        owned = [
            node
            for node in world.nodes.values()
            if node.labels.get("karpenter.sh/nodepool") == pool.name and not node.deleting
        ]
        used = total(node.capacity for node in owned)
        for name, limit in limits.items():
            if name == "nodes":
                if mine and len(owned) + len(mine) > limit:
                    yield Violation(
                        "limits-nodes", pool.name, f"{len(owned)} + {len(mine)} nodes, {limit} allowed", "limits-nodes"
                    )
                continue
            least = sum((_least(claim, name) for claim in mine), used.get(name, Fraction(0)))
            if mine and least > limit:
                yield Violation(
                    "limits", pool.name, f"{name} {float(least)} of {float(limit)} even with the smallest types"
                )
            for claim in mine:
                for kind, _ in claim.bought:
                    if used.get(name, Fraction(0)) + kind.capacity.get(name, Fraction(0)) > limit:
                        yield Violation("limits", claim.name, f"{kind.name} alone is beyond the limit on {name}")
                        break


def _least(claim: ClaimPlace, name: str) -> Fraction:
    return min((kind.capacity.get(name, Fraction(0)) for kind, _ in claim.bought), default=Fraction(0))


def _reservations(world: World, claims: list[ClaimPlace]) -> Iterator[Violation]:
    """Each claim gets a reservation of those it names, none is given out more often than it can be."""
    for claim in claims:
        open_ended = [kind for kind, _ in claim.matching if kind.capacity_type == "reserved" and kind.launchable]
        if not claim.reservations and open_ended:
            yield Violation(
                "reserved-left-open", claim.name, "allows reserved capacity, names no reservation", "reserved-left-open"
            )
    given: dict[str, list[ClaimPlace]] = {name: [] for name in world.reservations}

    def assign(claim: ClaimPlace, tried: set[str]) -> bool:
        for name in claim.reservations:
            if name in tried or name not in given:
                continue
            tried.add(name)
            if len(given[name]) < world.reservations[name]:
                given[name].append(claim)
                return True
            for other in list(given[name]):
                if assign(other, tried):
                    given[name].remove(other)
                    given[name].append(claim)
                    return True
        return False

    for claim in claims:
        if claim.reservations and not assign(claim, set()):
            yield Violation(
                "reservations", claim.name, f"{claim.reservations} are given out more often than they can be"
            )
