import type { Health } from "../states.ts";

/** What a detected health is concluded from. */
export type HealthSignal =
  /** It was registered and nothing was received yet. */
  | { readonly kind: "registered" }
  /** The first Beat after a Welcome. */
  | { readonly kind: "beat" }
  /** Its silence reached a threshold. */
  | {
      readonly kind: "silence";
      readonly to: "UNHEALTHY" | "UNKNOWN";
      readonly silentMs: number;
    }
  /** It left by its own will. */
  | { readonly kind: "goodbye" };

/** The detected health that a signal leads to, from whatever it was. An operator's mark is put on top of it later. */
export function healthAfter(signal: HealthSignal, by: { readonly actor: string; readonly atMs: number }): Health {
  const { actor, atMs: sinceMs } = by;
  switch (signal.kind) {
    case "registered":
      return { state: "UNKNOWN", reason: "NEVER_CONNECTED", message: "", sinceMs, actor };
    case "beat":
      return { state: "HEALTHY", reason: "HEARTBEAT_RECEIVED", message: "", sinceMs, actor };
    case "silence": {
      const message = `nothing received for ${Math.floor(signal.silentMs / 1000)} s`;
      return { state: signal.to, reason: "HEARTBEATS_MISSED", message, sinceMs, actor };
    }
    case "goodbye": {
      const message = "it said goodbye";
      return { state: "UNHEALTHY", reason: "AGENT_SHUTDOWN", message, sinceMs, actor };
    }
  }
}
