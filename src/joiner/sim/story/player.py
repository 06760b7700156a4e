"""A story, played: the world is set up, steps happen at their times, and what must be true is looked at as time goes by."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from joiner import yamldoc
from joiner.assembly import Spread, spread_of
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.kube.errors import Invalid
from joiner.kube.tasks import Tasks
from joiner.model.meta import KubeObject
from joiner.model.quantity import MILLI
from joiner.options import OptionsError
from joiner.sim.cloud.cloud import Device, Hook
from joiner.sim.cloud.machines import CloudTiming
from joiner.sim.cloud.market import MarketSlice
from joiner.sim.kubelet.kubelet import NodeTiming
from joiner.sim.story import ec2, objects, phrases
from joiner.sim.story.document.format import MOMENTS, Expectation, Story, StoryError, Timed
from joiner.sim.story.document.given import CloudWords
from joiner.sim.story.document.manifests import StoryManifests
from joiner.sim.story.expectations import Judge
from joiner.sim.story.outages import Outages
from joiner.sim.story.report.narrator import Narrator, Teller
from joiner.sim.story.report.summary import Summary, Verdict, summarize
from joiner.sim.story.steps import StepRunner, Unplayable
from joiner.sim.story.validation import rehearse
from joiner.sim.story.workloadpods import WorkloadPods
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

LOOK_S: Final = 1.0
"""How often what must be true is looked at."""


Progress = Callable[[float, World], None]


def play(
    story: Story,
    *,
    seed: int,
    trace: Trace | None = None,
    progress: Progress | None = None,
    tell: Teller | None = None,
) -> Summary:
    """Tell a story from its beginning to its end.

    Raises StoryError before anything runs when it names what is not there, and Unplayable when a step makes no sense.
    """
    rehearse(story)
    return run(lambda loop: _Telling(loop, story, seed, trace, progress, tell).tell())


class _Telling:
    """One telling of one story."""

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        seed: int,
        trace: Trace | None,
        progress: Progress | None,
        tell: Teller | None,
    ) -> None:
        self._loop, self._story, self._progress = loop, story, progress
        self._ends = story.ends.seconds
        cloud = story.given.cloud
        outages = Outages()
        self.world = World(
            loop,
            seed=seed,
            options=story.options,
            spread=_spread(story),
            trace=trace,
            pace=CloudTiming(
                call_s=(cloud.launch.seconds, cloud.launch.seconds), stops_s=(cloud.terminate.seconds,) * 2
            ),
            habits=NodeTiming(
                joins_s=(cloud.boot.seconds,) * 2, ready_s=(cloud.ready.seconds,) * 2, prepares_s=cloud.prepare.seconds
            ),
            interceptor=outages.api,
            cloud_interceptor=outages,
            open_account=ec2.open_account(story.given) if ec2.is_meant(story.given) else None,
        )
        pods = WorkloadPods(self.world.server)
        self._chronicle = Narrator(self.world, pods, tell)
        self._tasks = Tasks(failed=self._failed)
        self._manifests = StoryManifests(story)
        self._stage = StepRunner(self.world, self._tasks, outages, self._manifests, self._chronicle.say)
        self._judge = Judge(self.world, pods)
        self._written = story.document.data.get("then") or []
        self._verdicts: dict[int, Verdict] = {}
        self._first: dict[int, float] = {}
        """Expectation to the second at which it was met for the first time."""
        self._breaches: dict[int, Verdict] = {}
        self._error: BaseException | None = None

    def _failed(self, name: str, error: BaseException) -> None:
        """Stop the story. What the world refused is the step's fault, and says so."""
        refused = isinstance(error, Invalid | Unplayable)
        self._error = Unplayable(f"{name}: {error}") if refused else error

    async def tell(self) -> Summary:
        """From beginning to end."""
        self.world.load(self._given())
        for each in self.world.server.objects(KWOKNodeClass):
            self.world.cloud.reservations(each)  # they are paid for from the beginning, whenever they are used
        self._furnish(self._story.given.cloud)
        await self.world.start()
        for held in self.world.account.reservations.values() if self.world.account is not None else ():
            if held.end is not None:
                self._tasks.start(f"end of {held.id}", self._ending(held.id, held.end))
        for each in self.world.server.objects(KWOKNodeClass):
            for reservation in each.spec.capacity_reservations:
                if reservation.end_time is not None:
                    self._tasks.start(f"end of {reservation.id}", self._ending(reservation.id, reservation.end_time))
        for timed in self._story.when:
            line = self._story.document.line_of(timed.path)
            where = f"{self._story.document.source}:{line}: {timed.path}, at {phrases.brief(timed.at)}"
            self._tasks.start(where, self._at(timed))
        try:
            await self._look_on()
        finally:
            await self._tasks.close()
            await self.world.stop()
        verdicts = (*self._conclusions(), *self._laws())
        return summarize(self._story.title, self.world, self._chronicle, verdicts, self._manifests.notes())

    def _furnish(self, words: CloudWords) -> None:
        """What the cloud has from the beginning."""
        cloud = self.world.cloud
        cloud.unlisted_s = words.unlisted.seconds
        for part in words.shelves:
            cloud.limit(part.count, instance_type=part.instance_type, zone=part.zone, capacity_type=part.capacity_type)
        for each in words.devices:
            lot = MarketSlice(instance_type=each.instance_type)
            cloud.equip(Device(lot, each.resource, each.count * MILLI, each.after.seconds))
        cloud.notices.muted = not words.notices
        cloud.hooks += (Hook(each.name, each.after.seconds, each.labels) for each in words.registration_hooks)

    async def _at(self, timed: Timed) -> None:
        await asyncio.sleep(timed.at.seconds)
        if timed.at.seconds <= self._ends:
            self._chronicle.say(phrases.sentence(timed.step))
            await self._stage.play(timed.step, timed.path)

    async def _ending(self, reservation: str, moment: datetime) -> None:
        left = (moment - self.world.clock.now()).total_seconds()
        if left >= 0:
            await asyncio.sleep(left)
            self._chronicle.say(f"reservation {reservation} ends")

    async def _look_on(self) -> None:
        while self._loop.time() < self._ends:
            await asyncio.sleep(min(LOOK_S, self._ends - self._loop.time()))
            if self._error is not None:
                raise self._error
            self.world.healthy()
            self._look()
            if self._progress is not None:
                self._progress(self._loop.time(), self.world)

    def _look(self) -> None:
        now = self._loop.time()
        for number, wanted in enumerate(self._story.then):
            if number not in self._verdicts:
                self._consider(number, wanted, now)
        for number, law in enumerate(self._story.always):
            breach = self._judge.breach(law)
            if breach and number not in self._breaches:
                self._breaches[number] = Verdict(law.text, False, f"{breach}, at {phrases.clock_time(now)}")

    def _consider(self, number: int, wanted: Expectation, now: float) -> None:
        """Look whether an expectation is met, if this is a moment at which that matters."""
        late = now >= wanted.deadline.seconds
        waits = wanted.at is not None or now < wanted.since.seconds or number in self._first
        if waits and not late:
            return
        complaints = self._judge.complaints(wanted)
        if not complaints and not late:
            self._first[number] = now
        if late or (wanted.before is not None and not complaints):
            detail, first = "; ".join(complaints), self._first.get(number)
            self._verdicts[number] = Verdict(self._said(number), not complaints, detail, first)

    def _said(self, number: int) -> str:
        """The expectation in the words of the story."""
        wanted = self._story.then[number]
        words = {key: value for key, value in self._written[number].items() if key not in MOMENTS}
        when = " ".join(
            f"{word} {phrases.brief(moment)}" for word in MOMENTS if (moment := getattr(wanted, word)) is not None
        )
        return f"{when}: {', '.join(f'{key} {phrases.flow(value)}' for key, value in words.items())}"

    def _conclusions(self) -> Iterator[Verdict]:
        for number in range(len(self._story.then)):
            too_late = Verdict(self._said(number), False, "the story ended before its time came")
            yield self._verdicts.get(number, too_late)

    def _laws(self) -> Iterator[Verdict]:
        for number, law in enumerate(self._story.always):
            never = self._judge.never(law)
            yield self._breaches.get(number, Verdict(law.text, not never, never))

    def _given(self) -> Iterator[KubeObject]:
        given = self._story.given
        yield from self._manifests.classes(self.world.clock.now())
        yield from objects.pools(given)
        yield from self._manifests.given()


def _spread(story: Story) -> Spread | None:
    """What the scheduler's configuration that the story names says about spreading pods."""
    name = story.options.scheduler_config
    if not name:
        return None
    try:
        loaded = yamldoc.documents((story.folder / name).read_text(encoding="utf-8"), name)
        if loaded.problems or len(loaded.documents) != 1:
            raise StoryError([*map(str, loaded.problems)] or [f"{name}: a scheduler configuration is one document"])
        return spread_of(loaded.documents[0].data)
    except OSError as error:
        raise StoryError([f"given.options: scheduler-config {name}: cannot be read: {error.strerror}"]) from None
    except OptionsError as error:
        raise StoryError([f"{name}: {each}" for each in error.problems]) from None
