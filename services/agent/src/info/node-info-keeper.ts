import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type NodeInfo,
  NodeInfoSchema,
  NodeTrustSchema,
  type WorkCapacity,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Amounts, type NodeCondition, SteadyAmounts } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import { nodeInfoDigest } from "@rollcall/wire";
import { type NodeDescription, toConditions, toNodeInfo } from "../convert.ts";
import type { FactsReader } from "../facts/facts-reader.ts";
import type { MachineFacts } from "../facts/machine-facts.ts";
import { fitNodeInfo } from "./fit-node-info.ts";

/** What the node would say about itself, and the digest by which a server knows whether it has that already. */
interface NodeInfoSnapshot {
  readonly info: NodeInfo;
  /** 32 bytes. */
  readonly digest: Uint8Array;
}

/** Keeps what the node says about itself. Nothing here rejects. */
export interface NodeInfoKeeper {
  /** Read the machine again, or join a reading that is under way. */
  refresh(): Promise<NodeInfoSnapshot>;
  /** The last reading of the machine, and what is known of its work now; waits only for the very first reading. */
  current(): Promise<NodeInfoSnapshot>;
}

/** What of a description does not come from reading the machine, and can change at any time. */
export interface WorkOffer {
  /** Undefined while the machine runs no work. */
  readonly work: WorkCapacity | undefined;
  /** What keeps it from running new work, the gravest first. */
  readonly conditions: readonly NodeCondition[];
  /** How the agent recognizes servers; undefined where that is not reported. */
  readonly trust?: MessageInitShape<typeof NodeTrustSchema> | undefined;
}

/** What a report is made of. */
export interface NodeInfoKeeperOptions {
  readonly facts: FactsReader;
  readonly description: NodeDescription;
  /** What work the machine takes, asked for each description. Default: none. */
  readonly offer?: (facts: MachineFacts | null) => WorkOffer;
  /** Resolves when the first description can be made: it is worth waiting a little for what is not known yet. */
  readonly ready?: () => Promise<void>;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
}

/**
 * Create the keeper of this machine's report. Only what was read of the machine is kept: a description is made from
 * that and from what is known at the moment whenever one is wanted, so that none is older than what it says. Amounts
 * that move by themselves are held still, see SteadyAmounts.
 */
export function createNodeInfoKeeper(options: NodeInfoKeeperOptions): NodeInfoKeeper {
  const { facts, description, offer, ready, clock, log } = options;
  const steady = new SteadyFacts();
  let read: MachineFacts | null = null;
  let first: Promise<void> | undefined;
  let last: NodeInfoSnapshot | undefined;
  let underWay: Promise<NodeInfoSnapshot> | undefined;
  let saidLeftOut = "";

  /** Says what was left out once, and again when it is something else. */
  function fitted(whole: NodeInfo): NodeInfo {
    const { info, leftOut } = fitNodeInfo(whole);
    const text = leftOut.join(", ");
    if (text !== "" && text !== saidLeftOut) {
      log.warn({ left_out: text }, "machine is described in part, it says more than a report may have");
    }
    saidLeftOut = text;
    return info;
  }

  function describe(): NodeInfoSnapshot {
    const info = read === null ? bareInfo(description) : toNodeInfo(read, description);
    const { work, conditions, trust } = offer?.(read) ?? NO_OFFER;
    const known = { ...(work && { work }), ...(trust && { trust: create(NodeTrustSchema, trust) }) };
    const snapshot = snapshotOf(fitted({ ...info, ...known, conditions: toConditions(conditions) }));
    if (last === undefined || !sameDigest(last.digest, snapshot.digest)) last = snapshot;
    return last;
  }

  async function readMachine(): Promise<NodeInfoSnapshot> {
    first ??= ready?.() ?? Promise.resolve();
    const before = read;
    try {
      read = steady.take(await facts.read(), clock.nowMs());
      await first;
      return describe();
    } catch (error) {
      // A machine so odd that it cannot be described is still a machine that can be watched.
      log.error({ err: error }, "machine cannot be described");
      read = before;
      return describe();
    }
  }

  const refresh = (): Promise<NodeInfoSnapshot> => {
    underWay ??= readMachine().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };

  return { refresh, current: async () => (last === undefined ? refresh() : describe()) };
}

const NO_OFFER: WorkOffer = { work: undefined, conditions: [] };

/** Whether two digests are the same. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function bareInfo({ agentVersion, advertiseUrl, labels }: NodeDescription): NodeInfo {
  return create(NodeInfoSchema, { agentVersion, advertiseUrl, labels: { ...labels } });
}

function snapshotOf(info: NodeInfo): NodeInfoSnapshot {
  return { info, digest: nodeInfoDigest(info) };
}

/**
 * Holds those facts of a machine still that move by themselves: memory, that of its NUMA nodes, and the size of the
 * disk.
 */
class SteadyFacts {
  readonly #amounts = new SteadyAmounts();

  /** The facts to report now that these were read. `nowMs` is monotonic. */
  take(facts: MachineFacts, nowMs: number): MachineFacts {
    const amounts = this.#amounts.take(amountsOf(facts), nowMs);
    return {
      ...facts,
      memoryBytes: amounts.get("memory"),
      diskBytes: amounts.get("disk"),
      numaNodes: facts.numaNodes.map((node) => ({
        ...node,
        memoryBytes: amounts.get(`numa ${node.id}`),
      })),
    };
  }
}

function amountsOf({ memoryBytes, diskBytes, numaNodes }: MachineFacts): Amounts {
  const all: readonly (readonly [string, number | undefined])[] = [
    ["memory", memoryBytes],
    ["disk", diskBytes],
    ...numaNodes.map((node) => [`numa ${node.id}`, node.memoryBytes] as const),
  ];
  return new Map(all.flatMap(([name, bytes]) => (bytes === undefined ? [] : [[name, bytes]])));
}
