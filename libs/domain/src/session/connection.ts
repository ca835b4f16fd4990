import type { Connection, ConnectionState } from "../states.ts";

/** What happens to a node's connection. */
export type ConnectionSignal =
  /** It was registered and has no stream yet. */
  | "registered"
  /** It was welcomed on a stream, or its lease was taken if it is a control-plane process. */
  | "opened"
  /** Its stream broke. */
  | "broken"
  /** It said goodbye, or gave its lease back. */
  | "goodbye"
  /** It said goodbye, comes back, and leaves its executions running. */
  | "restarting"
  /** Its replica was lost. */
  | "replica-lost"
  /** Its lease ran out; for orchestrators. */
  | "lease-expired";

const TRANSITIONS: Readonly<Record<ConnectionSignal, { state: ConnectionState; reason: string; message: string }>> = {
  registered: { state: "DISCONNECTED", reason: "NEVER_CONNECTED", message: "" },
  opened: { state: "CONNECTED", reason: "STREAM_OPENED", message: "" },
  broken: { state: "DISCONNECTED", reason: "STREAM_BROKEN", message: "its stream broke" },
  goodbye: { state: "DISCONNECTED", reason: "AGENT_SHUTDOWN", message: "it said goodbye" },
  restarting: { state: "DISCONNECTED", reason: "AGENT_RESTARTING", message: "its agent restarts" },
  "replica-lost": {
    state: "DISCONNECTED",
    reason: "REPLICA_LOST",
    message: "the replica that held its stream was lost",
  },
  "lease-expired": {
    state: "DISCONNECTED",
    reason: "LEASE_EXPIRED",
    message: "its lease ran out",
  },
};

/** The connection that a signal leads to, from whatever it was. */
export function connectionAfter(
  signal: ConnectionSignal,
  by: { readonly actor: string; readonly atMs: number },
): Connection {
  return { sinceMs: by.atMs, actor: by.actor, ...TRANSITIONS[signal] };
}
