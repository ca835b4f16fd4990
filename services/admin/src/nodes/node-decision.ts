import {
  type Ban,
  bannedNamesOf,
  type CommandSource,
  type DrainIntent,
  type NodeDecision,
  type Node as StoredNode,
} from "@rollcall/domain";
import { findBans, getDrains, storeTimeMs, type Tx } from "@rollcall/store";

/** What a decision can read in addition to the node. */
export interface Facts {
  /** The bans on the node's id and keys. Registrations are blocked until the decision is written. */
  readonly bans: readonly Ban[];
  /** The node's drain; null for none. */
  readonly drain: DrainIntent | null;
  /** The store's time, in milliseconds since the Unix epoch. */
  readonly storeTimeMs: number;
}

export type FactName = keyof Facts;

/** Decides about a node whose row stays locked until the change is written. */
type Decide<F extends FactName> = (node: StoredNode, by: CommandSource, facts: Pick<Facts, F>) => NodeDecision;

/** What must hold while a decision is made. */
export interface Guards {
  /** Whether replicas must not change the node's detected states in the meantime. Default false. */
  readonly locksSessions?: boolean;
  /** Whether a scheduler must carry it out: NO_SCHEDULER until one has run. Default false. */
  readonly needsScheduler?: boolean;
}

/** A decision about one node, which receives exactly the facts that it asks for. */
export interface DecisionOnNode {
  readonly reads: ReadonlySet<FactName>;
  readonly guards: Guards;
  decide(node: StoredNode, by: CommandSource, facts: Partial<Facts>): NodeDecision;
}

/** Create a decision. It is the only way to make one, so that none can read a fact that it did not ask for. */
export function decisionOn<F extends FactName = never>(
  reads: readonly F[],
  decide: Decide<F>,
  guards: Guards = {},
): DecisionOnNode {
  return {
    reads: new Set(reads),
    guards,
    // The cast is safe, because readFacts() reads every fact in `reads`.
    decide: (node, by, facts) => decide(node, by, facts as Pick<Facts, F>),
  };
}

/** The same caller, with the store's time. For decisions that compare times with those in the store. */
export function atStoreTime(by: CommandSource, facts: Pick<Facts, "storeTimeMs">): CommandSource {
  return { ...by, atMs: facts.storeTimeMs };
}

/** Read the facts of a decision about nodes whose rows are locked. Returns the facts of one node by its id. */
export async function readFacts(
  tx: Tx,
  reads: ReadonlySet<FactName>,
  nodes: readonly StoredNode[],
): Promise<(node: StoredNode) => Partial<Facts>> {
  const bansOn = reads.has("bans") ? await readBans(tx, nodes) : null;
  const ids = nodes.map(({ id }) => id);
  const drains = reads.has("drain") ? await getDrains(tx, ids) : null;
  const time = reads.has("storeTimeMs") ? { storeTimeMs: await storeTimeMs(tx) } : {};
  return (node) => ({
    ...time,
    ...(bansOn === null ? {} : { bans: bansOn(node) }),
    ...(drains === null ? {} : { drain: drains.get(node.id) ?? null }),
  });
}

async function readBans(tx: Tx, nodes: readonly StoredNode[]): Promise<(node: StoredNode) => readonly Ban[]> {
  const names = nodes.map(bannedNamesOf);
  const bans = await findBans(tx, {
    nodeIds: names.flatMap(({ nodeIds }) => nodeIds),
    fingerprints: names.flatMap(({ fingerprints }) => fingerprints),
  });
  return (node) => {
    const { fingerprints } = bannedNamesOf(node);
    return bans.filter((ban) => ban.nodeId === node.id || fingerprints.some((key) => key === ban.fingerprint));
  };
}
