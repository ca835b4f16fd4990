"""The keys that a node has, as fingerprints. All of them are on the disk."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class KeyState:
    """The node's key, and the one that it rotates to."""

    phase: str
    """"settled", "prepared" (the server may not have the next key yet) or "offered" (the next key is tried first)."""
    current: str
    next: str = ""

    @staticmethod
    def on_disk(current: str, next_key: str | None) -> KeyState:
        """What an agent knows when it starts."""
        return (
            KeyState("prepared", current, next_key)
            if next_key and next_key != current
            else KeyState("settled", current)
        )

    @property
    def to_use(self) -> str:
        """The key with which to sign the next proof."""
        return self.next if self.phase == "offered" else self.current

    def after_new_key(self, next_key: str) -> KeyState:
        """A next key is on the disk. A rotation that is under way goes on with the key that it has."""
        return KeyState("prepared", self.current, next_key) if self.phase == "settled" else self

    def after_answer(self, current: str, next_key: str) -> KeyState:
        """The server answered an offer. Late answers to earlier offers name other keys, and change nothing."""
        if self.phase == "settled":
            return self
        if current == self.next:
            return KeyState("settled", self.next)
        return replace(self, phase="offered") if next_key == self.next else self

    def after_accepted(self, used: str) -> KeyState:
        """The server took a proof by this key. If it is the next one, it is the only one that counts from now on."""
        return self if self.phase == "settled" or used != self.next else KeyState("settled", used)

    def after_refused(self, used: str) -> KeyState:
        """The server refused a proof by this key: the other one is tried next. No key is given up for a refusal."""
        if self.phase == "settled":
            return self
        if used == self.current:
            return replace(self, phase="offered")
        return replace(self, phase="prepared") if used == self.next else self
