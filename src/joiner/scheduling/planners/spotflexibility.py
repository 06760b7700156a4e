"""Spot width: spot claims that only a few instance types could be are split until more will do, while that costs little.

A spot node may be taken away, and then another has to be found: with many types to choose from, one is nearly always there. A
claim becomes narrow when so much is put on it that only the largest types hold it, or when pods with different wishes share
it. On more hosts than before, in the same place, no pod is kept out by another that was not before.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, SPOT
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.engine.pricing import cheapest, rounded
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.planners.claimsplit import ClaimPart, ClaimSplitter, PodBundle, bundles, fresh_number
from joiner.scheduling.topology.group import AFFINITY

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit

_SPOT: Final = Requirements([Requirement(CAPACITY_TYPE, (SPOT,))])
_PARTS_MOST: Final = 6
"""Into how many equal parts a claim is split at most."""
_A_LITTLE_MORE: Final = 1.03
"""How much dearer parts together may be than the whole, when they are filled up to a price."""

Hand = list[int]
"""How many pods of each bundle one part gets."""


class Split(NamedTuple):
    """A way to split a claim: what it costs more, and the claims it comes to."""

    whole: Claim
    extra: float
    parts: list[Claim]


def widen(run: "FirstFit", allowance: float) -> None:
    """Split narrow spot claims of a run that has ended, those that cost least first, for so much money altogether."""
    wide = run.policy.spot_width
    if wide <= 0:
        return
    known: dict[object, list[Hand]] = {}
    splits: list[Split] = []
    for claim in run.claims:
        if is_narrow(run, claim, wide):
            splitting = _Splitting(run, claim, wide)
            alike = splitting.signature()
            if alike not in known:
                known[alike] = splitting.best()
            split = splitting.split(known[alike])
            splits += [] if split is None else [split]
    spent = 0.0
    for split in sorted(splits, key=lambda split: (split.extra, split.whole.number)):
        if spent + split.extra <= allowance and _carried_out(run, split, wide):
            spent += split.extra


def types(run: "FirstFit", claim: Claim) -> int:
    """As how many instance types the claim could be launched on the spot market."""
    pinned = run.joined.of(claim.requirements, _SPOT)
    if pinned is None:
        return 0
    stock = claim.template.stock
    found = claim.units & stock.for_sale(pinned)
    if not stock.has_twins:
        return found.bit_count()
    return len({unit.name for number, unit in enumerate(stock.units) if found >> number & 1})


def is_narrow(run: "FirstFit", claim: Claim, wide: int) -> bool:
    """Whether the claim is bought on the spot market with too few types to choose from."""
    if run.reservations.holds(claim.number) is not None or types(run, claim) >= wide:
        return False
    best = claim.template.stock.prices(claim.requirements).first(claim.units)
    return best is not None and best.offering.capacity_type == SPOT


class _Splitting:
    """Looks for a way to split one claim."""

    def __init__(self, run: "FirstFit", claim: Claim, wide: int) -> None:
        self._run = run
        self._claim = claim
        self._wide = wide
        self._bench = ClaimSplitter(run, claim)
        self._pods = sorted(bundles(claim), key=self._choice)

    def _choice(self, bundle: PodBundle) -> int:
        """How many types one pod alone leaves: those with little choice share a part, and others fill it up."""
        part = self._bench.plus(self._bench.nothing(), bundle, 1)
        claim = self._bench.sample(part) if part is not None else None
        return 0 if claim is None else types(self._run, claim)

    def signature(self) -> object:
        """Equal for claims that are split alike."""
        pods = tuple((bundle.pod_class.number, id(bundle.step), len(bundle.positions)) for bundle in self._pods)
        return (id(self._claim.template), self._claim.requirements, self._claim.first_units, pods)

    def best(self) -> list[Hand]:
        """The cheapest split whose parts are all wide; none where a single pod leaves too few types already."""
        groups = (group for bundle in self._pods for group, _ in bundle.step.groups)
        if any(group.kind == AFFINITY and group.key == HOSTNAME for group in groups):
            return []  # pods that must share a node stay together
        if any(self._cost(self._bench.plus(self._bench.nothing(), bundle, 1)) is None for bundle in self._pods):
            return []
        priced = [(cost, len(hands), hands) for hands in self._ways() if (cost := self._price(hands)) is not None]
        return min(priced, key=lambda each: each[:2], default=(0.0, 0, []))[2]

    def split(self, hands: list[Hand]) -> Split | None:
        """The claims that the hands come to, with their pods, and what they cost more."""
        price = self._price(hands) if hands else None
        if price is None:
            return None
        parts: list[Claim] = []
        given = [0] * len(self._pods)
        for hand in hands:
            part = self._bench.claim(self._part(hand) or self._bench.nothing())
            assert part is not None  # it has a price
            for number, (bundle, count) in enumerate(zip(self._pods, hand, strict=True)):
                if count:
                    chosen = bundle.positions[given[number] : given[number] + count]
                    part.take([(bundle.pod_class, chosen, bundle.step)])
                    given[number] += count
            parts.append(part)
        return Split(self._claim, rounded(price - cheapest(self._run, self._claim)), parts)

    def _ways(self) -> Iterator[list[Hand]]:
        counts = [len(bundle.positions) for bundle in self._pods]
        price = cheapest(self._run, self._claim)
        for parts in range(2, min(_PARTS_MOST, sum(counts)) + 1):
            yield _dealt(counts, parts)
            yield self._filled(price * _A_LITTLE_MORE / parts)

    def _price(self, hands: list[Hand]) -> float | None:
        """What the parts cost; nothing if there are none, or one of them is not wide."""
        costs = [self._cost(self._part(hand)) for hand in hands]
        sound = [cost for cost in costs if cost is not None]
        return rounded(sum(sound)) if hands and len(sound) == len(hands) else None

    def _part(self, hand: Hand) -> ClaimPart | None:
        part: ClaimPart | None = self._bench.nothing()
        for bundle, count in zip(self._pods, hand, strict=True):
            if count and part is not None:
                part = self._bench.plus(part, bundle, count)
        return part

    def _cost(self, part: ClaimPart | None) -> float | None:
        """What a part costs; nothing if it cannot be bought, or is not wide."""
        claim = self._bench.sample(part) if part is not None else None
        return None if claim is None or is_narrow(self._run, claim, self._wide) else cheapest(self._run, claim)

    def _filled(self, price: float) -> list[Hand]:
        """Parts that are filled one after the other, each as far as it stays wide and at its price."""
        hands: list[Hand] = []
        parts: list[ClaimPart] = []
        for number, bundle in enumerate(self._pods):
            left = len(bundle.positions)
            at = 0
            while left:
                if at == len(parts):
                    parts.append(self._bench.nothing())
                    hands.append([0] * len(self._pods))
                parts[at], count = self._given(parts[at], bundle, left, price)
                hands[at][number] = count
                left -= count
                if not count and not any(hands[at]):
                    return []  # a new part does not take it either
                at += 1
        return hands

    def _given(self, part: ClaimPart, bundle: PodBundle, most: int, price: float) -> tuple[ClaimPart, int]:
        """The part with as many pods of a bundle as leave it wide and at its price, and how many these are."""

        def tried(count: int) -> ClaimPart | None:
            more = self._bench.plus(part, bundle, count)
            cost = self._cost(more)
            return more if cost is not None and cost <= price else None

        low, high, found = 0, most + 1, part
        count = 1
        while high - low > 1:
            more = tried(count)
            if more is None:
                high = count
            else:
                low, found = count, more
            count = most if (low, high) == (1, most + 1) else (low + high) // 2
        return found, low


def _dealt(counts: Sequence[int], parts: int) -> list[Hand]:
    """Equal parts: the pods are dealt like cards."""
    hands = [[0] * len(counts) for _ in range(parts)]
    turn = 0
    for number, count in enumerate(counts):
        for part in range(parts):
            hands[(turn + part) % parts][number] = count // parts + (part < count % parts)
        turn = (turn + count) % parts
    return hands


def _carried_out(run: "FirstFit", split: Split, wide: int) -> bool:
    """Put the parts in the place of the claim, unless the pool's limits do not let them."""
    template, before = split.whole.template, dict(split.whole.template.left)
    template.closed(split.whole.first_units)
    for part in split.parts:
        cost = cheapest(run, part)
        if template.left:
            part.units &= template.within_limits()
        if cheapest(run, part) != cost or is_narrow(run, part, wide):
            template.left = before
            return False
        part.first_units = part.units
        template.opened(part.units)
    run.claims.remove(split.whole)
    for part in split.parts:
        part.number = fresh_number(run)
        run.claims.append(part)
    return True
