"""Identifies this machine and its current boot."""

from __future__ import annotations

import base64
import hashlib
import uuid
from pathlib import Path


def boot_id() -> str:
    """Return the id of the machine's current boot. If the kernel provides no id, return a random id."""
    return _read(Path("/proc/sys/kernel/random/boot_id")) or str(uuid.uuid4())


def machine_fingerprint() -> str:
    """Return a value that differs between two machines even if their disks are copies of each other."""
    network = Path("/sys/class/net")
    folders = [one for one in (network.iterdir() if network.is_dir() else ()) if (one / "device").exists()]
    parts = [_read(Path("/etc/machine-id")), *sorted(_read(one / "address") for one in folders)]
    return base64.urlsafe_b64encode(hashlib.sha256("\n".join(parts).encode()).digest()).decode().rstrip("=")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
