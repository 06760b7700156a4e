"""The catalogue of every NodePool of the files, for `joiner catalog` and `joiner plan`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from joiner.admission.problem import nearest
from joiner.catalog import exclusions
from joiner.catalog.build import Adjustments, Catalog
from joiner.catalog.exclusions import Idle
from joiner.catalog.market import InstanceType
from joiner.clock import SystemClock
from joiner.cloud import plugins
from joiner.cloud.catalogcache import CacheStats, Catalogs
from joiner.cloud.errors import CloudError
from joiner.cloud.provider import CloudProvider, Details
from joiner.cloud.sources.reservation import ReservationStanding
from joiner.model.labels import NODEPOOL
from joiner.model.meta import KubeObject
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.offline.kinds import providers
from joiner.offline.manifests import Manifests, Unsound

_GROUPS: Final[Mapping[str, str]] = {
    "EC2NodeClass": "karpenter.k8s.aws",
    "AKSNodeClass": "karpenter.azure.com",
    "GCENodeClass": "karpenter.k8s.gcp",
    "NodeClass": "eks.amazonaws.com",
}
"""The API groups of NodeClasses of other providers."""


# Neither is written out by repr: asyncio on Python 3.11 asks the result of a task for it, and a market fills gigabytes.
@dataclass(frozen=True, repr=False)
class PoolView:
    """One pool's catalogue with everything that is told about it."""

    pool: NodePool
    catalog: Catalog
    stats: CacheStats
    prices: str
    details: Details
    types: tuple[InstanceType, ...]
    """The types to show, cheapest first."""
    idle: tuple[Idle, ...]
    """The overlays that mean nothing the pool can buy."""

    @property
    def generation(self) -> str:
        """What the catalogue was built from at the provider's side, with the names of its parts where it has some."""
        parts = self.stats.generation
        names = getattr(parts, "_fields", None)
        if isinstance(parts, tuple) and names:
            return ", ".join(f"{name} {_part(part)}" for name, part in zip(names, parts, strict=True))
        return str(parts)

    def refusal(self, standing: ReservationStanding) -> str:
        """Why the pool cannot buy out of a reservation; empty when it can."""
        if standing.problem:
            return standing.problem
        catalog, reservation = self.catalog, standing.reservation
        key = catalog.market.vocabulary.reservation_id
        instance_type = next(each for each in catalog.types if each.name == reservation.instance_type)
        for offering in instance_type.offerings:
            if offering.requirements.labels().get(key) == reservation.id:
                if offering in catalog.offerings(instance_type):
                    return ""
                reasons = exclusions.refusals(catalog, instance_type, offering)
                return "; ".join(reasons) or "nothing of it is available"
        return f"the settings InstanceType {instance_type.name} leave it out"


def _part(part: object) -> str:
    return "@".join(map(str, part)) or "none" if isinstance(part, tuple) else str(part)


@dataclass(frozen=True, repr=False)
class PoolCatalogs:
    """All pools that were asked for, and why some of them cannot be shown."""

    views: tuple[PoolView, ...]
    problems: tuple[tuple[str, str], ...]
    """NodePool and message."""
    idle: tuple[str, ...]
    """A line about each overlay that means nothing any of the pools can buy."""


async def open_for(manifests: Manifests, nodepool: str | None, names: tuple[str, ...]) -> PoolCatalogs:
    """Build the catalogue of each pool; a pool that has none does not stop the others."""
    clock = SystemClock()
    adjustments = manifests.adjustments()
    readers = {kind: provider.name for provider in providers() for kind in provider.node_classes()}
    caches: dict[str, tuple[CloudProvider, Catalogs]] = {}
    views: list[PoolView] = []
    problems: list[tuple[str, str]] = []
    for pool in manifests.pools(nodepool):
        name = ""
        try:
            name = _provider_name(pool, manifests, readers)
            if name not in caches:
                provider = plugins.find(name)(node_classes=manifests, clock=clock, client=None, tasks=None)
                caches[name] = (provider, Catalogs(provider, lambda: adjustments, clock))
            views.append(await _view(pool, *caches[name], adjustments, names))
        except (CloudError, Unsound) as error:
            problems.append((pool.name, str(error)))
        except Exception as error:  # whatever goes wrong in a stranger's package
            if not name or plugins.is_ours(name):
                raise
            problems.append((pool.name, str(plugins.BrokenProvider(name, error))))
    _check_known(views, names)
    return PoolCatalogs(tuple(views), tuple(problems), tuple(_idle(views, one_of_many=nodepool is not None)))


async def _view(
    pool: NodePool, provider: CloudProvider, catalogs: Catalogs, adjustments: Adjustments, names: tuple[str, ...]
) -> PoolView:
    catalog = await catalogs.get(pool)
    return PoolView(
        pool=pool,
        catalog=catalog,
        stats=catalogs.stats_of(pool.name),
        prices=provider.prices(pool),
        details=provider.details(pool),
        types=_chosen(catalog, names),
        idle=exclusions.idle(catalog, adjustments.overlays) if adjustments.overlays else (),
    )


def _provider_name(pool: NodePool, manifests: Manifests, readers: Mapping[type[KubeObject], str]) -> str:
    """The provider that reads the pool's NodeClass, which has to be there."""
    reference = pool.spec.template.spec.node_class_ref
    found = next((kind for kind in readers if (kind.group, kind.kind) == (reference.group, reference.kind)), None)
    if found is None:
        raise Unsound(_not_read(reference, readers))
    if manifests.get(found, reference.name) is None:
        near = nearest(reference.name, (each.metadata.name for each in manifests.all(found)))
        raise Unsound(
            f"there is no {reference.kind} {reference.name} in these files; name the file that has it with -f,"
            f" or correct spec.template.spec.nodeClassRef.name{f' (did you mean {near}?)' if near else ''}"
        )
    return readers[found]


def _not_read(reference: NodeClassReference, readers: Iterable[type[KubeObject]]) -> str:
    """Why there is no provider for a NodeClass: its group is not that of its kind, or the provider is not installed."""
    groups = {**_GROUPS, **{kind.kind: kind.group for kind in readers}}
    group = groups.get(reference.kind)
    if group is not None and group != reference.group:
        return (
            f"there is no {reference.kind} of {reference.group or 'no group'}: write"
            f" spec.template.spec.nodeClassRef.group: {group}"
        )
    kinds = ", ".join(sorted(f"{kind.kind} of {kind.group}" for kind in readers))
    return (
        f"no installed provider reads {reference.kind} of {reference.group}; they read {kinds}. To try the pool on a"
        " catalogue of instance types instead, add --instance-types ec2/us-west-2"
    )


def _chosen(catalog: Catalog, names: tuple[str, ...]) -> tuple[InstanceType, ...]:
    members = tuple(each for each in catalog.types if each.name in names) if names else tuple(catalog.members())
    return tuple(sorted(members, key=lambda each: (_cost(catalog, each), each.name)))


def _cost(catalog: Catalog, instance_type: InstanceType) -> tuple[int, float]:
    best = catalog.cheapest(instance_type).values()
    return min((offering.order for offering in best), default=(2, 0.0))


def _check_known(views: list[PoolView], names: tuple[str, ...]) -> None:
    known = {each.name for view in views for each in view.catalog.types}
    for name in names if views else ():
        if name not in known:
            near = nearest(name, known)
            raise Unsound(f"there is no instance type {name}{f'; did you mean {near}?' if near else ''}")


def _idle(views: list[PoolView], *, one_of_many: bool) -> list[str]:
    """An overlay for one pool is no use for another, and that is as it should be: only those for none are told."""
    selling = [view for view in views if view.catalog.eligible]
    found: dict[str, dict[str, Idle]] = {}
    for view in selling:
        for each in view.idle:
            found.setdefault(each.overlay, {})[view.pool.name] = each
    return [
        _idle_line(name, by_pool)
        for name, by_pool in sorted(found.items())
        if len(by_pool) == len(selling) and not (one_of_many and any(each.key == NODEPOOL for each in by_pool.values()))
    ]


def _idle_line(name: str, by_pool: dict[str, Idle]) -> str:
    reasons = {pool: f"nothing there has {each.excluded_by or 'all of its labels'}" for pool, each in by_pool.items()}
    pools = f"NodePool{'s' if len(reasons) > 1 else ''} {', '.join(reasons)}"
    told = set(reasons.values())
    why = told.pop() if len(told) == 1 else "; ".join(f"{pool}: {reason}" for pool, reason in reasons.items())
    return f"NodeOverlay {name} matches nothing that {pools} can buy: {why}"
