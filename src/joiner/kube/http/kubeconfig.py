"""Kubeconfigs: which files are read, how they are merged, and what a context in them comes down to.

As kubectl does it: of several files the first that sets a value wins, and relative paths are seen from the file they stand in.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from joiner.clock import Clock
from joiner.kube.http.access import Access, AccessError
from joiner.kube.http.credentials import Content, FileContent, InlineContent, StaticCredentials, TrustedCertificates
from joiner.kube.http.execplugin import ExecCredentials, ExecSpec
from joiner.kube.http.proxies import proxy_for
from joiner.yamldoc import documents

_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
_EXTENSION: Final = "client.authentication.k8s.io/exec"


class Entry(NamedTuple):
    """A named entry of a kubeconfig, and the file it stands in."""

    data: Mapping[str, Any]
    file: Path


@dataclass
class Kubeconfig:
    """Several files as one."""

    files: tuple[Path, ...] = ()
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {name: {} for name in _SECTIONS})
    current_context: str = ""

    def entry(self, section: str, name: str, wanted_by: str) -> Entry:
        """A named entry. Raises AccessError that names those there are."""
        found = self.entries[section].get(name)
        if found is not None:
            return found
        known = sorted(self.entries[section])
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
        raise AccessError(
            f"{self.name}: {wanted_by} names the {_SECTIONS[section]} {name!r}, which is not there; {hint}"
        )

    @property
    def name(self) -> str:
        """The files, for messages."""
        return f"kubeconfig {os.pathsep.join(map(str, self.files)) or '(none)'}"


def paths(explicit: str | None, environment: Mapping[str, str], home: Path) -> tuple[tuple[Path, ...], bool]:
    """The files to read, and whether a user named them."""
    if explicit:
        return (Path(explicit),), True
    named = tuple(Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each)
    return (named, True) if named else ((home / ".kube" / "config",), False)


def read(files: tuple[Path, ...], *, explicit: bool) -> Kubeconfig:
    """Read and merge. Of files that the environment names some may be missing, but not all."""
    present = tuple(path for path in files if path.is_file())
    if not present and explicit:
        raise AccessError(f"kubeconfig {os.pathsep.join(map(str, files))}: there is no such file; check the path")
    config = Kubeconfig(files=present)
    for path in present:
        data = _load(path)
        config.current_context = config.current_context or _text(data.get("current-context"))
        for section, inner in _SECTIONS.items():
            for name, entry in _named(data.get(section), inner, section, path):
                config.entries[section].setdefault(name, Entry(entry, path))
    return config


def _load(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise AccessError(f"kubeconfig {path} cannot be read: {why}") from None
    loaded = documents(text, str(path))
    for problem in loaded.problems:  # its message could quote a credential
        raise AccessError(f"kubeconfig {path}: line {problem.line} is no valid YAML; check the file")
    data = loaded.documents[0].data if loaded.documents else {}
    if not isinstance(data, Mapping):
        raise AccessError(
            f"kubeconfig {path}: it is no kubeconfig: a mapping with clusters, users and contexts is expected"
        )
    return data


def _named(section: Any, inner: str, title: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, item in enumerate(section or ()):
        entry = item.get(inner) if isinstance(item, Mapping) else None
        if (
            not isinstance(item, Mapping)
            or not isinstance(item.get("name"), str)
            or not isinstance(entry or {}, Mapping)
        ):
            raise AccessError(f"kubeconfig {path}: {title}[{number}] must have a name and a mapping {inner!r}")
        yield item["name"], entry or {}


def access(config: Kubeconfig, *, context: str, clock: Clock, environment: Mapping[str, str]) -> Access:
    """What a context says, or the current one when none is named. Raises AccessError."""
    chosen = context or config.current_context
    if not chosen:
        known = ", ".join(sorted(config.entries["contexts"])) or "none"
        raise AccessError(f"{config.name}: no context is current; name one with --context (there are {known})")
    told = "--context" if context else "current-context"
    names = config.entry("contexts", chosen, told).data
    cluster = config.entry("clusters", _text(names.get("cluster")), f"context {chosen!r}")
    user = config.entry("users", _text(names.get("user")), f"context {chosen!r}")
    where = f"{config.name}, context {chosen!r}"
    server = _text(cluster.data.get("server")).rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise AccessError(f"{where}: its cluster has no server that begins with https:// or http://")
    insecure = bool(cluster.data.get("insecure-skip-tls-verify"))
    authority = _content(cluster, "certificate-authority", "the certificate authority", clock)
    if insecure and authority is not None:
        raise AccessError(
            f"{where}: insecure-skip-tls-verify and a certificate-authority exclude each other; remove one"
        )
    return Access(
        server=server,
        credentials=_credentials(user, cluster, where, clock, environment),
        authority=TrustedCertificates(authority),
        insecure=insecure,
        tls_server_name=_text(cluster.data.get("tls-server-name")),
        proxy=proxy_for(server, _text(cluster.data.get("proxy-url")), environment),
        namespace=_text(names.get("namespace")),
        origin=where,
    )


def _credentials(
    user: Entry, cluster: Entry, where: str, clock: Clock, environment: Mapping[str, str]
) -> StaticCredentials | ExecCredentials:
    data = user.data
    if data.get("auth-provider"):
        raise AccessError(
            f"{where}: auth-provider was removed from Kubernetes; let the login tool write an exec plug-in instead"
        )
    impersonation = tuple(_impersonation(data))
    if data.get("exec"):
        try:
            spec = msgspec.convert(
                {key: value for key, value in data["exec"].items() if value is not None}, type=ExecSpec
            )
        except msgspec.ValidationError as error:
            raise AccessError(f"{where}: the exec entry of its user cannot be used: {error}") from None
        return ExecCredentials(
            spec,
            folder=user.file.parent,
            cluster=_for_plugin(cluster),
            clock=clock,
            environment=environment,
            impersonation=impersonation,
        )
    certificate = _content(user, "client-certificate", "the client certificate", clock)
    key = _content(user, "client-key", "the client key", clock)
    if (certificate is None) != (key is None):
        raise AccessError(f"{where}: client-certificate and client-key belong together; one of them is missing")
    token: Content | None = None
    if data.get("tokenFile"):
        token = FileContent(_placed(user.file, _text(data["tokenFile"])), "the token file", clock)
    elif data.get("token"):
        token = InlineContent(_text(data["token"]).encode())
    basic = (_text(data.get("username")), _text(data.get("password"))) if data.get("username") else None
    return StaticCredentials(certificate=certificate, key=key, token=token, basic=basic, impersonation=impersonation)


def _impersonation(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if data.get("as"):
        yield "Impersonate-User", _text(data["as"])
    if data.get("as-uid"):
        yield "Impersonate-Uid", _text(data["as-uid"])
    for group in data.get("as-groups") or ():
        yield "Impersonate-Group", _text(group)
    for key, values in (data.get("as-user-extra") or {}).items():
        for value in values or ():
            yield f"Impersonate-Extra-{quote(key, safe='')}", _text(value)


def _for_plugin(cluster: Entry) -> dict[str, Any]:
    data = cluster.data
    told = {
        "server": data.get("server"),
        "tls-server-name": data.get("tls-server-name"),
        "insecure-skip-tls-verify": data.get("insecure-skip-tls-verify"),
        "proxy-url": data.get("proxy-url"),
        "certificate-authority-data": data.get("certificate-authority-data"),
    }
    if data.get("certificate-authority") and not told["certificate-authority-data"]:
        path = _placed(cluster.file, _text(data["certificate-authority"]))
        if path.is_file():
            told["certificate-authority-data"] = base64.b64encode(path.read_bytes()).decode()
    extensions = data.get("extensions") or ()
    config = next((each.get("extension") for each in extensions if each.get("name") == _EXTENSION), None)
    return {key: value for key, value in {**told, "config": config}.items() if value}


def _content(entry: Entry, key: str, what: str, clock: Clock) -> Content | None:
    """Data in the kubeconfig wins over the file it names."""
    inline = entry.data.get(f"{key}-data")
    if inline:
        try:
            return InlineContent(base64.b64decode(_text(inline), validate=True))
        except (binascii.Error, ValueError):
            raise AccessError(f"kubeconfig {entry.file}: {key}-data is not base64; check the file") from None
    path = entry.data.get(key)
    return FileContent(_placed(entry.file, _text(path)), what, clock) if path else None


def _placed(file: Path, name: str) -> Path:
    return file.parent / name


def _text(value: Any) -> str:
    return "" if value is None else str(value)
