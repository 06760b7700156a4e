"""Credential plug-ins of kubeconfigs (client.authentication.k8s.io): a command that prints a token or a certificate."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from joiner.clock import Clock
from joiner.kube.http.access import AccessError, Certificate, Identity
from joiner.kube.http.credentials import Headers, is_token, search_path
from joiner.model.meta import Value

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
EARLY: Final = timedelta(seconds=30)
"""So long before what a plug-in gave expires, it is asked again."""
PATIENCE_S: Final = 60.0
"""How long a plug-in may take."""
PATIENCE_EARLY_S: Final = 5.0
"""The same while what it gave before is still good: requests wait for it, also those about the lease."""
PRINTED_MOST: Final = 1 << 20
"""How much a plug-in may print; credentials are a few kilobytes."""


class _Status(Value):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(Value):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecSpec(Value):
    """The `exec` entry of a kubeconfig user."""

    command: str
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Mapping[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class ExecCredentials:
    """Runs the plug-in when there is nothing valid, or before it expires; one run at a time."""

    def __init__(
        self,
        spec: ExecSpec,
        *,
        folder: Path,
        cluster: Mapping[str, Any],
        clock: Clock,
        environment: Mapping[str, str],
        impersonation: Headers = (),
    ) -> None:
        """`cluster` is what the plug-in is told about the cluster, if it asks for that."""
        if spec.api_version not in VERSIONS:
            raise AccessError(
                f"the credential plug-in {spec.command!r} speaks {spec.api_version or 'no apiVersion'};"
                f" allowed are {' and '.join(VERSIONS)}: update the kubeconfig entry"
            )
        self._spec, self._folder, self._cluster, self._clock = spec, folder, cluster, clock
        self._environment, self._impersonation = environment, impersonation
        self._known: _Status | None = None
        self._last: _Status | None = None
        """What is used to its end, because the plug-in gave nothing new in time."""
        self._running = asyncio.Lock()

    async def identity(self) -> Identity:
        """What the plug-in gave, or gives now."""
        async with self._running:
            known = self._known
            if known is None or self._expires_within(known, timedelta(0)):
                known = self._known = await self._run(PATIENCE_S)
            elif known is not self._last and self._expires_within(known, EARLY):
                try:
                    known = self._known = await self._run(PATIENCE_EARLY_S)
                except AccessError:
                    self._last = known  # it is good until it expires
            return self._as_identity(known)

    def rejected(self) -> bool:
        """Run it again: it may give something else."""
        self._known = None
        return True

    def _expires_within(self, status: _Status, time: timedelta) -> bool:
        return status.expiration_timestamp is not None and self._clock.now() >= status.expiration_timestamp - time

    def _as_identity(self, status: _Status) -> Identity:
        headers = self._impersonation
        if status.token:
            headers = (*headers, ("Authorization", f"Bearer {status.token}"))
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        return Identity(headers, certificate)

    async def _run(self, patience_s: float) -> _Status:
        spec = self._spec
        interactive = spec.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if spec.interactive_mode == "Always" and not interactive:
            raise self._failed(
                "it wants to ask a user, and there is no terminal; run it from one, or use another login"
            )
        command = self._command()
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *spec.args,
                env=self._variables(interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None,
                start_new_session=not interactive,
            )
        except OSError as error:
            raise self._failed(f"it cannot be started: {error.strerror or error}") from None
        except ValueError:
            raise self._failed("it cannot be started with these arguments and variables") from None
        end = partial(_end, process, group=not interactive)
        timer = asyncio.get_running_loop().call_later(patience_s, end)
        try:
            output = await self._printed(process)
            await process.wait()
        except BaseException:
            end()
            await process.wait()
            raise
        finally:
            timer.cancel()
        if process.returncode == -signal.SIGKILL:
            raise self._failed(f"there was no answer within {patience_s:g} s; run it by hand to see why")
        if process.returncode:
            raise self._failed(f"it ended with exit code {process.returncode}; run it by hand to see why")
        return self._read(output)

    async def _printed(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        output = b""
        while piece := await process.stdout.read(1 << 16):
            output += piece
            if len(output) > PRINTED_MOST:
                raise self._failed(f"it printed more than {PRINTED_MOST} bytes; run it by hand to see why")
        return output

    def _command(self) -> str:
        for path in search_path(self._spec.command, self._folder, self._environment):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
        hint = self._spec.install_hint.strip() or "install it, or put it on the PATH"
        raise self._failed(f"there is no such program: {hint}")

    def _variables(self, interactive: bool) -> dict[str, str]:
        about: dict[str, Any] = {"interactive": interactive}
        if self._spec.provide_cluster_info:
            about["cluster"] = dict(self._cluster)
        info = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": about}
        given = {entry["name"]: entry.get("value", "") for entry in self._spec.env if "name" in entry}
        return {**self._environment, **given, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _read(self, output: bytes) -> _Status:
        try:
            said = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.MsgspecError, RecursionError):
            raise self._failed("what it printed is no ExecCredential; run it by hand to see why") from None
        if said.api_version != self._spec.api_version:
            raise self._failed(f"it answers as {said.api_version!r} and the kubeconfig says {self._spec.api_version!r}")
        status = said.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._failed("it gave neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("it gave a certificate without its key, or a key without its certificate")
        if status.token and not is_token(status.token.encode()):
            raise self._failed("it gave a token with characters that no token has")
        if status.expiration_timestamp is not None and status.expiration_timestamp.tzinfo is None:
            raise self._failed("it gave an expirationTimestamp without a time zone")
        return status

    def _failed(self, why: str) -> AccessError:
        return AccessError(f"credential plug-in {self._spec.command!r}: {why}")


def _end(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """End the program, and where it has a group of its own all that it started; what is left may hold its output open."""
    with suppress(ProcessLookupError, PermissionError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    if process.stdout is not None:
        process.stdout.feed_eof()
