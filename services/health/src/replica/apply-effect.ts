import { type EventEffect, isBanned, type Membership } from "@rollcall/domain";
import { keyFingerprint } from "@rollcall/identity";
import { isInTrouble } from "../conditions/gpu-samples.ts";
import { deleted, type Farewell, keyRetired, movedOn, type Random, rejected, superseded } from "./farewell.ts";
import type { HeldNode } from "./held-node.ts";

/** What an effect calls on a replica. */
export interface EffectHooks {
  readonly random: Random;
  wallMs(): number;
  /** Release the node, and end its stream if it has one. */
  lose(node: HeldNode, farewell: Farewell): void;
  /** End the node's stream if it has one; the node stays. */
  cut(node: HeldNode, why: CutReason, farewell: Farewell): void;
  /** See ReplicaOptions. */
  onMovedAway(node: HeldNode): void;
  /** See ReplicaOptions. */
  onLabelsChanged(node: HeldNode): void;
  /** See ReplicaOptions. */
  onConditionsChanged(node: HeldNode): void;
}

/** The connection that the node has from then on. */
export interface CutReason {
  readonly reason: string;
  readonly message: string;
}

/** No proof verifies with it. */
const NO_KEY = new Uint8Array();

/** Let an event take effect on the node that it is about. */
export function applyEffect(node: HeldNode, effect: EventEffect, hooks: EffectHooks): void {
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
      // Where it went may be another agent's choice.
      hooks.lose(node, node.isDuplicated ? superseded(node.id, node, hooks.random) : movedOn(node.id, hooks.random));
      break;
    case "info":
      node.infoDigest = effect.digest;
      // Whether a GPU is missing depends on whether the node still lists it.
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

/** End a stream that was opened with the previous key: from its first use on, only the new key counts. */
function dropRetiredKey(node: HeldNode, fingerprint: string | null, hooks: EffectHooks): void {
  if (node.publicKey === null || keyFingerprint(node.publicKey) === fingerprint) return;
  node.publicKey = NO_KEY;
  const why = { reason: "KEY_RETIRED", message: "the key of its stream was replaced" };
  hooks.cut(node, why, keyRetired(node.id));
}

function tellMembership(node: HeldNode, membership: Membership, hooks: EffectHooks): void {
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
