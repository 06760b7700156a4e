"""Which proxy a request to an API server goes through: the kubeconfig's, else the environment's, as Go programs read it."""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from joiner.kube.http.access import AccessError

SCHEMES: Final = ("http", "https")


def proxy_for(server: str, configured: str, environment: Mapping[str, str]) -> str:
    """The URL of the proxy for a server, or nothing."""
    if configured:
        return _usable(configured, "proxy-url of the kubeconfig")
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    name = f"{parts.scheme.upper()}_PROXY"
    found = environment.get(name) or environment.get(name.lower()) or ""
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not found or _is_local(host) or any(_covers(each.strip(), host, port) for each in exceptions.split(",")):
        return ""
    return _usable(found if "://" in found else f"http://{found}", name)


def _usable(url: str, origin: str) -> str:
    try:
        parts = urlsplit(url)
        complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        complete = False
    if not complete:  # the URL may hold a password
        raise AccessError(f"{origin}: a proxy is named by http:// or https://, a host and a port; check it")
    if parts.scheme not in SCHEMES:
        raise AccessError(
            f"{origin}: a proxy of scheme {parts.scheme!r} cannot be used; allowed are {' and '.join(SCHEMES)}"
        )
    return url


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _covers(exception: str, host: str, port: int) -> bool:
    if not exception:
        return False
    if exception == "*":
        return True
    address = _address(host)
    if "/" in exception:
        try:
            return address is not None and address in ipaddress.ip_network(exception, strict=False)
        except ValueError:
            return False
    if _address(exception) is None and ":" in exception:
        exception, _, wanted = exception.rpartition(":")
        if wanted != str(port):
            return False
    if address is not None:
        return _address(exception) == address
    suffix = exception.removeprefix("*").lower()
    return (
        host.lower().endswith(suffix)
        if suffix.startswith(".")
        else host.lower() == suffix or host.lower().endswith(f".{suffix}")
    )
