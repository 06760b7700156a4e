"""What is asked of AWS: one call by name, with the parameters and answers that AWS itself defines.

`boto.py` asks AWS, `joiner.sim.cloud.ec2` answers in its place. Codes of errors are AWS's own.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from joiner.cloud.errors import CloudError, LaunchFailed, Transient

Answer = Mapping[str, Any]


class AwsError(Exception):
    """AWS said no."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class AwsApi(Protocol):
    """A way to call AWS."""

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        """The answer to one call (`ec2`, `create_fleet`). Raises `AwsError`."""
        ...


NOT_FOUND: Final = frozenset({
    "InvalidCapacityReservationId.NotFound", "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed",
    "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound", "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue", "NoSuchEntity", "ParameterNotFound", "InvalidPlacementGroup.Unknown",
})  # fmt: skip
ALREADY_EXISTS: Final = frozenset({
    "EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException",
})  # fmt: skip
UNFULFILLABLE: Final = frozenset({
    "InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity",
    "Unsupported", "InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
})  # fmt: skip
"""What a fleet says when there is no capacity, or none for this account."""
UNREADABLE: Final = "UnreadableAnswer"
"""Our own code for an answer that makes no sense."""
THROTTLED: Final = frozenset({
    UNREADABLE, "RequestLimitExceeded", "RequestThrottled", "Throttling", "ThrottlingException", "TooManyRequestsException",
    "InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "Unreachable", "RequestTimeout",
})  # fmt: skip
"""What is worth asking again: too many requests, or AWS is not well."""
EXPIRED: Final = frozenset({
    "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "AuthFailure",
    "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException",
    "IncompleteSignature", "MissingAuthenticationToken", "OptInRequired",
})  # fmt: skip
"""AWS does not know who is asking, or not any more, or the clocks differ too much."""
MISMATCH: Final = "IdempotentParameterMismatch"
USED_UP: Final = "IdempotentInstanceTerminated"
"""The machine of a token was ended."""
NO_SPOT_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

_REASONS: Final = (
    (NO_SPOT_ROLE, "SpotSLRCreationFailed"),
    ("permissions boundary", "InsufficientPermissionBoundary"),
    ("service control policy", "UnauthorizedBySCP"),
    ("Not authorized for images", "AMIAuthorizationFailure"),
    ("not authorized to perform", "Unauthorized"),
    ("UnauthorizedOperation", "Unauthorized"),
    ("AccessDenied", "Unauthorized"),
    ("AuthFailure", "Unauthorized"),
    ("are in different networks", "SecurityGroupSubnetVPCMismatch"),
    ("Invalid IAM Instance Profile", "InstanceProfileNameInvalid"),
    ("InvalidLaunchTemplateName.NotFound", "LaunchTemplateNotFound"),
    ("User data is limited", "UserDataSizeLimitExceeded"),
    ("InvalidAMIID.Malformed", "InvalidAMIID"),
    ("InvalidAMIID.NotFound", "AMINotFound"),
    ("RequestLimitExceeded", "RequestLimitExceeded"),
    ("InternalError", "InternalError"),
    ("eligible for Free Tier", "FreeTierIneligible"),
    ("Fleet quota", "FleetQuotaExceeded"),
    ("PendingVerification", "AccountPendingVerification"),
    ("MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"),
    ("VcpuLimitExceeded", "VCPULimitExceeded"),
    ("InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"),
)
"""A part of the message to the reason that is shown on the claim; the first that fits counts."""


def reason_of(code: str, message: str) -> str:
    """Why a launch failed, in one word."""
    text = f"{code}: {message}"
    return next((reason for part, reason in _REASONS if part in text), "LaunchFailed")


def is_denied(error: AwsError) -> bool:
    """Whether AWS does not let us, rather than not now."""
    return error.code in EXPIRED or any(word in error.code for word in ("Unauthorized", "AccessDenied", "AuthFailure"))


def told(error: AwsError, doing: str) -> CloudError:
    """The error as controllers know it: worth asking again, or to be shown."""
    if error.code in THROTTLED:
        return Transient(f"{doing}: {error}")
    if error.code in EXPIRED:
        return LaunchFailed("Unauthorized", f"{doing}: {error}; check the credentials and the clock of this process")
    return LaunchFailed(reason_of(error.code, error.message), f"{doing}: {error}")


async def pages(api: AwsApi, service: str, operation: str, key: str, /, **parameters: Any) -> list[Any]:
    """The whole list that an operation gives page by page."""
    found: list[Any] = []
    token: dict[str, str] = {}
    seen: set[str] = set()
    while True:
        answer = await api.call(service, operation, **parameters, **token)
        found.extend(answer.get(key) or ())
        if answer.get("NextToken"):
            token = {"NextToken": answer["NextToken"]}
        elif answer.get("IsTruncated") and answer.get("Marker"):  # as IAM does it
            token = {"Marker": answer["Marker"]}
        else:
            return found
        if seen.issuperset(token.values()):
            raise AwsError(UNREADABLE, f"{operation} gave the same page again")
        seen.update(token.values())


class ReadOnly:
    """An API of which only the reading half is used, for dry runs: what would be changed is taken for done."""

    def __init__(self, api: AwsApi) -> None:
        self._api = api

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        """The answer to a question; nothing for everything else."""
        if not operation.startswith(("describe_", "get_", "list_")):
            return {}
        try:
            return await self._api.call(service, operation, **parameters)
        except AwsError as error:
            if operation == "get_instance_profile" and error.code in NOT_FOUND:
                return {"InstanceProfile": {"Roles": []}}  # it would have been made just now
            raise
