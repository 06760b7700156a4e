"""The pretend AWS over the wire: what botocore writes is read back, and what we write botocore reads, in every protocol."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from tools.pretendaws import wire
from tools.pretendaws.server import REGION, PretendAws

KEYS = {"aws_access_key_id": "pretended", "aws_secret_access_key": "pretended"}
FLEET: dict[str, Any] = {
    "Type": "instant",
    "ClientToken": "uid",
    "LaunchTemplateConfigs": [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": "abc", "Version": "$Latest"},
            "Overrides": [
                {"InstanceType": "m5.large", "SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a", "Priority": 0.0},
                {"InstanceType": "c5.large", "SubnetId": "subnet-2", "AvailabilityZone": "us-east-1b", "Priority": 1.0},
            ],
        }
    ],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
    "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "<b&c>"}]}],
}
FILTERS = [{"Name": "tag:a", "Values": ["b", "c"]}, {"Name": "tag-key", "Values": ["d"]}]
REQUESTS: dict[tuple[str, str], dict[str, Any]] = {
    ("ec2", "create_fleet"): FLEET,
    ("ec2", "describe_instances"): {"Filters": FILTERS, "MaxResults": 1000},
    ("ec2", "create_launch_template"): {
        "LaunchTemplateName": "abc",
        "ClientToken": "uid",
        "LaunchTemplateData": {"UserData": "Zm9v", "Monitoring": {"Enabled": False}, "TagSpecifications": []},
    },
    ("ec2", "describe_spot_price_history"): {"StartTime": datetime(2030, 1, 1, tzinfo=UTC)},
    ("iam", "create_instance_profile"): {
        "InstanceProfileName": "a",
        "Path": "/x/",
        "Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}],
    },
    ("sqs", "receive_message"): {"QueueUrl": "https://a/b/c", "WaitTimeSeconds": 1, "MaxNumberOfMessages": 10},
    ("ssm", "get_parameter"): {"Name": "/a/b"},
    ("eks", "describe_cluster"): {"name": "prod"},
    ("pricing", "get_products"): {"ServiceCode": "AmazonEC2", "Filters": []},
}
ANSWERS: dict[tuple[str, str], dict[str, Any]] = {
    ("ec2", "create_fleet"): {
        "FleetId": "fleet-1",
        "Errors": [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "a < b & c", "Lifecycle": "on-demand"}],
        "Instances": [{"InstanceIds": ["i-1", "i-2"], "InstanceType": "m5.large", "Lifecycle": "on-demand"}],
    },
    ("ec2", "describe_instances"): {
        "Reservations": [
            {
                "Instances": [
                    {
                        "InstanceId": "i-1",
                        "LaunchTime": datetime(2030, 1, 1, tzinfo=UTC),
                        "State": {"Name": "running"},
                        "EbsOptimized": True,
                        "Tags": [{"Key": "a", "Value": "b"}],
                    }
                ]
            }
        ],
        "NextToken": "t",
    },
    ("iam", "list_instance_profiles"): {
        "InstanceProfiles": [
            {
                "Path": "/", "InstanceProfileName": "a", "InstanceProfileId": "b", "Arn": "c",
                "CreateDate": datetime(2030, 1, 1, tzinfo=UTC), "Roles": [],
            }
        ],
        "IsTruncated": False,
    },
    ("sqs", "receive_message"): {"Messages": [{"MessageId": "a", "ReceiptHandle": "b", "Body": "{}"}]},
    ("ssm", "get_parameter"): {"Parameter": {"Name": "a", "Value": "b"}},
    ("eks", "describe_cluster"): {"cluster": {"name": "prod", "version": "1.33"}},
    ("pricing", "get_products"): {"PriceList": ["{}"]},
}  # fmt: skip


class _Sent(Exception):
    """Nothing goes over a wire here."""


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION, endpoint_url="http://127.0.0.1:9", **KEYS)


@pytest.mark.parametrize("what", REQUESTS, ids="-".join)
def test_a_request_that_botocore_writes_is_read_back(what: tuple[str, str]) -> None:
    service, operation = what
    sent: list[Any] = []

    def catch(request: Any, **_: Any) -> None:
        sent.append(request)
        raise _Sent

    using = client(service)
    using.meta.events.register("before-send", catch)
    with pytest.raises(_Sent):
        getattr(using, operation)(**REQUESTS[what])
    [request] = sent
    headers = {key: value.decode() if isinstance(value, bytes) else value for key, value in request.headers.items()}
    body = request.body or b""
    path = request.url.partition("127.0.0.1:9")[2].partition("?")[0]
    found = wire.read(request.method, path, headers, body.encode() if isinstance(body, str) else body)

    assert (found.service, found.name) == what
    assert _full(found.parameters) == _full(REQUESTS[what])


def _full(value: Any) -> Any:
    """Without empty lists, which forms do not have."""
    if isinstance(value, dict):
        return {key: _full(each) for key, each in value.items() if each != []}
    return [_full(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("what", ANSWERS, ids="-".join)
def test_botocore_reads_an_answer_back(what: tuple[str, str]) -> None:
    service, operation = what
    using = client(service)
    name = using.meta.method_to_api_mapping[operation]
    reply = wire.write(wire.Request(service, wire.model(service).operation_model(name), {}), ANSWERS[what])

    def answered(**_: Any) -> Any:
        from botocore.awsrequest import AWSResponse

        class Raw:
            def stream(self, *_: Any) -> Iterator[bytes]:
                yield reply.body.encode()

        return AWSResponse("http://127.0.0.1:9", reply.status, {"content-type": reply.content, **reply.headers}, Raw())

    using.meta.events.register("before-send", answered)
    found = getattr(using, operation)(**REQUESTS.get(what, {}))
    found.pop("ResponseMetadata")

    assert found == ANSWERS[what]


@pytest.fixture(scope="module")
def aws() -> Iterator[PretendAws]:
    with PretendAws(types=("c5.large", "m5.large")) as server:
        yield server


CODES = [
    ("ec2", "describe_instances", {"InstanceIds": ["i-1"]}, "InvalidInstanceID.NotFound"),
    ("iam", "get_instance_profile", {"InstanceProfileName": "none"}, "NoSuchEntity"),
    ("ssm", "get_parameter", {"Name": "none"}, "ParameterNotFound"),
    ("sqs", "get_queue_url", {"QueueName": "none"}, "AWS.SimpleQueueService.NonExistentQueue"),
    ("eks", "describe_cluster", {"name": "none"}, "ResourceNotFoundException"),
    ("ec2", "run_instances", {"MinCount": 1, "MaxCount": 1, "DryRun": True}, "DryRunOperation"),
]


@pytest.mark.parametrize(("service", "operation", "parameters", "code"), CODES, ids=[each[3] for each in CODES])
def test_errors_have_the_codes_of_aws(
    aws: PretendAws, service: str, operation: str, parameters: dict[str, Any], code: str
) -> None:
    using = boto3.client(service, region_name=REGION, endpoint_url=aws.url, **KEYS)

    with pytest.raises(ClientError) as caught:
        getattr(using, operation)(**parameters)

    assert caught.value.response["Error"]["Code"] == code


def test_types_come_in_pages_and_prices_as_json(aws: PretendAws) -> None:
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=aws.url, **KEYS)
    pages = list(ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 5}))
    names = [each["InstanceType"] for page in pages for each in page["InstanceTypes"]]
    pricing = boto3.client("pricing", region_name=REGION, endpoint_url=aws.url, **KEYS)
    shared = [{"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"}]
    listed = pricing.get_products(ServiceCode="AmazonEC2", Filters=shared)["PriceList"]

    assert names == ["c5.large", "m5.large"]
    assert [json.loads(each)["product"]["attributes"]["instanceType"] for each in listed] == names
