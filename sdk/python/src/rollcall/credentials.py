"""Authenticates calls to one service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .contexts import expires_at, read_context, save_login
from .errors import ConfigurationError
from .issuer import Renewal, renew_login

# How long before its expiry a token is renewed, so that it does not expire during a call.
_MARGIN = 30.0
# If the issuer refuses a refresh token, another program may have just used it and be about to save its successor. A
# call therefore reads the file up to _LOOKS times, every _LOOK_EVERY seconds. After that, the token counts as
# refused for _REFUSAL_LASTS seconds, and no request is sent to the issuer.
_LOOKS = 20
_LOOK_EVERY = 0.1
_REFUSAL_LASTS = 30.0


class Credential(Protocol):
    """A source of tokens."""

    def token(self) -> str | None:
        """The token to send now; None if there is none. Raises ConfigurationError, and UnreachableError if the issuer
        does not respond.
        """


class _NoToken:
    def token(self) -> str | None:
        return None


NO_TOKEN = _NoToken()


@dataclass(frozen=True)
class Token:
    """A credential that always returns this token."""

    text: str

    def token(self) -> str | None:
        """Return the token."""
        return self.text


@dataclass(frozen=True)
class TokenFile:
    """A token file. It is read for each call, because it may be replaced while the program runs."""

    path: Path
    is_required: bool

    def token(self) -> str | None:
        """Return the token in the file. Raises ConfigurationError."""
        try:
            text = self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            if not self.is_required and isinstance(error, FileNotFoundError):
                return None
            raise ConfigurationError(f"cannot read the access token in {self.path}: {error.strerror}") from error
        if text == "" and self.is_required:
            raise ConfigurationError(f"cannot read the access token: there is none in {self.path}")
        return text or None


class Login:
    """The token of a context that logged in through an issuer.

    Before the token expires, it is renewed once on behalf of all calls, and saved.
    """

    def __init__(self, path: Path, context: str, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._name = context
        self._now = now
        self._lock = threading.Lock()
        self._token: str | None = None
        self._expires = 0.0
        # New refresh tokens that could not be saved, keyed by the refresh token that is still in the file.
        self._unsaved: dict[str | None, str] = {}
        # The refresh token that the issuer refused.
        self._refused: str | None = None
        self._refused_at = 0.0
        self._is_final = False

    def token(self) -> str | None:
        """The token, renewed if a renewal is due. Raises ConfigurationError if the login has expired."""
        for look in range(_LOOKS):
            if look > 0:
                time.sleep(_LOOK_EVERY)
            with self._lock:
                token = self._look(is_last=look == _LOOKS - 1)
            if token is not None:
                return token
        raise self._over()

    def _look(self, is_last: bool) -> str | None:
        """The token; None if another program may still save a new one."""
        if self._is_good():
            return self._token
        # The command line or another program may have renewed the token in the meantime.
        context = read_context(self._path, self._name)
        login = context.get("oidc")
        if not isinstance(login, dict):
            raise ConfigurationError(f"context {self._name} no longer has a login")
        self._token, self._expires = context.get("token"), expires_at(login)
        if self._is_good():
            return self._token
        saved = login.get("refresh_token")
        refresh_token = self._unsaved.get(saved, saved)
        if not refresh_token:
            raise self._over()
        if not self._is_refused(refresh_token):
            renewed = renew_login({**login, "refresh_token": refresh_token}, self._now())
            if renewed is not None:
                self._keep(renewed, saved)
                return self._token
            self._is_final = self._is_final and refresh_token == self._refused
            self._refused, self._refused_at = refresh_token, self._now()
        # Whether the refusal is final. It becomes final if the file still contains the token when a call reads it for
        # the last time.
        self._is_final = self._is_final or is_last
        if self._is_final:
            raise self._over()
        return None

    def _is_refused(self, refresh_token: str) -> bool:
        return refresh_token == self._refused and 0 <= self._now() - self._refused_at < _REFUSAL_LASTS

    def _over(self) -> ConfigurationError:
        return ConfigurationError(
            f"the login of context {self._name} has expired: "
            f"log in again with `rollcall login --oidc --context {self._name}`"
        )

    def _keep(self, renewed: Renewal, saved: str | None) -> None:
        self._token, self._expires = renewed.token, renewed.expires
        self._refused, self._is_final = None, False
        try:
            save_login(self._path, self._name, renewed.token, renewed.refresh_token, renewed.expires)
        except ConfigurationError:
            # The file may be read-only, such as a mounted secret. Continue with the new refresh token in memory.
            self._unsaved = {saved: renewed.refresh_token}

    def _is_good(self) -> bool:
        return self._token is not None and self._expires - _MARGIN > self._now()
