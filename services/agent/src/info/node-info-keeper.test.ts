import { beforeEach, describe, expect, it } from "@jest/globals";
import { type Logger, silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { nodeInfoDigest } from "@rollcall/wire";
import type { NodeDescription } from "../convert.ts";
import type { FactsReader } from "../facts/facts-reader.ts";
import type { MachineFacts } from "../facts/machine-facts.ts";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { createNodeInfoKeeper, sameDigest } from "./node-info-keeper.ts";

const DESCRIPTION = { agentVersion: "0.1.0", advertiseUrl: "", labels: { b: "2", a: "1" } };

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});
const keeperOf = (facts: FactsReader, description: NodeDescription = DESCRIPTION, log: Logger = silentLogger) =>
  createNodeInfoKeeper({ facts, description, clock, log });

describe("createNodeInfoKeeper()", () => {
  it("should give equal machines equal digests, and the server's", async () => {
    const facts = { read: async () => ({ ...SMALL_FACTS }) };
    const one = keeperOf(facts);
    const labels = { a: "1", b: "2" };
    const other = keeperOf(facts, { ...DESCRIPTION, labels });
    const { info, digest } = await one.current();
    expect(sameDigest(digest, (await other.current()).digest)).toBe(true);
    expect(sameDigest(digest, nodeInfoDigest(info))).toBe(true);
    expect(digest).toHaveLength(32);
  });

  it("should read once for concurrent callers, and again on refresh", async () => {
    let reads = 0;
    const facts = {
      read: async () => {
        reads += 1;
        return { ...SMALL_FACTS, memoryBytes: reads };
      },
    };
    const keeper = keeperOf(facts);
    const [a, b] = await Promise.all([keeper.current(), keeper.current()]);
    expect(reads).toBe(1);
    expect(a).toBe(b);
    const renewed = await keeper.refresh();
    expect(sameDigest(a.digest, renewed.digest)).toBe(false);
    expect(await keeper.current()).toBe(renewed);
  });

  it("should describe the current state without reading the machine again", async () => {
    let reads = 0;
    const facts = {
      read: async () => {
        reads += 1;
        return SMALL_FACTS;
      },
    };
    let conditions = [{ reason: "EXECUTORS_UNKNOWN", message: "no answer" }];
    const offer = () => ({ work: undefined, conditions });
    const keeper = createNodeInfoKeeper({ facts, description: DESCRIPTION, offer, clock, log: silentLogger });
    const before = await keeper.current();
    expect(before.info.conditions).toMatchObject(conditions);
    conditions = [];
    const after = await keeper.current();
    expect(after.info.conditions).toEqual([]);
    expect(sameDigest(before.digest, after.digest)).toBe(false);
    expect(reads).toBe(1);
  });

  it("should log once what it omits from a description that is too large", async () => {
    const nic = { name: "e0", mac: undefined, addresses: [], speedMbps: undefined };
    const odd: MachineFacts = { ...SMALL_FACTS, interfaces: Array(999).fill(nic) };
    const warned: unknown[] = [];
    const log = { ...silentLogger, warn: (fields: unknown) => warned.push(fields) };
    const keeper = keeperOf({ read: async () => odd }, DESCRIPTION, log as Logger);
    for (const read of [keeper.current, keeper.refresh, keeper.refresh]) {
      expect((await read()).info.interfaces).toHaveLength(128);
    }
    expect(warned).toEqual([{ left_out: "871 of 999 interfaces" }]);
  });

  it("should describe a machine only by its labels if everything else fails", async () => {
    const odd: MachineFacts = { ...SMALL_FACTS, memoryBytes: Number.NaN };
    const keeper = keeperOf({ read: async () => odd });
    expect((await keeper.current()).info).toMatchObject({ labels: DESCRIPTION.labels });
  });

  it("should report small changes of ballooning memory as equal, and a lost module immediately", async () => {
    const gib = 1024 ** 3;
    let minute = 0;
    let lost = 0;
    const facts = {
      read: async () => {
        // Total memory varies by up to 1 %, and the memory of each NUMA node by up to 5 %.
        const taken = (minute % 3) * gib;
        return {
          ...SMALL_FACTS,
          memoryBytes: 256 * gib - taken - lost,
          diskBytes: 100 * gib + minute * 1024,
          numaNodes: [0, 1].map((id) => ({
            ...{ id, cpus: "0-7", distances: [10, 21] },
            memoryBytes: 128 * gib - (id === 0 ? taken * 3 : -taken) - lost / 2,
          })),
        };
      },
    };
    const keeper = keeperOf(facts);
    const digests = new Set<string>();
    for (; minute < 120; minute += 1) {
      await clock.pass(60_000);
      digests.add(Buffer.from((await keeper.refresh()).digest).toString("hex"));
    }
    expect(digests.size).toBe(1);
    lost = 16 * gib;
    const { info } = await keeper.refresh();
    expect(Number(info.memoryBytes)).toBeLessThanOrEqual(240 * gib);
  });
});
