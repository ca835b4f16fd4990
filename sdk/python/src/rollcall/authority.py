"""Fetches the authority of a server's certificate, given only its fingerprint."""

from __future__ import annotations

import hashlib
import http.client
import re
import ssl

import grpc

from .errors import ConfigurationError, UnreachableError

_TIMEOUT = 10.0
_MOST_BYTES = 64 * 1024
_WRITTEN = re.compile(r"(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)", re.IGNORECASE)
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def parse_fingerprint(text: str) -> str:
    """Parse a fingerprint in the format of Rollcall or OpenSSL. Raises ConfigurationError."""
    written = _WRITTEN.fullmatch(text.strip())
    digits = written[1].replace(":", "").lower() if written else ""
    if len(digits) != 64:
        raise ConfigurationError(f"{text!r} is not a fingerprint; expected sha256: and 64 hexadecimal digits")
    return f"sha256:{digits}"


def fetch_authority(host: str, port: int, server_name: str | None, fingerprint: str) -> bytes:
    """Fetch the authority with this fingerprint, as PEM, from a server that is not trusted yet.

    Sends no credentials and does not trust the handshake. The server must prove its identity on the next connection,
    which trusts only this authority. Raises UnreachableError, and ConfigurationError for a different authority.
    """
    served = {_fingerprint_of(block): block for block in _BLOCK.findall(_download(host, port, server_name))}
    if fingerprint in served:
        return str(served[fingerprint]).encode()
    others = ", ".join(served) or "none"
    raise ConfigurationError(
        f"the authority of {host}:{port} has the fingerprint {others}, not {fingerprint}: use the one that "
        "`rollcall token create` shows, or find out which server answers there"
    )


def _fingerprint_of(pem: str) -> str:
    try:
        return f"sha256:{hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()}"
    except ValueError:
        return "of no certificate"


def _download(host: str, port: int, server_name: str | None) -> str:
    # Accept any certificate. The server cannot be verified before its authority is known. The response is public, and
    # its fingerprint is checked.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    name = server_name or host
    connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=context)
    try:
        connection.request("GET", "/ca.pem", headers={"host": f"[{name}]:{port}" if ":" in name else f"{name}:{port}"})
        answer = connection.getresponse()
        text = answer.read(_MOST_BYTES).decode("latin-1")
        status = answer.status
    except (OSError, http.client.HTTPException) as error:
        message = f"cannot fetch the authority of {host}:{port}: {error}"
        raise UnreachableError(grpc.StatusCode.UNAVAILABLE, message) from error
    finally:
        connection.close()
    if status != 200:
        message = f"{host}:{port} serves no authority (status {status}): use the authority's file instead"
        raise UnreachableError(grpc.StatusCode.UNAVAILABLE, message)
    return text
