"""The pipeline from a provider's types to the catalogue of one NodePool: settings, then overlays, then an index.

`build` is a pure function. A `Pipeline` gives the same answers and caches the stages in between, so that pools which see the
same types and overlays share one market: ten such pools cost little more than one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from joiner.bitset import TypeSet
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
"""How many combinations of types and adjustments are cached: one per NodeClass and edit, the oldest is dropped first."""


class Adjustments(Value):
    """The users' InstanceType settings and NodeOverlays: one frozen value, so that "nothing changed" is a test of identity."""

    settings: tuple[InstanceTypeSettings, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()


NO_ADJUSTMENTS: Final = Adjustments()


class Market(Value):
    """All instance types after settings and overlays, before a pool's own requirements."""

    raw: tuple[InstanceType, ...]
    settled: SettledType
    types: tuple[InstanceType, ...]
    index: Index
    stock: Stock
    """The same types indexed for planners: by kind of node, size and price."""
    overlays: Overlays
    conflicts: tuple[Conflict, ...]
    vocabulary: Vocabulary
    """The provider's, and every label that its types and offerings carry."""

    @property
    def settings(self) -> tuple[SettingsOutcome, ...]:
        """What each InstanceType object did."""
        return self.settled.outcomes

    def selling(self, types: tuple[InstanceType, ...]) -> "Market":
        """The same market with other counts available; types and their labels must be the same."""
        own = self.index.labels
        index = Index(types, self.vocabulary.well_known, own)
        stock = Stock(types, own, self.vocabulary, self.stock.decided)
        return replace(self, types=types, index=index, stock=stock)


class Catalog(Value):
    """What one NodePool can buy. Frozen, and shared by all callers."""

    nodepool: str
    market: Market
    requirements: Requirements
    """What the pool requires of every node."""
    eligible: TypeSet
    """The types the pool can buy now, as a mask over `types`."""

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """All types of the provider after settings and overlays, also those the pool excludes or that cannot be bought now."""
        return self.market.types

    @property
    def index(self) -> Index:
        """The masks over `types`."""
        return self.market.index

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The misconfigurations of overlays, each with a type that the pool can buy as its example, where there is one."""
        market = self.market
        if not market.conflicts:
            return ()
        own = [number for number in range(len(self.types)) if self.eligible >> number & 1]
        settled = [market.settled.types[number] for number in own]
        here = overlaying.conflicts(settled, map(market.overlays.effects, settled))
        known = {(each.loser, each.winner, each.field): each for each in here}
        return tuple(known.get((each.loser, each.winner, each.field), each) for each in market.conflicts)

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
            so_far = best.get(offering.capacity_type)
            if so_far is None or (offering.order, offering.zone) < (so_far.order, so_far.zone):
                best[offering.capacity_type] = offering
        return best


def build(raw: tuple[InstanceType, ...], adjustments: Adjustments, pool: NodePool, vocabulary: Vocabulary) -> Catalog:
    """The catalogue of one pool, from nothing but the arguments."""
    return Pipeline(vocabulary).catalog(raw, adjustments, pool)


class Pipeline:
    """`build` with cached stages. The cache never changes an answer, only how long it takes."""

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
        # Identity is safe as a key: the stage holds on to both objects for as long as it is cached.
        key = (id(raw), id(adjustments))
        stage = self._stages.get(key)
        if stage is None:
            stage = _Stage(raw, adjustments, self.vocabulary)
            while len(self._stages) >= _STAGES:
                del self._stages[next(iter(self._stages))]
            self._stages[key] = stage
        return stage


class _Stage:
    """The work shared by all pools with the same types and adjustments."""

    def __init__(self, raw: tuple[InstanceType, ...], adjustments: Adjustments, vocabulary: Vocabulary) -> None:
        self._raw = raw
        self._adjustments = adjustments
        # Every label that the provider puts on a type or an offering is well known: no claim needs to define it first.
        self._vocabulary = vocabulary.extended(well_known=_label_keys(raw))
        self._settled = settle(raw, adjustments.settings, self._vocabulary)
        self._described = _label_keys(self._settled.types)
        self._labels = TypeLabels(self._settled.types)
        selectors = (overlaying.selector(overlay, self._vocabulary) for overlay in adjustments.overlays)
        self._selected = tuple(sorted({part.key for parts in selectors for part in parts} & self._described))
        self._markets: dict[tuple[object, ...], Market] = {}

    def market(self, pool: Requirements) -> Market:
        """The market as nodes with these labels see it.

        Pools share it when the same overlays can match them, and they agree on every label of a type that those select by.
        """
        overlays = overlaying.relevant(self._adjustments.overlays, pool, self._described, self._vocabulary)
        key = (tuple(overlay.name for overlay in overlays), tuple(pool.get(name) for name in self._selected))
        market = self._markets.get(key)
        if market is None:
            market = self._markets[key] = self._market(overlays, pool)
        return market

    def _market(self, relevant: tuple[NodeOverlay, ...], pool: Requirements) -> Market:
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
            stock=Stock(types, self._labels, self._vocabulary, self._settled.decided),
            overlays=overlays,
            conflicts=conflicts,
            vocabulary=self._vocabulary,
        )


def _label_keys(types: Iterable[InstanceType]) -> frozenset[str]:
    # Offerings of one provider share most of their requirements, so each different set is looked at once.
    offered = {id(o.requirements): o.requirements for t in types for o in t.offerings}
    return frozenset(
        key for requirements in (*(t.requirements for t in types), *offered.values()) for key in requirements
    )
