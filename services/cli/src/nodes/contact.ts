import { durationMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ConnectionState, HealthState, MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { stateWords } from "@rollcall/domain";
import { formatDuration } from "../output/units.ts";
import { silentMs } from "./read-health.ts";

/**
 * When a node was last seen, why it is disconnected, and what happens if it stays silent, on one line. Null when no
 * replica knows.
 */
export function contactText(node: Node | undefined, live: NodeHealth | undefined): string | null {
  const silent = silentMs(live);
  if (node === undefined || live === undefined || silent === null) return null;
  const heard = `last seen ${formatDuration(silent)} ago`;
  const parts = [heard, absence(node), outlook(node, live, silent)];
  return parts.filter((part) => part !== "").join("; ");
}

/** Why a node is disconnected; empty while it is connected. */
function absence({ membership, connection }: Node): string {
  if (connection?.state !== ConnectionState.DISCONNECTED) return "";
  const { reason, message } = connection;
  const why = message === "" ? stateWords(reason) : message;
  const isRejected = membership?.state === MembershipState.REJECTED;
  // Whether the reason of the disconnect already says that the node was rejected or banned.
  const isTold = reason === "NODE_REJECTED" || reason === "NODE_BANNED";
  return `not connected: ${why}${isRejected && !isTold ? ", and it cannot reconnect because it was rejected" : ""}`;
}

/**
 * What happens if the node stays silent; empty if silence has no effect, as when an operator marked it UNHEALTHY.
 */
function outlook(node: Node, live: NodeHealth, silent: number): string {
  const { membership, connection, health } = node;
  const next = nextOf(health?.state, live);
  if (next === null) return "";
  const isConnected = connection?.state === ConnectionState.CONNECTED;
  // Silence has no effect, because an operator marked the node.
  if (isConnected && health?.state !== HealthState.HEALTHY) return "";
  const left = durationMs(next.after) - silent;
  if (left <= 0) return "";
  const then = `${next.word} in ${formatDuration(left)}`;
  // Do not mention a reconnect, because a rejected node cannot reconnect.
  if (membership?.state === MembershipState.REJECTED) return then;
  return `${then} unless it ${isConnected ? "sends a heartbeat" : "reconnects"}`;
}

function nextOf(state: HealthState | undefined, { unhealthyAfter, unknownAfter }: NodeHealth) {
  switch (state) {
    case HealthState.HEALTHY:
      return unhealthyAfter === undefined ? null : { word: "unhealthy", after: unhealthyAfter };
    case HealthState.UNHEALTHY:
      return unknownAfter === undefined ? null : { word: "unknown", after: unknownAfter };
    default:
      return null;
  }
}
