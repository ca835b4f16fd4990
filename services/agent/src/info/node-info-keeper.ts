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

/** A description of the node and its digest. The server compares the digest with the stored one. */
interface NodeInfoSnapshot {
  readonly info: NodeInfo;
  /** The digest of the description, 32 bytes. */
  readonly digest: Uint8Array;
}

/** Maintains the node's description of itself. Never rejects. */
export interface NodeInfoKeeper {
  /** Read the machine again, or wait for a reading in progress. */
  refresh(): Promise<NodeInfoSnapshot>;
  /**
   * The last reading of the machine, combined with the current state of its work. Waits only for the first
   * reading.
   */
  current(): Promise<NodeInfoSnapshot>;
}

/** The parts of a description that are not read from the machine and can change at any time. */
export interface WorkOffer {
  /** The work that the machine accepts; undefined while it runs none. */
  readonly work: WorkCapacity | undefined;
  /** Why the machine runs no new work, most severe first. */
  readonly conditions: readonly NodeCondition[];
  /** How the agent recognizes servers; undefined if the agent reports nothing about this. */
  readonly trust?: MessageInitShape<typeof NodeTrustSchema> | undefined;
}

export interface NodeInfoKeeperOptions {
  readonly facts: FactsReader;
  readonly description: NodeDescription;
  /** Returns the work that the machine accepts. Called for each description. Default: no work. */
  readonly offer?: (facts: MachineFacts | null) => WorkOffer;
  /** Resolves when the first description can be made. It can wait briefly for missing information. */
  readonly ready?: () => Promise<void>;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
}

/**
 * Create the keeper of this machine's report. It remembers only the machine's facts, and combines them with the
 * current state for each description, so that no description is outdated. Amounts that fluctuate are smoothed, see
 * SteadyAmounts.
 */
export function createNodeInfoKeeper(options: NodeInfoKeeperOptions): NodeInfoKeeper {
  const { facts, description, offer, ready, clock, log } = options;
  const steady = new SteadyFacts();
  let read: MachineFacts | null = null;
  let first: Promise<void> | undefined;
  let last: NodeInfoSnapshot | undefined;
  let underWay: Promise<NodeInfoSnapshot> | undefined;
  let saidLeftOut = "";

  /** Cut a report to its limits, and log the omitted parts once and after each change. */
  function fitted(whole: NodeInfo): NodeInfo {
    const { info, leftOut } = fitNodeInfo(whole);
    const text = leftOut.join(", ");
    if (text !== "" && text !== saidLeftOut) {
      log.warn({ left_out: text }, "the machine's description exceeds the limits of a report and was cut");
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
      // Continue, because a machine that cannot be described can still be monitored.
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

/** Smooths the amounts that fluctuate: the sizes of a machine's memory, NUMA nodes and disk. */
class SteadyFacts {
  readonly #amounts = new SteadyAmounts();

  /** Take the facts as read, and return those to report. `nowMs` is monotonic. */
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
