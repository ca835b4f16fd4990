"""The fingerprints of the node's keys. All of these keys are on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class KeyState:
    """The node's current key, and the key that it rotates to."""

    phase: str
    """"settled", "prepared" (the server may not have the next key yet) or "offered" (the next key is tried first)."""
    current: str
    next: str = ""

    @staticmethod
    def on_disk(current: str, next_key: str | None) -> KeyState:
        """Return the state when the agent starts."""
        return (
            KeyState("prepared", current, next_key)
            if next_key and next_key != current
            else KeyState("settled", current)
        )

    @property
    def to_use(self) -> str:
        """The key that signs the next proof."""
        return self.next if self.phase == "offered" else self.current

    def after_new_key(self, next_key: str) -> KeyState:
        """Return the state after a next key was written to disk. A rotation in progress continues with its own key."""
        return KeyState("prepared", self.current, next_key) if self.phase == "settled" else self

    def after_answer(self, current: str, next_key: str) -> KeyState:
        """Return the state after the server responded to an offer. A late response to an earlier offer names other keys
        and changes nothing.
        """
        if self.phase == "settled":
            return self
        if current == self.next:
            return KeyState("settled", self.next)
        return replace(self, phase="offered") if next_key == self.next else self

    def after_accepted(self, used: str) -> KeyState:
        """Return the state after the server accepted a proof by this key. If it is the next key, it becomes the only
        one.
        """
        return self if self.phase == "settled" or used != self.next else KeyState("settled", used)

    def after_refused(self, used: str) -> KeyState:
        """Return the state after the server refused a proof by this key. The other key is tried next. A refusal never
        drops a key.
        """
        if self.phase == "settled":
            return self
        if used == self.current:
            return replace(self, phase="offered")
        return replace(self, phase="prepared") if used == self.next else self
