"""The directory that stores an agent's identity."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .keys import KeyState
from .proof import key_fingerprint

if sys.platform != "win32":
    import fcntl

_KEY_FILE = "node-key.pem"
_NEXT_KEY_FILE = "node-key.next.pem"
_SENTINEL_FILE = "sentinel.json"
_LOCK_FILE = "lock"


@dataclass(frozen=True)
class Sentinel:
    """What an agent saves about its registration. If any part of it is invalid, the agent registers again."""

    node_id: str
    key_fingerprint: str
    cluster_id: str
    health_endpoints: tuple[str, ...]


class Identity:
    """The node's keys, in memory and on disk. The first start creates a key.

    Raises OSError for a directory that is unusable or that another agent uses, and ValueError for an unreadable key.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        self.directory = directory
        self._lock = _lock(directory)
        self._pairs: dict[str, Ed25519PrivateKey] = {}
        try:
            self.state = self._load_keys()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Unlock the directory for other agents."""
        self._lock.close()

    @property
    def made_at(self) -> float:
        """When the node's key was created, in seconds since 1970."""
        return (self.directory / _KEY_FILE).stat().st_mtime

    def has(self, fingerprint: str) -> bool:
        """Whether the agent has the key with this fingerprint."""
        return fingerprint in self._pairs

    def to_use(self) -> Ed25519PrivateKey:
        """The key that signs the next proof."""
        return self._pairs[self.state.to_use]

    def prepare_next(self) -> Ed25519PrivateKey:
        """Return the key to rotate to, and create it if there is none.

        The key is on disk before the server receives it.
        """
        if self.state.phase == "settled":
            key = Ed25519PrivateKey.generate()
            _write_key(self.directory / _NEXT_KEY_FILE, key)
            self.state = self.state.after_new_key(self._add(key))
        return self._pairs[self.state.next]

    def become(self, state: KeyState) -> None:
        """Apply a state. If the next key has become the node's key, it replaces the old key on disk. Raises OSError."""
        before = self.state
        if state.phase == "settled" and before.phase != "settled" and state.current == before.next:
            # If the adoption fails, both keys are still on disk, and the agent tries the next key first.
            self.state = KeyState("offered", before.current, before.next)
            self._adopt(before)
            self._pairs.pop(before.current, None)
        self.state = state

    def refused(self, used: Ed25519PrivateKey) -> bool:
        """Record that the server refused a key. Return whether to try the other one."""
        before = self.state.to_use
        self.state = self.state.after_refused(fingerprint_of(used))
        return self.state.to_use != before

    def read_sentinel(self) -> Sentinel | None:
        """Read the registration that an earlier run saved."""
        try:
            found = json.loads((self.directory / _SENTINEL_FILE).read_text(encoding="utf-8"))
            endpoints = tuple(str(one) for one in found["healthEndpoints"])
            sentinel = Sentinel(found["nodeId"], found["keyFingerprint"], found["clusterId"], endpoints)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return sentinel if endpoints else None

    def write_sentinel(self, sentinel: Sentinel) -> None:
        """Save a registration. Raises OSError."""
        names = ("nodeId", "keyFingerprint", "clusterId", "healthEndpoints")
        text = json.dumps(dict(zip(names, asdict(sentinel).values(), strict=True)), indent=2)
        write_atomically(self.directory / _SENTINEL_FILE, f"{text}\n".encode())

    def remove_sentinel(self) -> None:
        """Remove the saved registration. Raises OSError."""
        (self.directory / _SENTINEL_FILE).unlink(missing_ok=True)

    def _load_keys(self) -> KeyState:
        path = self.directory / _KEY_FILE
        if not path.exists():
            _write_key(path, Ed25519PrivateKey.generate())
        current = self._add(_read_key(path))
        next_key = None
        # Ignore an unreadable next key. The server accepts the current key until the next one is used.
        with suppress(OSError, ValueError):
            next_key = self._add(_read_key(self.directory / _NEXT_KEY_FILE))
        return KeyState.on_disk(current, next_key)

    def _adopt(self, before: KeyState) -> None:
        # Write the sentinel first, so that it still names one of the agent's keys if the agent crashes in between.
        known = self.read_sentinel()
        if known is not None and known.key_fingerprint == before.current:
            self.write_sentinel(replace(known, key_fingerprint=before.next))
        (self.directory / _NEXT_KEY_FILE).replace(self.directory / _KEY_FILE)

    def _add(self, key: Ed25519PrivateKey) -> str:
        fingerprint = fingerprint_of(key)
        self._pairs[fingerprint] = key
        return fingerprint


def _lock(directory: Path) -> IO[bytes]:
    """Lock the directory while the returned file is open. Two agents would share one identity and start work twice."""
    file = open(directory / _LOCK_FILE, "ab")
    try:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise OSError(errno.EBUSY, "another agent uses this state directory", str(directory)) from None
    except OSError:
        # Continue, because the agent can also run on a file system without locks.
        pass
    return file


def public_key(key: Ed25519PrivateKey) -> bytes:
    """Return the public key as the 32 bytes that are registered."""
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def fingerprint_of(key: Ed25519PrivateKey) -> str:
    """Return the fingerprint that identifies a key in messages."""
    return key_fingerprint(public_key(key))


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file. A crash leaves either the old file or the complete new one, synced to disk and readable only by
    its owner.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(
            f"{path} is not an Ed25519 private key; restore it, or remove it and have the node deleted "
            "so that it can register again"
        )
    return key


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_atomically(path, pem)
