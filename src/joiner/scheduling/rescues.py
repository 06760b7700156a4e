"""Rescues: what can be done for pods that first fit leaves over, in the order in which it is tried.

A rescue gets the best run so far and gives that or a better one: no pod is left over in place of another, but where it says so.
"""

from collections.abc import Callable, Iterable
from typing import Final

from joiner.scheduling.attempts import Attempts
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.planners import withinlimits
from joiner.scheduling.planners.firstfitvariants import Baseline, Favouring, ImportantFirst

Rescue = Callable[[Attempts, FirstFit], FirstFit]


def rescue(attempts: Attempts, net: FirstFit, by_name: FirstFit | None) -> FirstFit:
    """The run that leaves the fewest pods over. Those that are left over go first, in the order by name if that is another one.

    UIDs have a say only in which pods are left over: where every pod can be placed, nothing depends on them.
    """
    start = net if by_name is None else by_name
    helped = attempts.rescued(start)
    if not helped.left_over():
        return helped
    turn = in_turn(attempts, net)
    net = helped if turn is start else attempts.rescued(turn)
    for way in RESCUES:
        if net.left_over():
            net = way(attempts, net)
    return net


def in_turn(attempts: Attempts, net: FirstFit) -> FirstFit:
    """Who is left out is decided by age, then by name, unless another plan places all those and more."""
    turns = attempts.prepared.queue(by_priority=False, in_turn=True)
    if not any(each.held for each in net.classes) and not attempts.turns_differ(turns):
        return net
    run = attempts.in_turn(turns)
    return net if run.stopped or net.left_over() < run.left_over() else run


def _another_domain(attempts: Attempts, net: FirstFit) -> FirstFit:
    """First fit may take any of several domains that are as good, so the one that places most is taken."""
    favouring = attempts.favouring(attempts.prepared.queue(by_priority=False, in_turn=True))
    return min((net, *favouring), key=lambda run: run.left_over().total())


def _settled_domains(attempts: Attempts, net: FirstFit) -> FirstFit:
    """Pods that others keep away from settle for a domain at once: dearer, but others have more room."""
    return _more_placed(net, attempts.pinned().all((FirstFit,)))


def _baseline_kept(attempts: Attempts, net: FirstFit) -> FirstFit:
    """A run that places every pod that the baseline places: one left over there is placed beside them, or not at all."""
    for baseline in attempts.all((Baseline,)) if not isinstance(net, Favouring) else ():
        if not baseline.stopped and not net.left_over() <= baseline.left_over():
            waiting = baseline.waiting()
            queue = attempts.prepared.queue(by_priority=False, in_turn=True)
            run = attempts.in_turn(sorted(queue, key=waiting.__contains__))
            return run if run.left_over() <= baseline.left_over() else baseline
    return net


def _reservations_left(attempts: Attempts, net: FirstFit) -> FirstFit:
    """Classes that could buy something leave reservations to the pods that are left over, or to all others."""
    some, all_of_them = list(net.left_over()), [pod_class.number for pod_class in net.classes]
    for classes in (some, all_of_them) if net.reserved() else ():
        run = attempts.market_first(net, classes)
        fallback = attempts.problem.policy.reserved_mode == "Fallback"
        as_many = fallback and run.left_over().total() <= net.left_over().total() and net.limited()
        net = run if as_many and run.demoted() <= net.demoted() else _more_placed(net, [run])
    return net


def _important_first(attempts: Attempts, net: FirstFit) -> FirstFit:
    """Which pods are left over when limits bind is decided by priority, as long as no more pods are left over for it."""
    priorities = {pod.spec.priority or 0 for pod in attempts.problem.pods}
    if len(priorities) == 1 or not withinlimits.limited(attempts.problem):
        return net
    run = attempts.one(ImportantFirst)
    fewer = run.left_over().total() <= net.left_over().total()
    return run if fewer and run.least_refused() < net.least_refused() else net


def _more_placed(net: FirstFit, runs: Iterable[FirstFit]) -> FirstFit:
    """The best of some runs that place all those and more, or the one there is."""
    for run in runs:
        if run.left_over() < net.left_over():
            net = run
    return net


RESCUES: Final[tuple[Rescue, ...]] = (
    _another_domain,
    _settled_domains,
    _baseline_kept,
    _reservations_left,
    _important_first,
)
"""In the order in which they are tried, as long as pods are left over."""
