"""Replaces the node's key, and resumes a rotation that a crash interrupted."""

from __future__ import annotations

import asyncio
import math
import random
from typing import TYPE_CHECKING

import grpc

from ..health.v1 import health_pb2
from .agent_machine import Event
from .ends import end_of_call
from .next_step import BACKOFF_BASE_MS, full_jitter
from .pace import ms_of

if TYPE_CHECKING:
    from .kit import Agent

_BACKOFF_MAX_MS = 300_000.0
# The time within which a stream with the next key should be open. After that time, the agent repeats the
# offer and signs it with the next key, which also counts as using that key.
_USE_WITHIN_MS = 15_000.0
# The maximum time between two checks of whether a rotation is due.
_LONGEST_WAIT_MS = 86_400_000.0


class Rotation:
    """Decides when an offer is due, and makes it. Only the agent's event loop uses it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._due_at_ms: float | None = None
        self._not_before_ms = 0.0
        self._failures = 0
        self._is_under_way = False
        self._alarm: asyncio.TimerHandle | None = None

    def heed(self, settings: health_pb2.Settings) -> None:
        """Apply the server's settings. Schedule a rotation if they request one, and otherwise cancel it."""
        if not settings.HasField("rotate_key_within"):
            self._due_at_ms = None
        elif self._due_at_ms is None:
            self._due_at_ms = self._agent.now_ms() + random.random() * ms_of(settings.rotate_key_within)
        self.look()

    def used(self) -> None:
        """Record that the next key has become the node's key."""
        self._due_at_ms, self._failures, self._not_before_ms = None, 0, 0.0

    def look(self) -> None:
        """Make an offer when one is due, and schedule the next check."""
        if self._is_under_way:
            return
        agent = self._agent
        now = agent.now_ms()
        at = now
        if agent.identity.state.phase == "settled":
            at = math.inf if self._due_at_ms is None else self._due_at_ms
            interval = agent.options.key_rotation_interval
            if interval > 0:
                age = max(0.0, agent.options.wall_clock() - agent.identity.made_at)
                at = min(at, now + (interval - age) * 1000)
        if self._alarm is not None:
            self._alarm.cancel()
        if at == math.inf:
            return
        at = min(max(at, self._not_before_ms), now + _LONGEST_WAIT_MS)
        if at > now:
            self._alarm = agent.call_at(at, self.look)
        else:
            self._is_under_way = True
            agent.spawn(asyncio.ensure_future(self._offer()))

    async def _offer(self) -> None:
        agent = self._agent
        identity = agent.identity
        key = identity.to_use()
        try:
            answer = await agent.registrar.rotate_key(key, identity.prepare_next())
            identity.become(identity.state.after_answer(answer.key_fingerprint, answer.next_key_fingerprint))
        except (grpc.RpcError, OSError) as error:
            has_other_key = False
            if isinstance(error, grpc.RpcError) and end_of_call(error).reason == "PROOF_INVALID":
                has_other_key = identity.refused(key)
            spread = full_jitter(self._failures, BACKOFF_BASE_MS, _BACKOFF_MAX_MS, random.random())
            # Try the other key immediately, because the server may have accepted it although its response
            # was lost.
            wait = 0.0 if has_other_key and self._failures == 0 else BACKOFF_BASE_MS + spread
            self._failures += 1
            self._not_before_ms = agent.now_ms() + wait
            agent.log.warning("key cannot be rotated, retry in %d ms: %s", wait, error)
        else:
            self._failures = 0
            if identity.state.phase == "settled":
                self.used()
            else:
                self._not_before_ms = agent.now_ms() + _USE_WITHIN_MS
                agent.dispatch(Event("move-asked", is_own_wish=True))
        finally:
            self._is_under_way = False
        self.look()
