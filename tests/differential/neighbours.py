"""What pods ask of other pods: spread, affinity, anti-affinity, judged on the finished placement.

The order of placement is not part of a result. A rule that depends on it is broken only when no order could have kept it:
pods that a constraint selects but that do not carry it may have come last.
"""

import itertools
import json
from collections.abc import Iterable, Iterator

from tests.differential.places import NodePlace, Place, Violation
from tests.differential.terms import HOSTNAME, Allowed, Json, joined, meets, selects, tolerates
from tests.differential.world import Pod, World

Standing = tuple[Pod, Place]


def judge(world: World, places: list[Place]) -> Iterator[Violation]:
    """Violations of spread, affinity and anti-affinity."""
    named = {place.node.name: place for place in places if isinstance(place, NodePlace)}
    everywhere = list(places)
    for node in world.nodes.values():
        if node.name not in named:
            named[node.name] = NodePlace(f"node {node.name}", [], node)
            everywhere.append(named[node.name])
    running: list[Standing] = [(pod, named[pod.node]) for pod in world.bound if pod.node in named]
    placed = [(pod, place) for place in places for pod in place.pods]
    yield from _spread(world, everywhere, running, placed)
    yield from _affinity(world, running, placed)
    yield from _apart(world, running, placed)


def domains(place: Place, key: str) -> frozenset[str]:
    """Where a place may be; for host names each place is its own."""
    if key == HOSTNAME and not isinstance(place, NodePlace):
        return frozenset({place.name})
    return place.domains(key)


def _namespaces(world: World, pod: Pod, term: Json) -> set[str]:
    chosen = set(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    if selector is None:
        return chosen or {pod.namespace}
    return chosen | {name for name, labels in world.namespaces.items() if selects(selector, labels)}


def _spread(
    world: World, everywhere: list[Place], running: list[Standing], placed: list[Standing]
) -> Iterator[Violation]:
    groups: dict[str, list[tuple[Pod, Place, Json]]] = {}
    for pod, place in placed:
        for row in pod.hard_spread:
            groups.setdefault(_group(pod, row), []).append((pod, place, row))
    for owners in groups.values():
        yield from _spread_group(world, everywhere, running, placed, owners)


def _selector(pod: Pod, row: Json) -> Json | None:
    selector = row.get("labelSelector")
    if selector is None:
        return None
    own = [
        {"key": key, "operator": "In", "values": [pod.labels[key]]}
        for key in row.get("matchLabelKeys") or ()
        if key in pod.labels
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *own]}


def _group(pod: Pod, row: Json) -> str:
    """Pods of one group are held against the same counts."""
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    who = [pod.namespace, _selector(pod, row), row["topologyKey"], row["maxSkew"], row.get("minDomains")]
    which = [pod.spec.get("nodeSelector"), affinity.get("requiredDuringSchedulingIgnoredDuringExecution")]
    taints = row.get("nodeTaintsPolicy")
    how = [row.get("nodeAffinityPolicy"), taints, pod.spec.get("tolerations") if taints == "Honor" else None]
    return json.dumps([who, which, how], sort_keys=True)


def _spread_group(
    world: World,
    everywhere: list[Place],
    running: list[Standing],
    placed: list[Standing],
    owners: list[tuple[Pod, Place, Json]],
) -> Iterator[Violation]:
    pod, _, row = owners[0]
    key, selector, skew = row["topologyKey"], _selector(pod, row), row["maxSkew"]
    quirk = "spread-regrouped" if len(pod.alternatives) > 1 else ""

    def chosen(other: Pod, place: Place) -> bool:
        return other.namespace == pod.namespace and selects(selector, other.labels) and _counts(pod, row, place)

    sure = _tally(((p, place) for p, place in running if chosen(p, place)), key)
    mine = [(p, place) for p, place, _ in owners if selects(selector, p.labels)]
    at_least = {d: sure.get(d, 0) + n for d, n in {**dict.fromkeys(sure, 0), **_tally(mine, key)}.items()}
    counted = [(p, place) for p, place in [*running, *placed] if chosen(p, place)]
    at_most = _tally(counted, key)
    universe = _universe(world, everywhere, pod, row)
    reported: set[str] = set()
    for owner, place, _ in owners:
        where = domains(place, key)
        if not where:
            yield Violation("spread", place.name, f"{owner.key} spreads over {key}, which the node will not have")
        for domain in sorted(where - reported):
            counts = at_most
            if len(where) > 1:  # if it is in this domain, it is in no other
                others = _tally(((p, home) for p, home in counted if home is not place), key)
                counts = {**others, domain: at_most.get(domain, 0)}
            lows = [_lowest(universe, counts, alternative.get(key), row) for alternative in pod.alternatives]
            low = 0 if key == HOSTNAME else max(lows)
            count = at_least.get(domain, 0) if mine else sure.get(domain, 0)
            if count - low > skew:
                reported.add(domain)
                words = f"{owner.key}: {key}={domain} has {count}, the emptiest domain {low}, maxSkew {skew}"
                yield Violation("spread", place.name, words, quirk)


def _tally(standing: Iterable[Standing], key: str) -> dict[str, int]:
    """How many may be in each domain."""
    counts: dict[str, int] = {}
    for _, place in standing:
        for domain in domains(place, key):
            counts[domain] = counts.get(domain, 0) + 1
    return counts


def _counts(pod: Pod, row: Json, place: Place) -> bool:
    """Whether pods at a place count for this pod: the place passes the node policies of the constraint."""
    if row.get("nodeTaintsPolicy") == "Honor" and not tolerates(pod.spec.get("tolerations"), place.taints):
        return False
    if row.get("nodeAffinityPolicy", "Honor") == "Ignore":
        return True
    return any(meets(form, alternative) for form in place.forms for alternative in pod.alternatives)


def _universe(world: World, everywhere: list[Place], pod: Pod, row: Json) -> set[str]:
    """Every domain that pods of the group could have been sent to."""
    key = row["topologyKey"]
    found: set[str] = set()
    for pool in world.pools.values():
        if row.get("nodeTaintsPolicy") == "Honor" and not tolerates(pod.spec.get("tolerations"), pool.taints):
            continue
        own = joined(pool.requirements, pool.labels)
        if key in own and own[key].listed is not None:
            found |= own[key].values()
        for kind in pool.kinds:
            typed = world.types[kind.name]
            if any((typed[label] & own[label]).impossible for label in typed.keys() & own.keys()):
                continue  # the pool never buys it
            if key in typed:
                allowed = typed[key] & own[key] if key in own else typed[key]
                found |= allowed.values()
    for place in everywhere:
        if isinstance(place, NodePlace) and _counts(pod, row, place):
            found |= domains(place, key)
    return found


def _lowest(universe: set[str], counts: dict[str, int], wanted: Allowed | None, row: Json) -> int:
    """The emptiest domain among those the pod itself allows; none at all where there are fewer than it asks for."""
    open_to = {domain for domain in universe if wanted is None or wanted.has(domain)}
    if row.get("minDomains") and len(open_to) < row["minDomains"]:
        return 0
    return min((counts.get(domain, 0) for domain in open_to), default=0)


def _affinity(world: World, running: list[Standing], placed: list[Standing]) -> Iterator[Violation]:
    """Each pod came to where its company was; the first of a group that selects itself may have started anywhere."""
    wanting = [(pod, place) for pod, place in placed if pod.hard_terms("podAffinity")]
    there: list[Standing] = [*running, *((pod, place) for pod, place in placed if not pod.hard_terms("podAffinity"))]
    while wanting:
        content = [(pod, place) for pod, place in wanting if _in_company(world, pod, place, there)]
        if not content:
            break
        there += content
        wanting = [standing for standing in wanting if standing not in content]
    for pod, place in wanting:
        yield Violation("affinity", place.name, f"{pod.key} has no company of the kind it requires")
    yield from _started_apart(world, running, placed)


def _in_company(world: World, pod: Pod, place: Place, there: list[Standing]) -> bool:
    for term in pod.hard_terms("podAffinity"):
        spaces, key = _namespaces(world, pod, term), term["topologyKey"]
        if not domains(place, key):
            return False
        if pod.namespace in spaces and selects(term.get("labelSelector"), pod.labels):
            continue
        company = [home for other, home in there if _chosen(other, spaces, term)]
        if place not in company and not domains(place, key) <= _certain(company, key):
            return False
    return True


def _chosen(pod: Pod, spaces: set[str], term: Json) -> bool:
    return pod.namespace in spaces and selects(term.get("labelSelector"), pod.labels)


def _certain(places: Iterable[Place], key: str) -> set[str]:
    """Domains that one of the places is sure to be in."""
    return {domain for place in places for domain in domains(place, key) if len(domains(place, key)) == 1}


def _started_apart(world: World, running: list[Standing], placed: list[Standing]) -> Iterator[Violation]:
    """A group that selects itself starts once: two beginnings are wrong where each could have joined the other."""
    groups: dict[str, list[tuple[Pod, Place, Json]]] = {}
    for pod, place in placed:
        for term in pod.hard_terms("podAffinity"):
            if _chosen(pod, _namespaces(world, pod, term), term):
                groups.setdefault(json.dumps([pod.namespace, term], sort_keys=True), []).append((pod, place, term))
    for owners in groups.values():
        pod, _, term = owners[0]
        key, spaces = term["topologyKey"], _namespaces(world, pod, term)
        mine = {owner.key for owner, _, _ in owners}
        held = _where(((p, place) for p, place in running if _chosen(p, spaces, term)), key)
        others = [home for p, home in placed if p.key not in mine and _chosen(p, spaces, term)]
        company = _certain(others, key).union(*(where for where, _ in held))
        starts = _where(((owner, place) for owner, place, _ in owners), key)
        fresh = [where for where in starts if not where[0] <= company]
        for one, other in [*itertools.combinations(fresh, 2), *itertools.product(fresh, held)]:
            if _could_join(starts[one], other, key) and (other in held or _could_join(starts[other], one, key)):
                words = f"its group is in {key}={sorted(one[0])} and {sorted(other[0])}, which both could take"
                quirk = "" if len(one[0]) == len(other[0]) == 1 else "affinity-uncounted"
                yield Violation("affinity", starts[one][0].key, words, quirk)


Whereabouts = tuple[frozenset[str], str]


def _where(standing: Iterable[Standing], key: str) -> dict[Whereabouts, list[Pod]]:
    """Pods by where they may be. Places that are sure of their domain share it; an open one is on its own."""
    found: dict[Whereabouts, list[Pod]] = {}
    for pod, place in standing:
        here = domains(place, key)
        found.setdefault((here, "" if len(here) == 1 else place.name), []).append(pod)
    return found


def _could_join(pods: list[Pod], there: Whereabouts, key: str) -> bool:
    """Whether pods could be in a domain; a place without the label is in none."""
    wishes = [alternative[key] for pod in pods for alternative in pod.alternatives if key in alternative]
    return bool(there[0]) and all(wish.has(value) for wish in wishes for value in there[0])


def _apart(world: World, running: list[Standing], placed: list[Standing]) -> Iterator[Violation]:
    """No pod shares a domain with one that it, or the other, keeps away from."""
    for pod, place in [*running, *placed]:
        for term in pod.hard_terms("podAntiAffinity"):
            spaces, key = _namespaces(world, pod, term), term["topologyKey"]
            here = domains(place, key)
            others = placed if any(pod is p for p, _ in running) else [*running, *placed]
            for other, home in others:
                if other is pod or not _chosen(other, spaces, term):
                    continue
                shared = here & domains(home, key)
                if shared:
                    sure = place is home or len(here) == len(domains(home, key)) == 1
                    words = f"{pod.key} keeps away from {other.key}, both may be in {key}={sorted(shared)}"
                    yield Violation("anti-affinity", place.name, words, "" if sure else "anti-affinity-uncounted")
