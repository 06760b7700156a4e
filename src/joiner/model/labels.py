"""Label keys, label syntax, and the vocabulary of labels that assembly passes on.

Which labels are well known differs from provider to provider, so that knowledge is a value and not a global registry
filled at start-up: one process can run several providers and simulations.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from joiner.model.meta import Value, replace

GROUP: Final = "karpenter.sh"
NODEPOOL: Final = "karpenter.sh/nodepool"
NODEPOOL_SEED_SPELLING: Final = "karpenter.sh/node-pool"
"""The overlay design writes the label this way; overlays accept both."""
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
PRICE: Final = "karpenter.sh/price"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"
CAPACITY_TYPES: Final = (ON_DEMAND, RESERVED, SPOT)

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
PRICE_OVERLAY_APPLIED: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED: Final = "karpenter.sh/capacity-overlay-applied"
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
EVICTION_COST: Final = "joiner.dev/eviction-cost"
"""On NodePools: what evicting one of its pods costs, as a duration in time of the pod's own price."""

REPLACES: Final = "joiner.dev/replaces"
"""On NodeClaims: the claims that go when this one is complete, separated by commas."""

WELL_KNOWN: Final = frozenset({NODEPOOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD})

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failure-domain.beta.kubernetes.io/zone": ZONE,
        "failure-domain.beta.kubernetes.io/region": REGION,
        "beta.kubernetes.io/arch": ARCH,
        "beta.kubernetes.io/os": OS,
        "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    }
)
"""Old spellings of label keys, and today's."""

CLOSED_VALUES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({CAPACITY_TYPE: CAPACITY_TYPES})
"""Labels that only have these values."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)


class Vocabulary(Value):
    """What is known about labels, our own and the provider's: well-known keys, restricted domains, aliases."""

    well_known: frozenset[str] = WELL_KNOWN
    restricted_domains: frozenset[str] = frozenset({GROUP})
    aliases: Mapping[str, str] = ALIASES
    value_aliases: Mapping[str, Mapping[str, str]] = {}
    closed_values: Mapping[str, tuple[str, ...]] = CLOSED_VALUES
    offering_keys: frozenset[str] = frozenset({ZONE, CAPACITY_TYPE})
    """Labels that tell one offering of a type from another."""
    reservation_id: str = ""
    """The label that carries the id of a capacity reservation, if the provider has reservations."""
    given: frozenset[str] = frozenset({NODEPOOL})
    """Well-known labels that follow from the NodePool itself: pods may select by them, users may not set them."""

    def normal_key(self, key: str) -> str:
        """Today's spelling of a label key."""
        return self.aliases.get(key, key)

    def normal_value(self, key: str, value: str) -> str:
        """Today's spelling of a value of an already normal key."""
        aliases = self.value_aliases.get(key)
        return aliases.get(value, value) if aliases else value

    def is_restricted(self, key: str) -> bool:
        """Whether users may not set or require this label: the hostname, and our own domains but for well-known names."""
        if key in self.well_known:
            return False
        return key == HOSTNAME or any(in_domain(key, domain) for domain in self.restricted_domains)

    def extended(self, well_known: Iterable[str] = (), restricted_domains: Iterable[str] = ()) -> "Vocabulary":
        """The same vocabulary with more well-known labels and restricted domains."""
        return replace(
            self,
            well_known=self.well_known | frozenset(well_known),
            restricted_domains=self.restricted_domains | frozenset(restricted_domains),
        )

    def with_node_classes(self, *keys: str) -> "Vocabulary":
        """The same vocabulary for a provider whose NodeClasses are named on nodes by these labels."""
        return replace(self, well_known=self.well_known | set(keys), given=self.given | set(keys))

    def joined(self, other: "Vocabulary") -> "Vocabulary":
        """Both vocabularies. Where they differ about a label, this one wins; so does its label of reservations."""
        values = {
            key: {**other.value_aliases.get(key, {}), **self.value_aliases.get(key, {})}
            for key in (*other.value_aliases, *self.value_aliases)
        }
        return Vocabulary(
            well_known=self.well_known | other.well_known,
            restricted_domains=self.restricted_domains | other.restricted_domains,
            aliases={**other.aliases, **self.aliases},
            value_aliases=values,
            closed_values={**other.closed_values, **self.closed_values},
            offering_keys=self.offering_keys | other.offering_keys,
            reservation_id=self.reservation_id or other.reservation_id,
            given=self.given | other.given,
        )


def domain_of(key: str) -> str:
    """The part of a label key before the slash."""
    return key.partition("/")[0] if "/" in key else ""


def in_domain(key: str, domain: str) -> bool:
    """Whether the key belongs to the domain or to a proper sub-domain of it."""
    own = domain_of(key)
    return own == domain or own.endswith("." + domain)


def key_problem(key: str) -> str | None:
    """Why the text is not a qualified name; None if it is."""
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "has an empty part before the slash"
    if prefix and (len(prefix) > 253 or _SUBDOMAIN.fullmatch(prefix) is None):
        return "must have a DNS name (lower case letters, digits, '-' and '.', at most 253 characters) before the slash"
    if len(name) > 63 or _NAME.fullmatch(name) is None:
        return (
            "must have a name of 1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
        )
    return None


def value_problem(value: str) -> str | None:
    """Why the text is not a label value; None if it is."""
    if value == "":
        return None
    if len(value) > 63 or _NAME.fullmatch(value) is None:
        return "must be at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
    return None
