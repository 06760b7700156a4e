"""The one file that knows boto3: calls run on a few threads of their own, so that the event loop goes on.

Credentials come by the SDK's own chain. Parameters and answers are never logged: user data and certificates are among them.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from joiner.cloud.aws.api import Answer, AwsError
from joiner.cloud.errors import CloudError

THREADS: Final = 16
_READ_TIMEOUT_S: Final = 30
"""Longer than the longest poll of a queue, which is 20 seconds."""
_LONG_POLLS: Final = frozenset({"receive_message"})
_NO_CREDENTIALS: Final = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "TokenRetrievalError",
    "FileNotFoundError",
    "PermissionError",
)
"""Errors by name; the last two are about the file of a token that is not mounted, or not yet."""


class BotoApi:
    """AWS through boto3."""

    def __init__(self, region: str, endpoint_url: str = "") -> None:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ModuleNotFoundError:
            raise CloudError("the aws provider needs boto3: install joiner[aws]") from None
        try:
            self._session = boto3.session.Session(region_name=region or None)
        except BotoCoreError as error:
            raise CloudError(
                f"boto3 cannot begin: {error}; check AWS_PROFILE and the files of the AWS command line"
            ) from None
        self.region = self._session.region_name or ""
        self._endpoint_url = endpoint_url or None
        self._config = Config(
            retries={"mode": "adaptive", "max_attempts": 5},
            max_pool_connections=THREADS,
            read_timeout=_READ_TIMEOUT_S,
            connect_timeout=5,
            user_agent_extra="joiner",
        )
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aws")
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        """One call, on a thread."""
        if operation in _LONG_POLLS:
            return await self._poll(service, operation, parameters)
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._ask(service, operation, parameters)
        )

    async def _poll(self, service: str, operation: str, parameters: dict[str, Any]) -> Answer:
        """A call that waits on the other side, on a daemon thread: it must not keep the process from ending."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer, error: Exception | None) -> None:
            if answered.done():
                return  # the caller has gone
            if error is not None:
                answered.set_exception(error)
            else:
                answered.set_result(answer)

        def ask() -> None:
            answer: Answer = {}
            failure: Exception | None = None
            try:
                answer = self._ask(service, operation, parameters)
            except Exception as error:  # raised where the answer is awaited
                failure = error
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, answer, failure)

        threading.Thread(target=ask, name="aws poll", daemon=True).start()
        return await answered

    def _ask(self, service: str, operation: str, parameters: dict[str, Any]) -> Answer:
        from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

        try:
            answer: Answer = getattr(self._client(service), operation)(**parameters)
        except ClientError as error:
            told = error.response.get("Error", {})
            raise AwsError(str(told.get("Code", "Unknown")), str(told.get("Message", ""))) from None
        except ParamValidationError as error:
            raise AwsError("InvalidParameter", str(error)) from None
        except (BotoCoreError, OSError, ValueError) as error:
            code = "AuthFailure" if type(error).__name__ in _NO_CREDENTIALS else "Unreachable"
            raise AwsError(code, str(error)) from None
        return answer

    def _client(self, service: str) -> Any:
        """Clients may be used by several threads; making one may not."""
        region = _pricing_region(self.region) if service == "pricing" else self.region
        with self._lock:
            known = self._clients.get((service, region))
            if known is None:
                known = self._clients[service, region] = self._session.client(
                    service, region_name=region, endpoint_url=self._endpoint_url, config=self._config
                )
            return known

    def close(self) -> None:
        """Let the threads end; calls that have not begun are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _pricing_region(region: str) -> str:
    """Where prices are told: not in every region."""
    for prefix, place in (("ap-", "ap-south-1"), ("eu-", "eu-central-1"), ("cn-", "cn-northwest-1")):
        if region.startswith(prefix):
            return place
    return "us-east-1"
