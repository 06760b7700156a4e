"""The ways to prove an identity to an API server: certificate, token, token file, user and password, or a plug-in that is run.

Files are read again when they change and plug-ins are run again before what they gave expires, so that a process may live for
months. No message ever holds a token, a password or a key.
"""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from joiner.clock import Clock
from joiner.kube.http.access import AccessError, Certificate, Identity

REREAD_S: Final = 60.0
"""How old what was read from a file may be; the kubelet renews the token of a pod long before it expires."""


class FileContent:
    """A small file that may be replaced at any time: read again from time to time."""

    def __init__(
        self, path: Path, what: str, clock: Clock, *, valid: Callable[[bytes], bool] = lambda content: bool(content)
    ) -> None:
        """What is not `valid` is taken for a file that is being written, as long as there is something older."""
        self.path, self._what, self._clock, self._valid = path, what, clock, valid
        self._content = b""
        self._until: float | None = None

    def read(self) -> bytes:
        """What the file holds; after a failure what it held before, if it ever did."""
        now = self._clock.monotonic()
        if self._until is None or now >= self._until:
            try:
                content = self.path.read_bytes()
                if self._valid(content) or not self._content:
                    self._content = content
            except OSError as error:
                if not self._content:
                    raise AccessError(f"{self._what} {self.path} cannot be read: {error.strerror or error}") from None
            self._until = now + REREAD_S
        return self._content

    def forget(self) -> bool:
        """Read it again at the next opportunity. Says whether it holds something else by now."""
        before = self._content
        self._until = None
        return self.read() != before


class InlineContent:
    """What a kubeconfig holds itself."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        """The content."""
        return self._content

    def forget(self) -> bool:
        """It never changes."""
        return False


Content = FileContent | InlineContent
Headers = tuple[tuple[str, str], ...]


class TrustedCertificates:
    """The certificate authorities that sign the server's certificate."""

    def __init__(self, content: Content | None) -> None:
        self._content = content

    def bundle(self) -> bytes | None:
        """PEM certificates, or None for those of the machine."""
        return self._content.read() if self._content is not None else None


class StaticCredentials:
    """Everything but plug-ins: certificate and key, token, user and password, and whom to impersonate."""

    def __init__(
        self,
        *,
        certificate: Content | None = None,
        key: Content | None = None,
        token: Content | None = None,
        basic: tuple[str, str] | None = None,
        impersonation: Headers = (),
    ) -> None:
        self._certificate, self._key, self._token, self._basic = certificate, key, token, basic
        self._impersonation = impersonation

    async def identity(self) -> Identity:
        """What files and kubeconfig say now."""
        headers = self._impersonation
        if self._token is not None:
            headers = (*headers, ("Authorization", f"Bearer {_token_text(self._token.read())}"))
        elif self._basic is not None:
            headers = (
                *headers,
                ("Authorization", "Basic " + base64.b64encode(":".join(self._basic).encode()).decode()),
            )
        certificate = None
        if self._certificate is not None and self._key is not None:
            certificate = Certificate(self._certificate.read(), self._key.read())
        return Identity(headers, certificate)

    def rejected(self) -> bool:
        """Worth another try when a file has changed."""
        contents = (self._certificate, self._key, self._token)
        changed = [each.forget() for each in contents if each is not None]
        return any(changed)


def is_token(content: bytes) -> bool:
    """Whether it can be sent as a bearer token."""
    text = content.decode(errors="replace").strip()
    return bool(text) and text.isprintable() and text.isascii()


def _token_text(content: bytes) -> str:
    if not content.strip():
        raise AccessError("the bearer token is empty: log in again, or check the token file")
    if not is_token(content):
        raise AccessError("the bearer token has characters that no token has: check the token file")
    return content.decode().strip()


def search_path(command: str, folder: Path, environment: Mapping[str, str]) -> Sequence[Path]:
    """Where the command of a plug-in may be: beside the kubeconfig when it has a slash, else on the path."""
    if "/" in command:
        return ((folder / command),)
    return tuple(Path(each) / command for each in environment.get("PATH", os.defpath).split(os.pathsep) if each)
