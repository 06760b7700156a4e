"""What boto3 says of an environment it cannot use: an error with its cause, and no traceback."""

import asyncio
from pathlib import Path

import pytest

from joiner.cloud.aws import settings
from joiner.cloud.aws.api import AwsError, is_denied
from joiner.cloud.aws.boto import BotoApi
from joiner.cloud.errors import CloudError

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


def refused(region: str = "us-east-1", endpoint: str = NOWHERE) -> AwsError:
    api = BotoApi(region, endpoint)
    try:
        with pytest.raises(AwsError) as caught:
            asyncio.run(api.call("ec2", "describe_subnets"))
    finally:
        api.close()
    return caught.value


TOKENS: dict[str, dict[str, str]] = {
    "no credentials": {},
    "IAM roles for service accounts": {
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent/token", "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/joiner"
    },
    "EKS Pod Identity": {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/nonexistent/token",
    },
}  # fmt: skip


@pytest.mark.parametrize("variables", TOKENS.values(), ids=TOKENS)
def test_without_credentials_or_the_file_of_a_token_aws_is_not_asked(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert is_denied(refused())


@pytest.mark.parametrize("region", ["us east 1", "-"])
def test_a_region_that_is_none_is_told(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")

    assert "region" in str(refused(region, ""))


def test_a_profile_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_PROFILE", "work")

    with pytest.raises(CloudError, match=r"work.*AWS_PROFILE"):
        BotoApi("us-east-1")


@pytest.mark.parametrize("text", ["localhost:4566", "nonsense", "https://", "ftp://aws", "http://a b"])
def test_an_endpoint_that_is_no_address_is_told(text: str) -> None:
    with pytest.raises(CloudError, match="AWS_ENDPOINT_URL"):
        settings.read({"AWS_ENDPOINT_URL": text})
    assert settings.read({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566/x"}).endpoint_url
