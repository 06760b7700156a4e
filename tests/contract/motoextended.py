"""moto's server, extended by what it lacks: capacity reservations, and the parameters that EKS publishes its images with."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.server import ThreadedMotoServer
from moto.ssm.responses import SimpleSystemManagerResponse


class Extension:
    """What the extended calls answer with."""

    def __init__(self) -> None:
        self.reservations: dict[str, dict[str, Any]] = {}
        self.parameters: dict[str, str] = {}

    def describe_capacity_reservations(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """As the API reference has it: by ids, or by filters of which each must hold."""
        ids = asked.get("CapacityReservationIds")
        strange = [each for each in ids or () if each not in self.reservations]
        if strange:
            raise EC2ClientError(
                "InvalidCapacityReservationId.NotFound", f"The reservation {strange[0]} does not exist"
            )
        found = [self.reservations[each] for each in ids or sorted(self.reservations)]
        for each in asked.get("Filters") or ():
            found = [known for known in found if _holds(known, each["Name"], each["Values"])]
        return {"CapacityReservations": found}


def _holds(known: Mapping[str, Any], name: str, values: list[str]) -> bool:
    tags = {each["Key"]: each["Value"] for each in known.get("Tags", ())}
    if name == "tag-key":
        return bool(set(values) & set(tags))
    if name.startswith("tag:"):
        return tags.get(name[4:]) in values
    key = {
        "state": "State",
        "owner-id": "OwnerId",
        "instance-type": "InstanceType",
        "instance-match-criteria": "InstanceMatchCriteria",
    }[name]
    return known[key] in values


@contextmanager
def server() -> Iterator[tuple[str, Extension]]:
    """A server on loopback, and what its extended calls answer with."""
    known, patch = Extension(), pytest.MonkeyPatch()
    get_parameter = SimpleSystemManagerResponse.get_parameter

    def reservations(self: Any) -> ActionResult:
        asked = {name: self._get_param(name) for name in ("CapacityReservationIds", "Filters")}
        return ActionResult(known.describe_capacity_reservations(asked))

    def parameter(self: Any) -> Any:
        name = self._get_param("Name")
        if name in known.parameters:
            return ActionResult({"Parameter": {"Name": name, "Value": known.parameters[name]}})
        return get_parameter(self)

    patch.setattr(EC2Response, "describe_capacity_reservations", reservations, raising=False)
    patch.setattr(SimpleSystemManagerResponse, "get_parameter", parameter)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    running.start()
    try:
        yield f"http://127.0.0.1:{port}", known
    finally:
        running.stop()
        patch.undo()
