import type { MembershipEventType } from "../events/events.ts";
import type { NodeDecision, NodeEffect } from "../nodes/node-effects.ts";
import type { Refusal } from "../refusal.ts";
import type { CommandSource, Connection, Membership, NodeType } from "../states.ts";
import { BAN_LIFTED, type Ban, bannedNamesOf, bannedRefusal, isBanned, MEMBERSHIP_BANNED, missingBans } from "./ban.ts";
import { membershipEvent } from "./membership-events.ts";
import { accountName, provesNode, type ServiceAccount } from "./service-account.ts";

/** A command on a node's membership. */
export type MembershipCommand =
  | {
      readonly kind: "register";
      /** Whether a new node waits for an operator's approval. Has no effect on a known node. */
      readonly manualApproval: boolean;
      /**
       * The id of the join token that preauthorizes the node. The token approves the node even under manual approval,
       * and even if the node is known and pending.
       */
      readonly preauthorizedBy?: string | null;
      /**
       * The service account whose token the node presents. It approves only the node that the token names; any other
       * node stays pending.
       */
      readonly account?: ServiceAccount | null;
      /**
       * The type of the node; "COMPUTE" by default. A control-plane process is approved immediately, even under manual
       * approval.
       */
      readonly type?: NodeType;
    }
  | { readonly kind: "approve" }
  | { readonly kind: "reject" }
  | { readonly kind: "delete" }
  /** Like reject, but the node can neither return nor be approved until it is unbanned. */
  | { readonly kind: "ban" }
  /** It stays rejected. */
  | { readonly kind: "unban" }
  /** The node removes itself permanently. */
  | { readonly kind: "deregister" };

/** The state of a node when a membership command is decided. */
export interface MembershipSubject {
  readonly type: NodeType;
  /** Whether the node is connected; for a control-plane process, whether it holds its lease. */
  readonly alive: boolean;
  readonly membership: Membership;
}

/** The effect of an accepted command. RECONNECTED means that the node was known and nothing changed. */
export type MembershipOutcome =
  | "REGISTERED"
  | "RECONNECTED"
  | "APPROVED"
  | "REJECTED"
  | "DELETED"
  | "DEREGISTERED"
  | "BANNED"
  | "UNBANNED";

/** The effects of a command, or why it is refused. */
export type MembershipDecision =
  | {
      readonly ok: true;
      readonly outcome: MembershipOutcome;
      /** The membership to store; null if the node is deleted. */
      readonly next: Membership | null;
      /** The event to append in the same transaction; null if nothing changed. */
      readonly event: MembershipEventType | null;
      /** The message for the caller, for example "node reconnected". */
      readonly message: string;
    }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * Decide the effect of a command on a node's membership, including repeated commands. A command with a known
 * `request_id` is answered earlier, so it is not decided here.
 *
 * @param current the node, read by the transaction that has locked it; null if it does not exist.
 */
export function decideMembership(
  current: MembershipSubject | null,
  nodeId: string,
  command: MembershipCommand,
  by: CommandSource,
): MembershipDecision {
  switch (command.kind) {
    case "register":
      return current === null ? admit(nodeId, command, by) : readmit(current, nodeId, command, by);
    case "approve":
      return current === null ? notFound(nodeId) : approve(current, nodeId, by);
    case "reject":
      return current === null ? notFound(nodeId) : reject(current, nodeId, by);
    case "delete":
      return current === null ? notFound(nodeId) : remove(current, nodeId);
    case "ban":
      return current === null ? notFound(nodeId) : ban(current, nodeId, by);
    case "unban":
      return current === null ? notFound(nodeId) : unban(current, nodeId, by);
    case "deregister":
      return current === null ? { ok: false, refusal: nothingToLeave(nodeId) } : deregister(current, nodeId);
  }
}

/** A node whose membership can be changed. Node has these fields. */
export interface NodeMember {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Pick<Connection, "state">;
  readonly keyFingerprint: string | null;
  readonly nextKeyFingerprint: string | null;
}

/** The effects of a new membership of a node that stays in the store. */
export type MembershipEffect = Extract<NodeEffect, { kind: "membership" | "accept-hardware" | "drop-loss" }>;

/**
 * The effects of a new membership. Approving a node also approves its current hardware. Any other membership drops the
 * node's loss, because nothing needs to react to it.
 */
export function membershipEffects(membership: Membership): readonly MembershipEffect[] {
  const isApproved = membership.state === "APPROVED";
  return [{ kind: "membership", membership }, { kind: isApproved ? "accept-hardware" : "drop-loss" }];
}

/** A command on a known node that does not concern bans. */
type PlainCommand = Exclude<MembershipCommand, { kind: "register" | "ban" | "unban" }>;

/** Decide a command on a node's membership like decideMembership(), and return all its effects. */
export function changeMembership(node: NodeMember, command: PlainCommand, by: CommandSource): NodeDecision {
  return decideAndApply(node, command, by, []);
}

/** Decide to ban a node. `bans` are the existing bans on its id and keys, see bannedNamesOf(). */
export function banNode(node: NodeMember, by: CommandSource, bans: readonly Ban[]): NodeDecision {
  const missing = missingBans(bannedNamesOf(node), bans, by);
  return decideAndApply(node, { kind: "ban" }, by, [{ kind: "place-bans", bans: missing }]);
}

/** Decide to lift all bans on a node. `bans` are the existing bans on its id and keys, see bannedNamesOf(). */
export function unbanNode(node: NodeMember, by: CommandSource, bans: readonly Ban[]): NodeDecision {
  return decideAndApply(node, { kind: "unban" }, by, [{ kind: "lift-bans", ids: bans.map(({ id }) => id) }]);
}

/** @param more effects in addition to the new membership, if the command is accepted. */
function decideAndApply(
  node: NodeMember,
  command: Exclude<MembershipCommand, { kind: "register" }>,
  by: CommandSource,
  more: readonly NodeEffect[],
): NodeDecision {
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) return decision;
  const { next, event: type } = decision;
  if (type === null) return { ok: true, effects: [], events: [] };
  const { actor, message } = by;
  const event = membershipEvent({ type, subject: node.id, before: node.membership, after: next, actor, message });
  const effects: readonly NodeEffect[] =
    next === null
      ? [{ kind: "removal", removal: { actor, reason: event.reason, message } }]
      : [...membershipEffects(next), ...more];
  return { ok: true, effects, events: [event] };
}

/** The refusal when an unknown node deregisters. */
export function nothingToLeave(nodeId: string): Refusal {
  const message = `node ${nodeId} not found; it is not registered, so there is nothing to do`;
  return { reason: "NODE_NOT_FOUND", message, metadata: { node: nodeId } };
}

type RegisterCommand = Extract<MembershipCommand, { kind: "register" }>;

function admit(nodeId: string, command: RegisterCommand, by: CommandSource): MembershipDecision {
  const event = "node.registered";
  if (command.type === "ORCHESTRATOR") {
    const next = stated("APPROVED", "CONTROL_PLANE", by);
    return { ok: true, outcome: "REGISTERED", next, event, message: "node registered" };
  }
  if (command.preauthorizedBy != null) {
    const next = approvedBy(command.preauthorizedBy, by);
    return { ok: true, outcome: "REGISTERED", next, event, message: "node registered" };
  }
  const account = command.account ?? null;
  if (account !== null && provesNode(account, nodeId)) {
    const next = approvedByAccount(account, by);
    return { ok: true, outcome: "REGISTERED", next, event, message: "node registered" };
  }
  if (command.manualApproval || account !== null) {
    const next = stated("PENDING", "APPROVAL_REQUIRED", account === null ? by : { ...by, message: ofOther(account) });
    const message = "node registered, waiting for approval";
    return { ok: true, outcome: "REGISTERED", next, event, message };
  }
  const next = stated("APPROVED", "AUTO_APPROVED", by);
  return { ok: true, outcome: "REGISTERED", next, event, message: "node registered" };
}

/**
 * Decide the registration of a known node. The node keeps its membership, whatever the current setting for new nodes
 * is. A token can approve it if it is pending.
 */
function readmit(
  current: MembershipSubject,
  nodeId: string,
  command: RegisterCommand,
  by: CommandSource,
): MembershipDecision {
  // Refuse an agent with the name of a control-plane process: the agent could impersonate the process, even while it is
  // down.
  if (current.type === "ORCHESTRATOR" && command.type !== "ORCHESTRATOR") {
    return isOrchestrator(nodeId, "choose another name for this machine");
  }
  if (current.membership.state === "REJECTED") return rejected(current.membership, nodeId);
  if (current.membership.state === "PENDING" && command.preauthorizedBy != null) {
    return {
      ok: true,
      outcome: "APPROVED",
      next: approvedBy(command.preauthorizedBy, by),
      event: "node.approved",
      message: "node reconnected, approved by its join token",
    };
  }
  if (current.membership.state === "PENDING" && command.account != null && provesNode(command.account, nodeId)) {
    return {
      ok: true,
      outcome: "APPROVED",
      next: approvedByAccount(command.account, by),
      event: "node.approved",
      message: "node reconnected, approved by its service account",
    };
  }
  return {
    ok: true,
    outcome: "RECONNECTED",
    next: current.membership,
    event: null,
    message: "node reconnected",
  };
}

function approve(current: MembershipSubject, nodeId: string, by: CommandSource): MembershipDecision {
  if (isBanned(current.membership)) {
    const { reason, message, metadata } = bannedRefusal(nodeId, current.membership.message);
    return refuse(reason, `${message}; lift the ban first`, metadata);
  }
  switch (current.membership.state) {
    case "APPROVED":
      return refuse("NODE_ALREADY_APPROVED", `node ${nodeId} is already approved`, { node: nodeId });
    case "PENDING":
    case "REJECTED":
      return {
        ok: true,
        outcome: "APPROVED",
        next: stated("APPROVED", "OPERATOR_APPROVED", by),
        event: "node.approved",
        message: `node ${nodeId} approved`,
      };
  }
}

function reject(current: MembershipSubject, nodeId: string, by: CommandSource): MembershipDecision {
  if (isAliveOrchestrator(current)) {
    return isOrchestrator(nodeId, "stop that process instead of rejecting it");
  }
  switch (current.membership.state) {
    case "REJECTED":
      return refuse("NODE_ALREADY_REJECTED", `node ${nodeId} is already rejected`, { node: nodeId });
    case "PENDING":
    case "APPROVED":
      return {
        ok: true,
        outcome: "REJECTED",
        next: stated("REJECTED", "OPERATOR_REJECTED", by),
        event: "node.rejected",
        message: `node ${nodeId} rejected`,
      };
  }
}

function ban(current: MembershipSubject, nodeId: string, by: CommandSource): MembershipDecision {
  if (isAliveOrchestrator(current)) {
    return isOrchestrator(nodeId, "stop that process instead of banning it");
  }
  if (isBanned(current.membership)) {
    return refuse("NODE_ALREADY_BANNED", `node ${nodeId} is already banned`, { node: nodeId });
  }
  return {
    ok: true,
    outcome: "BANNED",
    next: stated("REJECTED", MEMBERSHIP_BANNED, by),
    event: "node.banned",
    message: `node ${nodeId} banned`,
  };
}

function unban(current: MembershipSubject, nodeId: string, by: CommandSource): MembershipDecision {
  if (!isBanned(current.membership)) {
    return refuse("NODE_NOT_BANNED", `node ${nodeId} is not banned`, { node: nodeId });
  }
  return {
    ok: true,
    outcome: "UNBANNED",
    next: stated("REJECTED", BAN_LIFTED, by),
    event: "node.unbanned",
    message: `node ${nodeId} is no longer banned; approve it to let it come back`,
  };
}

function remove(current: MembershipSubject, nodeId: string): MembershipDecision {
  if (isAliveOrchestrator(current)) {
    return isOrchestrator(nodeId, "stop that process; it is removed an hour later");
  }
  return {
    ok: true,
    outcome: "DELETED",
    next: null,
    event: "node.deleted",
    message: `node ${nodeId} deleted`,
  };
}

function deregister(current: MembershipSubject, nodeId: string): MembershipDecision {
  // Refuse a rejected machine: if it could leave, it could return as a new node.
  if (current.membership.state === "REJECTED") return rejected(current.membership, nodeId);
  return {
    ok: true,
    outcome: "DEREGISTERED",
    next: null,
    event: "node.deregistered",
    message: `node ${nodeId} deregistered`,
  };
}

function isAliveOrchestrator(current: MembershipSubject): boolean {
  return current.type === "ORCHESTRATOR" && current.alive;
}

function approvedBy(tokenId: string, by: CommandSource): Membership {
  return stated("APPROVED", "JOIN_TOKEN", { ...by, actor: `join-token:${tokenId}` });
}

function approvedByAccount(account: ServiceAccount, by: CommandSource): Membership {
  return stated("APPROVED", "SERVICE_ACCOUNT", { ...by, actor: `service-account:${accountName(account)}` });
}

/**
 * Explain why a node stays pending although it presents a service account token: the token names another node, or no
 * node.
 */
function ofOther(account: ServiceAccount): string {
  const where = account.node === null ? "does not name a node" : `belongs to node ${account.node}`;
  return `the token of service account ${accountName(account)} ${where}`;
}

function stated(state: Membership["state"], reason: string, by: CommandSource): Membership {
  return { state, sinceMs: by.atMs, reason, message: by.message, actor: by.actor };
}

function notFound(nodeId: string): MembershipDecision {
  return refuse("NODE_NOT_FOUND", `node ${nodeId} not found`, { node: nodeId });
}

function isOrchestrator(nodeId: string, advice: string): MembershipDecision {
  const text = `node ${nodeId} is a control-plane process; ${advice}`;
  return refuse("NODE_IS_ORCHESTRATOR", text, { node: nodeId });
}

function rejected(membership: Membership, nodeId: string): MembershipDecision {
  if (isBanned(membership)) return { ok: false, refusal: bannedRefusal(nodeId, membership.message) };
  const rejectReason = membership.message === "" ? "no reason given" : membership.message;
  const metadata = { node: nodeId, rejectReason };
  return refuse("NODE_REJECTED", `node has been rejected: ${rejectReason}`, metadata);
}

function refuse(reason: Refusal["reason"], message: string, metadata: Refusal["metadata"]): MembershipDecision {
  return { ok: false, refusal: { reason, message, metadata } };
}
