"""The generation cache at work: what makes it build anew, what makes it ask the provider, and what it serves as it is.

Runs the provider and the cache on the manifests beside this file, with a clock that is turned by hand.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from joiner.catalog.build import NO_ADJUSTMENTS, Adjustments, Catalog
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.model.meta import replace
from joiner.offline.manifests import Manifests, load

HERE = Path(__file__).parent


class HandClock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.at = datetime(2045, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """The time of day."""
        return self.at

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        return self.at.timestamp()


class Lesson:
    """One pool, its provider, the cache before it, and the overlays of the moment."""

    def __init__(self, manifests: Manifests) -> None:
        (self.pool,) = manifests.pools(None)
        self.manifests = manifests
        self.overlays = manifests.adjustments()
        self.clock = HandClock()
        self.provider = KwokProvider(manifests, self.clock)
        self.now_in_force: Adjustments = NO_ADJUSTMENTS
        self.cache = Catalogs(self.provider, lambda: self.now_in_force, self.clock)
        self.last: Catalog | None = None

    async def ask(self, what: str) -> Catalog:
        """Ask for the catalogue, and say what the cache did to answer."""
        before = next(iter(self.cache.stats()), None)
        catalog = await self.cache.get(self.pool)
        (after,) = self.cache.stats()
        fetched = after.refetches - (before.refetches if before else 0)
        built = "the same object" if catalog is self.last else f"built anew, because of: {', '.join(after.moved)}"
        print(f"{what:<42} {built}{'; provider asked' if fetched else ''}")
        self.last = catalog
        return catalog

    async def run(self) -> None:
        """Everything that may happen to a catalogue, one after the other."""
        catalog = await self.ask("first question")
        await self.ask("asked again")

        self.now_in_force = self.overlays
        await self.ask("a NodeOverlay is applied")

        m5_large = next(each for each in catalog.types if each.name == "m5.large")
        self.provider.unavailable.mark("m5.large", m5_large.offerings[0])
        await self.ask("a launch finds no m5.large")
        self.clock.at += timedelta(minutes=2)
        await self.ask("two minutes later")
        self.clock.at += timedelta(minutes=2)
        await self.ask("four minutes later the mark expires")

        node_class = self.manifests.objects[KWOKNodeClass]["default"]
        assert isinstance(node_class, KWOKNodeClass)
        self.manifests.objects[KWOKNodeClass]["default"] = replace(
            node_class, spec=replace(node_class.spec, instance_types="ec2/us-east-1")
        )
        await self.ask("the NodeClass is edited")
        self.clock.at = datetime(2046, 1, 1, tzinfo=UTC)
        await self.ask("the reservation ends")
        self.pool = replace(self.pool, metadata=replace(self.pool.metadata, labels={"team": "web"}))
        await self.ask("the pool gets a label of its own")


if __name__ == "__main__":
    asyncio.run(Lesson(load([str(HERE)])).run())
