"""One heartbeat stream, which carries out what step_session() decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from ..health.v1 import health_pb2
from ..node.v1 import node_pb2, usage_pb2
from .authorities import Decision
from .ends import end_of_status
from .next_step import End
from .output import report_parts, send_output
from .pace import Pace
from .proof import HEARTBEAT_METHOD, node_info_digest, proof_text
from .registrar import open_channel
from .reports import ReportState
from .session_machine import NEVER, SessionEffect, SessionEvent, SessionState, step_session
from .trust import UntrustedError

if TYPE_CHECKING:
    from .kit import Agent

# The maximum number of queued frames. The agent abandons a stream that exceeds it.
_MOST_UNSENT = 512
# The maximum time that a Hello waits for the digest of the machine's description.
_DIGEST_LIMIT_MS = 2_000.0
# The maximum number of outputs that are read at a time.
_MOST_READINGS = 16
# The time in seconds before announced authorities are checked again, after a check that could not be made. The
# check opens a connection, which can fail for other reasons.
_TAKE_AGAIN = 30.0
_TOTALS = ("memory_total_mib", "disk_total_mib")


class Stream:
    """Carries out one heartbeat stream. Only the agent's event loop uses it."""

    def __init__(self, agent: Agent, endpoint: str, pace: Pace) -> None:
        self._agent = agent
        self.endpoint = endpoint
        self.key = agent.identity.to_use()
        """The key that signs the Hello."""
        self.welcome: health_pb2.Welcome | None = None
        now = agent.now_ms()
        check_ms = agent.options.info_check_interval * 1000
        self.state = SessionState.begin(pace, check_ms, now, ReportState.begin(True, now))
        self._unsent: asyncio.Queue[health_pb2.HeartbeatRequest | None] = asyncio.Queue(_MOST_UNSENT)
        self._is_finished = False
        self._sent_totals: dict[str, int] = {}
        self._told_digest = 0
        # The store history of the received Executions; empty before the first.
        self._told_by = ""
        self._unacknowledged: dict[int, list[str]] = {}
        self._readings = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._channel: grpc.aio.Channel | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._carrying = agent.spawn(asyncio.ensure_future(self._carry()))
        self._set_alarm()

    def dispatch(self, event: SessionEvent) -> None:
        """Handle an event."""
        self.state, effects = step_session(self.state, event, self._agent.now_ms())
        try:
            for effect in effects:
                self._carry_out(effect)
        finally:
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        due = self.state.next_due_ms
        self._alarm = None if due == NEVER else self._agent.call_at(due, lambda: self.dispatch(SessionEvent("due")))

    async def _carry(self) -> None:
        is_reached = False
        end: End | None = None
        try:
            # for_connection() raises an error if the trusted authorities are unusable.
            self._channel = open_channel(self.endpoint, self._agent.registrar.trust.for_connection())
            call = self._channel.stream_stream(
                HEARTBEAT_METHOD,
                request_serializer=health_pb2.HeartbeatRequest.SerializeToString,
                response_deserializer=health_pb2.HeartbeatResponse.FromString,
            )(self._frames())
            async for frame in call:
                is_reached = True
                self.dispatch(SessionEvent("frame", frame=frame))
        except grpc.RpcError as failure:
            end = end_of_status(failure, is_reached)
        except UntrustedError as failure:
            end = End("unreachable", message=str(failure))
        except Exception as failure:
            # Catch any exception, because the agent waits for the end of its stream.
            self._agent.log.error("stream has failed", exc_info=failure)
            end = End("unreachable", message=f"{type(failure).__name__}: {failure}")
        finally:
            if self._hearing is not None:
                self._hearing.cancel()
            if self._channel is not None:
                await self._channel.close(None)
        self.dispatch(SessionEvent("stream-ended", end=end or end_of_status(None, is_reached)))

    async def _frames(self) -> AsyncIterator[health_pb2.HeartbeatRequest]:
        while (frame := await self._unsent.get()) is not None:
            yield frame

    def _carry_out(self, effect: SessionEffect) -> None:
        agent = self._agent
        kind = effect.kind
        if kind == "measure":
            if agent.options.usage is not None:
                agent.spawn(asyncio.ensure_future(self._measure()))
        elif kind == "describe":
            self._describe(effect.challenge)
        elif kind == "read-info":
            is_wanted = effect.is_wanted
            agent.read_info(effect.refresh, lambda info: self._on_info(info, is_wanted), self._on_failure)
        elif kind == "send-hello":
            self._send_hello(effect)
        elif kind == "send-beat":
            beat = health_pb2.Beat(
                sequence=effect.sequence,
                usage=self._usage(),
                agent_time_ms=self._wall_ms(effect.tells_time),
                settings_generation=effect.settings_generation,
                executions_digest=self._told_digest,
            )
            self._send(health_pb2.HeartbeatRequest(beat=beat))
        elif kind == "send-info":
            self._send(health_pb2.HeartbeatRequest(node_info=effect.info))
        elif kind == "send-report":
            self._send_report(effect)
        elif kind == "send-want-specs":
            want = health_pb2.WantSpecs(digests=[bytes.fromhex(one) for one in effect.ids])
            self._send(health_pb2.HeartbeatRequest(want_specs=want))
        elif kind == "send-goodbye":
            goodbye = health_pb2.Goodbye(
                reason=effect.reason,
                kind=health_pb2.GOODBYE_KIND_RESTARTING if effect.leaves_work else health_pb2.GOODBYE_KIND_STOPPING,
            )
            self._send(health_pb2.HeartbeatRequest(goodbye=goodbye))
            self._send(None)
        elif kind == "cancel":
            self._carrying.cancel()
        else:
            self._hear(effect)
            agent.on_stream(self, effect)

    def _hear(self, news: SessionEffect) -> None:
        # Handle what the server sends about executions and authorities.
        ledger = self._agent.ledger
        if news.kind == "opened":
            self.welcome = news.frame.welcome
            ledger.opened()
        elif news.kind == "executions":
            self._told_by = news.frame.executions.log_id
            ledger.heed(news.frame.executions)
        elif news.kind == "spec":
            ledger.take_spec(news.frame.spec)
        elif news.kind == "report-acked":
            for number in [one for one in self._unacknowledged if one <= news.number]:
                ledger.reported(self._unacknowledged.pop(number))
        elif news.kind == "acked":
            ledger.seen()
        elif news.kind == "ended":
            ledger.ended(news.end, self._told_by)
        elif news.kind == "authorities":
            # Ignore authorities that arrive in clear text.
            if self._agent.registrar.trust.tls is not None:
                self._hear_authorities(list(news.frame.authorities.certificates))
        elif news.kind == "log-request" and self._readings < _MOST_READINGS:
            self._readings += 1
            self._agent.spawn(asyncio.ensure_future(self._send_output(news.frame.log_request)))

    def _hear_authorities(self, announced: list[bytes]) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
        self._hearing = self._agent.spawn(asyncio.ensure_future(self._take_authorities(announced)))

    async def _take_authorities(self, announced: list[bytes]) -> None:
        agent = self._agent
        decision = None
        while decision is None:
            try:
                decision = await asyncio.to_thread(agent.registrar.trust.hear, announced, self.endpoint)
            except OSError as error:
                agent.log.warning("announced authorities cannot be checked or stored, will retry: %s", error)
                await asyncio.sleep(_TAKE_AGAIN)
            except ValueError as error:
                decision = Decision("refuse", problem=str(error))
        if decision.kind == "refuse":
            agent.log.warning("announced authorities rejected, trusted authorities unchanged: %s", decision.problem)
        if decision.kind == "replace":
            names = ", ".join(decision.fingerprints)
            agent.log.info("trusted authorities replaced by those that the control plane announced: %s", names)
        agent.report_trust()

    async def _send_output(self, request: health_pb2.LogRequest) -> None:
        if self._channel is None:
            return
        try:
            await send_output(self._channel, request, self._agent.options.executor)
        finally:
            self._readings -= 1

    async def _measure(self) -> None:
        if self._agent.options.usage is not None:
            self._agent.usage = await asyncio.to_thread(self._agent.options.usage)

    def _describe(self, challenge: health_pb2.Challenge) -> None:
        # Use only the first result: the digest or the time limit.
        is_answered = False

        def answer(digest: bytes) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self.dispatch(SessionEvent("described", challenge=challenge, digest=digest))

        agent = self._agent
        agent.call_at(agent.now_ms() + _DIGEST_LIMIT_MS, lambda: answer(b""))
        agent.read_info(False, lambda info: answer(node_info_digest(info)), self._on_failure)

    def _on_failure(self, message: str) -> None:
        self.dispatch(SessionEvent("stream-ended", end=End("unreachable", message=message)))

    def _on_info(self, info: node_pb2.NodeInfo, is_wanted: bool) -> None:
        self.dispatch(SessionEvent("info-read", info=info, digest=node_info_digest(info), is_wanted=is_wanted))

    def _send_hello(self, effect: SessionEffect) -> None:
        agent = self._agent
        challenge = effect.challenge
        text = proof_text(HEARTBEAT_METHOD, challenge.cluster_id, agent.options.node_id, challenge.nonce)
        hello = health_pb2.Hello(
            node_id=agent.options.node_id,
            signature=self.key.sign(text.encode()),
            agent_version=agent.options.version,
            boot_id=agent.boot_id,
            instance_id=agent.instance_id,
            machine_fingerprint=agent.fingerprint,
            node_info_digest=effect.digest,
            agent_time_ms=self._wall_ms(effect.tells_time),
            runs_work=True,
            authorities_digest=agent.registrar.trust.digest,
        )
        self._send(health_pb2.HeartbeatRequest(hello=hello))

    def _send_report(self, effect: SessionEffect) -> None:
        ledger = self._agent.ledger
        observations = ledger.observations(None if effect.is_whole else effect.ids)
        self._told_digest = ledger.digest()
        self._unacknowledged[effect.number] = [one.id for one in observations]
        for part in report_parts(effect.number, effect.is_whole, self._told_digest, observations):
            self._send(health_pb2.HeartbeatRequest(execution_report=part))

    def _usage(self) -> usage_pb2.ResourceUsage | None:
        # Omit totals that the stream's server already knows.
        if self._agent.usage is None:
            return None
        usage = usage_pb2.ResourceUsage()
        usage.CopyFrom(self._agent.usage)
        for name in _TOTALS:
            total = getattr(usage, name)
            if total == self._sent_totals.get(name):
                setattr(usage, name, 0)
            elif total:
                self._sent_totals[name] = total
        return usage

    def _wall_ms(self, tells_time: bool) -> int:
        return int(self._agent.options.wall_clock() * 1000) if tells_time else 0

    def _send(self, frame: health_pb2.HeartbeatRequest | None) -> None:
        # Queue a frame; None closes the sending side. If the queue is full, the connection is dead.
        if self._is_finished:
            return
        self._is_finished = frame is None
        try:
            self._unsent.put_nowait(frame)
        except asyncio.QueueFull:
            self._is_finished = True
            # Wait until the effects of the current event have been carried out.
            asyncio.get_running_loop().call_soon(self._on_failure, "the connection accepts no frames")
