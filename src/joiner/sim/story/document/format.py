"""Stories: what is given, what happens when, what must be true then and always. Read and checked as a whole before anything runs.

The format is ours and names none of our classes; its words are those of people who run clusters. Times are durations since the
story begins, amounts are Kubernetes quantities.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from joiner import yamldoc
from joiner.model import codec
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.quantity import Quantity
from joiner.options import Gates, Options, OptionsError, gate_name
from joiner.options import read as read_options
from joiner.sim.story.document import mistakes
from joiner.sim.story.document.given import (
    CloudWords,
    DeviceWords,
    Given,
    HookWords,
    MarketWords,
    PoolWords,
    ReservationWords,
    Words,
)  # fmt: skip
from joiner.sim.story.document.invariants import Law, LawError
from joiner.sim.story.document.invariants import read as read_law
from joiner.yamldoc import Document

T = TypeVar("T")


class PodWords(Words):
    """What the pods of a workload are like."""

    cpu: Quantity = Quantity(0)
    memory: Quantity = Quantity(0)
    requests: Mapping[str, Quantity] = {}
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()
    spread: tuple[str, ...] = ()
    """Keep these evenly filled: zone, hostname, or any label of nodes."""
    apart: str = ""
    """Never two of them in one: zone, hostname, or any label of nodes."""
    together: str = ""
    """All of them in one: zone, hostname, or any label of nodes."""
    min_available: int | str | None = None
    """With a disruption budget of so many."""
    do_not_disrupt: bool = False
    grace: Duration = Duration.parse("30s")
    runs_for: Duration | None = None
    """How long a pod runs before it is done; for ever, if nothing is said."""
    volume: str = ""
    """Each pod has a volume of this storage class."""
    spec: Mapping[str, Any] = {}
    """More of the pod's spec, as Kubernetes writes it."""


class Deploy(PodWords, kw_only=True):
    """Begin a Deployment."""

    deploy: str
    replicas: int = 1


class StatefulSetStep(PodWords, kw_only=True):
    """Begin a StatefulSet."""

    stateful_set: str
    replicas: int = 1


class DaemonSetStep(PodWords, kw_only=True):
    """Begin a DaemonSet."""

    daemon_set: str


class JobStep(PodWords, kw_only=True):
    """Begin a Job."""

    job: str
    completions: int = 1
    parallelism: int = 1


class Scale(Words):
    """Give a workload, or a pool with replicas, another size."""

    scale: str
    replicas: int


class Traffic(Words):
    """Let a workload follow the hours of the day: a wave between two sizes, once every period."""

    traffic: str
    low: int
    high: int
    every: Duration = Duration.parse("15m")
    period: Duration = Duration.parse("24h")
    until: Duration | None = None


class Delete(Words):
    """Delete an object: `deployment/web`, `nodepool/default`, `node/…`."""

    delete: str


class Apply(Words):
    """Create or change objects, given as Kubernetes writes them or as a file beside the story."""

    apply: Mapping[str, Any] | str


class Shortage(Words):
    """The cloud runs out of some machines, for a while or for good."""

    shortage: MarketWords
    lasts: Duration | None = None


class Reclaim(Words):
    """The cloud takes spot machines back, so many of them."""

    reclaim: int
    nodepool: str = ""


class Vanish(Words):
    """So many machines are gone from one moment to the next."""

    vanish: int
    nodepool: str = ""


class NeverJoin(Words):
    """The next machines that are bought never join the cluster."""

    never_join: int


class Price(Words):
    """A price changes: by a factor, for everything that is meant."""

    price: MarketWords
    factor: float


class Withdraw(Words):
    """The cloud no longer has a type, or a type in a zone."""

    withdraw: MarketWords


class Restore(Words):
    """The cloud has again what was withdrawn, said in the same words."""

    restore: MarketWords


class Outage(Words):
    """Calls of the cloud fail, or what the controllers ask of the API server; for a while or for good."""

    outage: Literal["launch", "terminate", "list", "types", "everything", "api"]
    lasts: Duration | None = None


class EndReservation(Words):
    """A reservation is cancelled."""

    end_reservation: str


class OtherCluster(Words):
    """Of EC2: another cluster has so many machines in a reservation from now on."""

    other_cluster: str
    machines: int


class PublishImages(Words):
    """Of EC2: there are new images, to which the alias `al2023@latest` leads."""

    publish_images: str
    """What they are called."""


class Sicken(Words):
    """A condition of so many nodes changes: `Ready=False`, `KWOKUnhealthy=True`."""

    sicken: str
    nodes: int = 1
    nodepool: str = ""
    lasts: Duration | None = None
    incurable: bool = False
    """Whether the condition outlasts a restart of the machine."""
    refuses_reboot: bool = False
    """Whether the machine cannot be restarted."""


class Restart(Words):
    """The controllers lose their memory and start anew."""

    restart: Literal["joiner"]
    away: Duration = Duration(0)
    """How long there are none in between."""


class SetClockBack(Words):
    """The time of day is set back, for everything that reads a clock."""

    set_clock_back: Duration


Step = (
    Deploy | StatefulSetStep | DaemonSetStep | JobStep | Scale | Traffic | Delete | Apply | Shortage | Reclaim | Vanish
    | NeverJoin | Price | Withdraw | Restore | Outage | EndReservation | Sicken | Restart
    | SetClockBack | OtherCluster | PublishImages
)  # fmt: skip
STEPS: Final[tuple[type[Words], ...]] = Step.__args__


class Timed(Value):
    """A step and its moment."""

    at: Duration
    step: Any
    path: str = ""
    """Where in the story it stands."""


class ClaimWords(Words):
    """What a claim must be. Words that are left out do not matter."""

    nodepool: str | None = None
    instance_type: str | None = None
    capacity_type: str | None = None
    zone: str | None = None
    reservation: str | None = None


class Expectation(Words):
    """What must be true at a moment, or must have been so once before it."""

    by: Duration | None = None
    """It is so at this time, and perhaps has been for a while: that is looked at, too."""
    at: Duration | None = None
    """It is so at this time."""
    after: Duration | None = None
    """With `before`: what was so earlier does not count."""
    before: Duration | None = None
    """It is so once before this time: for what passes."""
    running: Mapping[str, int] = {}
    """Workload to how many of its pods run and are ready."""
    pending: Mapping[str, int] = {}
    """Workload to how many of its pods have no node."""
    claims: tuple[ClaimWords, ...] | int | None = None
    """How many claims there are, or what each of them is; in any order, neither more nor fewer."""
    nodes: int | Mapping[str, int] | None = None
    """How many nodes there are, or how many each pool has."""
    leaving: int | None = None
    """How many claims are being deleted."""
    tainted: Mapping[str, int] = {}
    """Key of a taint to how many nodes have it."""
    machines: int | None = None
    """How many machines the cloud runs for us."""
    reboots: int | None = None
    """How often machines have come back after a restart."""
    refused: Mapping[str, str] = {}
    """Workload to words that the reason of its pods' refusal must contain."""
    event: Mapping[str, str] = {}
    """An event that was told: `reason`, and if wanted `kind`, `name`, `message` (a part of it)."""
    condition: Mapping[str, str | bool] = {}
    """`of` an object (`nodepool/default`, or `nodeclaim/*` for each of them), `type`, `status` (`none`: it is not there), and if
    wanted `reason`."""
    field: Mapping[str, Any] = {}
    """`of` an object (as for conditions), `path` (`status.nodes`, `metadata.labels[team]`), and the value that `is` there; none,
    if it is left out."""
    cost_per_hour_below: float | None = None

    @property
    def deadline(self) -> Duration:
        """When it is judged at the latest."""
        return next(each for each in (self.by, self.at, self.before) if each is not None)  # the reader has seen to it

    @property
    def since(self) -> Duration:
        """What was so earlier does not count."""
        return self.after or Duration(0)


PARTS: Final[tuple[type[Words], ...]] = (
    Given, ReservationWords, MarketWords, DeviceWords, HookWords, CloudWords, PoolWords, Expectation, ClaimWords,
)  # fmt: skip


class Story(Value):
    """A whole story."""

    title: str
    given: Given
    when: tuple[Timed, ...]
    then: tuple[Expectation, ...]
    always: tuple[Law, ...]
    ends: Duration
    options: Options
    folder: Path
    """Where it was read from: files it names are seen from there."""
    document: Document
    """The text it was read from, for those who have to say where something stands."""
    catalogue: str = ""
    """What `--instance-types` says: the catalogue of every NodeClass; empty when each has its own."""


class StoryError(ValueError):
    """A story that cannot be told, with every mistake and its line."""

    def __init__(self, problems: Iterable[str], rest: Story | None = None) -> None:
        self.problems = tuple(problems)
        self.rest = rest
        """The story without what could not be read, if nothing is missing in it that others may name."""
        super().__init__("\n".join(self.problems))


_PARTS: Final = ("story", "given", "when", "then", "always", "for")
MOMENTS: Final = ("by", "at", "after", "before")
"""The words of an expectation that say when."""
GATES: Final = tuple(gate_name(each.name) for each in fields(Gates))
_TAIL: Final = Duration.parse("10m")
"""A story that does not say how long it is goes on so long after the last thing that is said to happen."""
_CAST: Final = frozenset({"catalog", "manifests", "nodepools", "objects", "reservations"})
"""Words of `given` without which it is not known what there is."""


def read(text: str, source: str, folder: Path) -> Story:
    """The story in a text. Raises StoryError with all mistakes."""
    loaded = yamldoc.documents(text, source)
    if loaded.problems:
        raise StoryError(str(problem) for problem in loaded.problems)
    if not loaded.documents:
        raise StoryError([f"{source}: there is nothing in it; a story has the parts {', '.join(_PARTS)}"])
    if len(loaded.documents) != 1:
        found = f"{source}: a story is one document, found {len(loaded.documents)}"
        raise StoryError([f"{found}; Kubernetes objects are named in one: given: {{manifests: [FILE or FOLDER]}}"])
    return _Reader(loaded.documents[0], folder).story()


class _Reader:
    """Reads one document and gathers what is wrong with it."""

    def __init__(self, document: Document, folder: Path) -> None:
        self._document, self._folder = document, folder
        self._problems: list[str] = []
        self._is_cast_lost = False
        """Whether something could not be read that others may name."""

    def story(self) -> Story:
        data = self._document.data
        if not isinstance(data, dict):
            raise StoryError([f"{self._document.source}: a story is a mapping of {', '.join(_PARTS)}"])
        for key in data:
            if key not in _PARTS:
                self._complain(str(key), f"is not a part of a story{mistakes.hint(str(key), _PARTS)}")
        given = self._given(data.get("given", {}))
        when = tuple(self._steps(data.get("when", [])))
        then = tuple(self._expectations(data.get("then", [])))
        always = tuple(self._laws(data.get("always", [])))
        options = self._options(given)
        ends = self._part(data["for"], Duration, "for") if "for" in data else None
        if not isinstance(data.get("story"), str):
            self._complain("story", "must say in one line what the story is about")
        if ends is not None and ends <= 0:
            self._complain("for", f"{ends.text()} must be longer than zero")
        elif ends is not None:
            self._complain_of_late(when, then, ends)
        last = max([*(each.at for each in when), *(each.deadline for each in then), Duration(0)])
        story = Story(
            title=str(data.get("story")),
            given=given,
            when=tuple(sorted(when, key=lambda each: each.at)),
            then=then,
            always=always,
            ends=ends or Duration(last + _TAIL),
            options=options,
            folder=self._folder,
            document=self._document,
        )
        if self._problems:
            raise StoryError(self._problems, None if self._is_cast_lost else story)
        return story

    def _complain_of_late(self, when: Iterable[Timed], then: Iterable[Expectation], ends: Duration) -> None:
        moments = [
            *((each.path, each.at) for each in when),
            *((f"then[{number}]", each.deadline) for number, each in enumerate(then)),
        ]
        for path, moment in moments:
            if moment > ends:
                self._complain(path, f"comes at {moment.text()}, but the story ends after {ends.text()}")

    def _given(self, raw: Any) -> Given:
        taken = set[str]()
        given = self._part(raw, Given, "given", taken)
        self._is_cast_lost |= given is None or not _CAST.isdisjoint(taken)
        return given or Given()

    def _part(self, raw: Any, kind: type[T], path: str, taken: set[str] | None = None) -> T | None:
        """What the words stand for. Each mistake is told and taken out, and the rest is looked at again."""
        raw, taken = mistakes.plain(raw), set[str]() if taken is None else taken
        while True:
            try:
                found = codec.decode(raw, kind)
            except codec.DecodeError as error:
                wrong = mistakes.mistake(error, kind)
                if wrong.needed not in taken:
                    self._complain(_inner(path, wrong.path), wrong.problem)
                if not mistakes.without(raw, wrong.place):
                    return None
                taken.add(wrong.place)
            else:
                return found

    def _list(self, raw: Any, path: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(raw, list):
            self._complain(path, "must be a list")
            self._is_cast_lost |= path == "when"
            return
        for number, item in enumerate(raw):
            yield f"{path}[{number}]", item

    def _steps(self, raw: Any) -> Iterator[Timed]:
        verbs = {_verb(kind): kind for kind in STEPS}
        for path, item in self._list(raw, "when"):
            if not isinstance(item, dict) or "at" not in item:
                self._complain(path, "must say `at` which time it happens")
                self._is_cast_lost = True
                continue
            found = [key for key in item if key in verbs]
            if len(found) != 1:
                unknown = next((str(key) for key in item if key != "at"), "")
                known = f"; known are {', '.join(sorted(verbs))}"
                hint = f", found {' and '.join(found)}" if found else mistakes.hint(unknown, verbs) or known
                self._complain(path, f"must say exactly one thing that happens{hint}")
                self._is_cast_lost = True
                continue
            at = self._part(item["at"], Duration, f"{path}.at")
            step = self._part({key: value for key, value in item.items() if key != "at"}, verbs[found[0]], path)
            if at is None or step is None:
                self._is_cast_lost |= issubclass(verbs[found[0]], PodWords | Apply | Withdraw)
            else:
                yield Timed(at=at, step=step, path=path)

    def _expectations(self, raw: Any) -> Iterator[Expectation]:
        for path, item in self._list(raw, "then"):
            taken = set[str]()
            found = self._part(item, Expectation, path, taken)
            if found is None or not taken.isdisjoint(MOMENTS):
                continue
            if sum(each is not None for each in (found.by, found.at, found.before)) != 1:
                self._complain(
                    path, "must say either `by` or `at` which time it holds, or `before` which time it once did"
                )
            elif found.after is not None and (found.before is None or found.after >= found.before):
                self._complain(path, "`after` goes with a later `before`")
            elif isinstance(item, dict) and not item.keys() - set(MOMENTS):
                self._complain(path, "says when, but not what must be true")
            else:
                yield found

    def _laws(self, raw: Any) -> Iterator[Law]:
        for path, item in self._list(raw, "always"):
            try:
                yield read_law(str(item))
            except LawError as error:
                self._complain(path, str(error))

    def _options(self, given: Given) -> Options:
        flags = [
            f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in given.options.items()
        ]
        for name in str(given.options.get("feature-gates", "")).split(","):
            gate = name.partition("=")[0].strip()
            if gate and gate not in GATES:
                hint = mistakes.hint(gate, GATES) or f"; known are {', '.join(GATES)}"
                self._complain("given.options.feature-gates", f"there is no gate {gate!r}{hint}")
        try:
            return read_options(flags, {})
        except OptionsError as error:
            for problem in error.problems:
                self._complain("given.options", problem)
            return Options()

    def _complain(self, path: str, problem: str) -> None:
        line = self._document.line_of(path)
        self._problems.append(f"{self._document.source}:{line}: {path}: {problem}")


def _verb(kind: type[Words]) -> str:
    """The word that names the step: the first of its own."""
    return next(iter(kind.__annotations__)).replace("_", "-")


def _inner(path: str, rest: str) -> str:
    return f"{path}{'' if not rest or rest.startswith('[') else '.'}{rest}"
