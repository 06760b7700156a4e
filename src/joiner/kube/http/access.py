"""Where an API server is and how to reach it: what a kubeconfig context, or the service account of a pod, comes down to."""

from dataclasses import dataclass, field
from typing import Protocol


class AccessError(ValueError):
    """A cluster cannot be found or reached with what was given: what is wrong, and what to do. Never holds a credential."""


@dataclass(frozen=True)
class Certificate:
    """A client certificate with its key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """What a request carries to prove who sends it."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    certificate: Certificate | None = None


class Credentials(Protocol):
    """Where identities come from. They may change with time: tokens are rotated, certificates renewed."""

    async def identity(self) -> Identity:
        """The identity to use now. Raises AccessError."""
        ...

    def rejected(self) -> bool:
        """The server refused the identity. Says whether there may be a better one now."""
        ...


class Authority(Protocol):
    """Which certificates of servers are trusted."""

    def bundle(self) -> bytes | None:
        """PEM certificates, or None for those of the machine. Raises AccessError."""
        ...


@dataclass(frozen=True)
class Access:
    """One API server, and one identity at it."""

    server: str
    """Its URL, without a slash at the end."""
    credentials: Credentials
    authority: Authority
    insecure: bool = False
    """Whether any certificate of the server is accepted."""
    tls_server_name: str = ""
    """The name that the server's certificate must have, where it is not the one of the URL."""
    proxy: str = ""
    """URL of the proxy, or empty."""
    namespace: str = ""
    """The namespace that the context, or the pod, is in."""
    origin: str = ""
    """Where all this was found, for messages."""
