import { ConnectionState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";

/** The verbs that decide about nodes. */
export type NodeVerb =
  | "approve"
  | "reject"
  | "delete"
  | "cordon"
  | "uncordon"
  | "undrain"
  | "mark-unhealthy"
  | "clear-mark"
  | "rotate-key"
  | "accept-hardware"
  | "ban"
  | "unban";

interface VerbWords {
  /** What to print when the node was changed. */
  readonly done: string;
  /** What to print when there was nothing to change. */
  readonly already: string;
}

/** The words of each verb that changes nodes. */
export const VERB_WORDS: Readonly<Record<NodeVerb | "drain" | "label", VerbWords>> = {
  approve: { done: "approved", already: "was already approved" },
  reject: { done: "rejected", already: "was already rejected" },
  delete: { done: "deleted", already: "was already deleted" },
  cordon: { done: "cordoned", already: "was already cordoned" },
  uncordon: { done: "uncordoned", already: "was not cordoned" },
  undrain: { done: "undrained", already: "was not draining" },
  "mark-unhealthy": { done: "marked unhealthy", already: "was already marked unhealthy" },
  "clear-mark": { done: "no longer marked", already: "was not marked" },
  "rotate-key": { done: "must replace its key", already: "was already asked to replace its key" },
  "accept-hardware": { done: "accepted with its current hardware", already: "already has the accepted hardware" },
  ban: { done: "banned", already: "was already banned" },
  unban: { done: "unbanned; it stays rejected until it is approved", already: "was not banned" },
  drain: { done: "is draining", already: "was already draining" },
  label: { done: "labelled", already: "already has the requested labels" },
};

/** What a verb did to a node; undefined if the node is not known. */
export function resultOf(verb: keyof typeof VERB_WORDS, node: Node | undefined): string {
  const { done } = VERB_WORDS[verb];
  const isConnected = node?.connection?.state === ConnectionState.CONNECTED;
  return verb === "delete" && isConnected ? `${done}; its agent stays idle until it is restarted` : done;
}
