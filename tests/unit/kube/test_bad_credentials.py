"""Kubeconfigs, plug-ins and files that are broken in ways that happen: told in a sentence, survived where that is possible."""

import asyncio
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loopback import Answer, listening, status
from tests.unit.kube.test_access import Hands, bearer, config, found, identity, made, pem, plugin, runs, said, written
from tests.unit.kube.test_http_client import access, asking, node

from joiner.clock import SystemClock
from joiner.kube import errors
from joiner.kube.http import credentials, execplugin, tls
from joiner.kube.http.access import Access, AccessError
from joiner.kube.http.client import HttpClient
from joiner.kube.http.credentials import FileContent, InlineContent, StaticCredentials, TrustedCertificates
from joiner.kube.http.proxies import proxy_for
from joiner.model.node import Node

PATH = {"PATH": "/usr/bin:/bin"}

# -- kubeconfigs -------------------------------------------------------------------------------------------------------------

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}
ODD_CONFIGS = [
    pytest.param({"clusters": 5}, id="clusters-a-number"),
    pytest.param({"clusters": {"c": {}}}, id="clusters-a-mapping"),
    pytest.param({"users": "u"}, id="users-a-text"),
    pytest.param({"contexts": [["x"]]}, id="context-a-list"),
    pytest.param({"current-context": ["x"]}, id="current-context-a-list"),
    pytest.param(config(user={"exec": "login"}), id="exec-a-text"),
    pytest.param(config(user={"exec": []}), id="exec-an-empty-list"),
    pytest.param(config(user={"exec": {**EXEC, "env": [{"name": "A"}, 5]}}), id="exec-env-of-numbers"),
    pytest.param(config(user={"exec": {**EXEC, "env": {"A": "b"}}}), id="exec-env-a-mapping"),
    pytest.param(config(user={"token": ["secret"]}), id="token-a-list"),
    pytest.param(config(user={"token": "s", "as": "a\nb"}), id="as-of-two-lines"),
    pytest.param(config(user={"token": "s", "as": "ä"}), id="as-of-other-letters"),
    pytest.param(config(user={"token": "s", "as": "a", "as-groups": 5}), id="as-groups-a-number"),
    pytest.param(config(user={"token": "s", "as": "a", "as-user-extra": ["b"]}), id="as-user-extra-a-list"),
    pytest.param(config(user={"token": "s", "as": "a", "as-user-extra": {"b": 5}}), id="as-user-extra-of-a-number"),
    pytest.param(config(user={"client-certificate-data": 5, "client-key-data": "?"}), id="certificate-a-number"),
    pytest.param(config(cluster={"server": "https://[::1"}), id="server-half-an-address"),
    pytest.param(config(cluster={"server": "https://h:99999"}), id="server-of-a-port-too-high"),
    pytest.param(config(cluster={"server": "https://h:x"}), id="server-of-a-port-in-words"),
    pytest.param(config(cluster={"server": "https://"}), id="server-without-a-host"),
    pytest.param(config(cluster={"server": "https://some one"}), id="server-with-a-blank"),
    pytest.param(config(cluster={"server": ["https://h"]}), id="server-a-list"),
    pytest.param(config(cluster={"server": "https://h", "insecure-skip-tls-verify": "false"}), id="insecure-in-quotes"),
    pytest.param(
        config(cluster={"server": "https://h", "proxy-url": "http://u:secret@[x"}), id="proxy-half-an-address"
    ),
    pytest.param(config(cluster={"server": "https://h", "proxy-url": "http://u:secret@h:x"}), id="proxy-of-no-port"),
    pytest.param(
        config(cluster={"server": "https://h", "proxy-url": "socks5://u:secret@h"}), id="proxy-of-another-kind"
    ),
    pytest.param(config(cluster={"server": "https://u:secret@h"}), id="server-with-a-password"),
]


@pytest.mark.parametrize("data", ODD_CONFIGS)
def test_a_kubeconfig_of_an_odd_shape_is_told_in_a_sentence(tmp_path: Path, data: Any) -> None:
    with pytest.raises(AccessError) as told:
        identity(found(written(tmp_path, data), environment=PATH))

    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just("https://h"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
PLACES = [
    ("clusters",), ("clusters", 0), ("clusters", 0, "name"), ("clusters", 0, "cluster"),
    *(("clusters", 0, "cluster", key) for key in ("server", "proxy-url", "tls-server-name", "certificate-authority",
      "certificate-authority-data", "insecure-skip-tls-verify", "extensions")),
    ("users",), ("users", 0, "user"),
    *(("users", 0, "user", key) for key in ("token", "tokenFile", "exec", "as", "as-uid", "as-groups", "as-user-extra",
      "client-certificate", "client-key-data", "client-certificate-data", "username", "password", "auth-provider")),
    *(("users", 0, "user", "exec", key) for key in ("args", "env", "interactiveMode", "apiVersion", "command",
      "provideClusterInfo", "installHint")),
    ("contexts",), ("contexts", 0, "context"), ("contexts", 0, "context", "cluster"), ("contexts", 0, "context", "user"),
    ("current-context",), ("preferences",), (),
]  # fmt: skip


@given(place=st.sampled_from(PLACES), value=ANYTHING, plugged=st.booleans())
def test_whatever_stands_in_a_kubeconfig_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any, plugged: bool
) -> None:
    data: Any = config(user={"exec": {**EXEC, "command": "/not/there"}} if plugged else {"token": "secret"})
    inner, target = data, place
    while len(target) > 1:
        inner = inner[target[0]] if isinstance(inner, list) else inner.setdefault(target[0], {})
        target = target[1:]
    if target:
        inner[target[0]] = value
    else:
        data = value
    with suppress(AccessError):
        identity(found(written(tmp_path_factory.getbasetemp(), data, "any"), environment=PATH))


def test_a_context_may_have_no_user(tmp_path: Path) -> None:
    data = config(context={"user": ""})

    assert identity(found(written(tmp_path, data))).headers == ()


@pytest.mark.parametrize("url", ["http://u:secret@[x", "http://u:secret@h:x", "https://u:secret@"])
def test_a_proxy_that_cannot_be_understood_is_told_without_its_password(url: str) -> None:
    with pytest.raises(AccessError) as told:
        proxy_for("https://c.example.com", "", {"HTTPS_PROXY": url})

    assert "HTTPS_PROXY" in str(told.value)
    assert "secret" not in str(told.value)


# -- plug-ins ----------------------------------------------------------------------------------------------------------------


def script(folder: Path, text: str, **more: Any) -> Access:
    path = folder / "script"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    spec = {**EXEC, "command": "./script", **more}
    return found(written(folder, config(user={"exec": spec})), environment=PATH)


def test_a_plug_in_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "PATIENCE_S", 0.3)
    mark = tmp_path / "still-there"
    way = script(tmp_path, f"(sleep 1; touch {mark}) & sleep 100; echo late")

    async def ask() -> None:
        with pytest.raises(AccessError, match="no answer within"):
            await asyncio.wait_for(way.credentials.identity(), 10)

    asyncio.run(ask())
    time.sleep(1.5)
    assert not mark.exists()


def test_a_plug_in_that_never_stops_printing_is_ended(tmp_path: Path) -> None:
    async def ask() -> None:
        with pytest.raises(AccessError, match="more than"):
            await asyncio.wait_for(script(tmp_path, "yes secret").credentials.identity(), 30)

    asyncio.run(ask())


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        "null",
        "\x00\x01",
        "{" * 10_000,
        {"kind": "ExecCredential"},
        said(token=5),
        said(token="sec\nret"),
        said(token="sec\u00fcret"),
        said(token="secret", expirationTimestamp="tomorrow"),
        said(token="secret", expirationTimestamp="2026-01-01T00:10:00"),
        said(token="secret") | {"status": "secret"},
    ],
)
def test_what_a_plug_in_prints_is_a_credential_or_refused(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(AccessError) as told:
        identity(found(plugin(tmp_path, answer), environment=PATH))

    assert "secret" not in str(told.value)


def test_a_plug_in_that_fails_before_its_token_expires_is_no_failure_yet(tmp_path: Path) -> None:
    clock = Hands()
    answer = said(token="one", expirationTimestamp="2026-01-01T00:10:00Z")
    way = found(plugin(tmp_path, answer), clock=clock, environment=PATH)
    assert bearer(way) == "Bearer one"

    written(tmp_path, "out of order", "answer")
    clock.seconds = 585.0
    assert bearer(way) == "Bearer one"
    clock.seconds = 601.0
    with pytest.raises(AccessError):
        bearer(way)
    written(tmp_path, said(token="two"), "answer")
    assert bearer(way) == "Bearer two"
    assert runs(tmp_path) == 4


def test_a_request_that_is_given_up_ends_its_plug_in_and_the_next_one_runs_it_again(tmp_path: Path) -> None:
    way = script(
        tmp_path, f"[ -e {tmp_path}/second ] || {{ touch {tmp_path}/second; sleep 60; }}; cat {tmp_path}/answer"
    )
    written(tmp_path, said(token="t"), "answer")

    async def ask() -> Any:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(way.credentials.identity(), 0.5)
        return await asyncio.wait_for(way.credentials.identity(), 10)

    assert dict(asyncio.run(ask()).headers)["Authorization"] == "Bearer t"


# -- files that are replaced ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("meanwhile", ["", " \n", "half\x00"])
def test_a_token_file_that_is_written_anew_is_no_failure_in_between(tmp_path: Path, meanwhile: str) -> None:
    clock = Hands()
    file = Path(written(tmp_path, "one", "token"))
    way = found(written(tmp_path, config(user={"tokenFile": str(file)})), clock=clock)
    assert bearer(way) == "Bearer one"

    file.write_text(meanwhile)
    clock.seconds += 2 * credentials.REREAD_S
    assert bearer(way) == "Bearer one"
    file.write_text("two")
    clock.seconds += 2 * credentials.REREAD_S
    assert bearer(way) == "Bearer two"


def test_half_a_token_that_the_server_refuses_is_read_again(tmp_path: Path) -> None:
    file = Path(written(tmp_path, "long-to", "token"))

    def handler(asked: Any) -> Answer:
        if asked.headers["Authorization"] == "Bearer long-token":
            return Answer(node("n"))
        file.write_text("long-token")
        return status(401, "Unauthorized", "no")

    with listening(handler) as server:
        token = FileContent(file, "the token file", SystemClock())
        way = access(server.url, credentials=StaticCredentials(token=token))
        assert asking(server.url, lambda client: client.get(Node, "n"), way=way).name == "n"


def test_an_authority_that_is_empty_does_not_trust_the_authorities_of_the_machine(tmp_path: Path) -> None:
    for content in (b"", b"\n", b"# nothing yet\n"):
        way = access("https://c.example.com", authority=TrustedCertificates(InlineContent(content)))
        with pytest.raises(AccessError, match="certificate authority"):
            tls.context_for(way, None)


def test_an_authority_may_have_words_around_its_certificates() -> None:
    certificate, _ = pem(made("ca", authority=True))
    content = "Autorité de certification\n".encode() + certificate + "# Ende: für den Cluster\n".encode()

    context = tls.context_for(access("https://h", authority=TrustedCertificates(InlineContent(content))), None)

    assert context is not None
    assert len(context.get_ca_certs()) == 1


class Changing:
    """Credentials and an authority that a test changes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self) -> bytes:
        return self.content

    def forget(self) -> bool:
        return True

    def bundle(self) -> bytes | None:
        return self.content


def test_while_a_certificate_and_its_key_do_not_belong_together_the_connections_stay(tmp_path: Path) -> None:
    one, other = pem(made("one")), pem(made("other"))
    certificate, key = Changing(one[0]), Changing(one[1])

    async def test(client: HttpClient) -> list[str]:
        names = [(await client.get(Node, "n")).name]
        certificate.content = other[0]  # the key follows in a moment
        names.append((await client.get(Node, "n")).name)
        key.content = other[1]
        names.append((await client.get(Node, "n")).name)
        return names

    authority = made("ca", authority=True)
    server_pair = pem(made("server", authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "c").write_bytes(server_pair[0])
    (tmp_path / "k").write_bytes(server_pair[1])
    context.load_cert_chain(tmp_path / "c", tmp_path / "k")
    with listening(lambda asked: Answer(node("n")), context) as server:
        way = access(
            server.url,
            credentials=StaticCredentials(certificate=certificate, key=key),  # type: ignore[arg-type]
            authority=TrustedCertificates(InlineContent(pem(authority)[0])),
        )
        assert asking(server.url, test, way=way) == ["n", "n", "n"]


def test_a_server_that_speaks_no_tls_is_told(tmp_path: Path) -> None:
    with listening(lambda asked: Answer(node("n"))) as server:
        way = access(server.url.replace("http://", "https://"))
        with pytest.raises(errors.Unreachable) as told:
            asking("", lambda client: client.get(Node, "n"), way=way)

    assert "cannot be reached" in str(told.value)
