"""Answers of AWS that are late, lost, odd or about something that is gone: nothing ends, nothing is launched or counted twice."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, pool, reserved
from tests.unit.cloud.aws.test_aws_pace import machines

from joiner.catalog import launchoptions
from joiner.catalog.build import Adjustments
from joiner.cloud.aws.api import Answer, AwsApi, AwsError, pages
from joiner.cloud.aws.counts import Counts
from joiner.cloud.aws.launch.tokens import Tokens
from joiner.cloud.aws.notices import InstanceStatus
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.errors import CloudError, InstanceNotFound, NodeClassNotReady, Transient
from joiner.cloud.provider import UNLISTED_S
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.conditions import find
from joiner.model.meta import replace
from joiner.model.nodeoverlay import NodeOverlay

Change = Callable[[Mapping[str, Any], Answer], Any]


class Changed:
    """The pretend account, whose answers to some operations are changed on the way."""

    def __init__(self, api: AwsApi, **changes: Change) -> None:
        self.api, self.changes = api, changes

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        answer = await self.api.call(service, operation, **parameters)
        change = self.changes.get(operation)
        made: Answer = answer if change is None else change(parameters, answer)
        return made


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    made.put()
    yield made
    made.close()


def changed(world: AwsWorld, **changes: Change) -> None:
    """A provider that was just started, which gets changed answers from now on."""
    world.provider = replaced(world, Changed(world.face))
    world.run(world.provider.refresh())
    world.look()
    world.api.changes.update(changes)  # type: ignore[attr-defined]


def replaced(world: AwsWorld, api: AwsApi) -> Any:
    world.api = api
    return world.connect()


def fails(world: AwsWorld, operation: str, code: str, *, after: bool = False, message: str = "") -> None:
    def fail(asked: str, parameters: Any) -> None:
        if asked == operation:
            raise AwsError(code, message)

    setattr(world.face, "after" if after else "before", fail)


def heals(world: AwsWorld) -> None:
    world.face.before = world.face.after = lambda operation, parameters: None


# -- lists -------------------------------------------------------------------------------------------------------------------


def test_a_token_that_comes_again_ends_a_list() -> None:
    class Circling:
        async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
            return {"Subnets": [parameters.get("NextToken", "")], "NextToken": "again"}

    with pytest.raises(AwsError, match="again"):
        asyncio.run(asyncio.wait_for(pages(Circling(), "ec2", "describe_subnets", "Subnets"), 5))


def test_a_page_without_entries_does_not_end_a_list() -> None:
    class Sparse:
        async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
            token = parameters.get("NextToken", "0")
            return {"0": {"NextToken": "1"}, "1": {"Subnets": [], "NextToken": "2"}, "2": {"Subnets": [7]}}[token]

    assert asyncio.run(pages(Sparse(), "ec2", "describe_subnets", "Subnets")) == [7]


# -- types, zones and prices -------------------------------------------------------------------------------------------------


def product(**terms: Any) -> str:
    return json.dumps({"product": {"attributes": {"instanceType": "m5.large"}}, "terms": {"OnDemand": terms}})


def priced(price: Any) -> str:
    return product(a={"priceDimensions": {"b": {"pricePerUnit": {"USD": price}}}})


ODD: dict[str, tuple[str, Answer]] = {
    "no prices": ("get_products", {"PriceList": []}),
    "no list of prices": ("get_products", {}),
    "text that is no JSON": ("get_products", {"PriceList": ["{"]}),
    "JSON that is no product": ("get_products", {"PriceList": ["[]", "1", "null"]}),
    "terms that are none": ("get_products", {"PriceList": [product(a=7), json.dumps({"terms": []})]}),
    "prices that are none": ("get_products", {"PriceList": [priced("free"), priced("NaN"), priced("inf"), priced("-1")]}),
    "no spot prices": ("describe_spot_price_history", {"SpotPriceHistory": []}),
    "spot prices that are none": ("describe_spot_price_history", {"SpotPriceHistory": [
        {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a", "SpotPrice": each}
        for each in ("free", "NaN", "0", "-1", "inf", None)
    ]}),
    "spot prices of nothing": ("describe_spot_price_history", {"SpotPriceHistory": [{"SpotPrice": "0.1"}, {}]}),
    "no types": ("describe_instance_types", {"InstanceTypes": []}),
    "types without a name": ("describe_instance_types", {"InstanceTypes": [{}, {"InstanceType": ""}]}),
    "no zones": ("describe_instance_type_offerings", {"InstanceTypeOfferings": []}),
    "zones of nothing": ("describe_instance_type_offerings", {"InstanceTypeOfferings": [{"Location": "us-east-1a"}, {}]}),
}  # fmt: skip


@pytest.mark.parametrize(("operation", "answer"), ODD.values(), ids=ODD)
def test_a_refresh_that_is_told_nonsense_keeps_what_was_known(world: AwsWorld, operation: str, answer: Answer) -> None:
    changed(world)
    before = world.run(world.provider.instance_types(pool()))
    generation = world.provider.generation(pool())
    world.api.changes[operation] = lambda parameters, known: answer  # type: ignore[attr-defined]

    with suppress(AwsError):  # told, so that it is asked again soon
        world.run(world.provider.refresh())

    assert world.provider.generation(pool()) == generation
    assert world.run(world.provider.instance_types(pool())) == before


def test_a_type_that_cannot_be_read_any_more_is_what_it_was(world: AwsWorld) -> None:
    def odd(parameters: Mapping[str, Any], known: Answer) -> Answer:
        types = [
            {**each, "MemoryInfo": None} if each["InstanceType"] == "m5.large" else each
            for each in known["InstanceTypes"]
        ]
        return {**known, "InstanceTypes": types}

    changed(world)
    before = world.provider.generation(pool())
    world.api.changes["describe_instance_types"] = odd  # type: ignore[attr-defined]
    world.run(world.provider.refresh())

    assert world.provider.generation(pool()) == before
    assert set(world.provider._live.unreadable) == {"m5.large"}


def test_one_price_that_is_none_spoils_no_other(world: AwsWorld) -> None:
    def spoiled(parameters: Mapping[str, Any], known: Answer) -> Answer:
        rows = known["SpotPriceHistory"]
        return {"SpotPriceHistory": [{"InstanceType": "m5.large"}, *rows, {**rows[0], "SpotPrice": "many"}]}

    changed(world)
    before = world.run(world.provider.instance_types(pool()))
    world.api.changes["describe_spot_price_history"] = spoiled  # type: ignore[attr-defined]
    world.run(world.provider.refresh())

    assert world.run(world.provider.instance_types(pool())) == before


def test_a_zone_without_a_spot_price_sells_no_spot_machines_of_the_type(world: AwsWorld) -> None:
    def without(parameters: Mapping[str, Any], known: Answer) -> Answer:
        rows = known["SpotPriceHistory"]
        gone = ("m5.large", "us-east-1b")
        return {"SpotPriceHistory": [each for each in rows if (each["InstanceType"], each["AvailabilityZone"]) != gone]}

    changed(world, describe_spot_price_history=without)
    world.run(world.provider.refresh())

    zones = {each.offering.zone for each in options(world, "spot", "m5.large")}
    assert zones == {f"us-east-1{zone}" for zone in "acdf"} | zones - {"us-east-1b"}
    assert "us-east-1b" in {each.offering.zone for each in options(world, "on-demand", "m5.large")}


# -- launches ----------------------------------------------------------------------------------------------------------------


def test_answers_that_name_templates_by_their_id_are_understood(world: AwsWorld) -> None:
    world.reserve("cr-1", type="m5.large", zone="us-east-1a")
    world.reserve("cr-2", type="c5.large", zone="us-east-1b", elsewhere=2)
    world.put(capacityReservationSelectorTerms=[{"ownerID": "123456789012"}])
    world.account.reservations["cr-2"].elsewhere = 0
    world.look()
    given = options(world, "reserved")
    world.account.reservations["cr-2"].elsewhere = 2  # another cluster was faster

    made = buy(world, claim(), given)

    assert made.labels["karpenter.k8s.aws/capacity-reservation-id"] == "cr-1"
    assert made.image_id in {each.id for each in world.classes["default"].status.amis}
    assert (world.provider.account.left("cr-1"), world.provider.account.left("cr-2")) == (1, 0)


def test_a_machine_whose_launch_was_not_answered_takes_its_place_in_the_reservation(world: AwsWorld) -> None:
    world.reserve()
    given = reserved(world)
    fails(world, "create_fleet", "Unreachable", after=True)
    with pytest.raises(Transient):
        buy(world, claim(), given)
    heals(world)
    world.forward(timedelta(seconds=5))

    buy(world, claim(), given)
    world.run(world.provider.list())

    assert world.provider.account.left("cr-1") == 1


def test_a_reservation_that_is_full_of_a_machine_that_no_list_shows_is_no_shortage(world: AwsWorld) -> None:
    """A claim that is told of a shortage is given up, and the machine would be there for no claim."""
    world.reserve(count=1)
    given = reserved(world)
    world.account.timing.shows = 30.0
    fails(world, "create_fleet", "Unreachable", after=True)
    with pytest.raises(Transient):
        buy(world, claim(), given)
    heals(world)
    world.look()
    assert world.provider.account.left("cr-1") == 0
    with pytest.raises(Transient, match="earlier launch"):
        buy(world, claim(), given)
    world.forward(timedelta(seconds=30))

    assert buy(world, claim(), given).provider_id in {each.provider_id for each in world.account.machines.values()}
    assert len(world.account.machines) == 1


def test_claims_that_found_nothing_are_not_remembered_for_ever(world: AwsWorld) -> None:
    tokens = Tokens(world.clock)
    for number in range(12_000):
        tokens.answered(f"uid-{number}")

    assert len(tokens._claims) == 10_000
    assert (tokens.of("uid-0"), tokens.of("uid-11999")) == ("uid-0", "uid-11999-1")


def test_a_launch_without_an_answer_is_in_doubt_for_as_long_as_lists_may_be_behind(world: AwsWorld) -> None:
    tokens = Tokens(world.clock)
    tokens.unanswered("uid")
    assert tokens.is_open("uid")
    assert tokens.of("uid") == "uid"
    world.forward(timedelta(seconds=UNLISTED_S))

    assert not tokens.is_open("uid")


def test_the_tokens_of_machines_that_have_ended_are_not_used_again(world: AwsWorld) -> None:
    """EC2 would answer with a machine that has ended. Of a claim in another process only its machines tell."""
    tokens = Tokens(world.clock)
    tokens.ended("uid", 2)
    assert tokens.of("uid") == "uid-2"
    tokens.ended("uid", 1)
    tokens.ended("another", 0)

    assert (tokens.of("uid"), tokens.of("another")) == ("uid-2", "another")


def test_a_token_whose_machine_was_ended_meanwhile_is_given_up(world: AwsWorld) -> None:
    given = options(world, "on-demand", "m5.large")
    fails(
        world, "create_fleet", "IdempotentInstanceTerminated", message="the instance of the token has been terminated"
    )
    with pytest.raises(Transient):
        buy(world, claim(), given)
    heals(world)
    buy(world, claim(), given)

    first, second = (each["ClientToken"] for each in world.asked("create_fleet"))
    assert first != second


def test_a_machine_that_died_before_its_launch_was_answered_is_not_told_again(world: AwsWorld) -> None:
    given = options(world, "on-demand", "m5.large")
    fails(world, "create_fleet", "Unreachable", after=True)
    with pytest.raises(Transient):
        buy(world, claim(), given)
    heals(world)
    (dead,) = world.account.machines.values()
    world.cloud.machines.vanish(dead.provider_id)

    made = buy(world, claim(), given)

    assert made.provider_id != dead.provider_id
    assert world.run(world.provider.get(made.provider_id)).claim_uid == "uid-a"


def test_a_machine_that_no_list_shows_yet_is_believed(world: AwsWorld) -> None:
    """The second call of a claim has an answer of EC2 in its hands; that lists are behind makes it no dead machine."""
    given = options(world, "on-demand", "m5.large")
    world.account.timing.shows = 60.0
    fails(world, "create_fleet", "Unreachable", after=True)
    with pytest.raises(Transient):
        buy(world, claim(), given)
    heals(world)

    made = buy(world, claim(), given)

    assert [each.provider_id for each in world.account.machines.values()] == [made.provider_id]


def test_nothing_is_launched_that_could_not_join(world: AwsWorld) -> None:
    """A process that was just started, and cannot ask EKS yet, knows neither endpoint nor certificates."""
    world.put(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="Bottlerocket")
    given = options(world, "on-demand", "m5.large")
    fails(world, "describe_cluster", "ThrottlingException")
    other = world.connect()
    world.run(other.refresh())
    with pytest.raises(Transient, match="EKS"):
        world.run(other.create(claim(), given))
    assert world.account.machines == {}
    heals(world)

    made = world.run(other.create(claim(), given))

    assert made.annotations["karpenter.k8s.aws/ec2nodeclass-hash"]


def test_a_class_that_is_being_deleted_launches_nothing_more(world: AwsWorld) -> None:
    given = options(world, "on-demand", "m5.large")
    known = world.classes["default"]
    gone = replace(known, metadata=replace(known.metadata, deletion_timestamp=world.clock.now()))
    world.classes["default"] = gone

    with pytest.raises(NodeClassNotReady, match="deleted"):
        buy(world, claim(), given)

    assert world.account.machines == {}


def test_a_type_without_a_price_is_bought_at_the_price_of_an_overlay(world: AwsWorld) -> None:
    world.put(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="AL2023")
    inventory = world.provider._live
    del inventory._on_demand["r5.large"]
    inventory._moved()
    assert options(world, "on-demand", "r5.large") == []
    spec = {"requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["r5.large"]}], "price": "0.05"}
    overlay = decode({"metadata": {"name": "priced"}, "spec": spec}, NodeOverlay)
    catalogs = Catalogs(world.provider, lambda: Adjustments(overlays=(overlay,)), world.clock)
    wanted = claim(requirements=[{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}])
    catalog = world.run(catalogs.get(pool()))
    best = launchoptions.options(catalog, launchoptions.requirements_of(wanted, world.provider.vocabulary()), {})

    made = buy(world, wanted, [each for each in best if each.name in ("r5.large", "m5.large")])

    assert made.labels[labels.INSTANCE_TYPE] == "r5.large"
    assert world.asked("create_fleet")[0]["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}


# -- machines ----------------------------------------------------------------------------------------------------------------


def test_a_storm_of_throttling_makes_no_more_calls(world: AwsWorld) -> None:
    ids = machines(world, 10)
    fails(world, "terminate_instances", "RequestLimitExceeded")

    async def end() -> list[Any]:
        return await asyncio.gather(*(world.provider.delete(each) for each in ids), return_exceptions=True)

    assert all(isinstance(each, Transient) for each in world.run(end()))
    assert len(world.asked("terminate_instances")) == 1


def test_a_state_that_is_not_known_is_no_end(world: AwsWorld) -> None:
    (one,) = machines(world, 1)

    def hibernating(parameters: Mapping[str, Any], answer: Answer) -> Answer:
        groups = [
            {"Instances": [{**each, "State": {"Name": "hibernating"}} for each in group["Instances"]]}
            for group in answer["Reservations"]
        ]
        return {**answer, "Reservations": groups}

    changed(world, describe_instances=hibernating)

    assert world.run(world.provider.get(one)).provider_id == one
    world.run(world.provider.delete(one))
    assert len(world.asked("terminate_instances")) == 1


def test_no_call_names_more_machines_than_ec2_takes(world: AwsWorld) -> None:
    made = AwsWorld()
    count = 1100
    for number in range(count):
        made.account.machines[f"i-{number:017x}"] = None  # type: ignore[assignment]

    async def end() -> list[Any]:
        asked = (made.provider._machines._ended.about(f"i-{number:017x}") for number in range(count))
        return await asyncio.gather(*asked, return_exceptions=True)

    fails(made, "terminate_instances", "RequestLimitExceeded")
    made.run(end())

    assert max(len(each["InstanceIds"]) for each in made.asked("terminate_instances")) <= 500
    made.close()


def test_a_reservation_that_is_over_is_no_drift_although_its_machines_say_they_are_in_it(world: AwsWorld) -> None:
    """EC2 takes machines out of a reservation that is over one by one: what it tells of them may be behind."""
    world.reserve()
    given = reserved(world)
    made = buy(world, claim(), given)
    inside = {"CapacityReservationId": "cr-1"}

    def behind(parameters: Mapping[str, Any], answer: Answer) -> Answer:
        groups = [
            {"Instances": [{**each, **inside} for each in group["Instances"]]} for group in answer["Reservations"]
        ]
        return {**answer, "Reservations": groups}

    world.forward(timedelta(minutes=1))
    changed(world, describe_instances=behind)
    wanted = replace(claim(), status=replace(claim().status, provider_id=made.provider_id))
    assert world.run(world.provider.drift_reason(wanted)) == ""

    world.account.reservations["cr-1"].cancelled = True
    world.look()
    assert world.run(world.provider.drift_reason(wanted)) == ""

    world.account.reservations["cr-1"].cancelled = False
    world.put(capacityReservationSelectorTerms=[{"instanceType": "c5.large"}])
    assert world.run(world.provider.drift_reason(wanted)) == "CapacityReservationDrift"


# -- the class ---------------------------------------------------------------------------------------------------------------


def test_an_instance_profile_that_was_deleted_is_made_again(world: AwsWorld) -> None:
    name = world.classes["default"].status.instance_profile
    del world.account.profiles[name]
    world.forward(timedelta(minutes=16))
    world.look()

    assert world.account.profiles[name]["Roles"][0]["RoleName"] == "nodes"


def test_a_role_that_was_deleted_makes_the_class_not_ready(world: AwsWorld) -> None:
    name = world.classes["default"].status.instance_profile
    world.account.profiles[name]["Roles"] = []
    world.account.roles.clear()
    world.forward(timedelta(minutes=16))

    found = find(world.look().status.conditions, "InstanceProfileReady")

    assert found is not None
    assert (found.status, found.reason) == ("False", "RoleNotFound")


@pytest.mark.parametrize("code", [
    "ExpiredToken", "ExpiredTokenException", "RequestExpired", "AuthFailure", "InvalidClientTokenId",
    "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException", "RequestTimeTooSkewed",
    "IncompleteSignature", "MissingAuthenticationToken", "OptInRequired",
])  # fmt: skip
def test_credentials_and_clocks_that_aws_does_not_accept_are_told_as_such(world: AwsWorld, code: str) -> None:
    fails(world, "describe_subnets", code)
    found = find(world.look().status.conditions, "SubnetsReady")

    assert found is not None
    assert (found.status, found.reason) == ("False", "Unauthorized")
    assert "credentials" in found.message


def test_checks_of_machines_go_on_once_there_are_credentials_again(world: AwsWorld) -> None:
    (one,) = machines(world, 1)
    status = InstanceStatus(world.face, world.clock, Counts())
    fails(world, "describe_instance_status", "ExpiredToken")
    with pytest.raises(CloudError):
        world.run(status.poll())
    heals(world)
    world.forward(timedelta(seconds=10))
    world.account.checks[one.rpartition("/")[2]] = {"Events": [{"Code": "instance-stop"}]}

    assert [each.kind for each in world.run(status.poll())] == ["event_status"]


def test_a_permission_that_was_given_is_noticed_in_five_minutes_and_credentials_at_once() -> None:
    world = AwsWorld(disable_dry_run=False)

    def reason() -> str:
        found = find(world.classes["default"].status.conditions, "ValidationSucceeded")
        assert found is not None
        return found.reason

    fails(world, "create_fleet", "UnauthorizedOperation")
    world.put()
    assert reason() == "CreateFleetAuthCheckFailed"
    heals(world)
    world.forward(timedelta(minutes=1))
    world.look()
    assert reason() == "CreateFleetAuthCheckFailed"
    world.forward(timedelta(minutes=5))
    world.look()
    assert reason() == "ValidationSucceeded"
    fails(world, "create_fleet", "ExpiredToken")
    world.put(userData="#!/bin/sh")
    assert reason() == "Unauthorized"
    heals(world)
    world.look()
    assert reason() == "ValidationSucceeded"
    world.close()


def test_one_machine_in_a_reservation_counts_once_whoever_tells_of_it(world: AwsWorld) -> None:
    world.reserve()
    given = reserved(world)
    made = buy(world, claim(), given)
    world.run(world.provider.list())
    assert world.provider.account.left("cr-1") == 1
    world.run(world.provider.delete(made.provider_id))
    world.forward(timedelta(seconds=20))
    for _ in range(2):
        with pytest.raises(InstanceNotFound):
            world.run(world.provider.delete(made.provider_id))
    assert world.provider.account.left("cr-1") == 2
    assert made.labels[labels.CAPACITY_TYPE] == labels.RESERVED


def test_the_place_of_a_machine_that_ended_before_ec2_told_the_count_is_not_counted_again(world: AwsWorld) -> None:
    world.reserve()
    made = buy(world, claim(), reserved(world))
    world.run(world.provider.delete(made.provider_id))
    world.forward(timedelta(seconds=20))
    world.account.reservations["cr-1"].elsewhere = 1
    world.look()
    assert world.provider.account.left("cr-1") == 1
    with pytest.raises(InstanceNotFound):
        world.run(world.provider.delete(made.provider_id))
    assert world.provider.account.left("cr-1") == 1
