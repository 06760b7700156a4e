"""The requests of the stories about capacity reservations, one story for each goal, are accepted by moto's server through boto3.

moto has no prices and no machines that can run out; what becomes of an accepted launch is shown by the stories themselves.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import boto3
import pytest
from tests.contract import motoextended

from joiner.cloud.aws.api import ALREADY_EXISTS, Answer, AwsError
from joiner.cloud.aws.boto import BotoApi
from joiner.sim.cloud.ec2 import door
from joiner.sim.cloud.ec2.face import Ec2Face
from joiner.sim.story.document.format import read
from joiner.sim.story.player import play
from joiner.sim.trace import Trace

STORIES = Path(__file__).parents[1] / "stories"
GOALS = sorted(STORIES.glob("aws-goal-*.yaml"))
REGION = "us-east-1"
WITHOUT = {"pricing"}  # moto has no such service
OWN = {"ClientToken", "StartTime", "ReceiptHandle"}
"""What makes each request another one."""


SHORT = {"aws-goal-01-targeted-and-open", "aws-goal-08-fallback-to-on-demand"}
"""The stories whose requests are many sorts of requests together."""
LARGE = {"describe_instance_types", "describe_instance_type_offerings", "describe_spot_price_history"}
"""What moto answers with all that a region has, whoever asks: one story asks, among those that take long."""


class Asked(NamedTuple):
    """A request of a story, and what the pretend account made of it."""

    service: str
    operation: str
    parameters: dict[str, Any]
    answer: Answer
    code: str
    """Of the error, if it was refused."""


class Recording(Ec2Face):
    """Remembers what was asked and answered."""

    heard: list[Asked]

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        answer: Answer = {}
        code = ""
        try:
            answer = await super().call(service, operation, **parameters)
        except AwsError as error:
            code = error.code
            raise
        finally:
            self.heard.append(Asked(service, operation, parameters, answer, code))
        return answer


def asked_in(path: Path, patch: pytest.MonkeyPatch) -> list[Asked]:
    """The requests of a story, each only once."""
    heard: list[Asked] = []
    patch.setattr(door, "Ec2Face", type("Heard", (Recording,), {"heard": heard}))
    play(read(path.read_text(encoding="utf-8"), path.name, path.parent), seed=1, trace=Trace())
    found: dict[str, Asked] = {}
    for each in heard:
        if each.code in ALREADY_EXISTS:
            continue  # two launches at once make one template: which of them is told so is chance
        kept = {key: value for key, value in each.parameters.items() if key not in OWN}
        found.setdefault(json.dumps([each.service, each.operation, kept], sort_keys=True, default=str), each)
    return list(found.values())


class Moto:
    """The account at moto that has what the account of a story has, under names that moto chose."""

    def __init__(self, endpoint: str, known: motoextended.Extension) -> None:
        self._endpoint, self._known = endpoint, known
        self._names: dict[str, str] = {}
        self._clients: dict[str, Any] = {}
        self.api = BotoApi(REGION, endpoint)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(service, region_name=REGION, endpoint_url=self._endpoint)
        return self._clients[service]

    def prepare(self, heard: list[Asked]) -> None:
        """What was there before the story began, and nothing else."""
        with urlopen(Request(f"{self._endpoint}/moto-api/reset", method="POST")):
            self._names.clear()
        ec2, tags = self.client("ec2"), [{"Key": "karpenter.sh/discovery", "Value": "prod"}]
        of_zone = {each["AvailabilityZone"]: each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]}
        images = {
            architecture: ec2.describe_images(
                Filters=[{"Name": "architecture", "Values": [architecture]}], Owners=["amazon"]
            )["Images"][0]["ImageId"]
            for architecture in ("x86_64", "arm64")
        }
        for each in heard:
            for subnet in each.answer.get("Subnets") or ():
                self._names[subnet["SubnetId"]] = of_zone[subnet["AvailabilityZone"]]
            for group in each.answer.get("SecurityGroups") or ():
                self._names[group["GroupId"]] = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
            for image in each.answer.get("Images") or ():
                self._names[image["ImageId"]] = images[image["Architecture"]]
            for reservation in each.answer.get("CapacityReservations") or ():
                self._known.reservations[reservation["CapacityReservationId"]] = reservation
        for each in heard:
            if each.operation == "get_parameter" and not each.code:
                value = self._renamed(each.answer["Parameter"]["Value"])
                self._known.parameters[each.parameters["Name"]] = value
        ec2.create_tags(Resources=[*of_zone.values(), *self._groups()], Tags=tags)
        self._make("iam", "create_role", RoleName="nodes", AssumeRolePolicyDocument="{}")
        self._make(
            "eks", "create_cluster", name="prod", version="1.33", roleArn="arn:aws:iam::123456789012:role/eks",
            resourcesVpcConfig={},
        )  # fmt: skip
        self._url = self.client("sqs").create_queue(QueueName=door.QUEUE)["QueueUrl"]

    def _groups(self) -> set[str]:
        return {new for old, new in self._names.items() if old.startswith("sg-")}

    def _make(self, service: str, operation: str, **parameters: Any) -> None:
        client = self.client(service)
        try:
            getattr(client, operation)(**parameters)
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in ("EntityAlreadyExists", "ResourceInUseException"):
                raise

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._names.get(value, value)
        if isinstance(value, list | tuple):
            return [self._renamed(each) for each in value]
        if isinstance(value, dict):
            return {key: self._renamed(each) for key, each in value.items()}
        return value

    def ask(self, request: Asked) -> str:
        """The code with which moto refuses a request; empty if it accepts it."""
        parameters = self._renamed(request.parameters)
        if "QueueUrl" in parameters:
            parameters["QueueUrl"] = self._url
            self.client("sqs").send_message(QueueUrl=self._url, MessageBody="{}")  # so that no poll is long
        if "ReceiptHandle" in parameters:
            (message,) = self.client("sqs").receive_message(QueueUrl=self._url)["Messages"]
            parameters["ReceiptHandle"] = message["ReceiptHandle"]
        try:
            answer = asyncio.run(self.api.call(request.service, request.operation, **parameters))
        except AwsError as error:
            return error.code
        for before, after in zip(_instances(request.answer), _instances(answer), strict=False):
            self._names[before] = after
        return ""


def _instances(answer: Answer) -> list[str]:
    return [name for each in answer.get("Instances") or () for name in each.get("InstanceIds") or ()]


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    patch = pytest.MonkeyPatch()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "testing")
    with motoextended.server() as (endpoint, known):
        made = Moto(endpoint, known)
        yield made
        made.api.close()
    patch.undo()


def test_there_is_a_story_for_each_goal() -> None:
    assert {path.stem.split("-")[2] for path in GOALS} == {f"{number:02}" for number in range(1, 11)}


@pytest.mark.parametrize(
    "path",
    [pytest.param(each, id=each.stem, marks=() if each.stem in SHORT else pytest.mark.soak) for each in GOALS],
)
def test_moto_accepts_what_a_goal_asks_for(path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = LARGE if path != GOALS[1] else set()
    heard = [
        each for each in asked_in(path, monkeypatch) if each.service not in WITHOUT and each.operation not in left_out
    ]
    moto.prepare(heard)

    refused = [(each.operation, each.code, code) for each in heard if (code := moto.ask(each)) != each.code]

    assert refused == []
    assert {"create_launch_template", "create_fleet"} <= {each.operation for each in heard}
