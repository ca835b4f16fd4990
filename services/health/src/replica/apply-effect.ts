import { type EventEffect, isBanned, type Membership } from "@rollcall/domain";
import { keyFingerprint } from "@rollcall/identity";
import { deleted, type Farewell, keyRetired, movedOn, type Random, rejected, superseded } from "./farewell.ts";
import { isInTrouble } from "./gpu-samples.ts";
import type { LiveNode } from "./live-node.ts";

/** Actions on a replica that an event's effect can require. */
export interface EffectHooks {
  readonly random: Random;
  wallMs(): number;
  /** Release the node, and end its stream if it has one. */
  lose(node: LiveNode, farewell: Farewell): void;
  /** End the node's stream if it has one; the node stays. */
  cut(node: LiveNode, why: CutReason, farewell: Farewell): void;
  /** See ReplicaOptions. */
  onMovedAway(node: LiveNode): void;
  /** See ReplicaOptions. */
  onLabelsChanged(node: LiveNode): void;
  /** See ReplicaOptions. */
  onConditionsChanged(node: LiveNode): void;
}

/** The node's connection after its stream is ended. */
export interface CutReason {
  readonly reason: string;
  readonly message: string;
}

/** A key that verifies no proof. */
const NO_KEY = new Uint8Array();

/** Apply an event's effect to its node. */
export function applyEffect(node: LiveNode, effect: EventEffect, hooks: EffectHooks): void {
  switch (effect.kind) {
    case "membership":
      node.membership = effect.membership;
      tellMembership(node, effect.membership, hooks);
      break;
    case "removed":
      hooks.lose(node, deleted(node.id, effect.by));
      break;
    case "moved":
      hooks.onMovedAway(node);
      // With a duplicated identity, report a takeover, because the other agent may have caused the move.
      hooks.lose(node, node.isDuplicated ? superseded(node.id, node, hooks.random) : movedOn(node.id, hooks.random));
      break;
    case "info":
      node.infoDigest = effect.digest;
      // Update the conditions, because the node's list of GPUs may have changed, and this list decides whether a GPU
      // counts as missing.
      if (isInTrouble(node)) hooks.onConditionsChanged(node);
      break;
    case "key":
      dropRetiredKey(node, effect.fingerprint, hooks);
      break;
    case "hardware":
      hooks.onConditionsChanged(node);
      break;
    case "labels":
      hooks.onLabelsChanged(node);
      break;
    case "none":
      break;
  }
}

/** End a stream that was opened with the previous key. Once the new key has been used, only the new key is valid. */
function dropRetiredKey(node: LiveNode, fingerprint: string | null, hooks: EffectHooks): void {
  if (node.publicKey === null || keyFingerprint(node.publicKey) === fingerprint) return;
  node.publicKey = NO_KEY;
  const why = { reason: "KEY_RETIRED", message: "the key of its stream was replaced" };
  hooks.cut(node, why, keyRetired(node.id));
}

function tellMembership(node: LiveNode, membership: Membership, hooks: EffectHooks): void {
  if (membership.state !== "REJECTED") {
    node.stream?.sendMembership(membership);
    return;
  }
  const why = isBanned(membership)
    ? { reason: "NODE_BANNED", message: "the node was banned" }
    : { reason: "NODE_REJECTED", message: "the node was rejected" };
  const now = { wallMs: hooks.wallMs(), random: hooks.random };
  hooks.cut(node, why, rejected(node.id, membership, now));
}
