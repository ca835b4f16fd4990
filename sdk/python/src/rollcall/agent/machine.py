"""What tells this machine, and this boot of it, from others."""

from __future__ import annotations

import base64
import hashlib
import uuid
from pathlib import Path


def boot_id() -> str:
    """The id of this boot; one that lasts as long as this process where the kernel tells none."""
    return _read(Path("/proc/sys/kernel/random/boot_id")) or str(uuid.uuid4())


def machine_fingerprint() -> str:
    """A text that two machines do not share although one is a copy of the other's disk."""
    network = Path("/sys/class/net")
    folders = [one for one in (network.iterdir() if network.is_dir() else ()) if (one / "device").exists()]
    parts = [_read(Path("/etc/machine-id")), *sorted(_read(one / "address") for one in folders)]
    return base64.urlsafe_b64encode(hashlib.sha256("\n".join(parts).encode()).digest()).decode().rstrip("=")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
