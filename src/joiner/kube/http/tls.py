"""TLS to an API server: which certificates are trusted, and the certificate we show."""

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from joiner.kube.http.access import Access, AccessError, Certificate

_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.DOTALL
)


def context_for(access: Access, certificate: Certificate | None) -> ssl.SSLContext | None:
    """How to speak TLS with the server; None where it speaks none. Raises AccessError."""
    if access.server.startswith("http://"):
        return None
    context = _trusting(access)
    # Authorities of clusters are often made by hand, without extensions that newer Pythons insist on and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificate is not None:
        _show(context, access, certificate)
    return context


def _trusting(access: Access) -> ssl.SSLContext:
    if access.insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    bundle = access.authority.bundle()
    if bundle is None:
        return ssl.create_default_context()
    certificates = b"\n".join(_CERTIFICATE.findall(bundle))  # words around them may be of any alphabet
    try:
        if not certificates:  # without any, those of the machine would be trusted
            raise ValueError
        return ssl.create_default_context(cadata=certificates.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise AccessError(f"{access.origin}: the certificate authority is not PEM; check the file") from None


def _show(context: ssl.SSLContext, access: Access, certificate: Certificate) -> None:
    with _file(certificate.certificate) as chain, _file(certificate.key) as key:
        try:
            context.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, ValueError, OSError):
            raise AccessError(
                f"{access.origin}: client certificate and key cannot be used: they are not PEM, do not belong together, or the"
                " key has a password"
            ) from None


def _no_password() -> str:
    """Asked for a key that is encrypted: without it the library would ask at the terminal."""
    return ""


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """The library reads keys from files only. Where there are files in memory, the key never touches a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
