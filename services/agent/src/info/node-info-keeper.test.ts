import { describe, expect, it } from "@jest/globals";
import { type Logger, silentLogger } from "@rollcall/runtime";
import { nodeInfoDigest } from "@rollcall/wire";
import type { MachineFacts } from "../facts/machine-facts.ts";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { createNodeInfoKeeper, sameDigest } from "./node-info-keeper.ts";

const DESCRIPTION = { agentVersion: "0.1.0", advertiseUrl: "", labels: { b: "2", a: "1" } };

describe("createNodeInfoKeeper()", () => {
  it("should give equal machines equal digests, and the server's", async () => {
    const facts = { read: async () => ({ ...SMALL_FACTS }) };
    const one = createNodeInfoKeeper(facts, DESCRIPTION, silentLogger);
    const labels = { a: "1", b: "2" };
    const other = createNodeInfoKeeper(facts, { ...DESCRIPTION, labels }, silentLogger);
    const { info, digest } = await one.current();
    expect(sameDigest(digest, (await other.current()).digest)).toBe(true);
    expect(sameDigest(digest, nodeInfoDigest(info))).toBe(true);
    expect(digest).toHaveLength(32);
  });

  it("should read once for all who ask at the same time, and anew when told", async () => {
    let reads = 0;
    const facts = {
      read: async () => {
        reads += 1;
        return { ...SMALL_FACTS, memoryBytes: reads };
      },
    };
    const keeper = createNodeInfoKeeper(facts, DESCRIPTION, silentLogger);
    const [a, b] = await Promise.all([keeper.current(), keeper.current()]);
    expect(reads).toBe(1);
    expect(a).toBe(b);
    const renewed = await keeper.refresh();
    expect(sameDigest(a.digest, renewed.digest)).toBe(false);
    expect(await keeper.current()).toBe(renewed);
  });

  it("should say once what it leaves out of a machine that says too much", async () => {
    const nic = { name: "e0", mac: undefined, addresses: [], speedMbps: undefined };
    const odd: MachineFacts = { ...SMALL_FACTS, interfaces: Array(999).fill(nic) };
    const warned: unknown[] = [];
    const log = { ...silentLogger, warn: (fields: unknown) => warned.push(fields) };
    const keeper = createNodeInfoKeeper({ read: async () => odd }, DESCRIPTION, log as Logger);
    for (const read of [keeper.current, keeper.refresh, keeper.refresh]) {
      expect((await read()).info.interfaces).toHaveLength(128);
    }
    expect(warned).toEqual([{ left_out: "871 of 999 interfaces" }]);
  });

  it("should describe a machine that cannot be described by its labels alone", async () => {
    const odd: MachineFacts = { ...SMALL_FACTS, memoryBytes: Number.NaN };
    const keeper = createNodeInfoKeeper({ read: async () => odd }, DESCRIPTION, silentLogger);
    expect((await keeper.current()).info).toMatchObject({ labels: DESCRIPTION.labels });
  });
});
