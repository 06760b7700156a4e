"""How a story is told to people: moments, lengths of time, numbers with their nouns, and steps as sentences."""

import re
from collections.abc import Mapping
from typing import Any

from joiner.model.duration import SECOND, Duration
from joiner.sim.story.document.format import (
    EndReservation,
    NeverJoin,
    OtherCluster,
    Outage,
    Price,
    PublishImages,
    Restart,
    Restore,
    SetClockBack,
    Shortage,
    Traffic,
    Withdraw,
)
from joiner.sim.story.document.given import MarketWords


def clock_time(seconds: float) -> str:
    """A moment of the story, in hours, minutes and seconds since it began."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def brief(length: Duration) -> str:
    """A length of time without the zeros at its end: `1h30m`, not `1h30m0s`."""
    return re.sub(r"(?<=h)0m$", "", re.sub(r"(?<=m)0s$", "", length.text()))


def wait(seconds: float) -> str:
    """A length of time in whole seconds."""
    return "less than a second" if seconds < 1 else brief(Duration(round(seconds) * SECOND))


def counted(count: float, noun: str) -> str:
    """A number with its noun, which gets an s if it needs one."""
    return f"{count:g} {noun}{'' if count == 1 else 's'}"


def flow(value: Any) -> str:
    """Data as people write it in one line of YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def sentence(step: Any) -> str:
    """What happens in a step; empty where it can be seen from what comes of it."""
    if isinstance(step, Shortage):
        left = f"has no more than {step.shortage.count} of" if step.shortage.count else "has run out of"
        return f"the cloud {left} {_sort(step.shortage)}{_while(step.lasts)}"
    if isinstance(step, Price):
        return f"{_sort(step.price)} cost {step.factor:g} times what the catalogue says"
    if isinstance(step, Withdraw):
        return f"the cloud no longer sells {_sort(step.withdraw)}"
    if isinstance(step, Restore):
        return f"the cloud sells {_sort(step.restore)} again"
    if isinstance(step, Outage):
        if step.outage == "api":
            return f"the API server does not answer the controllers{_while(step.lasts)}"
        calls = "no call" if step.outage == "everything" else f"no call of {step.outage}"
        return f"the cloud answers {calls}{_while(step.lasts)}"
    if isinstance(step, EndReservation):
        return f"reservation {step.end_reservation} is cancelled"
    if isinstance(step, OtherCluster):
        machines = counted(step.machines, "machine")
        return f"another cluster has {machines} in reservation {step.other_cluster}"
    if isinstance(step, PublishImages):
        return f"there are new images, {step.publish_images}"
    if isinstance(step, NeverJoin):
        which = "machine" if step.never_join == 1 else f"{step.never_join} machines"
        return f"the next {which} to be bought will never join"
    if isinstance(step, Restart):
        if step.away:
            return f"the controllers are away for {brief(step.away)}"
        return "the controllers lose their memory and start anew"
    if isinstance(step, SetClockBack):
        return f"the clock is set back by {brief(step.set_clock_back)}"
    if isinstance(step, Traffic):
        return f"traffic of {step.traffic} begins: between {step.low} and {counted(step.high, 'pod')}"
    return ""


def _sort(part: MarketWords) -> str:
    """The machines of a market slice."""
    what = " ".join(part for part in (part.capacity_type, part.instance_type, "machines") if part)
    return f"{what} in {part.zone}" if part.zone else what


def _while(lasts: Duration | None) -> str:
    return "" if lasts is None else f", for {brief(lasts)}"
