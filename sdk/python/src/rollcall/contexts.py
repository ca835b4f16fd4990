"""The contexts of the command line, which ``rollcall login`` writes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigurationError

# The key under which a context holds its own name. The file stores the name outside the context.
CONTEXT_NAME = "_name"
_PREFACE = "# Written by `rollcall login` and `rollcall context`. It holds tokens: keep it private.\n"


def context_file(env: Mapping[str, str], home: Path) -> Path:
    """The path of the file with the contexts."""
    # Ignore a relative path, as the XDG standard requires.
    base = env.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else home / ".config") / "rollcall" / "config.yaml"


def read_context(path: Path, wanted: str | None) -> Mapping[str, Any]:
    """Read the named context, or the current one. Return an empty context if none is in use. Raises
    ConfigurationError.
    """
    file = _load(path)
    contexts = file.get("contexts")
    name = wanted or file.get("current_context")
    if name is None:
        return {}
    found = contexts.get(name) if isinstance(contexts, dict) else None
    if not isinstance(found, dict):
        raise ConfigurationError(f"there is no context {name!r} in {path}")
    return {**found, CONTEXT_NAME: name}


def expires_at(login: Mapping[str, Any]) -> float:
    """Return when a login's token expires, in wall-clock seconds. An unreadable time counts as expired."""
    value = login.get("expires_at")
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    if not isinstance(value, datetime):
        return 0.0
    return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()


def save_login(path: Path, name: str, token: str, refresh_token: str, expires: float) -> None:
    """Save a renewed token in its context, unless the context is gone. Raises ConfigurationError."""
    file = _load(path)
    context = file.get("contexts", {}).get(name)
    if not isinstance(context, dict) or not isinstance(context.get("oidc"), dict):
        return
    context["token"] = token
    context["oidc"]["refresh_token"] = refresh_token
    until = datetime.fromtimestamp(expires, timezone.utc)
    context["oidc"]["expires_at"] = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    draft: str | None = None
    try:
        # Only the owner can read the draft.
        handle, draft = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as writing:
            writing.write(_PREFACE + yaml.safe_dump(file, sort_keys=False))
            writing.flush()
            os.fsync(writing.fileno())
        # Rename the draft, so that a concurrent reader sees either the old file or the complete new
        # file.
        os.replace(draft, path)
    except OSError as error:
        if draft is not None:
            with contextlib.suppress(OSError):
                os.unlink(draft)
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error


def _load(path: Path) -> dict[str, Any]:
    try:
        file = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error
    return file if isinstance(file, dict) else {}
