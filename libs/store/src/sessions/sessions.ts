import {
  type Connection,
  type Health,
  type Membership,
  type NewEvent,
  type OpenedSession,
  type OpeningPlan,
  planOpening,
} from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import { inRounds } from "../database/batches.ts";
import type { Change } from "../database/change.ts";
import type { Db, Tx } from "../database/store.ts";
import { toConnection, toHealth, toMembership } from "../nodes/node-rows.ts";
import { type OpeningRow, type OwnedSessionRow, openRound, type SessionHello } from "./open-round.ts";
import { withSharedTexts } from "./shared-texts.ts";

/** The result of a hello. */
export type SessionOpening =
  | {
      readonly outcome: "OPENED";
      readonly nodeId: string;
      readonly epoch: number;
      readonly membership: Membership;
      readonly marked: boolean;
      /** The previous owner (null for none) and the previous machine. */
      readonly previous: SessionOrigin;
      /** See OpeningPlan. */
      readonly isTakenOver: boolean;
      /** Whether two agents use the node's identity alternately. */
      readonly isDuplicated: boolean;
      /** The detected health, without marks. Opening a session does not change it. */
      readonly detectedHealth: Health;
      readonly infoDigest: string | null;
      /** The revision at which the membership was read. Apply feed events above it. */
      readonly revision: bigint;
    }
  | {
      /** The node is rejected. Nothing was written. */
      readonly outcome: "REJECTED";
      readonly nodeId: string;
      readonly membership: Membership;
      readonly revision: bigint;
    }
  /** The key is no longer the node's key. Nothing was written. */
  | { readonly outcome: "KEY_RETIRED"; readonly nodeId: string; readonly revision: bigint }
  | { readonly outcome: "UNKNOWN_NODE"; readonly nodeId: string; readonly revision: bigint };

/** Where a node's session was before it was opened. */
export interface SessionOrigin {
  readonly replicaId: string | null;
  readonly bootId: string | null;
  readonly machineFingerprint: string | null;
}

/** A node's session as its owner reads it from the store. */
export interface OwnedSession {
  readonly nodeId: string;
  readonly epoch: number;
  readonly connection: Connection;
  /** The detected health, without marks. */
  readonly detectedHealth: Health;
  readonly marked: boolean;
  readonly membership: Membership;
}

/**
 * Open a session for each hello, with the next epoch, as CONNECTED. Returns one opening per hello, in order; two hellos
 * of one node get two epochs.
 *
 * The events are for the caller to append. Each node that was not connected, or that another replica held, has one.
 * This event notifies the other replica that its session is fenced. A next key that is used for the first time becomes
 * the node's key, and alternating agents are detected; each of these adds an event.
 */
export async function openSessions(
  tx: Tx,
  hellos: readonly SessionHello[],
): Promise<Change<readonly SessionOpening[]>> {
  const openings = new Map<SessionHello, SessionOpening>();
  const events: NewEvent[] = [];
  for (const round of inRounds(hellos, (hello) => hello.nodeId)) {
    const rows = await openRound(tx, round);
    const byNode = new Map(rows.map((row) => [row.node_id, row]));
    const plans = round.map((hello) => {
      const row = byNode.get(hello.nodeId);
      if (row === undefined) throw new Error("a hello has no result");
      const plan = row.epoch === null ? null : planOpening(toOpened(row, hello));
      openings.set(hello, toOpening(row, plan));
      if (plan !== null) events.push(...plan.events);
      return { nodeId: hello.nodeId, plan, suspectedBefore: row.epoch === null ? null : row.reboot_suspected };
    });
    await saveDuplicates(
      tx,
      plans.flatMap(({ nodeId, plan }) => (plan?.isDuplicated ? [nodeId] : [])),
    );
    await saveReboots(
      tx,
      plans.flatMap(({ nodeId, plan }) => (plan?.hasRebooted ? [nodeId] : [])),
    );
    for (const { nodeId, plan, suspectedBefore } of plans) {
      // Skip most hellos: the suspected reboot rarely changes, because boot ids change only with reboots.
      if (plan === null || plan.suspectedReboot === suspectedBefore) continue;
      const suspected = plan.suspectedReboot === null ? null : JSON.stringify(plan.suspectedReboot);
      await tx
        .updateTable("node_sessions")
        .set({ reboot_suspected: suspected })
        .where("node_id", "=", nodeId)
        .execute();
    }
  }
  return { result: hellos.flatMap((hello) => openings.get(hello) ?? []), events };
}

/** Read the sessions that belong to this replica, for the compute nodes with these ids (null: all), in order of id. */
export async function heldBy(
  db: Db,
  replicaId: string,
  nodeIds: readonly string[] | null,
): Promise<readonly OwnedSession[]> {
  const rows = await db
    .selectFrom("node_sessions as s")
    .innerJoin("nodes as n", "n.id", "s.node_id")
    .selectAll("s")
    .select(["n.membership", "n.membership_since", "n.membership_reason", "n.membership_message", "n.membership_actor"])
    .where("s.replica_id", "=", replicaId)
    .where("s.node_type", "=", "COMPUTE")
    .$if(nodeIds !== null, (query) => query.where(sql<SqlBool>`s.node_id = any(${nodeIds}::text[])`))
    .orderBy("s.node_id")
    .execute();
  return rows.map(toOwnedSession);
}

/** Convert the columns of a session and its node's membership. */
export function toOwnedSession(row: OwnedSessionRow): OwnedSession {
  return {
    nodeId: row.node_id,
    epoch: row.epoch,
    connection: withSharedTexts(toConnection(row)),
    detectedHealth: withSharedTexts(toHealth(row)),
    marked: row.marked,
    membership: withSharedTexts(toMembership(row)),
  };
}

function toOpened(row: Extract<OpeningRow, { readonly epoch: number }>, hello: SessionHello): OpenedSession {
  return {
    key: hello.keyFingerprint,
    retiredKey: row.retired_fingerprint,
    machines: row.machines,
    before: {
      connection: toConnection(row),
      replicaId: row.replica_id,
      bootId: row.boot_id,
      machineFingerprint: row.machine_fingerprint,
      machines: row.machines_before,
      isDuplicated: row.duplicated_since !== null,
      suspectedReboot: row.reboot_suspected,
    },
    nowMs: row.now.getTime(),
    ...hello,
  };
}

async function saveReboots(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.updateTable("node_sessions").set({ rebooted_at: sql<Date>`now()` }).where("node_id", "in", ids).execute();
}

async function saveDuplicates(tx: Tx, ids: readonly string[]): Promise<void> {
  // Return early, because the list is empty except once per period of alternating agents.
  if (ids.length === 0) return;
  await tx
    .updateTable("node_sessions")
    .set({ duplicated_since: sql<Date>`coalesce(duplicated_since, now())` })
    .where("node_id", "in", ids)
    .execute();
}

function toOpening(row: OpeningRow, plan: OpeningPlan | null): SessionOpening {
  const { node_id: nodeId, revision } = row;
  if (row.epoch !== null) {
    return {
      outcome: "OPENED",
      nodeId,
      epoch: row.epoch,
      membership: withSharedTexts(toMembership(row)),
      marked: row.marked,
      previous: {
        replicaId: row.replica_id,
        bootId: row.boot_id,
        machineFingerprint: row.machine_fingerprint,
      },
      isTakenOver: plan?.isTakenOver === true,
      isDuplicated: row.duplicated_since !== null || plan?.isDuplicated === true,
      detectedHealth: withSharedTexts(toHealth(row)),
      infoDigest: row.info_digest,
      revision,
    };
  }
  if (row.membership === "REJECTED") {
    return { outcome: "REJECTED", nodeId, membership: toMembership(row), revision };
  }
  if (row.membership !== null && !row.key_accepted) return { outcome: "KEY_RETIRED", nodeId, revision };
  // The node does not exist, or was removed while this transaction waited for the lock of the node's session.
  return { outcome: "UNKNOWN_NODE", nodeId, revision };
}
