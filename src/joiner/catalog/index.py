"""Which types match a set of requirements: an index of bit masks instead of a walk over every type.

Types are numbered; a set of types is a Python integer with one bit each. Labels of the type are masked per value. Zone,
capacity type and reservation hold *jointly* for an offering, so offerings are grouped by their whole set of labels (their
*shape*), and each shape knows the types that can be bought in it now.
"""

from collections.abc import Iterator

from joiner.bitset import NO_TYPES, TypeSet
from joiner.catalog.market import InstanceType, Offering
from joiner.requirements import Requirement, Requirements


class _Key:
    """The types by what they require of one label."""

    def __init__(self, everyone: TypeSet) -> None:
        self.undefined = everyone
        """Types that do not define the label: every requirement on it allows them."""
        self.by_value: dict[str, TypeSet] = {}
        """Types with exactly one value."""
        self.others: dict[Requirement, TypeSet] = {}
        """Types with any other requirement on it; each requirement is compared."""
        self.memo: dict[Requirement, TypeSet] = {}

    def add(self, requirement: Requirement, bit: TypeSet) -> None:
        self.undefined &= ~bit
        if not requirement.complement and len(requirement.values) == 1:
            (value,) = requirement.values
            self.by_value[value] = self.by_value.get(value, NO_TYPES) | bit
        else:
            self.others[requirement] = self.others.get(requirement, NO_TYPES) | bit

    def mask(self, wanted: Requirement) -> TypeSet:
        types = self.memo.get(wanted)
        if types is None:
            types = self.memo[wanted] = self._mask(wanted)
        return types

    def _mask(self, wanted: Requirement) -> TypeSet:
        types = self.undefined
        if wanted.complement:
            for value, having in self.by_value.items():
                if wanted.has(value):
                    types |= having
        else:
            for value in wanted.values:
                types |= self.by_value.get(value, NO_TYPES)
        for requirement, having in self.others.items():
            if requirement.agrees(wanted):
                types |= having
        return types


class TypeLabels:
    """The types by their own labels. Overlays change no labels, so all markets of the same types share it."""

    def __init__(self, types: tuple[InstanceType, ...]) -> None:
        self.everyone = TypeSet((1 << len(types)) - 1)
        self._keys: dict[str, _Key] = {}
        for number, instance_type in enumerate(types):
            bit = TypeSet(1 << number)
            for key, requirement in instance_type.requirements.items():
                self._keys.setdefault(key, _Key(self.everyone)).add(requirement, bit)

    def described(self, requirements: Requirements) -> TypeSet:
        """Types whose own labels agree with the requirements, whether or not they can be bought."""
        types = self.everyone
        for key, wanted in requirements.items():
            label = self._keys.get(key)
            if label is not None:
                types &= label.mask(wanted)
        return types

    def values(self, key: str, types: TypeSet) -> set[str]:
        """The values of a label that some of the types may have."""
        label = self._keys.get(key)
        if label is None:
            return set()
        values = {value for value, having in label.by_value.items() if having & types}
        for requirement, having in label.others.items():
            if having & types and not requirement.complement:
                values.update(requirement.values)
        return values


class Index:
    """The types of a market, numbered, with their masks. Immutable but for memoised answers."""

    def __init__(
        self, types: tuple[InstanceType, ...], well_known: frozenset[str], labels: TypeLabels | None = None
    ) -> None:
        self.types = types
        self.labels = labels or TypeLabels(types)
        self._well_known = well_known
        self._shapes: dict[Requirements, TypeSet] = {}
        for number, instance_type in enumerate(types):
            for offering in instance_type.offerings:
                if offering.launchable:
                    shape = offering.requirements
                    self._shapes[shape] = self._shapes.get(shape, NO_TYPES) | TypeSet(1 << number)
        self._shape_keys = tuple(sorted({key for shape in self._shapes for key in shape}))
        self._shape_memo: dict[tuple[Requirement | None, ...], TypeSet] = {}

    @property
    def shapes(self) -> tuple[Requirements, ...]:
        """The different sets of labels that launchable offerings have."""
        return tuple(self._shapes)

    def described(self, requirements: Requirements) -> TypeSet:
        """Types whose own labels agree with the requirements, whether or not they can be bought."""
        return self.labels.described(requirements)

    def buyable(self, requirements: Requirements) -> TypeSet:
        """Types with a launchable offering that agrees with the requirements."""
        asked = tuple(requirements.get(key) for key in self._shape_keys)
        types = self._shape_memo.get(asked)
        if types is None:
            types = NO_TYPES
            for shape, having in self._shapes.items():
                if requirements.compatible(shape, self._well_known):
                    types |= having
            self._shape_memo[asked] = types
        return types

    def select(self, requirements: Requirements) -> TypeSet:
        """Types that agree with the requirements and can be bought under them."""
        return self.described(requirements) & self.buyable(requirements)

    def members(self, mask: TypeSet) -> Iterator[InstanceType]:
        """The types of a mask, in order."""
        while mask:
            low = mask & -mask
            yield self.types[low.bit_length() - 1]
            mask ^= low

    def offerings(self, instance_type: InstanceType, requirements: Requirements) -> Iterator[Offering]:
        """The offerings of one type that can be bought under the requirements."""
        return (offering for offering in instance_type.offerings if self.allows(offering, requirements))

    def allows(self, offering: Offering, requirements: Requirements) -> bool:
        """Whether the offering can be bought under the requirements."""
        return offering.launchable and requirements.compatible(offering.requirements, self._well_known)
