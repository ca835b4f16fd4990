import { isUnexpectedReboot, rebootedEvent } from "../conditions/hardware-conditions.ts";
import { connectionEvent, type NewEvent, replicaActor, sessionMovedEvent } from "../events/events.ts";
import { keyRotatedEvent } from "../keys/key-events.ts";
import {
  findDuplicate,
  identityDuplicatedEvent,
  isSamePair,
  latestPair,
  type MachineSighting,
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
  /** The machines that recently opened the node's sessions, this one included. */
  readonly machines: readonly MachineSighting[];
  readonly before: {
    readonly connection: Connection;
    readonly replicaId: string | null;
    readonly bootId: string | null;
    readonly machineFingerprint: string | null;
    readonly machines: readonly MachineSighting[];
    /** Whether two machines were known to use the node's identity in turns. */
    readonly isDuplicated: boolean;
  };
  readonly nowMs: number;
}

/** What follows from a session that was opened: what is noted of the node, and every event. */
export interface OpeningPlan {
  /** Two machines use its identity in turns, which is not noted yet, or of other machines. */
  readonly isDuplicated: boolean;
  /** Its machine was restarted without its agent having said goodbye. */
  readonly hasRebooted: boolean;
  readonly events: readonly NewEvent[];
}

/** Decide what follows from a session that was opened. */
export function planOpening(opened: OpenedSession): OpeningPlan {
  const duplicate = duplicateEvents(opened);
  const reboot = rebootEvents(opened);
  return {
    isDuplicated: duplicate.length > 0,
    hasRebooted: reboot.length > 0,
    events: [...keyEvents(opened), ...connectionEvents(opened), ...duplicate, ...reboot],
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

/** The event of two machines that alternate, unless it was appended already of these two. */
function duplicateEvents({ nodeId, replicaId, machines, before, nowMs }: OpenedSession): readonly NewEvent[] {
  const pair = before.isDuplicated ? latestPair(machines) : findDuplicate(machines, nowMs);
  const isKnown = before.isDuplicated && pair !== null && isSamePair(pair, latestPair(before.machines));
  return pair === null || isKnown ? [] : [identityDuplicatedEvent(nodeId, pair, replicaActor(replicaId))];
}

function rebootEvents(opened: OpenedSession): readonly NewEvent[] {
  const { before, bootId, machineFingerprint } = opened;
  const was = {
    bootId: before.bootId,
    fingerprint: before.machineFingerprint,
    connectionReason: before.connection.reason,
  };
  if (!isUnexpectedReboot(was, { bootId, fingerprint: machineFingerprint })) return [];
  const actor = replicaActor(opened.replicaId);
  return [rebootedEvent({ subject: opened.nodeId, actor, before: before.bootId ?? "", after: bootId })];
}
