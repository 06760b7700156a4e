"""DescribeInstanceStatus of the pretend account: checks that fail, and maintenance that is planned."""

from collections.abc import Mapping
from typing import Any

from joiner.cloud.aws.api import Answer
from joiner.sim.cloud.ec2.world import Account


def describe(account: Account, parameters: Mapping[str, Any]) -> Answer:
    """The machines that run and of which what is asked for holds."""
    asked = {each["Name"]: each["Values"] for each in parameters.get("Filters") or ()}
    found = []
    for identity, said in account.checks.items():
        machine = account.machines.get(identity)
        if machine is not None and account.state(machine) == "running" and _holds(said, asked):
            found.append({"InstanceId": identity, "AvailabilityZone": machine.zone, **said})
    return {"InstanceStatuses": found}


def _holds(said: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    known = {
        "instance-status.status": {said.get("InstanceStatus", {}).get("Status")},
        "system-status.status": {said.get("SystemStatus", {}).get("Status")},
        "event.code": {each["Code"] for each in said.get("Events", ())},
    }
    return all(known[name] & set(values) for name, values in asked.items())
