import {
  accountName,
  clusterShortId,
  type NewEvent,
  type Node,
  type NodeApproval,
  type NodeCreation,
  nodeInfoEvents,
  planRegistrations,
  type RegistrationPlan,
  type RegistrationResult,
} from "@rollcall/domain";
import { isStoreUnavailable, refuse } from "@rollcall/errors";
import {
  AUDIT_OK,
  beginAdmission,
  type Change,
  findBans,
  getNodes,
  insertComputeNodes,
  listHealthReplicas,
  lockAlikeNodes,
  lockJoinTokens,
  type NewAuditEntry,
  type NewComputeNode,
  ownersOfKeys,
  promoteKey,
  StoreMovedError,
  saveInfo,
  saveJoinTokenUses,
  saveNodeEffects,
  type Tx,
  together,
  useChallenges,
} from "@rollcall/store";
import type { RegistryProcess } from "../registry-process.ts";
import {
  type DecidedBy,
  nonceName,
  type Registrant,
  type Registration,
  refusalOfNode,
  toRegistrant,
} from "./registration.ts";

/** The response to a registration. */
export type RegistrationAnswer =
  | {
      readonly ok: true;
      /** The node in its current state. */
      readonly node: Node;
      readonly created: boolean;
      readonly message: string;
      /** Addresses of live health replicas for agents' streams. */
      readonly healthEndpoints: readonly string[];
    }
  | { readonly ok: false; readonly error: unknown };

const MOST_ATTEMPTS = 5;
const RETRY_AFTER_MS = 1_000;

/**
 * Carry out a batch of registrations. Returns a response for each, in their order. A problem with one registration
 * never fails another. Rejects when the store is unavailable. In that case, either none was admitted or the result is
 * unknown, and all can retry.
 */
export async function registerBatch(
  services: Omit<RegistryProcess, "feed">,
  batch: readonly Registration[],
): Promise<readonly RegistrationAnswer[]> {
  try {
    return await registerWithRetries(services, batch);
  } catch (error) {
    if (isStoreUnavailable(error)) throw error;
    if (batch.length === 1) return [{ ok: false, error }];
    // The store rejects one of the registrations for an unforeseen reason. Find it by bisection, and carry out the
    // others.
    services.log.warn({ err: error, size: batch.length }, "batch of registrations failed; retrying it in halves");
    const half = Math.ceil(batch.length / 2);
    const first = await registerBatch(services, batch.slice(0, half));
    return [...first, ...(await registerBatch(services, batch.slice(half)))];
  }
}

async function registerWithRetries(
  services: Omit<RegistryProcess, "feed">,
  batch: readonly Registration[],
): Promise<readonly RegistrationAnswer[]> {
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    try {
      const { result } = await services.store.reserved.change((tx) => registerInTransaction(tx, services, batch));
      return result;
    } catch (error) {
      // Retry, because another transaction was faster and has committed, so the next attempt sees its changes.
      if (!(error instanceof StoreMovedError)) throw error;
    }
  }
  const error = refuse("OVERLOADED", "too many concurrent registrations of the same nodes", {
    retryAfterMs: RETRY_AFTER_MS,
  });
  return batch.map(() => ({ ok: false, error }));
}

async function registerInTransaction(
  tx: Tx,
  { config, clock, store }: Omit<RegistryProcess, "feed">,
  batch: readonly Registration[],
): Promise<Change<readonly RegistrationAnswer[]>> {
  const nodeIds = distinct(batch, "nodeId");
  const fingerprints = distinct(batch, "fingerprint");
  const { freshNonces, tokens, known, keyOwners, bans, replicas } = await together({
    freshNonces: useChallenges(tx, distinct(batch, "nonce")),
    // Take this lock before locking any row, because a transaction that sets a ban locks in the same order.
    admission: beginAdmission(tx, nodeIds),
    tokens: lockJoinTokens(tx, givenTokens(batch)),
    known: lockAlikeNodes(tx, nodeIds),
    keyOwners: ownersOfKeys(tx, fingerprints),
    bans: findBans(tx, { nodeIds, fingerprints, anyCase: true }),
    replicas: listHealthReplicas(tx),
  });
  const registrants = batch.map((registration) => toRegistrant(registration, tokens));
  const plan = planRegistrations(registrants, {
    nodes: known,
    keyOwners,
    bans,
    freshNonces: new Set(freshNonces.map(nonceName)),
    tokens,
    enforcement: config["Orchestrator.NodeManager.JoinTokens"],
    cluster: clusterShortId(store.clusterId()),
    manualApproval: config["Orchestrator.NodeManager.ManualApproval"],
    atMs: clock.wallMs(),
  });
  const { created } = await together({
    inserted: insertComputeNodes(tx, plan.creations.map(toNewNode)),
    uses: saveJoinTokenUses(tx, plan.uses),
    created: getNodes(tx, plan.creations.map(nodeIdOf)),
  });
  const { nodes, events } = await saveKnown(tx, plan, known);
  for (const node of created) nodes.set(node.id, node);
  // Drop duplicates, because worker processes share an address, and empty addresses, because a replica that is shutting
  // down has none.
  const endpoints = [...new Set(replicas.map(({ agentEndpoint }) => agentEndpoint))].filter(Boolean);
  const by = { wallMs: clock.wallMs(), logId: store.logId() };
  return {
    result: plan.results.map((result) => toAnswer(result, nodes, endpoints, by)),
    events: [...plan.events, ...events],
    audit: [...plan.creations, ...plan.approvals].map(toAuditEntry),
  };
}

/**
 * Save changes to existing nodes. Returns all of them, keyed by id, in their current state, and the events of their
 * reports.
 */
async function saveKnown(tx: Tx, plan: RegistrationPlan<Registrant>, known: readonly Node[]) {
  const nodes = new Map(known.map((node) => [node.id, node]));
  const promoted = plan.promotions.toSorted(byNodeId);
  for (const { nodeId, fingerprint } of promoted) await promoteKey(tx, nodeId, fingerprint);
  await saveApprovals(tx, plan, nodes);
  const { ids, events } = await saveReports(tx, plan, nodes);
  const written = [...ids, ...plan.approvals.map(nodeIdOf), ...promoted.map(({ nodeId }) => nodeId)];
  for (const node of await getNodes(tx, [...new Set(written)])) nodes.set(node.id, node);
  return { nodes, events };
}

/** Save the approvals of existing nodes, in order of id, and replace the nodes by their new state. */
async function saveApprovals(
  tx: Tx,
  { approvals }: RegistrationPlan<Registrant>,
  known: Map<string, Node>,
): Promise<void> {
  for (const { applicant, effects } of approvals.toSorted((left, right) => byNodeId(left.applicant, right.applicant))) {
    const before = known.get(applicant.nodeId);
    if (before === undefined) continue;
    await saveNodeEffects(tx, before, effects);
    for (const after of await getNodes(tx, [before.id])) known.set(after.id, after);
  }
}

/** Save changed reports of existing nodes in order of id. Their rows were locked in the same order. */
async function saveReports(tx: Tx, { reports }: RegistrationPlan<Registrant>, known: ReadonlyMap<string, Node>) {
  const ids = [...reports.keys()].sort();
  const events: NewEvent[] = [];
  for (const id of ids) {
    const report = reports.get(id);
    const before = known.get(id);
    if (report === undefined || before === undefined) continue;
    if ((await saveInfo(tx, id, report)) === "saved") events.push(...nodeInfoEvents(before, report));
  }
  return { ids, events };
}

function distinct<K extends keyof Registration>(batch: readonly Registration[], field: K): readonly Registration[K][] {
  return [...new Set(batch.map((registration) => registration[field]))];
}

function toAuditEntry({
  applicant,
  token,
  account,
}: NodeCreation<Registrant> | NodeApproval<Registrant>): NewAuditEntry {
  const byAccount = account === null ? "" : `service account ${accountName(account)}`;
  const reason = token === null ? byAccount : `join token ${token.id}`;
  return { target: applicant.nodeId, reason, outcome: AUDIT_OK, ...applicant.call };
}

/** The ids of the presented tokens that claim to belong to this cluster. */
function givenTokens(batch: readonly Registration[]): readonly string[] {
  const ids = batch.flatMap(({ joinToken }) => (joinToken?.token.kind === "own" ? [joinToken.token.id] : []));
  return [...new Set(ids)];
}

function toNewNode({ applicant, token: _, account: __, ...creation }: NodeCreation<Registrant>): NewComputeNode {
  const { nodeId, publicKey, fingerprint, report } = applicant;
  return { key: { nodeId, publicKey, fingerprint }, report, ...creation };
}

function nodeIdOf({ applicant }: NodeCreation<Registrant> | NodeApproval<Registrant>): string {
  return applicant.nodeId;
}

function byNodeId(left: { readonly nodeId: string }, right: { readonly nodeId: string }): number {
  return left.nodeId < right.nodeId ? -1 : 1;
}

function toAnswer(
  result: RegistrationResult,
  nodes: ReadonlyMap<string, Node>,
  healthEndpoints: readonly string[],
  by: DecidedBy,
): RegistrationAnswer {
  if (!result.ok) return { ok: false, error: refusalOfNode(result, nodes.get(result.nodeId), by) };
  const node = nodes.get(result.nodeId);
  if (node === undefined) throw new Error(`node ${result.nodeId} disappeared while it was locked`);
  return { ok: true, node, created: result.created, message: result.message, healthEndpoints };
}
