"""Which types a set of requirements leaves: answered with bit masks instead of a walk over every type.

Types are numbered; a set of types is a Python integer with one bit each. Labels of the type are masked per value. Zone,
capacity type and reservation hold *jointly* for an offering, so offerings are grouped by their whole set of labels (their
*shape*), and each shape knows the types that can be bought in it now.
"""

from collections.abc import Iterator

from joiner.catalog.market import InstanceType, Offering
from joiner.requirements import Requirement, Requirements


class _Key:
    """The types by what they say about one label."""

    def __init__(self, everyone: int) -> None:
        self.silent = everyone
        """Types that say nothing about the label: no requirement on it stands in their way."""
        self.by_value: dict[str, int] = {}
        """Types with exactly one value."""
        self.plain: dict[Requirement, int] = {}
        """All others, asked one by one."""
        self.memo: dict[Requirement, int] = {}

    def note(self, requirement: Requirement, bit: int) -> None:
        self.silent &= ~bit
        if not requirement.complement and len(requirement.values) == 1:
            (value,) = requirement.values
            self.by_value[value] = self.by_value.get(value, 0) | bit
        else:
            self.plain[requirement] = self.plain.get(requirement, 0) | bit

    def mask(self, wanted: Requirement) -> int:
        found = self.memo.get(wanted)
        if found is None:
            found = self.memo[wanted] = self._mask(wanted)
        return found

    def _mask(self, wanted: Requirement) -> int:
        found = self.silent
        if wanted.complement:
            for value, types in self.by_value.items():
                if wanted.has(value):
                    found |= types
        else:
            for value in wanted.values:
                found |= self.by_value.get(value, 0)
        for requirement, types in self.plain.items():
            if requirement.agrees(wanted):
                found |= types
        return found


class TypeLabels:
    """The types by what their own labels say. Overlays change no labels, so every market of the same types can share it."""

    def __init__(self, types: tuple[InstanceType, ...]) -> None:
        self.everyone = (1 << len(types)) - 1
        self._keys: dict[str, _Key] = {}
        for number, instance_type in enumerate(types):
            bit = 1 << number
            for key, requirement in instance_type.requirements.items():
                self._keys.setdefault(key, _Key(self.everyone)).note(requirement, bit)

    def described(self, requirements: Requirements) -> int:
        """Types whose own labels agree with the requirements, whether or not they can be bought."""
        found = self.everyone
        for key, wanted in requirements.items():
            known = self._keys.get(key)
            if known is not None:
                found &= known.mask(wanted)
        return found

    def values(self, key: str, types: int) -> set[str]:
        """What some of the types may have as the value of a label."""
        known = self._keys.get(key)
        if known is None:
            return set()
        found = {value for value, having in known.by_value.items() if having & types}
        for requirement, having in known.plain.items():
            if having & types and not requirement.complement:
                found.update(requirement.values)
        return found


class Index:
    """The types of a market, numbered, with their masks. Built once, read by many; memos only remember answers."""

    def __init__(
        self, types: tuple[InstanceType, ...], well_known: frozenset[str], labels: TypeLabels | None = None
    ) -> None:
        self.types = types
        self.labels = labels or TypeLabels(types)
        self._well_known = well_known
        self._shapes: dict[Requirements, int] = {}
        for number, instance_type in enumerate(types):
            for offering in instance_type.offerings:
                if offering.launchable:
                    shape = offering.requirements
                    self._shapes[shape] = self._shapes.get(shape, 0) | 1 << number
        self._shape_keys = tuple(sorted({key for shape in self._shapes for key in shape}))
        self._shape_memo: dict[tuple[Requirement | None, ...], int] = {}

    @property
    def shapes(self) -> tuple[Requirements, ...]:
        """The different sets of labels that launchable offerings have."""
        return tuple(self._shapes)

    def described(self, requirements: Requirements) -> int:
        """Types whose own labels agree with the requirements, whether or not they can be bought."""
        return self.labels.described(requirements)

    def buyable(self, requirements: Requirements) -> int:
        """Types with a launchable offering that agrees with the requirements."""
        asked = tuple(requirements.get(key) for key in self._shape_keys)
        found = self._shape_memo.get(asked)
        if found is None:
            found = 0
            for shape, types in self._shapes.items():
                if requirements.compatible(shape, self._well_known):
                    found |= types
            self._shape_memo[asked] = found
        return found

    def select(self, requirements: Requirements) -> int:
        """Types that agree with the requirements and can be bought under them."""
        return self.described(requirements) & self.buyable(requirements)

    def members(self, mask: int) -> Iterator[InstanceType]:
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
