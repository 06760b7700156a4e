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
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from joiner.clock import Clock
from joiner.kube.http.access import Access, AccessError
from joiner.kube.http.credentials import (
    Content,
    FileContent,
    InlineContent,
    StaticCredentials,
    TrustedCertificates,
    is_token,
)
from joiner.kube.http.execplugin import ExecCredentials, ExecSpec
from joiner.kube.http.proxies import proxy_for
from joiner.model import codec
from joiner.yamldoc import documents

F = TypeVar("F")

_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
_EXTENSION: Final = "client.authentication.k8s.io/exec"


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: tuple[_Extension, ...] = ()


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: Mapping[str, tuple[str, ...]] = {}
    exec: ExecSpec | None = None
    auth_provider: Any = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


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
        current = data.get("current-context") or ""
        if not isinstance(current, str):
            raise AccessError(f"kubeconfig {path}: current-context must be the name of a context")
        config.current_context = config.current_context or current
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
    if section is not None and not isinstance(section, list):
        raise AccessError(f"kubeconfig {path}: {title} must be a list")
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
    names = _typed(config.entry("contexts", chosen, told), _Context, "context", chosen)
    cluster_entry = config.entry("clusters", names.cluster, f"context {chosen!r}")
    cluster = _typed(cluster_entry, _Cluster, "cluster", names.cluster)
    # Without a user requests are anonymous, as kubectl's are.
    user_entry = config.entry("users", names.user, f"context {chosen!r}") if names.user else Entry({}, Path())
    user = _typed(user_entry, _User, "user", names.user)
    where = f"{config.name}, context {chosen!r}"
    server = _server(cluster.server, where)
    authority = _content(
        cluster_entry, "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority, clock
    )
    if cluster.insecure_skip_tls_verify and authority is not None:
        raise AccessError(
            f"{where}: insecure-skip-tls-verify and a certificate-authority exclude each other; remove one"
        )
    return Access(
        server=server,
        credentials=_credentials(
            user, user_entry.file, where, _for_plugin(cluster, cluster_entry.file), clock, environment
        ),
        authority=TrustedCertificates(authority),
        insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy=proxy_for(server, cluster.proxy_url, environment),
        namespace=names.namespace,
        origin=where,
    )


def _typed(entry: Entry, form: type[F], what: str, name: str) -> F:
    try:
        return codec.decode(entry.data, form)
    except codec.DecodeError as error:  # it tells of types, never of values
        raise AccessError(f"kubeconfig {entry.file}: the {what} {name!r} cannot be used: {error}") from None


def _server(text: str, where: str) -> str:
    """The URL of an API server. A user and a password in it would be shown in messages."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isprintable() or " " in text:
        raise AccessError(f"{where}: its cluster has no server that begins with https:// or http:// and names a host")
    if "@" in parts.netloc:
        raise AccessError(f"{where}: a user in the URL of the server is not used; name user and password under users")
    return text.rstrip("/")


def _credentials(
    user: _User,
    file: Path,
    where: str,
    cluster: Mapping[str, Any],
    clock: Clock,
    environment: Mapping[str, str],
) -> StaticCredentials | ExecCredentials:
    if user.auth_provider:
        raise AccessError(
            f"{where}: auth-provider was removed from Kubernetes; let the login tool write an exec plug-in instead"
        )
    impersonation = tuple(_impersonation(user))
    if not all(value.isascii() and value.isprintable() for _, value in impersonation):
        raise AccessError(f"{where}: the names to impersonate have characters that no header can have")
    if user.exec is not None:
        return ExecCredentials(
            user.exec,
            folder=file.parent,
            cluster=cluster,
            clock=clock,
            environment=environment,
            impersonation=impersonation,
        )
    entry = Entry({}, file)
    certificate = _content(entry, "client-certificate", user.client_certificate_data, user.client_certificate, clock)
    key = _content(entry, "client-key", user.client_key_data, user.client_key, clock)
    if (certificate is None) != (key is None):
        raise AccessError(f"{where}: client-certificate and client-key belong together; one of them is missing")
    token: Content | None = None
    if user.token_file:
        token = FileContent(_placed(file, user.token_file), "the token file", clock, valid=is_token)
    elif user.token:
        token = InlineContent(user.token.encode())
    basic = (user.username, user.password) if user.username else None
    return StaticCredentials(certificate=certificate, key=key, token=token, basic=basic, impersonation=impersonation)


def _impersonation(user: _User) -> Iterator[tuple[str, str]]:
    if user.as_:
        yield "Impersonate-User", user.as_
    if user.as_uid:
        yield "Impersonate-Uid", user.as_uid
    for group in user.as_groups:
        yield "Impersonate-Group", group
    for key, values in user.as_user_extra.items():
        for value in values:
            yield f"Impersonate-Extra-{quote(key, safe='')}", value


def _for_plugin(cluster: _Cluster, file: Path) -> dict[str, Any]:
    data = cluster.certificate_authority_data
    if cluster.certificate_authority and not data:
        path = _placed(file, cluster.certificate_authority)
        if path.is_file():
            data = base64.b64encode(path.read_bytes()).decode()
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "proxy-url": cluster.proxy_url,
        "certificate-authority-data": data,
        "config": next((each.extension for each in cluster.extensions if each.name == _EXTENSION), None),
    }
    return {key: value for key, value in told.items() if value}


def _content(entry: Entry, key: str, inline: str, path: str, clock: Clock) -> Content | None:
    """Data in the kubeconfig wins over the file it names."""
    if inline:
        try:
            return InlineContent(base64.b64decode(inline, validate=True))
        except (binascii.Error, ValueError):
            raise AccessError(f"kubeconfig {entry.file}: {key}-data is not base64; check the file") from None
    return FileContent(_placed(entry.file, path), f"the {key.replace('-', ' ')}", clock) if path else None


def _placed(file: Path, name: str) -> Path:
    return file.parent / name
