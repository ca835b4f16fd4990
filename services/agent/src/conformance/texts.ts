import type { AgentEffect, AgentState } from "../connection/agent-state.ts";
import { dueAtMs } from "../connection/agent-state.ts";
import { nextDueMs } from "../stream/session-machine.ts";
import type { SessionEffect, SessionState } from "../stream/session-state.ts";

/** Format an effect of the agent's state machine, as in sdk/conformance/vectors. */
export function agentEffectText(effect: AgentEffect): string {
  switch (effect.kind) {
    case "open":
      return `open ${effect.endpoint}`;
    case "log-end": {
      const { end, next } = effect;
      const reason = end.kind === "refused" ? (end.reason ?? "") : "";
      const what =
        next.kind === "idle" ? "idle" : `${next.mustRegister ? "register" : "open"} ${Math.round(next.delayMs)}`;
      return `log-end ${end.kind} ${reason} ${what}`;
    }
    default:
      return effect.kind;
  }
}

/** Format the agent's stage, and the time of the next `due` event. */
export function agentStateText(state: AgentState): string {
  const at = dueAtMs(state);
  return `${state.stage.kind} ${at === null ? "never" : Math.round(at)} ${state.failures} ${state.unreachable}`;
}

/** Format an effect of the stream's state machine. */
export function sessionEffectText(effect: SessionEffect): string {
  switch (effect.kind) {
    case "read-info":
      return `read-info ${effect.refresh ? "again" : "current"}`;
    case "send-hello":
      return `send-hello ${hex(effect.digest)} ${timeText(effect.tellsTime)}`;
    case "send-beat":
      return `send-beat ${effect.sequence} ${effect.settingsGeneration} ${timeText(effect.tellsTime)}`;
    case "send-report":
      return `send-report ${effect.number} ${effect.ids === null ? "whole" : effect.ids.join(",")}`;
    case "send-want-specs":
      return `send-want-specs ${effect.digests.join(",")}`;
    case "send-goodbye":
      return `send-goodbye ${effect.leavesWork ? "restarting" : "stopping"}`;
    case "tell": {
      const { news } = effect;
      if (news.kind === "report-acked") return `report-acked ${news.number}`;
      if (news.kind !== "ended") return news.kind;
      const reason = news.end.kind === "refused" ? (news.end.reason ?? "") : "";
      return `ended ${news.end.kind} ${reason}`;
    }
    default:
      return effect.kind;
  }
}

/** Format the stream's phase, and the time of the next `due` event. */
export function sessionStateText(state: SessionState): string {
  const at = nextDueMs(state);
  return `${state.phase} ${at === null ? "never" : Math.round(at)}`;
}

function timeText(tellsTime: boolean): string {
  return tellsTime ? "time" : "-";
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
