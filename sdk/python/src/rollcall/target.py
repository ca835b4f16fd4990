"""Which control plane a program talks to, by the rules of the command line.

What is named in the code wins, then the context that is named, then the environment, then the context in use, then
what the running ``rollcall up`` of this user wrote, then 127.0.0.1:7700.
"""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

SERVICES = ("registry", "health", "admin", "scheduler")
_DEFAULT_SERVER = "127.0.0.1:7700"
_SYSTEM_DIRECTORY = Path("/var/lib/rollcall")


class ConfigurationError(ValueError):
    """A context, an address or a file that cannot be used; the message says which, and where it came from."""


@dataclass(frozen=True)
class Address:
    """One service's address."""

    host: str
    port: int
    is_tls: bool

    @property
    def authority(self) -> str:
        """HOST:PORT, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def identity(self) -> tuple[str, bool]:
        """What tells two addresses apart."""
        return self.authority, self.is_tls

    @property
    def is_loopback(self) -> bool:
        """Whether calls never leave this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True)
class Target:
    """Addresses, credentials and trust."""

    addresses: Mapping[str, Address]
    token: str | None
    """The access token itself."""
    token_file: Path | None
    """A file that holds it, read again for each call."""
    token_addresses: frozenset[tuple[str, bool]] | None
    """HOST:PORT, and whether by TLS, to which alone the token is sent; None for all."""
    ca_file: Path | None
    server_name: str | None
    client_certificate: tuple[Path, Path] | None
    """Certificate and key, PEM."""


@dataclass(frozen=True)
class Options:
    """What a program names itself; None leaves it to the context, the environment and the defaults."""

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


def resolve_target(
    options: Options, env: Mapping[str, str] = os.environ, home: Path | None = None, cwd: Path | None = None
) -> Target:
    """Find the control plane. Raises ConfigurationError; connects to nothing."""
    home = home or Path.home()
    cwd = cwd or Path.cwd()
    data_directory = _data_directory(env, home, cwd)
    run = _run_file(data_directory)
    context = _context(options, env, home)
    named = options.context is not None
    ca_file = _path(options.ca_file or env.get("ROLLCALL_CA_FILE") or None, cwd)
    server_name = options.server_name or env.get("ROLLCALL_TLS_SERVER_NAME") or None
    client_certificate = _client_certificate(options, env, cwd)
    is_elsewhere = any(getattr(options, name) for name in ("server", *SERVICES)) or (
        not named and any(env.get(f"ROLLCALL_{name.upper()}") for name in ("server", *SERVICES))
    )
    own_tls = run.get("tls") if run else None
    wants_tls = bool(ca_file or server_name or client_certificate)
    if ca_file is None and not is_elsewhere and context.get("ca_file"):
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
        is_own = run is not None and text == run.get("server") and own_tls is not None
        addresses[service] = parse_address(str(text), source, wants_tls or is_own)
        if is_own and own_tls:
            ca_file = ca_file or (Path(own_tls["caFile"]) if own_tls.get("caFile") else None)
            server_name = server_name or own_tls.get("serverName")

    token, token_file, allowed = _token(options, env, context, named, addresses, data_directory, run, cwd)
    return Target(addresses, token, token_file, allowed, ca_file, server_name, client_certificate)


def parse_address(text: str, source: str, is_tls: bool) -> Address:
    """Read HOST:PORT or a URL. Raises ConfigurationError, which names the source."""
    has_scheme = text.lower().startswith(("http://", "https://"))
    try:
        url = urlsplit(text if has_scheme else f"{'https' if is_tls else 'http'}://{text}")
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    is_plain = url.hostname and not (url.username or url.password or url.query or url.fragment)
    if not is_plain or (port is None and not has_scheme):
        raise ConfigurationError(f"cannot use {text!r} from {source} as an address: HOST:PORT or a URL is needed")
    secure = url.scheme.lower() == "https"
    return Address(str(url.hostname), port or (443 if secure else 80), secure)


def _token(
    options: Options,
    env: Mapping[str, str],
    context: Mapping[str, object],
    named: bool,
    addresses: Mapping[str, Address],
    data_directory: Path,
    run: Mapping[str, Any] | None,
    cwd: Path,
) -> tuple[str | None, Path | None, frozenset[tuple[str, bool]] | None]:
    if options.token is not None or options.token_file is not None:
        return options.token, _path(options.token_file, cwd), None
    # A context's token goes to the addresses that the context names alone: any other server could misuse it.
    wants_tls = bool(context.get("ca_file"))
    named_by_context = [str(context[name]) for name in ("server", *SERVICES) if context.get(name)]
    of_context = frozenset(parse_address(text, "the context", wants_tls).identity for text in named_by_context)
    context_token = str(context["token"]) if context.get("token") else None
    context_file = Path(str(context["token_file"])) if context.get("token_file") else None
    has_context_token = context_token is not None or context_file is not None
    if named and has_context_token:
        return context_token, context_file, of_context
    if env.get("ROLLCALL_TOKEN") or env.get("ROLLCALL_TOKEN_FILE"):
        token = env.get("ROLLCALL_TOKEN") or None
        return token, None if token else _path(env.get("ROLLCALL_TOKEN_FILE"), cwd), None
    if has_context_token:
        return context_token, context_file, of_context
    admin_token = data_directory / "admin-token"
    written = (run.get("server"), run.get("tls") is not None) if run else None
    own = frozenset(it.identity for it in addresses.values() if it.is_loopback or it.identity == written)
    return None, admin_token if admin_token.is_file() else None, own


def _context(options: Options, env: Mapping[str, str], home: Path) -> Mapping[str, object]:
    wanted = options.context or env.get("ROLLCALL_CONTEXT") or None
    base = env.get("XDG_CONFIG_HOME", "")
    path = (Path(base) if base.startswith("/") else home / ".config") / "rollcall" / "config.yaml"
    try:
        file = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        file = {}
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error
    contexts = file.get("contexts") if isinstance(file, dict) else None
    name = wanted or (file.get("current_context") if isinstance(file, dict) else None)
    if name is None:
        return {}
    found = contexts.get(name) if isinstance(contexts, dict) else None
    if not isinstance(found, dict):
        raise ConfigurationError(f"there is no context {name!r} in {path}")
    return found


def _client_certificate(options: Options, env: Mapping[str, str], cwd: Path) -> tuple[Path, Path] | None:
    certificate, key = options.client_certificate or (env.get("ROLLCALL_CLIENT_CERT"), env.get("ROLLCALL_CLIENT_KEY"))
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise ConfigurationError("a client certificate and its key go together")
    return cwd / certificate, cwd / key


def _data_directory(env: Mapping[str, str], home: Path, cwd: Path) -> Path:
    named = env.get("ROLLCALL_DATA_DIR")
    if named:
        return cwd / named
    # Another user's directory could send calls, and the token with them, to a server of theirs.
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
