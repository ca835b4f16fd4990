import { isUnexpectedReboot, rebootedEvent } from "../conditions/hardware-conditions.ts";
import { connectionEvent, type NewEvent, replicaActor, sessionMovedEvent } from "../events/events.ts";
import { keyRotatedEvent } from "../keys/key-events.ts";
import {
  type AgentSighting,
  findDuplicate,
  identityDuplicatedEvent,
  isKnownPair,
  isSameAgent,
  latestPair,
} from "../membership/duplicate-identity.ts";
import { connectionAfter } from "../session/connection.ts";
import type { Connection } from "../states.ts";

/** A session that was opened, and the stored state of the node's previous session. */
export interface OpenedSession {
  readonly nodeId: string;
  /** The replica that now owns the node. */
  readonly replicaId: string;
  readonly bootId: string;
  readonly machineFingerprint: string;
  /** Fingerprint of the key that signed the hello. */
  readonly key: string;
  /** The previous key, if this is the first use of the next key; null if the key is unchanged. */
  readonly retiredKey: string | null;
  /** The agents that recently opened a session of the node, including the current one. */
  readonly machines: readonly AgentSighting[];
  readonly before: {
    readonly connection: Connection;
    readonly replicaId: string | null;
    readonly bootId: string | null;
    readonly machineFingerprint: string | null;
    readonly machines: readonly AgentSighting[];
    /** Whether it was already known that two agents use the node's identity. */
    readonly isDuplicated: boolean;
    /** See OpeningPlan. */
    readonly suspectedReboot: SuspectedReboot | null;
  };
  readonly nowMs: number;
}

/** A changed boot id, which is either a reboot or the first sign of a second agent. */
export interface SuspectedReboot {
  /** Boot ids. */
  readonly before: string;
  readonly after: string;
  /** Wall time of the store. */
  readonly atMs: number;
}

/** The effects of opening a session: facts to store about the node, and all events. */
export interface OpeningPlan {
  /** Whether two agents use the node's identity and the store does not have this pair yet. */
  readonly isDuplicated: boolean;
  /** Whether a different agent took over the session while the previous agent was connected. */
  readonly isTakenOver: boolean;
  /** Whether the machine certainly restarted although its agent had not announced a shutdown. */
  readonly hasRebooted: boolean;
  /**
   * A change of the boot id while the previous session was connected. If no process of the previous boot returns
   * for a while, it counts as a reboot, see planConditions(). An earlier suspicion is kept if it still applies.
   */
  readonly suspectedReboot: SuspectedReboot | null;
  readonly events: readonly NewEvent[];
}

/** Decide the effects of opening a session. */
export function planOpening(opened: OpenedSession): OpeningPlan {
  const duplicate = duplicateEvents(opened);
  const isDuplicated = opened.before.isDuplicated || duplicate.length > 0;
  const reboot = isDuplicated ? null : rebootOf(opened);
  const isCertain = reboot !== null && opened.before.connection.state === "DISCONNECTED";
  return {
    isDuplicated: duplicate.length > 0,
    isTakenOver: isTakenOver(opened),
    hasRebooted: isCertain,
    suspectedReboot: isDuplicated || isCertain ? null : (reboot ?? stillSuspected(opened)),
    events: [
      ...keyEvents(opened),
      ...connectionEvents(opened),
      ...duplicate,
      ...(isCertain
        ? [rebootedEvent({ ...reboot, subject: opened.nodeId, actor: replicaActor(opened.replicaId) })]
        : []),
    ],
  };
}

function keyEvents({ nodeId: subject, key: after, retiredKey: before }: OpenedSession): readonly NewEvent[] {
  return before === null ? [] : [keyRotatedEvent({ subject, before, after })];
}

/** The events of the connection. They also notify the node's previous owner that its session is fenced. */
function connectionEvents({ nodeId: subject, replicaId, before, nowMs }: OpenedSession): readonly NewEvent[] {
  const displaces = before.replicaId === null || before.replicaId === replicaId ? "" : before.replicaId;
  if (before.connection.state === "DISCONNECTED") {
    const after = connectionAfter("opened", { actor: replicaActor(replicaId), atMs: nowMs });
    return [connectionEvent({ subject, before: before.connection, after, displaces })];
  }
  return displaces === "" ? [] : [sessionMovedEvent({ subject, before: displaces, after: replicaId })];
}

/** The event of two agents with the same identity; none if this pair is already known. */
function duplicateEvents({ nodeId, replicaId, machines, before, nowMs }: OpenedSession): readonly NewEvent[] {
  const pair = before.isDuplicated ? latestPair(machines) : findDuplicate(machines, nowMs);
  const isKnown = before.isDuplicated && pair !== null && isKnownPair(pair, latestPair(before.machines));
  return pair === null || isKnown ? [] : [identityDuplicatedEvent(nodeId, pair, replicaActor(replicaId))];
}

function isTakenOver({ machines, before }: OpenedSession): boolean {
  const latest = machines.at(-1);
  const earlier = before.machines.at(-1);
  if (latest === undefined || earlier === undefined) return false;
  return latest.tookOver && !isSameAgent(earlier, latest);
}

/**
 * Detect a reboot; null for none. A return to an earlier boot id is not a reboot, because that machine was never down.
 */
function rebootOf({ before, bootId, machineFingerprint, nowMs }: OpenedSession): SuspectedReboot | null {
  const was = {
    bootId: before.bootId,
    fingerprint: before.machineFingerprint,
    connectionReason: before.connection.reason,
  };
  if (!isUnexpectedReboot(was, { bootId, fingerprint: machineFingerprint })) return null;
  if (before.machines.some((sighting) => sighting.bootId === bootId)) return null;
  return { before: before.bootId ?? "", after: bootId, atMs: nowMs };
}

function stillSuspected({ before: { suspectedReboot }, bootId }: OpenedSession): SuspectedReboot | null {
  return suspectedReboot?.after === bootId ? suspectedReboot : null;
}
