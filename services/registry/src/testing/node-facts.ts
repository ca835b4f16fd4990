import type { Json } from "@rollcall/domain";
import type { EventRow } from "@rollcall/store";

/** The properties of a node that both the log and a client of WatchNodes know. */
export interface NodeFacts {
  readonly membership: string;
  readonly connection: string;
  readonly health: string;
  /** The value of the label "zone"; "" without one. */
  readonly zone: string;
}

/** Apply one event to the nodes. */
export function applyEvent(nodes: Map<string, NodeFacts>, event: EventRow): void {
  const { subject, type, after } = event;
  const known = nodes.get(subject);
  const word = (field: string) => String(fieldOf(after, field) ?? "");
  if (type === "node.registered") {
    const unseen = { connection: "DISCONNECTED", health: "UNKNOWN", zone: "" };
    nodes.set(subject, { ...unseen, membership: word("membership") });
  } else if (type === "node.deleted") {
    nodes.delete(subject);
  } else if (known === undefined) {
    throw new Error(`${type} of ${subject}, which is not there`);
  } else if (type === "node.approved" || type === "node.rejected") {
    nodes.set(subject, { ...known, membership: word("membership") });
  } else if (type === "node.connection.changed") {
    nodes.set(subject, { ...known, connection: word("connection") });
  } else if (type === "node.health.changed") {
    nodes.set(subject, { ...known, health: word("health") });
  } else if (type === "node.labels.changed") {
    const zone = fieldOf(fieldOf(after, "labels") ?? null, "zone");
    nodes.set(subject, { ...known, zone: String(zone ?? "") });
  }
}

/** The matching nodes as a comparable string. */
export function nodesText(
  nodes: ReadonlyMap<string, NodeFacts>,
  isWanted: (facts: NodeFacts) => boolean = () => true,
): string {
  return [...nodes]
    .filter(([, facts]) => isWanted(facts))
    .map(([id, { membership, connection, health, zone }]) => [id, membership, connection, health, zone].join(" "))
    .sort()
    .join("\n");
}

function fieldOf(value: Json | null, field: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return (value as { readonly [key: string]: Json })[field];
}
