import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError, isStoreUnavailable } from "@rollcall/errors";
import type { SessionOwner } from "@rollcall/store";
import { healthToProto } from "@rollcall/wire";
import { heldToProto, recordToProto } from "../convert.ts";
import type { HealthServices } from "../health-services.ts";
import { heldAfter, heldOf } from "./live-page.ts";
import { readRecords, type StoredHealth } from "./read-stored-health.ts";

/** The response of one replica about its nodes. */
interface Answer {
  readonly nodes: readonly NodeHealth[];
  /** Human-readable reason why the replica's response lacks nodes. */
  readonly missing: string;
}

/**
 * Ask all owners for their nodes concurrently, with one call each. The result is in the order of `owners`. When an
 * owner does not respond in time, or does not hold a node, the node's data comes from the store. An operator's mark
 * takes precedence.
 */
export async function askOwners(
  services: HealthServices,
  owners: readonly SessionOwner[],
  includeSamples: boolean,
): Promise<readonly NodeHealth[]> {
  const told = new Map<string, NodeHealth>();
  const whyMissing = new Map<string, string>();
  await Promise.all(
    groupByReplica(owners).map(async ([replicaId, nodeIds]) => {
      const { nodes, missing } = await askReplica(services, { replicaId, nodeIds, includeSamples });
      for (const node of nodes) told.set(node.nodeId, node);
      for (const id of nodeIds) if (!told.has(id)) whyMissing.set(id, missing);
    }),
  );
  const asRecorded = owners.filter(({ nodeId, marked }) => marked || !told.has(nodeId));
  const records = await recordsOf(services, asRecorded);
  return owners.flatMap(({ nodeId }) => {
    const node = told.get(nodeId);
    const record = records.get(nodeId);
    if (node === undefined) {
      // Leave out a node without a row, because it was removed between the two reads.
      return record === undefined ? [] : [recordToProto(record, whyMissing.get(nodeId) ?? "")];
    }
    if (record !== undefined) node.health = healthToProto(record.health);
    return [node];
  });
}

/** Selects nodes, or a page of all nodes, ordered by id. */
export interface HealthPage {
  /** Only these nodes; empty for all. */
  readonly nodeIds: readonly string[];
  /** Only ids after this one; "" for all. */
  readonly afterId: string;
  readonly limit: number;
  readonly includeSamples: boolean;
}

/**
 * Ask every known replica, including this one. Used while the store is unavailable, because only the store knows
 * the owners.
 */
export async function askAllReplicas(services: HealthServices, page: HealthPage): Promise<readonly NodeHealth[]> {
  const own = ownHeld(services, page);
  const peers = await services.peers.all();
  const answers = await Promise.all(
    peers.map(({ client }) =>
      client.getLiveNodes({ ...page, nodeIds: [...page.nodeIds] }).then(
        ({ nodes }) => nodes,
        // If a replica does not respond, its nodes are missing from the result, like nodes that no replica holds.
        () => [],
      ),
    ),
  );
  const newest = new Map<string, NodeHealth>();
  for (const node of [...own, ...answers.flat()]) {
    const known = newest.get(node.nodeId);
    if (known === undefined || known.sessionEpoch < node.sessionEpoch) newest.set(node.nodeId, node);
  }
  const nodes = [...newest.values()].filter(({ nodeId }) => nodeId > page.afterId);
  return nodes.sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1)).slice(0, page.limit);
}

function ownHeld(
  { replica, clock }: HealthServices,
  { nodeIds, afterId, limit, includeSamples: withSamples }: HealthPage,
): readonly NodeHealth[] {
  const chosen = heldOf(replica, nodeIds).filter(({ id }) => id > afterId);
  const held = nodeIds.length > 0 ? chosen : heldAfter(replica, afterId, limit);
  const options = { replicaId: replica.instance, withSamples, clock };
  return held.map((node) => heldToProto(node, { ...options, health: node.health }));
}

async function askReplica(
  services: HealthServices,
  {
    replicaId,
    nodeIds,
    includeSamples,
  }: {
    readonly replicaId: string;
    readonly nodeIds: readonly string[];
    readonly includeSamples: boolean;
  },
): Promise<Answer> {
  const { replica, clock, peers, log } = services;
  const moving = `the node is being moved away from replica ${replicaId}`;
  if (replicaId === replica.instance) {
    const options = { replicaId, withSamples: includeSamples, clock };
    const held = heldOf(replica, nodeIds);
    const nodes = held.map((node) => heldToProto(node, { ...options, health: node.health }));
    return { nodes, missing: moving };
  }
  const peer = await peers.find(replicaId);
  if (peer === null) return { nodes: [], missing: `replica ${replicaId} is gone` };
  try {
    const { nodes } = await peer.client.getLiveNodes({ nodeIds: [...nodeIds], includeSamples });
    return { nodes, missing: moving };
  } catch (error) {
    log.warn({ replica: replicaId, nodes: nodeIds.length, err: error }, "replica did not answer");
    const { reason = "no answer" } = describeError(error);
    return { nodes: [], missing: `replica ${replicaId} does not answer (${reason})` };
  }
}

async function recordsOf(
  { store, log }: HealthServices,
  owners: readonly SessionOwner[],
): Promise<ReadonlyMap<string, StoredHealth>> {
  if (owners.length === 0) return new Map();
  try {
    const ids = owners.map(({ nodeId }) => nodeId);
    const records = await readRecords(store.db, ids);
    return new Map(records.map((record) => [record.id, record]));
  } catch (err) {
    if (!isStoreUnavailable(err)) throw err;
    log.debug({ err }, "marks cannot be read");
    return new Map();
  }
}

function groupByReplica(owners: readonly SessionOwner[]): readonly (readonly [string, string[]])[] {
  const groups = new Map<string, string[]>();
  for (const { replicaId, nodeId } of owners) {
    const group = groups.get(replicaId);
    if (group === undefined) groups.set(replicaId, [nodeId]);
    else group.push(nodeId);
  }
  return [...groups];
}
