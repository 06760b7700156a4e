"""How a cluster is found and an identity proven: kubeconfigs, service accounts, token files, plug-ins, certificates, proxies."""

import asyncio
import base64
import datetime
import ipaddress
import json
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.loopback import Answer, listening
from tests.unit.kube.test_http_client import access, asking

from joiner.clock import SystemClock
from joiner.kube import errors
from joiner.kube.http import credentials, discover, kubeconfig
from joiner.kube.http.access import Access, AccessError, Identity
from joiner.kube.http.credentials import FileContent, InlineContent, StaticCredentials, TrustedCertificates
from joiner.kube.http.proxies import proxy_for
from joiner.model.node import Node


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime.datetime:
        return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def config(**parts: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": parts.get("cluster", {"server": "https://c.example.com/"})}],
        "users": [{"name": "u", "user": parts.get("user", {"token": "secret"})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **parts.get("context", {})}}],
        "current-context": parts.get("current", "x"),
    }


def written(folder: Path, data: Any, name: str = "config") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def found(file: str | None = None, context: str | None = None, home: Path = Path("/nowhere"), **given: Any) -> Access:
    environment = given.pop("environment", {})
    clock = given.pop("clock", SystemClock())
    return discover.find(
        kubeconfig_file=file, context=context, clock=clock, environment=environment, home=home, **given
    )


def identity(way: Access) -> Identity:
    async def ask() -> Identity:
        return await way.credentials.identity()

    return asyncio.run(ask())


def bearer(way: Access) -> str:
    return dict(identity(way).headers)["Authorization"]


# -- which cluster -----------------------------------------------------------------------------------------------------------


def test_a_context_says_server_user_and_namespace(tmp_path: Path) -> None:
    way = found(written(tmp_path, config(context={"namespace": "here"})))

    assert (way.server, way.namespace, bearer(way)) == ("https://c.example.com", "here", "Bearer secret")
    assert "secret" not in repr(way)


def test_of_several_files_the_first_that_says_something_wins(tmp_path: Path) -> None:
    first = written(tmp_path, {"current-context": "x", "users": config()["users"]}, "one")
    second = written(tmp_path, {**config(user={"token": "other"}), "current-context": "y"}, "two")

    way = found(environment={"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})

    assert (way.server, bearer(way)) == ("https://c.example.com", "Bearer secret")


def test_the_home_folder_comes_after_the_service_account(tmp_path: Path) -> None:
    written(tmp_path, config(), ".kube/config")
    account = tmp_path / "account"
    for name, text in (("token", "pod-token"), ("namespace", "ours"), ("ca.crt", "pem")):
        written(account, text, name)
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    assert found(home=tmp_path, service_account=account).server == "https://c.example.com"
    way = found(home=tmp_path, service_account=account, environment=inside)

    assert (way.server, way.namespace, bearer(way)) == ("https://10.96.0.1:443", "ours", "Bearer pod-token")


def test_paths_are_seen_from_the_file_they_stand_in(tmp_path: Path) -> None:
    written(tmp_path / "deep", "from-file", "token")

    assert bearer(found(written(tmp_path / "deep", config(user={"tokenFile": "token", "token": "not this"})))) == (
        "Bearer from-file"
    )


@pytest.mark.parametrize(
    ("data", "context", "words"),
    [
        ("a: [secret", None, "is no valid YAML"),
        ("- secret", None, "no kubeconfig"),
        (config(current=""), None, "name one with --context (there are x)"),
        (config(), "xx", "did you mean 'x'"),
        (config(cluster={"server": "c.example.com"}), None, "begins with https://"),
        (config(cluster={"server": "https://c", "certificate-authority-data": "secret!"}), None, "not base64"),
        (config(cluster={"server": "https://c", "certificate-authority": "ca", "insecure-skip-tls-verify": True}), None,
         "exclude each other"),
        (config(user={"client-certificate": "secret.crt"}), None, "belong together"),
        (config(user={"auth-provider": {"name": "gcp", "config": {"access-token": "secret"}}}), None, "exec plug-in instead"),
        (config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}), None, "v1beta1"),
        (config(context={"user": "who"}), None, "names the user 'who', which is not there; there are u"),
        (config(cluster={"server": "https://c", "proxy-url": "socks5://p"}), None, "allowed are http and https"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_kubeconfig_is_told_without_its_secrets(
    tmp_path: Path, data: Any, context: str | None, words: str
) -> None:
    with pytest.raises(AccessError) as raised:
        found(written(tmp_path, data), context)

    assert words in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no such file"):
        found(str(tmp_path / "missing"))
    with pytest.raises(AccessError, match="name a kubeconfig with --kubeconfig"):
        found(home=tmp_path)


def test_the_user_to_impersonate_goes_along(tmp_path: Path) -> None:
    user = {"token": "t", "as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"why": ["x"]}}
    headers = identity(found(written(tmp_path, config(user=user)))).headers

    assert headers[:4] == (
        ("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"), ("Impersonate-Extra-why", "x"),
    )  # fmt: skip


def test_user_and_password(tmp_path: Path) -> None:
    way = found(written(tmp_path, config(user={"username": "me", "password": "pw"})))

    assert bearer(way) == "Basic " + base64.b64encode(b"me:pw").decode()


# -- tokens that change --------------------------------------------------------------------------------------------------------


def test_a_token_file_is_read_again_after_a_minute_or_when_it_is_refused(tmp_path: Path) -> None:
    clock, path = Hands(), Path(written(tmp_path, "one", "token"))
    way = found(written(tmp_path, config(user={"tokenFile": str(path)})), clock=clock)

    assert bearer(way) == "Bearer one"
    path.write_text("two\n")
    assert bearer(way) == "Bearer one"
    clock.seconds += credentials.REREAD_S
    assert bearer(way) == "Bearer two"
    path.write_text("three")
    assert way.credentials.rejected()
    assert bearer(way) == "Bearer three"
    assert not way.credentials.rejected()


def test_a_token_file_that_vanishes_for_a_moment_is_no_failure(tmp_path: Path) -> None:
    clock, path = Hands(), Path(written(tmp_path, "one", "token"))
    content = FileContent(path, "the token file", clock)
    assert content.read() == b"one"
    path.unlink()
    clock.seconds += 2 * credentials.REREAD_S

    assert content.read() == b"one"


@pytest.mark.parametrize("text", ["", "to\x00ken", "to\nken"])
def test_what_is_no_token_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    way = found(written(tmp_path, config(user={"tokenFile": written(tmp_path, text, "token")})))

    with pytest.raises(AccessError, match="token file") as raised:
        identity(way)
    assert "ken" not in str(raised.value).replace("token", "")


# -- plug-ins ------------------------------------------------------------------------------------------------------------------

PLUGIN = """#!/bin/sh
echo x >> "$COUNT"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$COUNT.info"
cat "$ANSWER"
"""


def plugin(folder: Path, answer: Any, version: str = "v1", **more: Any) -> str:
    script = folder / "login"
    script.write_text(PLUGIN)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    written(folder, answer, "answer")
    env = [{"name": "COUNT", "value": str(folder / "count")}, {"name": "ANSWER", "value": str(folder / "answer")}]
    spec = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": "./login",
        "env": env,
        "args": None,
        **more,
    }
    return written(folder, config(user={"exec": spec}))


def said(version: str = "v1", **status: Any) -> dict[str, Any]:
    return {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}


def runs(folder: Path) -> int:
    return len((folder / "count").read_text().split())


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plug_in_is_run_once_and_again_before_its_token_expires(tmp_path: Path, version: str) -> None:
    clock = Hands()
    answer = said(version, token="one", expirationTimestamp="2026-01-01T00:10:00Z")
    way = found(plugin(tmp_path, answer, version), clock=clock, environment={"PATH": "/usr/bin:/bin"})

    assert [bearer(way), bearer(way)] == ["Bearer one"] * 2
    assert runs(tmp_path) == 1
    written(tmp_path, said(version, token="two"), "answer")
    clock.seconds = 571.0
    assert bearer(way) == "Bearer two"
    way.credentials.rejected()
    assert bearer(way) == "Bearer two"
    assert runs(tmp_path) == 3


def test_a_plug_in_is_told_about_the_cluster_when_it_asks(tmp_path: Path) -> None:
    way = found(plugin(tmp_path, said(token="t"), provideClusterInfo=True), environment={"PATH": "/usr/bin:/bin"})
    identity(way)

    info = json.loads((tmp_path / "count.info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://c.example.com/"}}


def test_a_plug_in_may_give_a_certificate(tmp_path: Path) -> None:
    answer = said(clientCertificateData="CERT", clientKeyData="KEY")
    way = found(plugin(tmp_path, answer), environment={"PATH": "/usr/bin:/bin"})

    shown = identity(way).certificate
    assert shown is not None
    assert (shown.certificate, shown.key) == (b"CERT", b"KEY")
    assert "KEY" not in repr(shown)


@pytest.mark.parametrize(
    ("answer", "more", "words"),
    [
        ("secret", {}, "no ExecCredential"),
        (said(), {}, "neither a token nor a certificate"),
        (said("v1beta1", token="secret"), {}, "the kubeconfig says"),
        (said(clientCertificateData="secret"), {}, "without its key"),
        (
            said(token="secret"),
            {"command": "not-there", "installHint": "get it at example.com"},
            "get it at example.com",
        ),
        (said(token="secret"), {"command": "false"}, "exit code 1"),
        (said(token="secret"), {"interactiveMode": "Always"}, "no terminal"),
    ],
)
def test_a_plug_in_that_fails_is_named_and_nothing_it_printed_is_shown(
    tmp_path: Path, answer: Any, more: dict[str, Any], words: str
) -> None:
    way = found(plugin(tmp_path, answer, **more), environment={"PATH": "/usr/bin:/bin"})

    with pytest.raises(AccessError) as raised:
        identity(way)
    assert words in str(raised.value)
    assert "secret" not in str(raised.value)


# -- TLS -----------------------------------------------------------------------------------------------------------------------


def made(name: str, signer: Any = None, *, authority: bool = False) -> Any:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("api.example.com")])
            if name == "named"
            else x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
    )
    return builder.sign(signer[1] if signer else key, hashes.SHA256()), key


def pem(pair: Any) -> tuple[bytes, bytes]:
    form = serialization.Encoding.PEM
    key = pair[1].private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pair[0].public_bytes(form), key


@pytest.fixture(scope="module")
def authority() -> Any:
    return made("authority", authority=True)


def server_context(folder: Path, authority: Any, name: str = "server") -> ssl.SSLContext:
    certificate, key = pem(made(name, authority))
    chain, secret, trusted = folder / "s.crt", folder / "s.key", folder / "ca.crt"
    chain.write_bytes(certificate)
    secret.write_bytes(key)
    trusted.write_bytes(pem(authority)[0])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(trusted))
    context.load_cert_chain(chain, secret)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as API servers: newer Pythons ask for more than those do
    return context


THING = {"metadata": {"name": "n"}}


def test_a_client_certificate_is_shown_to_a_server_of_the_named_authority(tmp_path: Path, authority: Any) -> None:
    certificate, key = map(InlineContent, pem(made("jane", authority)))
    with listening(lambda asked: Answer(THING), server_context(tmp_path, authority)) as server:
        way = access(
            server.url,
            credentials=StaticCredentials(certificate=certificate, key=key),
            authority=TrustedCertificates(InlineContent(pem(authority)[0])),
        )
        assert asking("", lambda client: client.get(Node, "n"), way=way).name == "n"

    assert server.asked[0].certificate["subject"] == ((("commonName", "jane"),),)


def test_a_server_of_another_authority_is_not_trusted_unless_that_is_asked_for(tmp_path: Path, authority: Any) -> None:
    with listening(lambda asked: Answer(THING), server_context(tmp_path, authority)) as server:
        stranger = TrustedCertificates(InlineContent(pem(made("other", authority=True))[0]))
        with pytest.raises(errors.Unreachable, match="not trusted"):
            asking("", lambda client: client.get(Node, "n"), way=access(server.url, authority=stranger))
        with pytest.raises(errors.Unreachable, match="not trusted"):
            asking("", lambda client: client.get(Node, "n"), way=access(server.url))
        found = asking("", lambda client: client.get(Node, "n"), way=access(server.url, insecure=True))

    assert found.name == "n"


def test_the_name_in_the_servers_certificate_may_be_another_than_its_address(tmp_path: Path, authority: Any) -> None:
    trusted = TrustedCertificates(InlineContent(pem(authority)[0]))
    with listening(lambda asked: Answer(THING), server_context(tmp_path, authority, "named")) as server:
        with pytest.raises(errors.Unreachable, match="not trusted"):
            asking("", lambda client: client.get(Node, "n"), way=access(server.url, authority=trusted))
        way = access(server.url, authority=trusted, tls_server_name="api.example.com")
        assert asking("", lambda client: client.get(Node, "n"), way=way).name == "n"


def test_a_certificate_that_cannot_be_used_is_told(authority: Any) -> None:
    certificate, _ = pem(made("jane", authority))
    _, other = pem(made("joe", authority))
    way = access(
        "https://127.0.0.1:1",
        credentials=StaticCredentials(certificate=InlineContent(certificate), key=InlineContent(other)),
        authority=TrustedCertificates(InlineContent(pem(authority)[0])),
    )
    with pytest.raises(errors.Unauthorized, match="do not belong together"):
        asking("", lambda client: client.get(Node, "n"), way=way)
    broken = access("https://127.0.0.1:1", authority=TrustedCertificates(InlineContent(b"junk")))
    with pytest.raises(errors.Unauthorized, match="not PEM"):
        asking("", lambda client: client.get(Node, "n"), way=broken)


# -- proxies -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "configured", "environment", "proxy"),
    [
        ("https://c", "", {}, ""),
        ("https://c", "http://p:1", {"HTTPS_PROXY": "http://q"}, "http://p:1"),
        ("https://c", "", {"HTTPS_PROXY": "http://q"}, "http://q"),
        ("https://c", "", {"https_proxy": "q:3128"}, "http://q:3128"),
        ("https://c", "", {"HTTP_PROXY": "http://q"}, ""),
        ("https://127.0.0.1:6443", "", {"HTTPS_PROXY": "http://q"}, ""),
        ("https://localhost", "", {"HTTPS_PROXY": "http://q"}, ""),
        ("https://a.b.c", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "x, b.c"}, ""),
        ("https://ab.c", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "b.c"}, "http://q"),
        ("https://b.c", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": ".b.c"}, "http://q"),
        ("https://10.1.2.3", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "10.0.0.0/8,b"}, "http://q"),
        ("https://c:6443", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "c:443"}, "http://q"),
        ("https://c", "", {"HTTPS_PROXY": "http://q", "NO_PROXY": "*"}, ""),
    ],
)
def test_the_proxy_of_a_server(server: str, configured: str, environment: dict[str, str], proxy: str) -> None:
    assert proxy_for(server, configured, environment) == proxy


def test_a_kubeconfig_of_the_environment_wins_over_the_home_folder(tmp_path: Path) -> None:
    assert kubeconfig.paths(None, {"KUBECONFIG": "a:b"}, tmp_path) == ((Path("a"), Path("b")), True)
    assert kubeconfig.paths("c", {"KUBECONFIG": "a:b"}, tmp_path) == ((Path("c"),), True)
