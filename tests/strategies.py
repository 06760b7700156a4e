"""Generated values: small alphabets, so that things meet."""

from typing import Any

from hypothesis import strategies as st
from tests.builders import instance_type, offering, overlay, settings
from tests.differential import pieces
from tests.differential.terms import Json

from joiner.catalog.market import UNLIMITED, InstanceType
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, PRICE, ZONE
from joiner.model.meta import replace
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirement, Requirements

VALUES = ("a", "b", "c", "0", "1", "2", "3", "5", "9", "-1", "07", "+2")
NUMBERS = ("-1", "0", "1", "2", "3", "5", "9")


def requirements_on(key: str) -> st.SearchStrategy[Requirement]:
    """One requirement on the key: any operator, sometimes the intersection of two."""
    minimum = st.none() | st.integers(1, 3)
    listed = st.builds(
        lambda operator, values, least: Requirement.of(key, operator, *values, min_values=least),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique=True),
        minimum,
    )
    bare = st.builds(lambda operator: Requirement.of(key, operator), st.sampled_from(["Exists", "DoesNotExist"]))
    bounded = st.builds(
        lambda operator, bound: Requirement.of(key, operator, bound),
        st.sampled_from(["Gt", "Lt", "Gte", "Lte"]),
        st.sampled_from(NUMBERS),
    )
    single = listed | bare | bounded
    return single | st.builds(lambda left, right: left & right, single, single)


requirement_sets = st.lists(st.sampled_from(["a", "b", "c"]).flatmap(requirements_on), max_size=4).map(Requirements)

# -- markets ---------------------------------------------------------------------------------------------------------

KEYS = ("a", "b", ZONE, CAPACITY_TYPE, INSTANCE_TYPE)
_PLACES = st.tuples(st.sampled_from(["spot", "on-demand", "reserved"]), st.sampled_from(["1", "2", "3"]))


@st.composite
def instance_types(draw: st.DrawFn, name: str) -> InstanceType:
    """A type with odd labels and offerings, some of them unavailable or without a price."""
    places = draw(st.lists(_PLACES, max_size=4, unique=True))
    offerings = [
        offering(
            kind,
            zone,
            draw(st.none() | st.sampled_from([0.5, 1.0, 2.0])),
            draw(st.sampled_from([0, 1, UNLIMITED])),
            f"cr-{name}-{zone}" if kind == "reserved" else "",
        )
        for kind, zone in places
    ]
    own = draw(st.lists(st.sampled_from(["a", "b"]).flatmap(requirements_on), max_size=2))
    base = instance_type(name, offerings)
    return replace(base, requirements=base.requirements & Requirements(own))


markets = st.integers(0, 5).flatmap(lambda n: st.tuples(*(instance_types(name=f"type-{i}") for i in range(n))))
questions = st.lists(
    st.sampled_from(["a", "b", "c"]).flatmap(requirements_on)
    | st.builds(Requirement.of, st.just(ZONE), st.sampled_from(["In", "NotIn"]), st.sampled_from(["1", "2", "3", "4"]))
    | st.builds(
        Requirement.of, st.just(CAPACITY_TYPE), st.sampled_from(["In", "NotIn"]), st.sampled_from(["spot", "reserved"])
    )
    | st.builds(Requirement.of, st.just(INSTANCE_TYPE), st.just("In"), st.sampled_from(["type-0", "type-1", "other"])),
    max_size=4,
).map(Requirements)

_WRITTEN = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(KEYS),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(["1", "2", "a", "spot", "type-0"]), min_size=1, max_size=2),
)
_PRICES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"price": "0.7"}, {"pricePercent": 50}, {"priceAdjustment": "+0.1"}, {"priceAdjustment": "-10%"}]
)


@st.composite
def overlay_sets(draw: st.DrawFn) -> list[NodeOverlay]:
    """Some overlays with different names that meet on weights, fields and offerings."""
    return [
        overlay(
            name,
            requirements=draw(st.lists(_WRITTEN, max_size=2)),
            weight=draw(st.integers(0, 2)),
            capacity=draw(st.sampled_from([{}, {"x/fuse": 1}, {"x/fuse": 2, "x/kvm": 1}])),
            overhead=draw(st.sampled_from([{}, {"memory": "1Mi"}])),
            **draw(_PRICES),
        )
        for name in draw(st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True))
    ]


@st.composite
def settings_sets(draw: st.DrawFn) -> list[InstanceTypeSettings]:
    """Settings for some of the types."""
    entry = st.dictionaries(
        st.sampled_from([ZONE, CAPACITY_TYPE, "team", PRICE]), st.sampled_from(["1", "2", "3"]), max_size=3
    )
    return [
        settings(
            name,
            **draw(st.fixed_dictionaries({}, optional={"offerings": st.lists(entry, max_size=3)})),
            resources=draw(st.sampled_from([{}, {"cpu": "3"}, {"x/foo": "1"}])),
        )
        for name in draw(st.lists(st.sampled_from(["type-0", "type-1", "nobody"]), max_size=2, unique=True))
    ]


# -- scheduling problems, as scenarios -------------------------------------------------------------------------------

APPS = ("red", "blue")
_ROWS: st.SearchStrategy[list[Json]] = st.lists(
    st.sampled_from(
        [
            pieces.row(ZONE, "In", "a"),
            pieces.row(ZONE, "NotIn", "a"),
            pieces.row(CAPACITY_TYPE, "In", "spot"),
            pieces.row(CAPACITY_TYPE, "NotIn", "reserved"),
            pieces.row(pieces.CPU, "Gt", 1),
            pieces.row(INSTANCE_TYPE, "NotIn", "t-2"),
            pieces.row(pieces.TEAM, "In", "x"),
            pieces.row(pieces.TEAM, "DoesNotExist"),
        ]
    ),
    max_size=1,
)
_MIN_VALUES: st.SearchStrategy[list[Json]] = st.lists(
    st.builds(
        lambda key, least: pieces.row(key, "Exists", minValues=least),
        st.sampled_from([INSTANCE_TYPE, ZONE, CAPACITY_TYPE]),
        st.integers(1, 3),
    ),
    max_size=1,
)
_MOSTLY = st.sampled_from([True, True, True, False])
_TAINT: Json = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
_DISLIKED: Json = {"key": "slow", "effect": "PreferNoSchedule"}
_TOLERATION: Json = {"key": "dedicated", "operator": "Exists"}


@st.composite
def _machines(draw: st.DrawFn) -> list[Json]:
    """Up to four types; each sold in some zones, on some markets, at few different prices, some out of reservations."""
    found = []
    for number, cpu in enumerate(draw(st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=5))):
        places = st.tuples(st.sampled_from(["on-demand", "spot", "reserved"]), st.sampled_from("ab"))
        offerings = []
        for market, zone in draw(st.lists(places, min_size=2, max_size=5, unique=True)):
            where = [pieces.row(ZONE, "In", zone), pieces.row(CAPACITY_TYPE, "In", market)]
            sold: Json = {"price": draw(st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.5])), "available": draw(_MOSTLY)}
            if market == "reserved":
                where.append(pieces.row(pieces.RESERVATION, "In", f"cr-{number}-{zone}"))
                sold["reservationCapacity"] = draw(st.integers(0, 2))
            offerings.append({"requirements": where, **sold})
        name = f"t-{number}"
        about = [
            pieces.row(INSTANCE_TYPE, "In", name),
            pieces.row(pieces.ARCH, "In", "amd64"),
            pieces.row(pieces.CPU, "In", cpu),
            pieces.row(ZONE, "In", *sorted({one["requirements"][0]["values"][0] for one in offerings})),
            pieces.row(CAPACITY_TYPE, "In", *sorted({one["requirements"][1]["values"][0] for one in offerings})),
        ]
        capacity = {"cpu": str(cpu), "memory": f"{draw(st.sampled_from([2, 4]))}Gi", "pods": "4"}
        found.append({"name": name, "requirements": about, "offerings": offerings, "capacity": capacity})
    return found


@st.composite
def _pools(draw: st.DrawFn, plain: bool) -> list[Json]:
    pools = []
    for name in ["one", "two"][: draw(st.integers(1, 2))]:
        spec: Json = {"rows": draw(_ROWS) if draw(st.booleans()) else []}
        if draw(st.booleans()):
            spec["labels"] = {pieces.TEAM: "x"}
        spec["taints"] = draw(st.sampled_from([[], [], [], [_TAINT], [_DISLIKED]]))
        if not plain:
            spec["rows"] += draw(_MIN_VALUES)
            spec["limits"] = draw(st.sampled_from([{}, {}, {"cpu": "4"}, {"nodes": "2"}]))
            spec["weight"] = draw(st.sampled_from([1, 5]))
        pools.append(pieces.pool(name, **spec))
    return pools


def _company(hard: st.SearchStrategy[bool]) -> st.SearchStrategy[Json]:
    """What pods ask of other pods."""
    keys, apps = st.sampled_from([ZONE, HOSTNAME]), st.sampled_from(APPS)
    spread = st.builds(
        lambda key, app, skew, hard, more: {"topologySpreadConstraints": [pieces.spread(key, app, skew, hard, **more)]},
        keys,
        apps,
        st.integers(1, 2),
        hard,
        st.sampled_from([{}, {"minDomains": 2}, {"nodeTaintsPolicy": "Honor"}, {"matchLabelKeys": ["app"]}]),
    )
    near = st.builds(
        lambda kind, key, app, hard: {"affinity": {kind: pieces.near(key, app, hard)}},
        st.sampled_from(["podAffinity", "podAntiAffinity"]),
        keys,
        apps,
        hard,
    )
    return spread | near


@st.composite
def _waiting(draw: st.DrawFn, plain: bool) -> tuple[list[Json], list[Json]]:
    """Pods of one to four deployments, and the storage objects they need."""
    found: list[Json] = []
    objects: list[Json] = []
    for number in range(draw(st.integers(1, 4))):
        spec: Json = draw(st.just({}) if plain else st.just({}) | _company(st.sampled_from([True, True, False])))
        spec = dict(spec)
        rows = draw(_ROWS) if draw(st.booleans()) else []
        if rows:
            more = draw(_ROWS) if draw(st.booleans()) else []
            nodes = pieces.required(*filter(None, (rows, more))) if draw(_MOSTLY) else pieces.preferred((1, rows))
            spec["affinity"] = {**spec.get("affinity", {}), "nodeAffinity": nodes}
        spec["tolerations"] = draw(st.sampled_from([[], [], [_TOLERATION], [{"operator": "Exists"}]]))
        what = draw(st.sampled_from(["nothing", "nothing", "nothing", "port", "volume"]))
        if what == "port":
            spec["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
        if what == "volume":
            objects += pieces.volume(f"data{number}", draw(st.sampled_from([None, "a", "b"])))
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data{number}"}}]
        labels = {"app": draw(st.sampled_from(APPS))}
        cpu, memory = (
            draw(st.sampled_from(["300m", "300m", "700m", "1", "1500m", "9"])),
            draw(st.sampled_from(["256Mi", "1Gi"])),
        )
        found += [pieces.pod(f"d{number}-{n}", cpu, memory, labels, **spec) for n in range(draw(st.integers(1, 4)))]
    return found, [*([pieces.storage_class("free")] if objects else []), *objects]


@st.composite
def scenarios(draw: st.DrawFn, plain: bool = False) -> Json:
    """A small scheduling question of any kind. `plain`: no topology, limits, weights or minValues."""
    machines, pools = draw(_machines()), draw(_pools(plain))
    waiting, objects = draw(_waiting(plain))
    nodes, running = [], []
    for number in range(draw(st.integers(0, 2))):
        name, owner = f"n{number}", draw(st.sampled_from(["one", None]))
        nodes.append(pieces.node(name, draw(st.sampled_from(machines)), draw(st.sampled_from("ab")), owner=owner))
        if draw(st.booleans()):
            app = {"app": draw(st.sampled_from(APPS))}
            running.append(pieces.bound(pieces.pod(f"run{number}", "200m", "64Mi", app), name))
    daemons = draw(st.lists(st.sampled_from([0, 1]), max_size=1))
    return {
        "name": "generated",
        "instanceTypes": machines,
        "nodePools": pools,
        "pods": waiting,
        "nodes": nodes,
        "boundPods": running,
        "daemonSets": [
            [
                pieces.daemon_set("all", "100m", "64Mi", tolerations=[{"operator": "Exists"}]),
                pieces.daemon_set("some", "200m", "64Mi", nodeSelector={pieces.CPU: "4"}),
            ][number]
            for number in daemons
        ],
        "objects": objects,
        "options": {"minValuesPolicy": draw(st.sampled_from(["Strict", "Strict", "BestEffort"]))},
    }
