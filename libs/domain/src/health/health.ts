import type { Health } from "../states.ts";

/** What determines a node's detected health. */
export type HealthSignal =
  /** The node was registered and has not sent anything yet. */
  | { readonly kind: "registered" }
  /** The node sent the first Beat after a Welcome. */
  | { readonly kind: "beat" }
  /** The node's silence reached a threshold. */
  | {
      readonly kind: "silence";
      readonly to: "UNHEALTHY" | "UNKNOWN";
      readonly silentMs: number;
    }
  /** The node left on purpose. */
  | { readonly kind: "goodbye" };

/**
 * The detected health after a signal. It does not depend on the previous health. An operator's mark is applied on
 * top of it later.
 */
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
      const message = "its agent shut down";
      return { state: "UNHEALTHY", reason: "AGENT_SHUTDOWN", message, sinceMs, actor };
    }
  }
}
