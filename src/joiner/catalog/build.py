"""The one pipeline: raw types, then settings, then overlays, then an index, for one NodePool.

`build` is a pure function. A `Pipeline` gives the same answers and remembers the stages in between, so that pools which do
not differ in anything that matters share one market: ten such pools cost little more than one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from joiner.catalog import overlay as overlaying
from joiner.catalog.index import Index, TypeLabels
from joiner.catalog.market import InstanceType, Offering
from joiner.catalog.overlay import Conflict, Overlays
from joiner.catalog.settings import SettingsOutcome, SettledType, settle
from joiner.catalog.units import Stock
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value, replace
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirements

_STAGES: Final = 32
"""How many combinations of types and adjustments are remembered: one per NodeClass and edit, the oldest goes first."""


class Adjustments(Value):
    """What people said about the market: one frozen value, so that "nothing changed" is a comparison of identities."""

    settings: tuple[InstanceTypeSettings, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()


NO_ADJUSTMENTS: Final = Adjustments()


class Market(Value):
    """What there is to buy after settings and overlays, whoever the buyer is."""

    raw: tuple[InstanceType, ...]
    settled: SettledType
    types: tuple[InstanceType, ...]
    index: Index
    stock: Stock
    """The same types as a planner wants them: by kind of node, size and price."""
    overlays: Overlays
    conflicts: tuple[Conflict, ...]
    vocabulary: Vocabulary
    """The provider's, and every label that its types and offerings carry."""

    @property
    def settings(self) -> tuple[SettingsOutcome, ...]:
        """What each InstanceType object did."""
        return self.settled.outcomes

    def selling(self, types: tuple[InstanceType, ...]) -> "Market":
        """The same market with other counts on offer: types and their labels are those that it has."""
        own = self.index.labels
        index, stock = Index(types, self.vocabulary.well_known, own), Stock(types, own, self.vocabulary)
        return replace(self, types=types, index=index, stock=stock)


class Catalog(Value):
    """What one NodePool can buy. Frozen, and shared by everybody who asks."""

    nodepool: str
    market: Market
    requirements: Requirements
    """What the pool demands of every node."""
    eligible: int
    """The types the pool can buy now, as a mask over `types`."""

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """All types of the provider after settings and overlays, also those the pool excludes or that cannot be bought now."""
        return self.market.types

    @property
    def index(self) -> Index:
        """The masks over `types`."""
        return self.market.index

    def on(self, market: Market) -> "Catalog":
        """What the same pool can buy on another market."""
        return replace(self, market=market, eligible=market.index.select(self.requirements))

    def members(self) -> Iterable[InstanceType]:
        """The types the pool can buy now."""
        return self.index.members(self.eligible)

    def offerings(self, instance_type: InstanceType) -> Iterator[Offering]:
        """The ways in which the pool can buy a type now; none of a type that it excludes."""
        if instance_type.requirements.intersects(self.requirements):
            yield from self.index.offerings(instance_type, self.requirements)

    def cheapest(self, instance_type: InstanceType) -> dict[str, Offering]:
        """The best offering of a type per capacity type, of those the pool can buy."""
        best: dict[str, Offering] = {}
        for offering in self.offerings(instance_type):
            known = best.get(offering.capacity_type)
            if known is None or (offering.order, offering.zone) < (known.order, known.zone):
                best[offering.capacity_type] = offering
        return best


def build(raw: tuple[InstanceType, ...], adjustments: Adjustments, pool: NodePool, vocabulary: Vocabulary) -> Catalog:
    """The catalogue of one pool, from nothing but the arguments."""
    return Pipeline(vocabulary).catalog(raw, adjustments, pool)


class Pipeline:
    """`build`, remembering its stages. What it remembers never changes an answer, only how long it takes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._stages: dict[tuple[int, int], _Stage] = {}

    def catalog(self, raw: tuple[InstanceType, ...], adjustments: Adjustments, pool: NodePool) -> Catalog:
        """The catalogue of one pool."""
        requirements = overlaying.pool_labels(pool, self.vocabulary)
        market = self._stage(raw, adjustments).market(requirements)
        return Catalog(
            nodepool=pool.name,
            market=market,
            requirements=requirements,
            eligible=market.index.select(requirements),
        )

    def _stage(self, raw: tuple[InstanceType, ...], adjustments: Adjustments) -> "_Stage":
        # Identity is safe as a key: the stage holds on to both objects for as long as it is remembered.
        key = (id(raw), id(adjustments))
        stage = self._stages.get(key)
        if stage is None:
            stage = _Stage(raw, adjustments, self.vocabulary)
            while len(self._stages) >= _STAGES:
                del self._stages[next(iter(self._stages))]
            self._stages[key] = stage
        return stage


class _Stage:
    """The work that all pools share which buy the same types under the same adjustments."""

    def __init__(self, raw: tuple[InstanceType, ...], adjustments: Adjustments, vocabulary: Vocabulary) -> None:
        self._raw = raw
        self._adjustments = adjustments
        # Whatever the provider puts on a type or an offering is well known: no claim needs to define it first.
        self._vocabulary = vocabulary.extended(well_known=_label_keys(raw))
        self._settled = settle(raw, adjustments.settings, self._vocabulary)
        self._described = _label_keys(self._settled.types)
        self._labels = TypeLabels(self._settled.types)
        parts = (part for each in adjustments.overlays for part in overlaying.selector(each, self._vocabulary))
        self._asked = tuple(sorted({part.key for part in parts} & self._described))
        self._markets: dict[tuple[object, ...], Market] = {}

    def market(self, pool: Requirements) -> Market:
        """The market as nodes with these labels see it.

        Pools share it when the same overlays can mean them, and they agree on every label of a type that those ask for.
        """
        overlays = overlaying.relevant(self._adjustments.overlays, pool, self._described, self._vocabulary)
        seen = tuple(pool.get(name) for name in self._asked)
        key = (tuple(overlay.name for overlay in overlays), seen)
        known = self._markets.get(key)
        if known is None:
            known = self._markets[key] = self._open(overlays, pool)
        return known

    def _open(self, relevant: tuple[NodeOverlay, ...], pool: Requirements) -> Market:
        overlays = Overlays(relevant, pool, self._vocabulary)
        types: tuple[InstanceType, ...] = self._settled.types
        conflicts: tuple[Conflict, ...] = ()
        if len(overlays):
            effects = [overlays.effects(instance_type) for instance_type in types]
            conflicts = overlaying.conflicts(types, effects)
            types = tuple(map(overlaying.overlaid, types, effects))
        return Market(
            raw=self._raw,
            settled=self._settled,
            types=types,
            index=Index(types, self._vocabulary.well_known, self._labels),
            stock=Stock(types, self._labels, self._vocabulary),
            overlays=overlays,
            conflicts=conflicts,
            vocabulary=self._vocabulary,
        )


def _label_keys(types: Iterable[InstanceType]) -> frozenset[str]:
    # Offerings of one provider share most of their requirements, so each different set is looked at once.
    offered = {id(o.requirements): o.requirements for each in types for o in each.offerings}
    return frozenset(
        key for requirements in (*(t.requirements for t in types), *offered.values()) for key in requirements
    )
