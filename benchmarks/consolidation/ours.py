"""Our own decisions in the simulated cluster: what the disruption controller does, without its writing."""

from time import process_time

from benchmarks.consolidation.world import Command, World
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import consolidate, still_pays
from joiner.disruption.decision import EMPTY, Move
from joiner.disruption.methods.emptiness import emptiness, still_empty
from joiner.disruption.situation import Rules


class Ours:
    """Decides as Joiner does."""

    def __init__(self, world: World, rules: Rules, *, soft_taint: bool = True) -> None:
        self._world, self.rules, self._soft = world, rules, soft_taint
        self._memory, self._target = Memory(), frozenset[str]()
        self.longest_s = rules.longest_horizon.seconds
        self.spent = 0.0
        self.cut = 0
        self.seconds: list[float] = []
        """Processor seconds of each decision."""
        self.second_looks: list[float] = []

    def look(self) -> list[Move]:
        """The moves of one pass."""
        situation = self._world.situation(self.rules)
        empty = emptiness(situation).moves
        if empty:
            return list(empty)
        began = process_time()
        found = consolidate(situation, self._memory, kept=self._target)
        self.seconds.append(process_time() - began)
        self.cut += bool(found.cut_short)
        self._memory, self._target = found.memory, found.target
        if self._soft:
            self._world.taint(self._target)
        return list(found.decision.moves)

    def confirm(self, move: Move) -> Command | None:
        """The second look, fifteen seconds later."""
        situation = self._world.situation(self.rules)
        if move.reason == EMPTY:
            still = still_empty(move, situation)
        else:
            began = process_time()
            still, _ = still_pays(move, situation, self._memory)
            self.second_looks.append(process_time() - began)
        if still is None:
            self._memory = self._memory.withdrawn({each.claim.name for each in move.candidates})
            return None
        gone = tuple(self._world.slot_of(name) for name in still.nodes)
        nominated = tuple(self._world.slot_of(name) for name in still.tried.places) if still.tried is not None else ()
        return Command(gone, tuple(self._world.launch_of(claim) for claim in still.claims), nominated)
