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

/** A session that was opened, with what the record held of the node's session before. */
export interface OpenedSession {
  readonly nodeId: string;
  /** Who holds it now, and from which machine. */
  readonly replicaId: string;
  readonly bootId: string;
  readonly machineFingerprint: string;
  /** Fingerprint of the key that signed the hello. */
  readonly key: string;
  /** The key that it replaced by its first use; null when it is the node's key already. */
  readonly retiredKey: string | null;
  /** The agents that recently opened the node's sessions, this one included. */
  readonly machines: readonly AgentSighting[];
  readonly before: {
    readonly connection: Connection;
    readonly replicaId: string | null;
    readonly bootId: string | null;
    readonly machineFingerprint: string | null;
    readonly machines: readonly AgentSighting[];
    /** Whether two agents were known to use the node's identity in turns. */
    readonly isDuplicated: boolean;
    /** See OpeningPlan. */
    readonly suspectedReboot: SuspectedReboot | null;
  };
  readonly nowMs: number;
}

/** A change of boot id that is a reboot, or the first sign of a second agent. */
export interface SuspectedReboot {
  /** Boot ids. */
  readonly before: string;
  readonly after: string;
  /** Wall time of the record. */
  readonly atMs: number;
}

/** What follows from a session that was opened: what is noted of the node, and every event. */
export interface OpeningPlan {
  /** Two agents use its identity in turns, which is not noted yet, or of other machines. */
  readonly isDuplicated: boolean;
  /** Whether another agent took the session over while the one before was connected. */
  readonly isTakenOver: boolean;
  /** Its machine was restarted without its agent having said goodbye. */
  readonly hasRebooted: boolean;
  /**
   * Its boot id changed while the session before was connected: a reboot once nothing of the boot before has come back,
   * see planConditions(). What was suspected before where nothing changes that.
   */
  readonly suspectedReboot: SuspectedReboot | null;
  readonly events: readonly NewEvent[];
}

/** Decide what follows from a session that was opened. */
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

/** A replica that held the node before learns from the event that it is fenced. */
function connectionEvents({ nodeId: subject, replicaId, before, nowMs }: OpenedSession): readonly NewEvent[] {
  const displaces = before.replicaId === null || before.replicaId === replicaId ? "" : before.replicaId;
  if (before.connection.state === "DISCONNECTED") {
    const after = connectionAfter("opened", { actor: replicaActor(replicaId), atMs: nowMs });
    return [connectionEvent({ subject, before: before.connection, after, displaces })];
  }
  return displaces === "" ? [] : [sessionMovedEvent({ subject, before: displaces, after: replicaId })];
}

/** The event of two agents that alternate, unless it was appended already of these two. */
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

/** A boot that was seen before has not just begun: its machine was never down. */
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
