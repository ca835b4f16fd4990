"""Finds the control plane by the rules of the command line.

The order is: the arguments in code, the named context, the environment, the current context, the file of this user's
running ``rollcall up``, and 127.0.0.1:7700.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .authority import parse_fingerprint
from .contexts import CONTEXT_NAME, context_file, read_context
from .credentials import NO_TOKEN, Credential, Login, Token, TokenFile
from .errors import ConfigurationError

SERVICES = ("registry", "health", "admin", "scheduler")
_DEFAULT_SERVER = "127.0.0.1:7700"
_SYSTEM_DIRECTORY = Path("/var/lib/rollcall")


@dataclass(frozen=True)
class Address:
    """One service's address."""

    host: str
    port: int
    is_tls: bool

    @property
    def authority(self) -> str:
        """HOST:PORT, with an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def identity(self) -> tuple[str, bool]:
        """Distinguishes two addresses."""
        return self.authority, self.is_tls

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine, so that calls to it never leave the machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True)
class Target:
    """The addresses, credentials and TLS settings of a control plane."""

    addresses: Mapping[str, Address]
    credentials: Mapping[str, Credential]
    """The credential for each service, keyed by service name."""
    ca_file: Path | None
    ca_fingerprint: str | None
    """The authority's fingerprint, in the format of :func:`rollcall.authority.parse_fingerprint`. If set, the client
    fetches the authority.
    """
    server_name: str | None
    client_certificate: tuple[Path, Path] | None
    """The client's certificate and key in PEM."""
    own: tuple[str, bool] | None = None
    """The identity of the server of this user's running ``rollcall up``."""
    own_ca_file: Path | None = None
    own_server_name: str | None = None

    def trust_for(self, address: Address) -> tuple[Path | None, str | None]:
        """Return the authority file and the certificate name for an address. Those in the run file apply only to the
        server that wrote it.
        """
        if address.identity != self.own:
            return self.ca_file, self.server_name
        own_ca_file = None if self.ca_fingerprint else self.own_ca_file
        return self.ca_file or own_ca_file, self.server_name or self.own_server_name


@dataclass(frozen=True)
class Options:
    """What a program sets. None means that the value comes from the context, the environment or the defaults."""

    server: str | None = None
    registry: str | None = None
    health: str | None = None
    admin: str | None = None
    scheduler: str | None = None
    token: str | None = None
    token_file: str | os.PathLike[str] | None = None
    ca_file: str | os.PathLike[str] | None = None
    server_name: str | None = None
    client_certificate: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None
    context: str | None = None
    ca_fingerprint: str | None = None


def resolve_target(
    options: Options, env: Mapping[str, str] = os.environ, home: Path | None = None, cwd: Path | None = None
) -> Target:
    """Find the control plane without connecting. Raises ConfigurationError."""
    home = home or Path.home()
    cwd = cwd or Path.cwd()
    data_directory = _data_directory(env, home, cwd)
    run = _run_file(data_directory)
    path = context_file(env, home)
    context = read_context(path, options.context or env.get("ROLLCALL_CONTEXT") or None)
    named = options.context is not None
    fingerprint = parse_fingerprint(options.ca_fingerprint) if options.ca_fingerprint else None
    if fingerprint and options.ca_file:
        raise ConfigurationError("ca_file and ca_fingerprint cannot be combined")
    ca_file = _path(options.ca_file or (None if fingerprint else env.get("ROLLCALL_CA_FILE")) or None, cwd)
    server_name = options.server_name or env.get("ROLLCALL_TLS_SERVER_NAME") or None
    client_certificate = _client_certificate(options, env, cwd)
    is_elsewhere = any(getattr(options, name) for name in ("server", *SERVICES)) or (
        not named and any(env.get(f"ROLLCALL_{name.upper()}") for name in ("server", *SERVICES))
    )
    own_tls = run.get("tls") if run else None
    wants_tls = bool(ca_file or fingerprint or server_name or client_certificate)
    if ca_file is None and fingerprint is None and not is_elsewhere and context.get("ca_file"):
        ca_file, wants_tls = Path(str(context["ca_file"])), True

    addresses: dict[str, Address] = {}
    for service in SERVICES:
        in_context = context.get(service) or context.get("server")
        candidates = (
            (getattr(options, service), service),
            (options.server, "server"),
            (in_context if named else None, "the context"),
            (env.get(f"ROLLCALL_{service.upper()}"), f"ROLLCALL_{service.upper()}"),
            (env.get("ROLLCALL_SERVER"), "ROLLCALL_SERVER"),
            (in_context, "the context"),
            (run.get("server") if run else None, "the run file"),
            (_DEFAULT_SERVER, "the default"),
        )
        text, source = next((text, source) for text, source in candidates if text)
        addresses[service] = parse_address(str(text), source, wants_tls or _is_own(str(text), run))

    find = _CredentialFinder(options, env, context, path, data_directory, run, cwd, wants_tls)
    credentials = {service: find(address) for service, address in addresses.items()}
    own_ca_file = Path(own_tls["caFile"]) if own_tls and own_tls.get("caFile") else None
    return Target(
        addresses,
        credentials,
        ca_file,
        fingerprint,
        server_name,
        client_certificate,
        find.own,
        own_ca_file,
        own_tls.get("serverName") if own_tls else None,
    )


def parse_address(text: str, source: str, is_tls: bool) -> Address:
    """Parse HOST:PORT or a URL. Raises a ConfigurationError that names the source."""
    read = _read_address(text.strip(), is_tls)
    if isinstance(read, Address):
        return read
    raise ConfigurationError(
        f'cannot use "{_shown(text)}" from {source} as an address: {read}; HOST:PORT or a URL such as '
        "https://rollcall.example:7700 is needed"
    )


def _read_address(text: str, is_tls: bool) -> Address | str:
    """Parse an address. Returns problems as text, without the address, which may contain a password."""
    scheme, found, rest = text.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        scheme, rest = "", text
    if scheme.lower() not in ("", "http", "https"):
        return "its scheme is not http or https"
    if "@" in rest:
        return "it must have no user and no password"
    if "?" in rest or "#" in rest:
        return "it must have no query and no fragment"
    authority, _, path = rest.partition("/")
    if path:
        return "it must have no path"
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", authority)
    parts = bracketed or re.fullmatch(r"([^:]*)(?::([^:]*))?", authority)
    if parts is None:
        return "an IPv6 address needs brackets, as in [::1]:7700"
    host, port = parts[1], parts[2]
    problem = _ipv6_problem(host) if bracketed else _name_problem(host)
    if problem:
        return problem
    # Refuse HOST without a port. It would silently mean port 80, where no Rollcall service listens.
    if not scheme and port is None:
        return "it has no port"
    if port is not None and not (re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65_535):
        return "its port must be from 1 to 65535"
    secure = scheme.lower() == "https" if scheme else is_tls
    return Address(host.lower(), int(port or (443 if secure else 80)), secure)


def _ipv6_problem(host: str) -> str | None:
    if "%" in host:
        return "an IPv6 address cannot have a zone here"
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return "its IPv6 address is invalid"
    return None


def _name_problem(host: str) -> str | None:
    if not host:
        return "it has no host"
    if re.search(r"[^ -~]", host):
        return "its host is not in ASCII: write a name of another script as xn--..."
    if len(host) > _LONGEST_HOST or not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?", host):
        return "its host is invalid"
    # Refuse a name whose last part is a number, unless it is a valid IP address. Programs differ in how they parse such
    # a name as an address.
    if re.search(r"(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\.?$", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return "its IPv4 address is invalid"
    return None


_LONGEST_HOST = 253


def _shown(text: str) -> str:
    """The address without any part that may be a password or a token."""
    without_user = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", r"\1***@", text.strip(), flags=re.DOTALL)
    return re.sub(r"[?#].*$", "", without_user, flags=re.DOTALL)


class _CredentialFinder:
    """The token for one address. A context's token is sent only to the addresses in the context. The data directory's
    token is sent only to this machine and to the server that wrote it. Any other server could misuse the token.
    """

    def __init__(
        self,
        options: Options,
        env: Mapping[str, str],
        context: Mapping[str, object],
        context_path: Path,
        data_directory: Path,
        run: Mapping[str, Any] | None,
        cwd: Path,
        wants_tls: bool,
    ) -> None:
        # If a script's variable is unset, do not fall back to another token, which may have more rights.
        for name, value in (("token", options.token), ("token_file", options.token_file)):
            if value is not None and not str(value).strip():
                raise ConfigurationError(f"{name} is empty")
        self._said = _token_or_file(options.token, options.token_file, cwd)
        self._in_environment = _token_or_file(env.get("ROLLCALL_TOKEN"), env.get("ROLLCALL_TOKEN_FILE"), cwd)
        self._is_named = options.context is not None
        self._in_context = _of_context(context, context_path)
        # A context that uses TLS always uses it, regardless of other settings, so that its token is never sent in clear
        # text.
        wants_tls = wants_tls or bool(context.get("ca_file"))
        texts = [str(context[name]) for name in ("server", *SERVICES) if context.get(name)]
        self._of_context = {
            parse_address(text, "the context", wants_tls or _is_own(text, run)).identity for text in texts
        }
        self.own = (str(run.get("server")), run.get("tls") is not None) if run else None
        self._admin = TokenFile(data_directory / "admin-token", is_required=False)

    def __call__(self, address: Address) -> Credential:
        if self._said is not None:
            return self._said
        in_context = self._in_context if address.identity in self._of_context else None
        if self._is_named and in_context is not None:
            return in_context
        if self._in_environment is not None:
            return self._in_environment
        if in_context is not None:
            return in_context
        return self._admin if address.is_loopback or address.identity == self.own else NO_TOKEN


def _is_own(text: str, run: Mapping[str, Any] | None) -> bool:
    """Whether the text is exactly the address of the running ``rollcall up`` and that server uses TLS."""
    return run is not None and run.get("tls") is not None and text == run.get("server")


def _of_context(context: Mapping[str, object], path: Path) -> Credential | None:
    if context.get("oidc"):
        return Login(path, str(context[CONTEXT_NAME]))
    text = context.get("token")
    file = context.get("token_file")
    return _token_or_file(str(text) if text else None, str(file) if file else None, Path("/"))


def _token_or_file(token: str | None, file: str | os.PathLike[str] | None, cwd: Path) -> Credential | None:
    if token:
        return Token(token.strip())
    return TokenFile(cwd / file, is_required=True) if file else None


def _client_certificate(options: Options, env: Mapping[str, str], cwd: Path) -> tuple[Path, Path] | None:
    certificate, key = options.client_certificate or (env.get("ROLLCALL_CLIENT_CERT"), env.get("ROLLCALL_CLIENT_KEY"))
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise ConfigurationError("a client certificate and its key must be set together")
    return cwd / certificate, cwd / key


def _data_directory(env: Mapping[str, str], home: Path, cwd: Path) -> Path:
    named = env.get("ROLLCALL_DATA_DIR")
    if named:
        return cwd / named
    # Ignore another user's directory. It could redirect calls and their token to that user's server.
    if _is_ours(cwd / ".rollcall"):
        return cwd / ".rollcall"
    own = home / ".rollcall"
    return _SYSTEM_DIRECTORY if os.geteuid() == 0 and not _is_ours(own) else own


def _is_ours(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _run_file(data_directory: Path) -> Mapping[str, Any] | None:
    try:
        value = json.loads((data_directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("server"), str) else None


def _path(value: str | os.PathLike[str] | None, cwd: Path) -> Path | None:
    return None if value is None else cwd / value
