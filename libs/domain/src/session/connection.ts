import type { Connection, ConnectionState } from "../states.ts";

/** What happened to a node's connection. */
export type ConnectionSignal =
  /** The node was registered and has not opened a stream yet. */
  | "registered"
  /** The node got a Welcome on a stream, or the control-plane process acquired its lease. */
  | "opened"
  /** Its stream broke. */
  | "broken"
  /** The agent said goodbye, or the control-plane process released its lease. */
  | "goodbye"
  /** The agent said goodbye but will return, and leaves its executions running. */
  | "restarting"
  /** The replica that owned the session was lost. */
  | "replica-lost"
  /** The lease of a control-plane process expired. */
  | "lease-expired";

const TRANSITIONS: Readonly<Record<ConnectionSignal, { state: ConnectionState; reason: string; message: string }>> = {
  registered: { state: "DISCONNECTED", reason: "NEVER_CONNECTED", message: "" },
  opened: { state: "CONNECTED", reason: "STREAM_OPENED", message: "" },
  broken: { state: "DISCONNECTED", reason: "STREAM_BROKEN", message: "its stream broke" },
  goodbye: { state: "DISCONNECTED", reason: "AGENT_SHUTDOWN", message: "its agent shut down" },
  restarting: { state: "DISCONNECTED", reason: "AGENT_RESTARTING", message: "its agent is restarting" },
  "replica-lost": {
    state: "DISCONNECTED",
    reason: "REPLICA_LOST",
    message: "the replica that held its stream was lost",
  },
  "lease-expired": {
    state: "DISCONNECTED",
    reason: "LEASE_EXPIRED",
    message: "its lease expired",
  },
};

/** The connection state after a signal. It does not depend on the previous state. */
export function connectionAfter(
  signal: ConnectionSignal,
  by: { readonly actor: string; readonly atMs: number },
): Connection {
  return { sinceMs: by.atMs, actor: by.actor, ...TRANSITIONS[signal] };
}
