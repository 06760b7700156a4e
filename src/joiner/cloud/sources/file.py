"""A user's own catalogue: a JSON file of instance types in one of two forms.

The form of the KWOK provider is a list of types with `name`, `architecture`, `operatingSystems`, `resources` and
`offerings`; every offering counts as available, and a node takes 110 pods where `resources` does not say. The form of
scenario files is an object with `instanceTypes`, each with `name`, `requirements`, `offerings`, `capacity` and
`overhead`, and says everything itself. Names of fields are read in any case; fields of other names are passed over.
"""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from joiner.catalog.market import ALLOWED_PRICE, UNLIMITED, InstanceType, Offering, Overhead
from joiner.cloud.sources import jsonpositions
from joiner.cloud.sources.catalogue import NO_DATE, Catalogue, CatalogueError, DataDate, Origin, unpriced
from joiner.cloud.sources.generated import USUAL_OVERHEAD, kwok_labels
from joiner.cloud.sources.jsonpositions import Located
from joiner.cloud.sources.kubeletoverhead import DEFAULT_KUBELET, under
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, ReservationLabels, reserve
from joiner.model import labels, quantity
from joiner.model.kubelet import Kubelet, Threshold, threshold
from joiner.model.requirement import DOES_NOT_EXIST, EXISTS, IN, NUMERIC, OPERATORS
from joiner.model.resources import CPU, MEMORY, PODS, Resources
from joiner.requirements import PLAIN_VOCABULARY, Requirement, Requirements, integer

DEFAULT_PODS: Final = 110
_SHOWN_PROBLEMS: Final = 20

_QUANTITY: Final = "allowed is a quantity that is not negative, like 500m, 2 or 4Gi"
_RESOURCES: Final = 'allowed is an object of quantities, like {"cpu": "2", "memory": "8Gi"}'


class CatalogueFileError(CatalogueError):
    """A catalogue file cannot be used; it holds every problem that was found in it."""

    def __init__(self, origin: str, problems: tuple[str, ...]) -> None:
        self.origin = origin
        self.problems = problems
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.problems) == 1:
            yield f"{self.origin}: {self.problems[0]}"
            return
        yield f"{self.origin} has {len(self.problems)} problems:"
        yield from (f"  {problem}" for problem in self.problems[:_SHOWN_PROBLEMS])
        if len(self.problems) > _SHOWN_PROBLEMS:
            yield f"  and {len(self.problems) - _SHOWN_PROBLEMS} more"


def catalogue(
    path: Path,
    *,
    kubelet: Kubelet = DEFAULT_KUBELET,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> Catalogue:
    """The types of a file, on nodes with this kubelet, with the offerings of the given reservations."""
    types = reserve(under(kubelet, load(path)), reservations, keys)
    return Catalogue(name=str(path), region="", dates=origin(path).dates, types=types, unpriced=unpriced(types))


def origin(path: Path) -> Origin:
    """The catalogue without its types; a file does not say how old its prices are."""
    date = DataDate(source=str(path), gives="types and prices", date=NO_DATE)
    return Origin(name=str(path), region="", dates=(date,))


def load(path: Path) -> tuple[InstanceType, ...]:
    """The types of a file, as they stand there."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CatalogueFileError(str(path), (f"cannot be read: {error.strerror or error}",)) from None
    return parse(data, str(path))


def parse(data: bytes, origin: str = "catalogue file") -> tuple[InstanceType, ...]:
    """The types in the bytes of a file. All problems are found before any is raised."""
    try:
        raw = jsonpositions.read(data)
    except jsonpositions.MalformedJson as error:
        raise CatalogueFileError(origin, (str(error),)) from None
    problems: list[str] = []
    types = tuple(_types(Located(raw, "", "", problems)))
    if problems:
        raise CatalogueFileError(origin, tuple(problems))
    return types


def _types(root: Located) -> Iterator[InstanceType]:
    if isinstance(root.raw, list):
        read, entries = _kwok_type, root
    else:
        read, entries = _scenario_type, root.field("instanceTypes")
        if entries.raw is None:
            root.complain("allowed is a list of instance types, or an object with the field instanceTypes")
            return
    numbers: dict[str, int] = {}
    for number, entry in enumerate(entries.items("allowed is a list of instance types"), start=1):
        name = entry.field("name").raw
        named = f"entry {number} ({name})" if isinstance(name, str) and name else f"entry {number}"
        here = Located(entry.raw, named, "", entry.problems)
        if not here.is_object("allowed is an object that describes an instance type"):
            continue
        made = read(here)
        first = numbers.setdefault(made.name, number)
        if made.name and first != number:
            here.field("name").complain(f"each type needs a name of its own, and entry {first} has this one")
        yield made


# -- the two forms -------------------------------------------------------------------------------------------------------


def _kwok_type(entry: Located) -> InstanceType:
    name = _label_value(entry.field("name"), "the name of the type")
    architecture = _label_value(entry.field("architecture"), "an architecture, like amd64 or arm64")
    systems = entry.field("operatingSystems")
    names = tuple(_label_value(s, "an operating system") for s in systems.items('allowed is a list, like ["linux"]'))
    if isinstance(systems.raw, list) and not names:
        systems.complain('allowed is a list with at least one entry, like ["linux"]')
    capacity = {PODS: DEFAULT_PODS * quantity.MILLI, **_capacity(entry.field("resources"))}
    offerings = tuple(_offerings(entry, always_available=True))
    return InstanceType(
        name=name,
        requirements=Requirements(kwok_labels(name, architecture, names, capacity, offerings)),
        offerings=offerings,
        capacity=capacity,
        overhead=USUAL_OVERHEAD,
    )


def _scenario_type(entry: Located) -> InstanceType:
    name = _label_value(entry.field("name"), "the name of the type")
    written = entry.field("requirements")
    requirements = _requirements(written) if written.raw is not None else Requirements()
    if labels.INSTANCE_TYPE not in requirements:
        requirements = Requirements((*requirements.values(), Requirement(labels.INSTANCE_TYPE, (name,))))
    return InstanceType(
        name=name,
        requirements=requirements,
        offerings=tuple(_offerings(entry, always_available=False)),
        capacity=_capacity(entry.field("capacity")),
        overhead=_overhead(entry.field("overhead")),
    )


# -- offerings -----------------------------------------------------------------------------------------------------------


def _offerings(entry: Located, *, always_available: bool) -> Iterator[Offering]:
    for offering in entry.field("offerings").items("allowed is a list of offerings"):
        if not offering.is_object("allowed is an object with Requirements and Price"):
            continue
        before = len(offering.problems)
        requirements = _requirements(offering.field("requirements"))
        if len(offering.problems) == before:
            _check_single(offering, requirements, labels.CAPACITY_TYPE, labels.CAPACITY_TYPES)
            _check_single(offering, requirements, labels.ZONE, ())
        available = offering.field("available").flag("allowed is true or false", default=True)
        count = offering.field("reservationCapacity").count("allowed is a number of instances, 0 or more")
        reserved = requirements.at(labels.CAPACITY_TYPE).any() == labels.RESERVED
        yield Offering(
            requirements=requirements,
            price=offering.field("price").number(ALLOWED_PRICE) + 0.0,  # minus zero is zero
            available=(count if reserved else UNLIMITED) if available or always_available else 0,
        )


def _check_single(offering: Located, requirements: Requirements, key: str, among: tuple[str, ...]) -> None:
    """An offering is in one zone and of one capacity type."""
    found = requirements.get(key)
    if (
        found is not None
        and not found.complement
        and len(found.values) == 1
        and (not among or min(found.values) in among)
    ):
        return
    choice = f"one of {', '.join(among)}" if among else "one value"
    offering.field("requirements").complain(
        f"an offering needs a requirement {key} In with {choice}",
        found=f"nothing on {key}" if found is None else str(found),
    )


def _requirements(written: Located) -> Requirements:
    form = (
        'allowed is a list of requirements, like [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]'
    )
    return Requirements(r for item in written.items(form) if (r := _requirement(item)) is not None)


def _requirement(item: Located) -> Requirement | None:
    """A requirement, if what is written makes one."""
    before = len(item.problems)
    if not item.is_object("allowed is an object with key, operator and values"):
        return None
    key = item.field("key").text("allowed is the name of a label")
    problem = labels.key_problem(key) if key else None
    if problem:
        item.field("key").complain(f"a label {problem}")
    values = _values(item.field("values"))
    operator = item.field("operator").text(f"allowed is one of {', '.join(OPERATORS)}")
    if operator:
        _check_operator(item, operator, values)
    if len(item.problems) > before:
        return None
    key = PLAIN_VOCABULARY.normal_key(key)
    return Requirement.of(key, operator, *(PLAIN_VOCABULARY.normal_value(key, value) for value in values))


def _values(written: Located) -> tuple[str, ...]:
    if written.raw is None:
        return ()
    found = []
    for item in written.items("allowed is a list of texts"):
        problem = labels.value_problem(item.raw) if isinstance(item.raw, str) else "must be a text"
        if problem:
            item.complain(f"a label value {problem}")
        else:
            found.append(item.raw)
    return tuple(found)


def _check_operator(item: Located, operator: str, values: tuple[str, ...]) -> None:
    written = item.field("values")
    if operator not in OPERATORS:
        near = difflib.get_close_matches(operator, OPERATORS, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        item.field("operator").complain(f"allowed is one of {', '.join(OPERATORS)}{hint}")
    elif operator in (EXISTS, DOES_NOT_EXIST) and written.raw:
        written.complain(f"{operator} takes no values")
    elif operator in NUMERIC and (len(values) != 1 or integer(values[0]) is None):
        written.complain(f"{operator} takes exactly one integer, written as a text")
    elif operator == IN and not written.raw:
        written.complain("In needs at least one value")


# -- amounts -------------------------------------------------------------------------------------------------------------


def _capacity(written: Located) -> dict[str, int]:
    found = _resources(written)
    for name in (CPU, MEMORY):
        if isinstance(written.raw, dict) and name not in written.raw:
            written.at(f"[{name}]", None).complain(_QUANTITY)
        found.setdefault(name, 0)
    return found


def _overhead(written: Located) -> Overhead:
    if written.raw is None:
        return Overhead()
    written.is_object("allowed is an object with kubeReserved, systemReserved and evictionThreshold")
    return Overhead(
        kube_reserved=_optional_resources(written.field("kubeReserved")),
        system_reserved=_optional_resources(written.field("systemReserved")),
        eviction_hard=_thresholds(written.field("evictionThreshold")),
    )


def _optional_resources(written: Located) -> Resources:
    return {} if written.raw is None else _resources(written)


def _resources(written: Located) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, amount in written.members(_RESOURCES):
        problem = labels.key_problem(name)
        if problem:
            amount.complain(f"the name of a resource {problem}")
            continue
        try:
            found[name] = int(quantity.parse(amount.raw))
        except quantity.QuantityError as error:
            amount.complain(str(error))
            continue
        if found[name] < 0:
            amount.complain(_QUANTITY)
    return found


def _thresholds(written: Located) -> dict[str, Threshold]:
    found: dict[str, Threshold] = {}
    if written.raw is None:
        return found
    for name, amount in written.members(_RESOURCES):
        try:
            found[name] = threshold(amount.raw)
        except quantity.QuantityError as error:
            amount.complain(str(error))
    return found


def _label_value(written: Located, what: str) -> str:
    value = written.text(f"allowed is {what}")
    problem = labels.value_problem(value)
    if problem:
        written.complain(f"it becomes a label, which {problem}")
        return ""
    return value
