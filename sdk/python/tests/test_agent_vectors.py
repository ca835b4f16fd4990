"""Tests the agent kit with the vectors of sdk/conformance, which every agent must satisfy."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from rollcall.health.v1 import health_pb2
from rollcall.node.v1 import node_pb2
from rollcall.work.v1 import work_pb2

from rollcall.agent import agent_machine, authorities, desired_work, next_step, pace, proof, session_machine
from rollcall.agent.ends import end_of_status
from rollcall.agent.keys import KeyState
from rollcall.agent.output import report_parts
from rollcall.agent.reports import ReportState
from rollcall.agent.state_dir import fingerprint_of, public_key

_FOLDER = Path(__file__).resolve().parents[2] / "conformance" / "vectors"


def vectors(name: str) -> Any:
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("it", vectors("proofs"))
def test_proofs(it: dict[str, str]) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(it["privateKeySeed"]))
    assert public_key(key).hex() == it["publicKey"]
    assert fingerprint_of(key) == it["fingerprint"]
    text = proof.proof_text(it["method"], it["clusterId"], it["nodeId"], bytes.fromhex(it["nonce"]))
    assert text == it["text"]
    assert key.sign(text.encode()).hex() == it["signature"]


@pytest.mark.parametrize("it", vectors("node-info"))
def test_node_info_digest(it: dict[str, Any]) -> None:
    info = json_format.ParseDict(it["info"], node_pb2.NodeInfo())
    assert proof.node_info_digest(info).hex() == it["digest"]


def test_executions() -> None:
    found = vectors("executions")
    assert found["digests"]
    for it, cut in zip(found["digests"], found["parts"], strict=True):
        observations = [
            work_pb2.ExecutionObservation(id=key, change=change, message="m" * 99) for key, change in it["executions"]
        ]
        assert str(proof.executions_digest(observations)) == it["digest"]
        parts = report_parts(1, True, 0, observations)
        assert [len(part.observations) for part in parts] == cut["parts"]
    spec = found["spec"]
    assert hashlib.sha256(bytes.fromhex(spec["bytes"])).hexdigest() == spec["digest"]


@pytest.mark.parametrize("it", vectors("endpoints"))
def test_endpoints(it: dict[str, Any]) -> None:
    assert proof.resolve_endpoints(it["named"], it["registryHost"]) == it["resolved"]


@pytest.mark.parametrize("it", vectors("next-step"))
def test_next_step(it: dict[str, Any]) -> None:
    at = it["attempts"]
    attempts = next_step.Attempts(
        at["failures"],
        at["rejectedForMs"],
        at["backoffMaxMs"],
        at["random01"],
    )
    found = next_step.decide_next_step(end_of(it["end"]), attempts)
    if it["next"]["kind"] == "idle":
        assert found == next_step.NextStep(is_idle=True)
    else:
        assert found == next_step.NextStep(False, it["next"]["delayMs"], it["next"]["mustRegister"])


@pytest.mark.parametrize("it", vectors("pace"))
def test_pace(it: dict[str, float]) -> None:
    at = pace.Pace(unhealthy_after_ms=it["unhealthyAfterMs"]).after_ack(int(it["nextIntervalMs"]))
    assert at.heartbeat_ms == it["heartbeatMs"]
    assert at.silence_limit_ms == it["limitMs"]
    assert at.silent_at_ms(1_000, 9_000) == it["silentMs"]


@pytest.mark.parametrize("walk", vectors("keys"))
def test_keys(walk: dict[str, Any]) -> None:
    keys = KeyState.on_disk(walk["current"], walk["next"])
    for it in walk["steps"]:
        event = it["event"]
        if event["kind"] == "new":
            keys = keys.after_new_key(event["key"])
        elif event["kind"] == "answer":
            keys = keys.after_answer(event["key"], event["next"])
        elif event["kind"] == "accepted":
            keys = keys.after_accepted(event["key"])
        else:
            keys = keys.after_refused(event["key"])
        assert (keys.phase, keys.current, keys.to_use) == (it["phase"], it["current"], it["toUse"])


@pytest.mark.parametrize("walk", vectors("agent-machine"))
def test_agent_machine(walk: dict[str, Any]) -> None:
    state = agent_machine.AgentState.begin(walk["begin01"])
    for it in walk["steps"]:
        state, effects = agent_machine.step_agent(state, agent_event(it["event"]), it["nowMs"], it["random01"])
        assert [agent_effect_text(one) for one in effects] == it["effects"], it
        due = state.due_at_ms
        text = f"{state.stage} {'never' if due is None else rounded(due)} {state.failures} {state.unreachable}"
        assert text == it["state"], it


@pytest.mark.parametrize("walk", vectors("session-machine"))
def test_session_machine(walk: dict[str, Any]) -> None:
    reports = ReportState.begin(walk["isKnown"], walk["nowMs"]) if walk["runsWork"] else None
    state = session_machine.SessionState.begin(pace.Pace(), walk["infoCheckMs"], walk["nowMs"], reports)
    for it in walk["steps"]:
        event = session_event(it["event"], state.phase)
        state, effects = session_machine.step_session(state, event, it["nowMs"])
        assert [session_effect_text(one) for one in effects] == it["effects"], it
        due = state.next_due_ms
        assert f"{state.phase} {'never' if due == session_machine.NEVER else rounded(due)}" == it["state"], it


@pytest.mark.parametrize("it", vectors("work"))
def test_desired_work(it: dict[str, Any]) -> None:
    desired = desired_work.DesiredWork()
    for frame in it["frames"]:
        desired = desired.apply(json_format.ParseDict(frame, health_pb2.Executions()))
    kept = {}
    for one in it["kept"]:
        state = work_pb2.OBSERVED_STATE_ENDED if one["hasEnded"] else work_pb2.OBSERVED_STATE_RUNNING
        observation = work_pb2.ExecutionObservation(id=one["id"], state=state)
        kept[one["id"]] = desired_work.Kept(observation, one["logId"])
    desired = desired.without_forgotten(kept)
    specs = {digest: None if text is None else bytes.fromhex(text) for digest, text in it["specs"].items()}
    actions, wanted = desired_work.plan_work(desired, kept, it["met"], specs)
    texts = [
        f"{one.kind} {','.join(one.ids)}" if one.ids else f"{one.kind} {one.reference.id}{' lost' * one.is_lost}"
        for one in actions
    ]
    assert (desired.log_id, str(desired.generation)) == (it["logId"], it["generation"])
    assert texts == it["actions"]
    assert wanted == it["wantedSpecs"]


def test_authorities() -> None:
    found = vectors("authorities")
    for it in found["decisions"]:
        announced = [
            authorities.Announced(
                one["fingerprint"], one["isRoot"], one["notBeforeMs"], one["notAfterMs"], one["isVerifying"]
            )
            for one in it["announced"]
        ]
        decision = authorities.decide_authorities(announced, it["kept"], it["wallMs"])
        assert (decision.kind, list(decision.fingerprints)) == (it["kind"], it["fingerprints"]), it
    for it in found["digests"]:
        assert authorities.authorities_digest(it["fingerprints"]).hex() == it["digest"]


def end_of(found: dict[str, Any]) -> next_step.End:
    return next_step.End(
        found["kind"],
        found.get("reason", ""),
        found.get("message", ""),
        found.get("retryAfterMs"),
        found.get("action", ""),
    )


def agent_event(found: dict[str, Any]) -> agent_machine.Event:
    at = found.get("pace", {})
    return agent_machine.Event(
        found["kind"],
        is_registered=found.get("isRegistered", False),
        endpoints=tuple(found.get("endpoints", ())),
        membership=found.get("membership", ""),
        epoch=int(found.get("epoch", 0)),
        end=end_of(found.get("end", {"kind": "left"})),
        has_other_key=found.get("hasOtherKey", False),
        has_newer_key=found.get("hasNewerKey", False),
        pace=pace.Pace(at["heartbeatMs"], at["infoMs"], at["unhealthyAfterMs"]) if at else pace.Pace(),
        is_own_wish=found.get("isOwnWish", False),
        retry_after_ms=found.get("retryAfterMs", 0),
    )


def agent_effect_text(effect: agent_machine.Effect) -> str:
    if effect.kind == "open":
        return f"open {effect.endpoint}"
    if effect.kind != "log-end" or effect.end is None or effect.next is None:
        return effect.kind
    if effect.next.is_idle:
        return f"log-end {effect.end.kind} {effect.end.reason} idle"
    what = "register" if effect.next.must_register else "open"
    return f"log-end {effect.end.kind} {effect.end.reason} {what} {rounded(effect.next.delay_ms)}"


def session_event(found: dict[str, Any], phase: str) -> session_machine.SessionEvent:
    ended = found["kind"] == "stream-ended"
    return session_machine.SessionEvent(
        found["kind"],
        frame=json_format.ParseDict(found.get("frame", {}), health_pb2.HeartbeatResponse()),
        digest=bytes.fromhex(found.get("digest", "")),
        is_wanted=found.get("isWanted", False),
        end=end_of_status(None, phase != "connecting") if ended else next_step.End("left"),
        ids=tuple(found.get("ids", ())),
        wanted_specs=tuple(found.get("wantedSpecs", ())),
        reason="bye",
        leaves_work=found.get("leavesWork", False),
    )


def session_effect_text(effect: session_machine.SessionEffect) -> str:
    kind = effect.kind
    time = "time" if effect.tells_time else "-"
    texts = {
        "read-info": "again" if effect.refresh else "current",
        "send-hello": f"{effect.digest.hex()} {time}",
        "send-beat": f"{effect.sequence} {effect.settings_generation} {time}",
        "send-report": f"{effect.number} {'whole' if effect.is_whole else ','.join(effect.ids)}",
        "send-want-specs": ",".join(effect.ids),
        "send-goodbye": "restarting" if effect.leaves_work else "stopping",
        "report-acked": str(effect.number),
        "ended": f"{effect.end.kind} {effect.end.reason}",
    }
    return f"{kind} {texts[kind]}" if kind in texts else kind


def rounded(value: float) -> int:
    return math.floor(value + 0.5)
