"""The agent, which carries out the decisions of the state machines."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..node.v1 import node_pb2, usage_pb2
from ..registry.v1 import registry_pb2
from .agent_machine import AgentState, Effect, Event, step_agent
from .ends import end_of_call
from .executor import Executor
from .ledger import Ledger
from .machine import boot_id, machine_fingerprint
from .next_step import End
from .pace import ms_of
from .proof import resolve_endpoints
from .registrar import Registrar
from .rotation import Rotation
from .session_machine import SessionEffect, SessionEvent
from .state_dir import Identity, Sentinel, fingerprint_of
from .stream import Stream
from .trust import Tls


@dataclass(frozen=True)
class Options:
    """Configures an agent."""

    server: str
    """The registry's address: HOST:PORT, or a URL with http or https."""
    node_id: str
    """1-63 characters of [A-Za-z0-9._-]."""
    state_dir: Path
    """Holds the node's key, the sentinel and the ledger of executions. Each agent on a machine needs its own."""
    version: str = ""
    join_token: str = ""
    """A join token, or the token of a Kubernetes service account."""
    join_token_file: Path | None = None
    """A file with the join token, instead of ``join_token``. It is read at each registration."""
    tls: Tls | None = None
    """TLS settings. If None, connections use clear text, unless ``server`` is an https URL."""
    info: Callable[[], node_pb2.NodeInfo] | None = None
    """Describes the machine. It is called in a thread, when the agent starts and at least once every
    ``info_check_interval``. If None, only the host name is reported. The kit fills in agent_version, and takes work
    from the executor.
    """
    usage: Callable[[], usage_pb2.ResourceUsage] | None = None
    """Reports the machine's current usage, with all totals. It is called in a thread before each heartbeat."""
    executor: Executor | None = None
    """Runs executions. If None, the node runs none and refuses those it receives."""
    machine_fingerprint: str = ""
    """Distinguishes this machine from a copy of its disk. If empty, it is a hash of /etc/machine-id and the hardware
    addresses.
    """
    key_rotation_interval: float = 0.0
    """The age in seconds at which the agent rotates its key even if nobody requests it. 0 means never."""
    info_check_interval: float = 60.0
    """The longest time in seconds between two calls of ``info``."""
    wall_clock: Callable[[], float] = time.time
    """Returns the time in seconds since 1970. It is reported to the control plane and affects no decisions."""


@dataclass(frozen=True)
class Status:
    """The state of an agent."""

    phase: str
    """"starting", "registering", "opening", "connected", "waiting", "idle" (an operator deleted the node), "closing" or
    "closed".
    """
    endpoint: str
    """The health replica that holds the stream; empty without a stream."""
    session_epoch: int
    membership: str
    """"PENDING", "APPROVED" or "REJECTED". Empty while the agent does not know it."""


class Agent:
    """Represents one machine. Call run() only once.

    Raises OSError for a state directory that is unusable or that another agent uses, and ValueError for a damaged key
    or an invalid address.
    """

    def __init__(self, options: Options, log: logging.Logger | None = None) -> None:
        self.options = options
        self.log = logging.LoggerAdapter(log or logging.getLogger("rollcall.agent"), {"node_id": options.node_id})
        self.registrar = Registrar(options.server, options.node_id, options.tls, options.state_dir)
        self.boot_id = boot_id()
        # A random id of this process.
        self.instance_id = str(uuid.uuid4())
        self.fingerprint = options.machine_fingerprint or machine_fingerprint()
        self.usage: usage_pb2.ResourceUsage | None = None
        self.identity = Identity(options.state_dir)
        try:
            self.rotation = Rotation(self)
            self.ledger = Ledger(
                options.state_dir / "executions",
                options.node_id,
                options.executor,
                self.log,
                self._post,
                self._on_work_changed,
                options.wall_clock,
            )
        except BaseException:
            self.identity.release()
            raise
        self._sentinel: Sentinel | None = None
        self._state = AgentState.begin(random.random())
        self._held: Stream | None = None
        self._candidate: Stream | None = None
        self._registering: asyncio.Task[None] | None = None
        self._info: node_pb2.NodeInfo | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

    @property
    def status(self) -> Status:
        """The current status."""
        held = self._state.held
        return Status(
            self._state.stage, held.endpoint if held else "", held.epoch if held else 0, self._state.membership
        )

    async def run(self) -> None:
        """Run until close() is called. If the task is cancelled instead, the agent leaves without a goodbye."""
        try:
            self._loop = asyncio.get_running_loop()
            found = self.identity.read_sentinel()
            if found and found.node_id == self.options.node_id and self.identity.has(found.key_fingerprint):
                self._sentinel = found
            self.ledger.recover()
            endpoints = self._sentinel.health_endpoints if self._sentinel else ()
            self.dispatch(Event("loaded", is_registered=self._sentinel is not None, endpoints=endpoints))
            self.rotation.look()
            await self._closed.wait()
        finally:
            try:
                self.dispatch(Event("abort"))
                for task in list(self._tasks):
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
            finally:
                self.identity.release()

    def close(self) -> None:
        """Say goodbye, which takes at most 5 s, and end run(). Running executions continue."""
        self.dispatch(Event("close"))

    def dispatch(self, event: Event) -> None:
        """Handle an event."""
        self._state, effects = step_agent(self._state, event, self.now_ms(), random.random())
        for effect in effects:
            self._carry_out(effect)
        if self._alarm is not None:
            self._alarm.cancel()
        due = self._state.due_at_ms
        self._alarm = None if due is None else self.call_at(due, lambda: self.dispatch(Event("due")))
        if self._state.stage == "closed":
            self._closed.set()

    def now_ms(self) -> float:
        """Monotonic milliseconds."""
        return time.monotonic() * 1000

    def call_at(self, at_ms: float, run: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at the given time."""
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, at_ms - self.now_ms()) / 1000, run)

    def spawn(self, work: asyncio.Task[None]) -> asyncio.Task[None]:
        """Keep a reference to a task until it ends. The task is cancelled when the agent ends."""
        self._tasks.add(work)
        work.add_done_callback(self._on_done)
        return work

    def read_info(
        self, refresh: bool, then: Callable[[node_pb2.NodeInfo], None], failed: Callable[[str], None]
    ) -> None:
        """Read the machine's description if ``refresh`` is set or no description was read yet, then call ``then``.

        If reading fails, ``then`` receives the previous description. If there is none, ``failed`` receives the
        message.
        """

        async def read() -> None:
            message = await self._read_info()
            if message:
                self.log.warning("%s", message)
            if self._info is not None:
                then(self._info)
            else:
                failed(message)

        if self._info is not None and not refresh:
            then(self._info)
            return
        self.spawn(asyncio.ensure_future(read()))

    def accepted(self, key: Ed25519PrivateKey) -> None:
        """Record that the server has accepted a proof by this key."""
        before = self.identity.state.phase
        try:
            self.identity.become(self.identity.state.after_accepted(fingerprint_of(key)))
        except OSError as error:
            self.log.error("next key cannot replace the node's key: %s", error)
        if before != "settled" and self.identity.state.phase == "settled":
            self.rotation.used()

    def report_trust(self) -> None:
        """Report which authorities the agent trusts now."""
        if self._info is None:
            return
        self._info.trust.CopyFrom(self.registrar.trust.describe())
        for stream in (self._held, self._candidate):
            if stream is not None:
                stream.dispatch(SessionEvent("look"))

    def on_stream(self, stream: Stream, news: SessionEffect) -> None:
        """Handle an effect of a stream. Ignores effects of dropped streams."""
        if stream is self._candidate and news.kind == "opened":
            welcome = news.frame.welcome
            endpoints = tuple(resolve_endpoints(welcome.health_endpoints, self.registrar.host))
            membership = _name_of(welcome.membership)
            self.dispatch(
                Event(
                    "opened",
                    epoch=welcome.session_epoch,
                    membership=membership,
                    endpoints=endpoints,
                    has_newer_key=stream.key is not self.identity.to_use(),
                )
            )
        elif stream is self._candidate and news.kind == "ended":
            self._candidate = None
            is_key_refused = news.end.kind == "refused" and news.end.reason == "PROOF_INVALID"
            has_other_key = is_key_refused and self.identity.refused(stream.key)
            self.dispatch(Event("not-opened", end=news.end, has_other_key=has_other_key))
        elif stream is self._held and news.kind == "ended":
            self._held = None
            self.dispatch(Event("session-ended", end=news.end, pace=stream.state.pace))
        elif stream is self._held or stream is self._candidate:
            self._on_news(news)

    def _on_news(self, news: SessionEffect) -> None:
        if news.kind == "acked":
            self.dispatch(Event("acked"))
        elif news.kind == "settings":
            self.rotation.heed(news.settings)
        elif news.kind == "membership":
            membership = _name_of(news.frame.membership)
            self.log.info("membership changed to %s: %s", membership, news.frame.membership.message)
            self.dispatch(Event("membership", membership=membership))
        elif news.kind == "move-asked":
            go_away = news.frame.go_away
            endpoints = tuple(resolve_endpoints(go_away.endpoints, self.registrar.host))
            self.dispatch(Event("move-asked", retry_after_ms=ms_of(go_away.retry_after), endpoints=endpoints))

    def _carry_out(self, effect: Effect) -> None:
        if effect.kind == "register":
            self._registering = self.spawn(asyncio.ensure_future(self._register()))
        elif effect.kind == "open":
            pace = self._held.state.pace if self._held else self._state.pace
            self._candidate = Stream(self, effect.endpoint, pace)
        elif effect.kind == "hold":
            self._hold()
        elif effect.kind == "drop":
            held, self._held = self._held, None
            if held is not None:
                held.dispatch(SessionEvent("drop"))
        elif effect.kind == "give-up":
            if self._registering is not None:
                self._registering.cancel()
            candidate, self._candidate = self._candidate, None
            if candidate is not None:
                candidate.dispatch(SessionEvent("drop"))
        elif effect.kind == "goodbye" and self._held is not None:
            leaves_work = self.ledger.is_running
            self._held.dispatch(SessionEvent("goodbye", reason="the agent was stopped", leaves_work=leaves_work))
        elif effect.kind == "forget":
            self._sentinel = None
            self._on_disk("sentinel cannot be removed", self.identity.remove_sentinel)
        elif effect.kind == "log-end" and effect.end is not None:
            level = logging.ERROR if effect.end.is_decision else logging.WARNING
            self.log.log(level, "not connected: %s, then %s", effect.end, effect.next)

    def _hold(self) -> None:
        candidate = self._candidate
        if candidate is None or candidate.welcome is None:
            return
        self._candidate = None
        self._carry_out(Effect("drop"))
        self._held = candidate
        welcome = candidate.welcome
        self.log.info("connected to %s, epoch %d", candidate.endpoint, welcome.session_epoch)
        self.accepted(candidate.key)
        self._remember(welcome.cluster_id, self._state.endpoints)

    async def _read_info(self) -> str:
        """Read the machine's description. Return why that failed, or an empty string."""
        info = node_pb2.NodeInfo()
        try:
            if self.options.info is not None:
                info.CopyFrom(await asyncio.to_thread(self.options.info))
            else:
                info.hostname = socket.gethostname()
            if self.options.executor is not None:
                info.work.CopyFrom(self.options.executor.capacity())
        except Exception as error:
            return f"the machine cannot be read: {type(error).__name__}: {error}"
        info.agent_version = self.options.version
        info.trust.CopyFrom(self.registrar.trust.describe())
        self._info = info
        return ""

    async def _register(self) -> None:
        message = "" if self._info is not None else await self._read_info()
        if message:
            self.dispatch(Event("not-registered", end=End("unreachable", message=message)))
            return
        key = self.identity.to_use()
        end = await self._register_with(key)
        # During a rotation, the server may have accepted the other key although its response was lost.
        if end is not None and end.reason == "NODE_KEY_MISMATCH" and self.identity.refused(key):
            end = await self._register_with(self.identity.to_use())
        if end is not None:
            self.ledger.ended(end, "")
            self.dispatch(Event("not-registered", end=end))

    async def _register_with(self, key: Ed25519PrivateKey) -> End | None:
        try:
            join_token = self._join_token()
        except (OSError, ValueError) as error:
            return End("unreachable", message=f"the join token cannot be read: {error}")
        try:
            answer = await self.registrar.register(key, self._info or node_pb2.NodeInfo(), join_token)
        except grpc.RpcError as error:
            return end_of_call(error)
        except Exception as error:
            # Catch any exception, because otherwise the agent would not try again.
            return End("unreachable", message=f"{type(error).__name__}: {error}")
        self._on_registered(key, answer)
        return None

    def _on_registered(self, key: Ed25519PrivateKey, answer: registry_pb2.RegisterNodeResponse) -> None:
        self.accepted(key)
        known = self._sentinel.health_endpoints if self._sentinel else ()
        # A control plane without health replicas returns no endpoints. In that case, keep the previous ones.
        endpoints = tuple(resolve_endpoints(answer.health_endpoints, self.registrar.host))
        self._remember(answer.cluster_id, endpoints or known)
        membership = _name_of(answer.node.membership)
        self.log.info("registered in cluster %s, %s", answer.cluster_id, membership)
        self.dispatch(Event("registered", membership=membership, endpoints=endpoints))

    def _join_token(self) -> str:
        # Read the token each time, because a mounted secret can be replaced. A known machine needs no token.
        file = self.options.join_token_file
        if file is None:
            return self.options.join_token.strip()
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            if self._sentinel is None:
                raise
            return ""

    def _remember(self, cluster_id: str, endpoints: tuple[str, ...]) -> None:
        sentinel = Sentinel(self.options.node_id, self.identity.state.current, cluster_id, endpoints)
        is_known = sentinel == self._sentinel
        self._sentinel = sentinel
        if endpoints and not is_known:
            self._on_disk("sentinel cannot be written", lambda: self.identity.write_sentinel(sentinel))

    def _on_disk(self, message: str, run: Callable[[], None]) -> None:
        # Ignore the error, because the registration counts even if the file cannot be written. In that case, the agent
        # registers again at its next start.
        try:
            run()
        except OSError as error:
            self.log.warning("%s: %s", message, error)

    def _on_work_changed(self, ids: tuple[str, ...], wanted_specs: tuple[str, ...]) -> None:
        for stream in (self._held, self._candidate):
            if stream is not None:
                stream.dispatch(SessionEvent("work-changed", ids=ids, wanted_specs=wanted_specs))

    def _post(self, run: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.log.error("a part of the agent has failed", exc_info=task.exception())


def _name_of(membership: node_pb2.Membership) -> str:
    known = (node_pb2.MEMBERSHIP_STATE_PENDING, node_pb2.MEMBERSHIP_STATE_APPROVED, node_pb2.MEMBERSHIP_STATE_REJECTED)
    if membership.state not in known:
        return ""
    return node_pb2.MembershipState.Name(membership.state).removeprefix("MEMBERSHIP_STATE_")
