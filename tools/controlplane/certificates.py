"""Certificates and kubeconfigs of one control plane: a certificate authority of its own, valid for this cluster alone."""

import base64
import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST = "127.0.0.1"
SERVICE_ADDRESS = "10.96.0.1"
VALID = datetime.timedelta(days=3650)
USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_SIGNS_CERTIFICATES = x509.KeyUsage(**{use: use in ("key_cert_sign", "crl_sign") for use in USES})
_SIGNS_HANDSHAKES = x509.KeyUsage(**{use: use == "digital_signature" for use in USES})
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


def _name(common_name: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    return x509.Name([*([x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []), *parts])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


class Authority:
    """A certificate authority that writes what it signs into a folder, as NAME.crt and NAME.key."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = self._unsigned(_name(name), self._key.public_key(), _SIGNS_CERTIFICATES)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._write(name, own.sign(self._key, hashes.SHA256()), self._key)

    @property
    def certificate(self) -> Path:
        """The certificate of the authority itself."""
        return self.folder / f"{self.name}.crt"

    def _unsigned(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, usage: x509.KeyUsage
    ) -> x509.CertificateBuilder:
        """With the extensions that Python's ssl asks for from 3.13 on."""
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_name(self.name))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + VALID)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(self.folder / f"{name}.key", key)

    def sign(
        self,
        name: str,
        common_name: str,
        *,
        group: str = "",
        usage: x509.ObjectIdentifier = CLIENT,
        hosts: Iterable[str] = (),
    ) -> None:
        """A key and a certificate for it; what a server is reached by are its hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._unsigned(_name(common_name, group), key.public_key(), _SIGNS_HANDSHAKES)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives := [_alternative(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        self._write(name, builder.sign(self._key, hashes.SHA256()), key)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_all(folder: Path, server: str) -> None:
    """Everything that the components of a control plane identify themselves with."""
    folder.mkdir(parents=True)
    authority = Authority(folder, "ca")
    Authority(folder, "front-proxy-ca")  # without it controller-manager and scheduler complain every twenty seconds
    names = (HOST, SERVICE_ADDRESS, "localhost", "kubernetes.default.svc")
    authority.sign("apiserver", "kube-apiserver", usage=SERVER, hosts=names)
    authority.sign("component", "component", usage=SERVER, hosts=(HOST, "localhost"))
    authority.sign("kubelet", "kwok", usage=SERVER, hosts=(HOST, "localhost"))
    authority.sign("kubelet-client", "kube-apiserver-kubelet-client", group="system:masters")
    for name, common_name, group in (
        ("admin", "admin", "system:masters"),
        ("controller-manager", "system:kube-controller-manager", ""),
        ("scheduler", "system:kube-scheduler", ""),
    ):
        authority.sign(name, common_name, group=group)
        kubeconfig(
            folder / f"{name}.kubeconfig",
            server,
            folder / "ca.crt",
            {
                "client-certificate-data": _encoded(folder / f"{name}.crt"),
                "client-key-data": _encoded(folder / f"{name}.key"),
            },
        )
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write_key(folder / "service-accounts.key", key)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "service-accounts.pub").write_bytes(public)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def kubeconfig(path: Path, server: str, authority: Path, user: dict[str, str]) -> Path:
    """A kubeconfig with one context, `joiner`, for a user with these credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "joiner", "cluster": {"server": server, "certificate-authority-data": _encoded(authority)}}
        ],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [{"name": "joiner", "context": {"cluster": "joiner", "user": path.stem}}],
        "current-context": "joiner",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path
