import { create } from "@bufbuild/protobuf";
import { type NodeInfo, NodeInfoSchema, type WorkCapacity } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Amounts, SteadyAmounts } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import { nodeInfoDigest } from "@rollcall/wire";
import { type NodeDescription, toNodeInfo } from "../convert.ts";
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
  /** The last reading; waits only for the very first one. */
  current(): Promise<NodeInfoSnapshot>;
}

/** What a report is made of. */
export interface NodeInfoKeeperOptions {
  readonly facts: FactsReader;
  readonly description: NodeDescription;
  /** What work the machine takes. Default: none. */
  readonly capacity?: (facts: MachineFacts) => WorkCapacity | undefined;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
}

/** Create the keeper of this machine's report. Amounts that move by themselves are held still, see SteadyAmounts. */
export function createNodeInfoKeeper(options: NodeInfoKeeperOptions): NodeInfoKeeper {
  const { facts, description, capacity, clock, log } = options;
  const steady = new SteadyFacts();
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

  async function read(): Promise<NodeInfoSnapshot> {
    try {
      const read = steady.take(await facts.read(), clock.nowMs());
      const work = capacity?.(read);
      last = snapshotOf(fitted({ ...toNodeInfo(read, description), ...(work && { work }) }));
      return last;
    } catch (error) {
      // A machine so odd that it cannot be described is still a machine that can be watched.
      log.error({ err: error }, "machine cannot be described");
      const { agentVersion, advertiseUrl, labels } = description;
      last ??= snapshotOf(create(NodeInfoSchema, { agentVersion, advertiseUrl, labels: { ...labels } }));
      return last;
    }
  }

  const refresh = (): Promise<NodeInfoSnapshot> => {
    underWay ??= read().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };

  return { refresh, current: async () => last ?? refresh() };
}

/** Whether two digests are the same. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
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
      memoryBytes: amounts.get("memory") ?? facts.memoryBytes,
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
