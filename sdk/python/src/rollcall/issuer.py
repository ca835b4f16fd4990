"""Renews a login at its OpenID Connect issuer."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from .errors import ConfigurationError, UnreachableError

_TIMEOUT = 10.0
_MOST_ANSWER_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Renewal:
    """A new token, and its expiry in wall-clock seconds."""

    token: str
    refresh_token: str
    expires: float


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def renew_login(login: Mapping[str, Any], now: float) -> Renewal | None:
    """Get a new token, or None if the issuer no longer renews the login.

    Raises UnreachableError if the issuer does not respond, and ConfigurationError if it refuses.
    """
    issuer = str(login.get("issuer"))
    place = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    status, found = _send(place, None)
    endpoint = found.get("token_endpoint")
    if status != 200 or found.get("issuer") != issuer or not isinstance(endpoint, str):
        raise ConfigurationError(f"the server at {place} is not the issuer {issuer}")
    refresh_token = str(login["refresh_token"])
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": str(login.get("client_id"))}
    status, fields = _send(endpoint, form)
    if status != 200:
        if fields.get("error") == "invalid_grant":
            return None
        why = fields.get("error_description") or fields.get("error") or "without a reason"
        raise ConfigurationError(f"the issuer {issuer} refused the login: {why}")
    audience = str(login.get("audience") or "")
    for name in ("access_token", "id_token"):
        token = fields.get(name)
        claims = _claims(token) if isinstance(token, str) else {}
        given = claims.get("aud")
        if isinstance(token, str) and (audience in given if isinstance(given, list) else given == audience):
            expires = claims.get("exp") or now + float(fields.get("expires_in") or 300)
            # Keep the previous refresh token, because an issuer that does not rotate refresh tokens sends no new one.
            return Renewal(token, str(fields.get("refresh_token") or refresh_token), float(expires))
    raise ConfigurationError(f"the issuer {issuer} issued no token for the audience {audience}")


def _claims(token: str) -> Mapping[str, Any]:
    """Read the claims of a token without verifying them, because that is the server's task. Empty if the token is not a
    JWT.
    """
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, IndexError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _send(url: str, form: Mapping[str, str] | None) -> tuple[int, Mapping[str, Any]]:
    place = urllib.parse.urlsplit(url)
    # Require https, because a refresh token is sent to this address.
    if place.scheme != "https" and not (place.scheme == "http" and _is_local(place.hostname or "")):
        raise ConfigurationError(f"{url} is not an https:// address")
    data = None if form is None else urllib.parse.urlencode(form).encode()
    try:
        with _answer(urllib.request.Request(url, data)) as answer:
            fields = json.loads(answer.read(_MOST_ANSWER_BYTES))
            return answer.status, fields if isinstance(fields, dict) else {}
    except (OSError, ValueError) as error:
        message = f"cannot reach the issuer at {place.netloc}: {error}"
        raise UnreachableError(grpc.StatusCode.UNAVAILABLE, message) from error


def _answer(request: urllib.request.Request) -> Any:
    try:
        return _OPENER.open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as refusal:  # A refusal is a response.
        return refusal


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())
