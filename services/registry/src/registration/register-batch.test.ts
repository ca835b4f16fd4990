import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { getNode, getNodes, insertComputeNodes, type Store } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import type { RegistryProcess } from "../registry-process.ts";
import { operate } from "../testing/operator.ts";
import { eventsOf } from "../testing/record.ts";
import { DEFAULT_CONFIG } from "../testing/seed.ts";
import { type RegistrationAnswer, registerBatch } from "./register-batch.ts";
import type { Registration } from "./registration.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function depsOf(store: Store): Omit<RegistryProcess, "feed"> {
  const metrics = createMetrics({ defaults: false });
  return {
    store,
    instance: "i1",
    config: DEFAULT_CONFIG,
    clock: systemClock,
    log: silentLogger,
    metrics,
  };
}

let keys = 0;

/** A registration with a verified proof, by default with a new key. */
function registration(nodeId: string, changes: Partial<Registration> = {}): Registration {
  keys += 1;
  const publicKey = new Uint8Array(32);
  new DataView(publicKey.buffer).setUint32(0, keys);
  const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
  return {
    nodeId,
    publicKey,
    fingerprint: `SHA256:${keys}`,
    nonce: Uint8Array.from(publicKey),
    report: { info: { hostname: nodeId }, digest: "d", summary, agentLabels: {} },
    joinToken: null,
    from: null,
    call: { actor: `node:${nodeId}`, method: "test/Register", address: "", requestId: "" },
    ...changes,
  };
}

function words(answers: readonly RegistrationAnswer[]): readonly string[] {
  return answers.map((answer) => {
    if (!answer.ok) return reasonOf(answer.error) ?? String(answer.error);
    return answer.created ? "created" : "returned";
  });
}

describe("registerBatch()", () => {
  it("should serve the rest of a batch if the store cannot accept one registration", async () => {
    const bad = registration("broken", {
      report: {
        info: {},
        digest: "d",
        summary: { cores: 2 ** 40, memoryBytes: 0, diskBytes: 0, gpus: 0 },
        agentLabels: {},
      },
    });
    const good = ["s1", "s2", "s3", "s4"].map((id) => registration(id));
    const [first, ...rest] = good;
    if (first === undefined) throw new Error("there is none");
    const answers = await registerBatch(depsOf(database.store), [first, bad, ...rest]);
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true, true, true]);
    expect(await getNode(database.store.db, "broken")).toBeNull();
    expect(await getNode(database.store.db, "s4")).not.toBeNull();
  });

  it("should create 200 nodes with 64 labels each", async () => {
    const agentLabels = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`label-${index}`, "x"]));
    const batch = Array.from({ length: 200 }, (_, index) => {
      const given = registration(`labelled-${index}`);
      return { ...given, report: { ...given.report, agentLabels } };
    });
    const answers = await registerBatch(depsOf(database.store), batch);
    expect(new Set(words(answers))).toEqual(new Set(["created"]));
    const last = await getNode(database.store.db, "labelled-199");
    expect(last?.labels).toHaveLength(64);
  });

  it("should write many nodes at once as it writes single ones", async () => {
    const { store } = database;
    const report = {
      info: { hostname: "h", gpus: ["x"] },
      digest: "digest",
      summary: { cores: 3, memoryBytes: 2 ** 40, diskBytes: 2 ** 50, gpus: 1 },
      agentLabels: { b: "2", a: "1" },
    };
    await registerBatch(depsOf(store), [registration("w1", { report }), registration("w2", { report })]);
    await registerBatch(depsOf(store), [registration("w3", { report })]);
    const [w1, w2, w3] = await Promise.all(["w1", "w2", "w3"].map((id) => getNode(store.db, id)));
    const unlike = {
      id: "",
      keyFingerprint: "",
      keySinceMs: 0,
      etag: "",
      createdAtMs: 0,
      updatedAtMs: 0,
    };
    const alike = (node: typeof w1) => JSON.stringify({ ...node, ...unlike }).replaceAll(/"sinceMs":\d+/g, "");
    expect(alike(w2)).toBe(alike(w1));
    expect(alike(w3)).toBe(alike(w1));
    expect(w1).toMatchObject({ ...pick(report), labels: [{ key: "a" }, { key: "b" }] });
  });

  it("should let one of many registries create a node, whatever else races", async () => {
    const stores = await Promise.all([1, 2, 3].map(() => database.openStore()));
    for (let round = 0; round < 20; round += 1) {
      // Each batch has the same ids in a different order. If batches locked nodes in the order of the call, two
      // would deadlock.
      const ids = Array.from({ length: 12 }, (_, index) => `race-${round}-${index}`);
      const batches = stores.map((_, turn) => rotate(ids, turn * 5).map((id) => registration(id)));
      const answers = await Promise.all(
        stores.map((store, index) => registerBatch(depsOf(store), batches[index] ?? [])),
      );
      for (const id of ids) {
        const outcomes = answers.flatMap((given, index) =>
          words(given).filter((_, position) => batches[index]?.[position]?.nodeId === id),
        );
        expect(outcomes.toSorted()).toEqual(["NODE_KEY_MISMATCH", "NODE_KEY_MISMATCH", "created"]);
        expect(await eventsOf(database.store, id)).toHaveLength(1);
      }
    }
  });

  it("should let one of many registries create a node if ids differ only in case", async () => {
    const stores = await Promise.all([1, 2, 3].map(() => database.openStore()));
    const cases = [(id: string) => id, (id: string) => id.toUpperCase(), (id: string) => id.replace("c", "C")];
    for (let round = 0; round < 20; round += 1) {
      const ids = Array.from({ length: 12 }, (_, index) => `case-${round}-${index}`);
      const answers = await Promise.all(
        stores.map((store, turn) => {
          const inCase = cases[turn] ?? String;
          const batch = rotate(ids, turn * 5).map((id) => registration(inCase(id)));
          return registerBatch(depsOf(store), batch);
        }),
      );
      const outcomes = answers.flatMap(words);
      expect(outcomes.filter((word) => word === "created")).toHaveLength(ids.length);
      expect(outcomes.filter((word) => word === "NODE_ID_CONFUSABLE")).toHaveLength(2 * ids.length);
      const any = ids.flatMap((id) => cases.map((inCase) => inCase(id)));
      expect(await getNodes(database.store.db, any)).toHaveLength(ids.length);
    }
  });

  it("should hold a node that reports a condition as soon as it is known", async () => {
    const { store } = database;
    const condition = { reason: "EXECUTORS_UNKNOWN", message: "no answer yet" };
    const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
    const faulty = { info: { conditions: [condition] }, digest: "faulty", summary, agentLabels: {} };
    const first = registration("starting", { report: faulty });
    await registerBatch(depsOf(store), [first]);
    const held = await getNode(store.db, "starting");
    expect(held?.scheduling).toMatchObject({ state: "INELIGIBLE", reason: "NODE_CONDITION" });
    const again = { ...first, nonce: registration("").nonce, report: { ...faulty, info: {}, digest: "well" } };
    await registerBatch(depsOf(store), [again]);
    expect((await getNode(store.db, "starting"))?.scheduling).toMatchObject({ state: "ELIGIBLE", holds: [] });
    expect((await eventsOf(store, "starting")).map(({ type }) => type)).toEqual([
      "node.registered",
      "node.info.changed",
      "node.conditions.changed",
      "node.scheduling.changed",
    ]);
  });

  it("should continue to serve two existing nodes whose ids differ only in case", async () => {
    const { store } = database;
    // Insert both nodes, as an older release without the check could.
    const pair = [registration("Twin-1"), registration("twin-1")];
    await store.transaction((tx) =>
      insertComputeNodes(
        tx,
        pair.map(({ nodeId, publicKey, fingerprint, report }) => ({
          key: { nodeId, publicKey, fingerprint },
          membership: { state: "APPROVED", reason: "T", message: "", actor: "system", sinceMs: 0 },
          report,
          approvedHardware: null,
          holds: [],
          joining: { tokenId: null, ephemeral: false, withoutToken: false, from: null },
          tokenLabels: {},
        })),
      ),
    );
    const again = pair.map((it) => ({ ...it, nonce: registration("").nonce }));
    expect(words(await registerBatch(depsOf(store), again))).toEqual(["returned", "returned"]);
    const third = await registerBatch(depsOf(store), [registration("TWIN-1")]);
    expect(words(third)).toEqual(["NODE_ID_CONFUSABLE"]);
  });

  it("should give a key to one of several nodes that want it at the same time, in any registry", async () => {
    const stores = await Promise.all([1, 2, 3].map(() => database.openStore()));
    for (let round = 0; round < 20; round += 1) {
      const fingerprints = Array.from({ length: 6 }, (_, index) => `SHA256:wanted-${round}-${index}`);
      const answers = await Promise.all(
        stores.map((store, index) => {
          const batch = rotate(fingerprints, index).map((fingerprint) =>
            registration(`of-${index}-${fingerprint.slice(7)}`, { fingerprint }),
          );
          return registerBatch(depsOf(store), batch);
        }),
      );
      const outcomes = answers.flatMap(words);
      expect(outcomes.filter((word) => word === "created")).toHaveLength(fingerprints.length);
      expect(outcomes.filter((word) => word === "NODE_KEY_IN_USE")).toHaveLength(fingerprints.length * 2);
    }
  });

  it("should register a node that is deleted while it returns", async () => {
    const { store } = database;
    for (let round = 0; round < 30; round += 1) {
      const id = `fleeting-${round}`;
      const first = registration(id);
      await registerBatch(depsOf(store), [first]);
      const again = { ...first, nonce: registration(id).nonce };
      const [answers, deleted] = await Promise.all([
        registerBatch(depsOf(store), [again]),
        operate(store, id, "delete"),
      ]);
      expect(deleted).toBe(true);
      const [word] = words(answers);
      // Either the node returned before the delete and is gone, or it was created again after the delete.
      expect((await getNode(store.db, id)) === null).toBe(word === "returned");
      expect(["created", "returned"]).toContain(word);
    }
  });
});

function pick({ info, digest, summary }: Registration["report"]) {
  return { info, infoDigest: digest, summary };
}

function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const at = by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
}
