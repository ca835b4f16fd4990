import { durationMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ConnectionState, HealthState, MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { formatDuration } from "../output/units.ts";
import { silentMs } from "./read-health.ts";

/**
 * When a node was last heard, why it is not heard now, and what follows from further silence, in one line for people.
 * Null when no replica can tell.
 */
export function contactText(node: Node | undefined, live: NodeHealth | undefined): string | null {
  const silent = silentMs(live);
  if (node === undefined || live === undefined || silent === null) return null;
  const heard = `last heard ${formatDuration(silent)} ago`;
  const parts = [heard, absence(node), outlook(node, live, silent)];
  return parts.filter((part) => part !== "").join("; ");
}

/** Why it is not heard; empty while it is connected. */
function absence({ membership, connection }: Node): string {
  if (connection?.state !== ConnectionState.DISCONNECTED) return "";
  const { reason, message } = connection;
  const why = message === "" ? reason : message;
  const isRejected = membership?.state === MembershipState.REJECTED;
  // A node that was connected when it was rejected or banned has that as its reason.
  const isTold = reason === "NODE_REJECTED" || reason === "NODE_BANNED";
  return `not connected: ${why}${isRejected && !isTold ? ", and it may not come back since it was rejected" : ""}`;
}

/** What further silence leads to; empty for a node that is UNHEALTHY for another reason than silence. */
function outlook(node: Node, live: NodeHealth, silent: number): string {
  const { membership, connection, health } = node;
  const next = nextOf(health?.state, live);
  if (next === null) return "";
  const isConnected = connection?.state === ConnectionState.CONNECTED;
  // It is marked: silence does not matter.
  if (isConnected && health?.state !== HealthState.HEALTHY) return "";
  const left = durationMs(next.after) - silent;
  if (left <= 0) return "";
  const then = `${next.word} in ${formatDuration(left)}`;
  // It cannot come back while it is rejected.
  if (membership?.state === MembershipState.REJECTED) return then;
  return `${then} unless it ${isConnected ? "is heard" : "comes back"}`;
}

function nextOf(state: HealthState | undefined, { unhealthyAfter, unknownAfter }: NodeHealth) {
  switch (state) {
    case HealthState.HEALTHY:
      return unhealthyAfter === undefined ? null : { word: "UNHEALTHY", after: unhealthyAfter };
    case HealthState.UNHEALTHY:
      return unknownAfter === undefined ? null : { word: "UNKNOWN", after: unknownAfter };
    default:
      return null;
  }
}
