import { stepAgent } from "../connection/agent-machine.ts";
import { type AgentEvent, type AgentState, beginAgent, dueAtMs } from "../connection/agent-state.ts";
import { DEFAULT_PACE } from "../stream/pace.ts";
import type { SessionEnd } from "../stream/session-end.ts";

export const UNREACHABLE: SessionEnd = { kind: "unreachable", message: "refused" };
export const refused = (reason: string | undefined, action?: "REGISTER" | "STOP"): SessionEnd => ({
  kind: "refused",
  reason,
  message: "",
  retryAfterMs: undefined,
  action,
});

export const loaded = (isRegistered: boolean, endpoints: readonly string[] = ["a", "b", "c"]): AgentEvent => ({
  kind: "loaded",
  isRegistered,
  endpoints,
});
export const registered: Extract<AgentEvent, { readonly kind: "registered" }> = {
  kind: "registered",
  membership: "APPROVED",
  endpoints: ["a", "b"],
};
export const notRegistered = (end: SessionEnd): AgentEvent => ({ kind: "not-registered", end });
export const opened = (endpoints: readonly string[] = [], epoch = 1n, hasNewerKey = false): AgentEvent => ({
  hasNewerKey,
  kind: "opened",
  epoch,
  membership: undefined,
  endpoints,
});
export const notOpened = (end: SessionEnd, hasOtherKey = false): AgentEvent => ({
  kind: "not-opened",
  end,
  hasOtherKey,
});
export const ended = (end: SessionEnd): AgentEvent => ({ kind: "session-ended", end, pace: DEFAULT_PACE });
export const moveAsked = (endpoints: readonly string[] = [], isOwnWish = false): AgentEvent => ({
  kind: "move-asked",
  isOwnWish,
  retryAfterMs: 100,
  endpoints,
});
export const due: AgentEvent = { kind: "due" };

/** An agent's state machine that returns its effects as text. */
export class Run {
  state: AgentState = beginAgent(0);
  nowMs = 0;

  constructor(...events: readonly AgentEvent[]) {
    for (const event of events) this.step(event);
  }

  step(event: AgentEvent, random01 = 0.5): readonly string[] {
    const { state, effects } = stepAgent(this.state, event, { nowMs: this.nowMs, random01 });
    this.state = state;
    return effects.map((effect) => {
      if (effect.kind === "open") return `open ${effect.endpoint}`;
      if (effect.kind === "goodbye") return `goodbye: ${effect.reason}`;
      return effect.kind === "log-end" ? `log ${effect.next.kind}` : effect.kind;
    });
  }

  /** Advance the time to the next `due` event, and apply that event. */
  wait(): readonly string[] {
    this.nowMs = dueAtMs(this.state) ?? this.nowMs;
    return this.step(due);
  }
}

/** An agent that is connected to "a", and also knows "b" and "c". */
export const connected = () => new Run(loaded(true), opened());
