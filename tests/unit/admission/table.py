"""Good and bad objects: one table for the offline judge, for a CEL engine, and for whoever else judges objects."""

from copy import deepcopy
from typing import Any

from tests.unit.admission import ec2table
from tests.unit.admission.rows import Bad, Document, document

OVERLAY = "karpenter.sh/v1alpha1", "NodeOverlay"
SETTINGS = "karpenter.sh/v1alpha1", "InstanceType"


def requirement(key: str = "example.com/team", operator: str = "In", values: Any = ("a",), **more: Any) -> Document:
    return {"key": key, "operator": operator, "values": list(values), **more}


REFERENCE = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def pool(*requirements: Document, template: Document | None = None, labels: Any = None, **spec: Any) -> Document:
    inner = {"requirements": list(requirements), "nodeClassRef": dict(REFERENCE), **(template or {})}
    outer: Document = {"spec": inner} if labels is None else {"spec": inner, "metadata": {"labels": labels}}
    return document("karpenter.sh/v1", "NodePool", {"template": outer, **spec})


def claim(*requirements: Document, **spec: Any) -> Document:
    inner = {"requirements": list(requirements), "nodeClassRef": dict(REFERENCE), **spec}
    return document("karpenter.sh/v1", "NodeClaim", inner)


def overlay(**spec: Any) -> Document:
    return document(*OVERLAY, spec)


def selecting(**selector: Any) -> Document:
    return overlay(selector=selector)


def requiring(entry: Document) -> Document:
    return overlay(requirements=[entry])


def expressing(entry: Document) -> Document:
    return selecting(matchExpressions=[entry])


def settings(**spec: Any) -> Document:
    return document(*SETTINGS, spec)


def buffer(**spec: Any) -> Document:
    return document("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", spec)


def kwok(**spec: Any) -> Document:
    return document("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", spec)


def without(original: Document, *path: Any) -> Document:
    changed = deepcopy(original)
    place = changed
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return changed


def changed(original: Document, value: Any, *path: Any) -> Document:
    copy = deepcopy(original)
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


TEMPLATE = "spec.template.spec"
LABELS = "spec.template.metadata.labels"
ENTRY = f"{TEMPLATE}.requirements[0]"
RESERVATION = {"id": "cr-1", "instanceType": "c-4x-amd64-linux", "zone": "test-zone-a", "count": 2}

GOOD: dict[str, Document] = {
    "the smallest pool": pool(),
    "a pool that says everything": pool(
        requirement("karpenter.sh/capacity-type", values=["spot", "on-demand"], minValues=2),
        requirement("example.com/cpu", "Gt", ["3"]),
        requirement("example.com/cpu", "Lte", ["64"]),
        requirement("example.com/team", "NotIn", []),
        {"key": "example.com/gpu", "operator": "Exists", "minValues": 3},
        template={
            "taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cilium", "value": "", "effect": "NoExecute"}],
            "expireAfter": "Never",
            "terminationGracePeriod": "1h30m",
        },
        labels={"karpenter.sh/capacity-type": "spot", "example.com/team": "a", "empty": ""},
        limits={"cpu": "1000", "memory": "1000Gi", "nodes": 10},
        weight=100,
        disruption={
            "consolidateAfter": "30s",
            "consolidationPolicy": "Balanced",
            "budgets": [
                {"nodes": "100%", "reasons": ["Empty", "Unhealthy"]},
                {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h0m0s"},
                {"schedule": "@daily", "duration": "10m"},
            ],
        },
    ),
    "a pool of fixed size": pool(replicas=3, limits={"nodes": "5"}),
    "a pool with null fields": pool(limits=None, weight=None, disruption=None),
    "somebody else's domain that ends like ours": pool(
        requirement("fookarpenter.sh/a"), labels={"mykarpenter.sh/b": "c"}
    ),
    "a former label key": pool(requirement("beta.kubernetes.io/arch", values=["amd64"])),
    "a claim": claim(
        requirement("karpenter.sh/nodepool"),
        taints=[{"key": "a", "value": "b", "effect": "PreferNoSchedule"}],
        resources={"requests": {"cpu": "100m", "pods": 3}},
    ),
    "an empty overlay": overlay(),
    "an overlay in both spellings": overlay(
        selector={
            "matchLabels": {"karpenter.sh/node-pool": "default", "karpenter.sh/nodepool": "default"},
            "matchExpressions": [requirement("karpenter.sh/capacity-type", "NotIn", ["spot"])],
        },
        requirements=[requirement("example.com/cpu", "Gte", ["4"]), {"key": "a", "operator": "DoesNotExist"}],
        price="0.40",
        capacity={"smarter-devices/fuse": 1, "hugepages-2Mi": "100Mi"},
        overhead={"memory": "50Mi"},
        weight=10000,
    ),
    "a discount of everything": overlay(priceAdjustment="-100%"),
    "a rise beyond double": overlay(priceAdjustment="+250.5%"),
    "an amount off": overlay(priceAdjustment="-.05"),
    "a price of nothing": overlay(pricePercent=0),
    "settings with bare numbers": settings(
        offerings=[{"karpenter.sh/price": 0.4, "topology.kubernetes.io/zone": "a", "example.com/rack": 7}],
        resources={"cpu": 4, "memory": "8Gi"},
        overhead={"memory": "200Mi"},
    ),
    "a buffer for a template": buffer(podTemplateRef={"name": "web"}, replicas=3),
    "a buffer for a template within limits": buffer(podTemplateRef={"name": "web"}, limits={"cpu": "4"}),
    "a buffer for a workload": buffer(
        scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"}, percentage=20
    ),
    **ec2table.GOOD,
    "the smallest KWOK class": kwok(),
    "a KWOK class that says everything": kwok(
        nodeRegistrationDelay="5s",
        instanceTypes="ec2/us-east-1",
        kubelet={
            "kubeReserved": {"cpu": "300m", "memory": "1Gi", "ephemeral-storage": "1Gi", "pid": 100},
            "systemReserved": {"memory": "1Gi"},
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": 5},
            "evictionSoft": {"memory.available": "1.5%"},
            "evictionSoftGracePeriod": {"memory.available": "1m"},
            "evictionThreshold": {
                "hard": {"memoryAvailable": "1Gi", "imagefsAvailable": "10%", "nodefsInodesFree": "5%"},
                "soft": {"nodefsAvailable": "100%"},
            },
            "maxPods": 0,
            "podsPerCore": 4,
        },
        capacityReservations=[
            RESERVATION,
            {**RESERVATION, "id": "cr-2", "endTime": "2030-01-31T18:00:00Z", "type": "targeted"},
        ],
    ),
}

_IN_DOMAIN = "karpenter.sh/mine", "deep.karpenter.sh/mine"

BAD_REQUIREMENTS = [
    Bad("an unknown operator", pool(requirement(operator="Inn")), f"{ENTRY}.operator", nearest="In"),
    Bad("an operator in the wrong case", pool(requirement(operator="notIn")), f"{ENTRY}.operator", nearest="NotIn"),
    Bad("In without values", pool({"key": "a", "operator": "In"}), f"{ENTRY}.values", "rule"),
    Bad("In with an empty list", pool(requirement(values=[])), f"{ENTRY}.values", "rule"),
    Bad("minValues 0", pool(requirement(minValues=0)), f"{ENTRY}.minValues"),
    Bad("minValues 51", pool(requirement(operator="Exists", values=[], minValues=51)), f"{ENTRY}.minValues"),
    Bad("minValues above the values", pool(requirement(minValues=2)), f"{ENTRY}.minValues", "rule"),
    Bad("Gt with two values", pool(requirement(operator="Gt", values=["1", "2"])), f"{ENTRY}.values", "rule"),
    Bad("Lt without a value", pool(requirement(operator="Lt", values=[])), f"{ENTRY}.values", "rule"),
    Bad("Gte with text", pool(requirement(operator="Gte", values=["many"])), f"{ENTRY}.values", "rule"),
    Bad("Lte with a fraction", pool(requirement(operator="Lte", values=["1.5"])), f"{ENTRY}.values", "rule"),
    Bad("a number as value", pool(requirement(operator="Gt", values=[4])), f"{ENTRY}.values[0]", words='quotes: "4"'),
    Bad("a value with a space", pool(requirement(values=["a b"])), f"{ENTRY}.values[0]"),
    Bad("a key with a space", pool(requirement("a b")), f"{ENTRY}.key"),
    Bad("a key without a name", pool(requirement("example.com/")), f"{ENTRY}.key"),
    Bad("a key that is too long", pool(requirement("a" * 317)), f"{ENTRY}.key"),
    Bad("a name that is too long", pool(requirement("a" * 64)), f"{ENTRY}.key", "judge"),
    Bad("a requirement without key", pool({"operator": "Exists"}), f"{ENTRY}.key", words="missing"),
    *(Bad(f"a requirement on {key}", pool(requirement(key)), f"{ENTRY}.key", "rule") for key in _IN_DOMAIN),
    Bad("a requirement on our pool label", pool(requirement("karpenter.sh/nodepool")), f"{ENTRY}.key", "rule"),
    Bad("a requirement on the hostname", pool(requirement("kubernetes.io/hostname")), f"{ENTRY}.key", "rule"),
    Bad("the provider's own domain", pool(requirement("karpenter.kwok.sh/mine")), f"{ENTRY}.key", "judge"),
    Bad(
        "a misspelt label of the provider",
        pool(requirement("karpenter.kwok.sh/instance-familly")),
        f"{ENTRY}.key",
        "judge",
        nearest="karpenter.kwok.sh/instance-family",
    ),
    Bad(
        "a word that YAML reads as false", pool(requirement(values=[False])), f"{ENTRY}.values[0]", words='"no", "off"'
    ),
    Bad(
        "an unknown capacity type",
        pool(requirement("karpenter.sh/capacity-type", values=["ondemand"])),
        f"{ENTRY}.values",
        "judge",
        nearest="on-demand",
    ),
    Bad(
        "too few known capacity types",
        pool(requirement("karpenter.sh/capacity-type", values=["spot", "cheap"], minValues=2)),
        f"{ENTRY}.minValues",
        "judge",
    ),
    Bad("101 requirements", pool(*[requirement()] * 101), f"{TEMPLATE}.requirements"),
]

BAD_POOLS = [
    Bad("a pool without spec", without(pool(), "spec"), "spec"),
    Bad("a pool without template", document("karpenter.sh/v1", "NodePool", {"weight": 1}), "spec.template"),
    Bad(
        "a pool without class", without(pool(), "spec", "template", "spec", "nodeClassRef"), f"{TEMPLATE}.nodeClassRef"
    ),
    Bad(
        "requirements left out", without(pool(), "spec", "template", "spec", "requirements"), f"{TEMPLATE}.requirements"
    ),
    Bad("requirements as a mapping", pool(template={"requirements": requirement()}), f"{TEMPLATE}.requirements"),
    Bad(
        "requirements on the pool itself",
        pool(requirements=[]),
        "spec.requirements",
        "judge",
        nearest="spec.template.spec.requirements",
    ),
    Bad("a misspelled field", pool(wieght=3), "spec.wieght", "judge", nearest="weight"),
    Bad("a misspelled section", {**pool(), "spce": {}}, "spce", "judge", nearest="spec"),
    Bad(
        "a field of an older version", pool(template={"kubelet": {}}), f"{TEMPLATE}.kubelet", "judge", words="NodeClass"
    ),
    Bad("a time without a unit", pool(template={"expireAfter": 720}), f"{TEMPLATE}.expireAfter", words="like 1h30m"),
    Bad("weight 0", pool(weight=0), "spec.weight"),
    Bad("weight 101", pool(weight=101), "spec.weight"),
    Bad("weight as text", pool(weight="10"), "spec.weight"),
    Bad("weight as truth", pool(weight=True), "spec.weight"),
    Bad("replicas below zero", pool(replicas=-1), "spec.replicas"),
    Bad("replicas with weight", pool(replicas=1, weight=1), "spec.weight", "rule"),
    Bad("replicas with a limit on cpu", pool(replicas=1, limits={"cpu": 1, "nodes": 2}), "spec.limits", "rule"),
    Bad("replicas added", pool(replicas=1), "spec.replicas", "rule", old=pool()),
    Bad("replicas removed", pool(), "spec.replicas", "rule", old=pool(replicas=1)),
    Bad("a quantity in gigabytes", pool(limits={"memory": "1GB"}), "spec.limits[memory]", words="G or Gi"),
    Bad("a quantity with a fraction", pool(limits={"cpu": 1.5}), "spec.limits[cpu]", words='"1.5"'),
    Bad("an endless quantity", pool(limits={"cpu": "1" * 5000}), "spec.limits[cpu]"),
    Bad(
        "a class with its version",
        pool(template={"nodeClassRef": {**REFERENCE, "group": "a/v1"}}),
        f"{TEMPLATE}.nodeClassRef.group",
    ),
    Bad(
        "a class without name",
        pool(template={"nodeClassRef": {**REFERENCE, "name": ""}}),
        f"{TEMPLATE}.nodeClassRef.name",
    ),
    *(
        Bad(
            f"another {part} of the class",
            pool(template={"nodeClassRef": {**REFERENCE, part: "other"}}),
            f"{TEMPLATE}.nodeClassRef.{part}",
            "rule",
            old=pool(),
        )
        for part in ("group", "kind")
    ),
    *(
        Bad(f"expireAfter {text}", pool(template={"expireAfter": text}), f"{TEMPLATE}.expireAfter")
        for text in ("30d", "-1h", "1.5h", "never", "")
    ),
    Bad("expireAfter beyond 292 years", pool(template={"expireAfter": "9999999h"}), f"{TEMPLATE}.expireAfter", "judge"),
    Bad(
        "terminationGracePeriod Never",
        pool(template={"terminationGracePeriod": "Never"}),
        f"{TEMPLATE}.terminationGracePeriod",
    ),
    *(
        Bad(f"the label {key}", pool(labels={key: "a"}), f"{LABELS}[{key}]", "rule")
        for key in (*_IN_DOMAIN, "karpenter.sh/nodepool", "kubernetes.io/hostname")
    ),
    Bad("a label key with two slashes", pool(labels={"a/b/c": "d"}), f"{LABELS}[a/b/c]", "judge"),
    Bad(
        "the provider's label",
        pool(labels={"karpenter.kwok.sh/a": "b"}),
        f"{LABELS}[karpenter.kwok.sh/a]",
        "judge",
    ),
    Bad("a label value that is true", pool(labels={"a": True}), f"{LABELS}[a]", words='"true"'),
    Bad("a label key that is a number", pool(labels={1: "a"}), f"{LABELS}[1]", "judge"),
    Bad("a label value with a slash", pool(labels={"a": "b/c"}), f"{LABELS}[a]"),
]

BAD_TAINTS = [
    Bad(
        "a taint without effect",
        pool(template={"taints": [{"key": "a"}]}),
        f"{TEMPLATE}.taints[0].effect",
        words="missing",
    ),
    Bad(
        "a taint with an unknown effect",
        pool(template={"taints": [{"key": "a", "effect": "NoScheduling"}]}),
        f"{TEMPLATE}.taints[0].effect",
        nearest="NoSchedule",
    ),
    Bad(
        "a taint without key",
        pool(template={"taints": [{"effect": "NoSchedule", "key": ""}]}),
        f"{TEMPLATE}.taints[0].key",
    ),
    Bad(
        "the same taint twice",
        pool(
            template={
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            }
        ),
        f"{TEMPLATE}.startupTaints[0]",
        "judge",
    ),
]

BUDGET = "spec.disruption.budgets[0]"
BAD_DISRUPTION = [
    Bad(
        "the consolidation policy of an older version",
        pool(disruption={"consolidationPolicy": "WhenUnderutilized"}),
        "spec.disruption.consolidationPolicy",
        nearest="WhenEmptyOrUnderutilized",
    ),
    Bad("a negative wait", pool(disruption={"consolidateAfter": "-30s"}), "spec.disruption.consolidateAfter"),
    *(
        Bad(f"a budget of {nodes}", pool(disruption={"budgets": [{"nodes": nodes}]}), f"{BUDGET}.nodes")
        for nodes in ("101%", "-1", "1.5", 5)
    ),
    Bad("a schedule without duration", pool(disruption={"budgets": [{"schedule": "@daily"}]}), BUDGET, "rule"),
    Bad("a duration without schedule", pool(disruption={"budgets": [{"duration": "1h"}]}), BUDGET, "rule"),
    Bad(
        "a schedule of four fields",
        pool(disruption={"budgets": [{"schedule": "0 9 * *", "duration": "1h"}]}),
        f"{BUDGET}.schedule",
    ),
    Bad(
        "a schedule with a 61st minute",
        pool(disruption={"budgets": [{"schedule": "60 9 * * *", "duration": "1h"}]}),
        f"{BUDGET}.schedule",
        "judge",
    ),
    Bad(
        "a duration in seconds",
        pool(disruption={"budgets": [{"schedule": "@daily", "duration": "90s"}]}),
        f"{BUDGET}.duration",
    ),
    Bad(
        "an unknown reason",
        pool(disruption={"budgets": [{"reasons": ["Drift"]}]}),
        f"{BUDGET}.reasons[0]",
        nearest="Drifted",
    ),
    Bad("a reason twice", pool(disruption={"budgets": [{"reasons": ["Empty", "Empty"]}]}), f"{BUDGET}.reasons"),
    Bad("51 budgets", pool(disruption={"budgets": [{"nodes": "1"}] * 51}), "spec.disruption.budgets"),
]

BAD_CLAIMS = [
    Bad("a claim with In without values", claim(requirement(values=[])), "spec.requirements[0].values", "rule"),
    Bad(
        "a claim with Gt and text",
        claim(requirement(operator="Gt", values=["a"])),
        "spec.requirements[0].values",
        "rule",
    ),
    Bad("a claim with few values", claim(requirement(minValues=9)), "spec.requirements[0].minValues", "rule"),
    *(
        Bad(
            f"another {part} of the class of a claim",
            claim(nodeClassRef={**REFERENCE, part: "other"}),
            f"spec.nodeClassRef.{part}",
            "rule",
            old=claim(),
            problems=2,
        )
        for part in ("group", "kind")
    ),
    Bad("a claim that is changed", claim(expireAfter="1h"), "spec", "rule", old=claim()),
    Bad("a claim on a reserved label", claim(requirement("karpenter.sh/mine")), "spec.requirements[0].key", "rule"),
    Bad("a claim on the hostname", claim(requirement("kubernetes.io/hostname")), "spec.requirements[0].key", "rule"),
]

BAD_OVERLAYS = [
    Bad("a negative price", overlay(price="-0.4"), "spec.price", words="not negative"),
    Bad("a price as number", overlay(price=0.4), "spec.price", words='"0.4"'),
    Bad("price and pricePercent", overlay(price="1", pricePercent=90), "spec", "rule"),
    Bad("price and priceAdjustment", overlay(price="1", priceAdjustment="+1"), "spec", "rule"),
    *(
        Bad(f"a price adjustment of {text}", overlay(priceAdjustment=text), "spec.priceAdjustment")
        for text in ("1", "-101%", "-100.5%", "+", "10%", "+1e3")
    ),
    Bad("a negative pricePercent", overlay(pricePercent=-1), "spec.pricePercent"),
    Bad("half a pricePercent", overlay(pricePercent=0.5), "spec.pricePercent"),
    *(
        Bad(
            f"capacity with {name}", overlay(capacity={name: 1}), f"spec.capacity[{name}]", "rule", words="InstanceType"
        )
        for name in ("cpu", "memory", "ephemeral-storage", "pods")
    ),
    Bad("negative capacity", overlay(capacity={"a/b": "-1"}), "spec.capacity[a/b]", words="not negative"),
    Bad("negative overhead", overlay(overhead={"memory": -1}), "spec.overhead[memory]"),
    Bad("overlay weight 10001", overlay(weight=10001), "spec.weight"),
    Bad(
        "minValues in an overlay",
        overlay(requirements=[requirement(minValues=1)]),
        "spec.requirements[0].minValues",
        "judge",
    ),
    Bad("expressions as one mapping", selecting(matchExpressions=requirement()), "spec.selector.matchExpressions"),
    Bad(
        "Gte in a selector",
        selecting(matchExpressions=[requirement(operator="Gte", values=["1"])]),
        "spec.selector.matchExpressions[0].operator",
        nearest="Gt",
    ),
    *(
        bad
        for spot, make in (
            ("spec.requirements[0]", requiring),
            ("spec.selector.matchExpressions[0]", expressing),
        )
        for bad in (
            Bad(
                f"{spot}: NotIn without values",
                make(requirement(operator="NotIn", values=[])),
                f"{spot}.values",
                "rule",
            ),
            Bad(f"{spot}: In without values", make(requirement(values=[])), f"{spot}.values", "rule"),
            Bad(f"{spot}: Gt with text", make(requirement(operator="Gt", values=["x"])), f"{spot}.values", "rule"),
            Bad(f"{spot}: reserved", make(requirement("karpenter.sh/price")), f"{spot}.key", "rule"),
            Bad(f"{spot}: the hostname", make(requirement("kubernetes.io/hostname")), f"{spot}.key", "rule"),
        )
    ),
    Bad(
        "a selector on a reserved label",
        selecting(matchLabels={"karpenter.sh/a": "b"}),
        "spec.selector.matchLabels[karpenter.sh/a]",
        "rule",
    ),
    Bad(
        "a selector on the hostname",
        selecting(matchLabels={"kubernetes.io/hostname": "b"}),
        "spec.selector.matchLabels[kubernetes.io/hostname]",
        "rule",
    ),
]

OFFERING = "spec.offerings[0]"
BAD_SETTINGS = [
    Bad(
        "a negative offering price",
        settings(offerings=[{"karpenter.sh/price": "-1"}]),
        f"{OFFERING}[karpenter.sh/price]",
        "judge",
    ),
    Bad(
        "a price in words",
        settings(offerings=[{"karpenter.sh/price": "cheap"}]),
        f"{OFFERING}[karpenter.sh/price]",
        "judge",
    ),
    Bad(
        "an endless price",
        settings(offerings=[{"karpenter.sh/price": "1e999"}]),
        f"{OFFERING}[karpenter.sh/price]",
        "judge",
    ),
    Bad("a list as value", settings(offerings=[{"a": ["b"]}]), f"{OFFERING}[a]", "judge", words="single value"),
    Bad("a truth as value", settings(offerings=[{"a": True}]), f"{OFFERING}[a]", "judge", words='"true"'),
    Bad("an offering as list", settings(offerings=[["a"]]), OFFERING),
    Bad(
        "a capacity type that does not exist",
        settings(offerings=[{"karpenter.sh/capacity-type": "spott"}]),
        f"{OFFERING}[karpenter.sh/capacity-type]",
        "judge",
        nearest="spot",
    ),
    Bad(
        "a misspelled price",
        settings(offerings=[{"karpenter.sh/prise": "1"}]),
        f"{OFFERING}[karpenter.sh/prise]",
        "judge",
        nearest="karpenter.sh/price",
    ),
    Bad("an offering key with a space", settings(offerings=[{"a b": "c"}]), f"{OFFERING}[a b]", "judge"),
    Bad("an offering value with a slash", settings(offerings=[{"a": "b/c"}]), f"{OFFERING}[a]", "judge"),
    Bad("negative resources", settings(resources={"cpu": "-4"}), "spec.resources[cpu]", words="not negative"),
    Bad(
        "block devices on a type",
        settings(provider={"blockDeviceMappings": []}),
        "spec.provider",
        "judge",
        words="NodeClass",
    ),
]

KUBELET = "spec.kubelet"
BAD_OTHERS = [
    Bad("a template without amount", buffer(podTemplateRef={"name": "web"}), "spec.podTemplateRef", "rule"),
    Bad(
        "a template and a workload",
        buffer(podTemplateRef={"name": "a"}, scalableRef={"kind": "b", "name": "c"}, replicas=1),
        "spec",
        "rule",
    ),
    Bad("a buffer below zero", buffer(replicas=-1), "spec.replicas"),
    Bad("a workload without name", buffer(scalableRef={"kind": "Deployment"}), "spec.scalableRef.name"),
    Bad("a delay in words", kwok(nodeRegistrationDelay="soon"), "spec.nodeRegistrationDelay"),
    Bad(
        "an unknown signal",
        kwok(kubelet={"evictionHard": {"memory": "1Gi"}}),
        f"{KUBELET}.evictionHard[memory]",
        "rule",
    ),
    Bad(
        "more than all",
        kwok(kubelet={"evictionHard": {"memory.available": "101%"}}),
        f"{KUBELET}.evictionHard[memory.available]",
    ),
    Bad("a soft threshold without grace", kwok(kubelet={"evictionSoft": {"memory.available": "1%"}}), KUBELET, "rule"),
    Bad(
        "grace for another signal",
        kwok(kubelet={"evictionSoft": {"memory.available": "1%"}, "evictionSoftGracePeriod": {"pid.available": "1m"}}),
        f"{KUBELET}.evictionSoftGracePeriod",
        "rule",
    ),
    *(
        Bad(
            f"an unknown signal in {name}",
            kwok(kubelet={"evictionSoft": soft, "evictionSoftGracePeriod": soft}),
            f"{KUBELET}.{name}[memory]",
            "rule",
            problems=2,
        )
        for name in ("evictionSoft", "evictionSoftGracePeriod")
        for soft in ({"memory": "1m"},)
    ),
    *(
        Bad(f"pods in {name}", kwok(kubelet={name: {"pods": "1"}}), f"{KUBELET}.{name}[pods]", "rule")
        for name in ("kubeReserved", "systemReserved")
    ),
    Bad("less than no pods", kwok(kubelet={"maxPods": -1}), f"{KUBELET}.maxPods"),
    Bad("a reservation twice", kwok(capacityReservations=[RESERVATION] * 2), "spec.capacityReservations"),
    Bad(
        "a reservation of less than none",
        kwok(capacityReservations=[{**RESERVATION, "count": -1}]),
        "spec.capacityReservations[0].count",
    ),
    Bad(
        "an end that is no moment",
        kwok(capacityReservations=[{**RESERVATION, "endTime": "soon"}]),
        "spec.capacityReservations[0].endTime",
    ),
    Bad(
        "a reservation of no kind",
        kwok(capacityReservations=[{**RESERVATION, "type": "opened"}]),
        "spec.capacityReservations[0].type",
        nearest="open",
    ),
]

BAD_IDENTITIES = [
    Bad("a list", [pool()], "", "judge"),
    Bad("nothing", None, "", "judge"),
    Bad("no apiVersion", without(overlay(), "apiVersion"), "apiVersion", "judge", words="karpenter.sh/v1alpha1"),
    Bad("no kind", without(overlay(), "kind"), "kind", "judge"),
    Bad("a kind that is a list", changed(overlay(), ["NodeOverlay"], "kind"), "kind", "judge"),
    Bad("no name", without(overlay(), "metadata", "name"), "metadata.name", "judge"),
    Bad("no metadata", without(overlay(), "metadata"), "metadata.name", "judge"),
    Bad("metadata as text", changed(overlay(), "some", "metadata"), "metadata", "judge"),
    Bad("a name in capitals", changed(overlay(), "Some", "metadata", "name"), "metadata.name", "judge"),
    Bad("a name that is a number", changed(overlay(), 5, "metadata", "name"), "metadata.name", "judge"),
    Bad(
        "a misspelled part of the metadata",
        changed(overlay(), {}, "metadata", "lables"),
        "metadata.lables",
        "judge",
        nearest="labels",
    ),
    Bad("the core group", document("v1", "NodePool"), "apiVersion", "judge", nearest="karpenter.sh/v1"),
    Bad(
        "a group without a version",
        document("karpenter.sh", "NodePool"),
        "apiVersion",
        "judge",
        nearest="karpenter.sh/v1",
    ),
    Bad("a misspelled kind", document("karpenter.sh/v1", "NodePol"), "kind", "judge", nearest="NodePool"),
    Bad("a kind we do not have", document("karpenter.sh/v1", "Elephant"), "kind", "judge"),
    Bad("a misspelled group", document("kapenter.sh/v1", "NodePool"), "apiVersion", "judge", nearest="karpenter.sh/v1"),
    Bad(
        "a wrong version",
        document("karpenter.sh/v1", "NodeOverlay"),
        "apiVersion",
        "judge",
        nearest="karpenter.sh/v1alpha1",
    ),
    Bad(
        "a former version",
        document("karpenter.sh/v1beta1", "NodePool"),
        "apiVersion",
        "judge",
        nearest="karpenter.sh/v1",
    ),
    Bad("a Provisioner", document("karpenter.sh/v1alpha5", "Provisioner"), "kind", "judge", words="NodePool"),
    Bad("a Machine", document("karpenter.sh/v1alpha5", "Machine"), "kind", "judge", words="NodeClaim"),
    Bad(
        "an AWSNodeTemplate",
        document("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
        "kind",
        "judge",
        words="EC2NodeClass",
    ),
    Bad(
        "a former EC2NodeClass",
        document("karpenter.k8s.aws/v1beta1", "EC2NodeClass"),
        "apiVersion",
        "judge",
        words="karpenter.k8s.aws/v1",
    ),
]

BAD = [
    *BAD_REQUIREMENTS,
    *BAD_POOLS,
    *BAD_TAINTS,
    *BAD_DISRUPTION,
    *BAD_CLAIMS,
    *BAD_OVERLAYS,
    *BAD_SETTINGS,
    *BAD_OTHERS,
    *ec2table.BAD,
    *BAD_IDENTITIES,
]
FOREIGN = [
    ("apps/v1", "Deployment"),
    ("v1", "Pod"),
    ("cluster.x-k8s.io/v1beta1", "Machine"),
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest"),
    ("hypershift.openshift.io/v1beta1", "NodePool"),
    ("karpenter.azure.com/v1beta1", "AKSNodeClass"),
    ("karpenter.k8s.gcp/v1alpha1", "GCENodeClass"),
]
