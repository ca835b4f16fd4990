import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { describeError, reasonOf } from "../libs/errors/src/index.ts";
import { currentRevision, getNode, readEvents } from "../libs/store/src/index.ts";
import { createTestDatabase } from "../libs/testkit/src/index.ts";
import { type Rig as AdminRig, startRig as startAdmin } from "../services/admin/src/testing/rig.ts";
import { type Rig as RegistryRig, startRig as startRegistry } from "../services/registry/src/testing/rig.ts";
import { INFO, TestNode } from "../services/registry/src/testing/test-node.ts";

const ROUNDS = 100;
const AT_A_TIME = 10;

let registries: readonly [RegistryRig, RegistryRig];
let admins: readonly [AdminRig, AdminRig];
let store: RegistryRig["store"];

// Start the services as separate servers, as in separate processes. They share only the store.
beforeAll(async () => {
  const database = await createTestDatabase();
  const config = { "Orchestrator.NodeManager.ManualApproval": true };
  const first = await startRegistry(database, { config });
  store = first.store;
  registries = [first, await startRegistry({ store }, { config })];
  admins = [await startAdmin({ store }), await startAdmin({ store })];
});

afterAll(async () => {
  const [first, second] = registries;
  for (const rig of [...admins, second, first]) await rig.close();
});

/** Return the result of each registration, as one word. */
function wordsOf(calls: readonly Promise<{ readonly created: boolean }>[]) {
  const word = (call: Promise<{ readonly created: boolean }>) =>
    call.then(
      ({ created }) => (created ? "created" : "returned"),
      (error: unknown) => reasonOf(error) ?? String(error),
    );
  return Promise.all(calls.map(word));
}

/** Run a race for one pending node per round, with several rounds at a time, so that they share batches. */
async function inRounds(name: string, race: (node: TestNode, round: number) => Promise<void>) {
  for (let start = 0; start < ROUNDS; start += AT_A_TIME) {
    const some = Array.from({ length: AT_A_TIME }, (_, index) => start + index);
    await Promise.all(
      some.map(async (round) => {
        const node = new TestNode(`${name}-${round}`);
        await node.register(registries[0].registry);
        await race(node, round);
      }),
    );
  }
}

/**
 * Register the node again through both registries at the same time. Only the first registration changes its
 * description.
 */
function returnTwice(node: TestNode, round: number) {
  const news = { ...INFO, hostname: `news-${round}` };
  const [one, other] = registries;
  return wordsOf([
    one.registry.registerNode(node.joiningAny(store, news)),
    other.registry.registerNode(node.joiningAny(store)),
  ]);
}

/**
 * Act either now or after some queries. By then, the registrations have arrived, wait for their locks, or hold
 * them.
 */
async function atSomeMoment(round: number, act: () => Promise<unknown>): Promise<void> {
  for (let query = 0; query < round % 24; query += 1) await currentRevision(store.db);
  await act();
}

async function membershipEventsOf(subject: string) {
  const { events } = await readEvents(store.db, { after: 0n, limit: 1_000, subject });
  return events.filter(({ type }) => type !== "node.info.changed").map(({ type }) => type);
}

describe("registrations that race with an operator", () => {
  it.each([
    ["approveNode", "APPROVED", "node.approved", ["returned"]],
    ["rejectNode", "REJECTED", "node.rejected", ["returned", "NODE_REJECTED"]],
  ] as const)("should never undo %s", async (verb, state, type, possible) => {
    await inRounds(verb, async (node, round) => {
      const request = { node: node.id, reason: "because" };
      const [words] = await Promise.all([
        returnTwice(node, round),
        atSomeMoment(round, () => admins[0].admin[verb](request)),
      ]);
      for (const word of words) expect(possible).toContain(word);
      const after = await getNode(store.db, node.id);
      expect(after?.membership).toMatchObject({ state, message: "because" });
      expect(await membershipEventsOf(node.id)).toEqual(["node.registered", type]);
    });
  });

  it("should never undo deleteNode: a node that comes back is new, and waits", async () => {
    await inRounds("deleteNode", async (node, round) => {
      const [words] = await Promise.all([
        returnTwice(node, round),
        atSomeMoment(round, () => admins[0].admin.deleteNode({ node: node.id })),
      ]);
      const created = words.filter((word) => word === "created").length;
      expect(created).toBeLessThanOrEqual(1);
      expect(words.filter((word) => word === "returned")).toHaveLength(2 - created);
      const after = await getNode(store.db, node.id);
      expect(after?.membership.state).toBe(created === 1 ? "PENDING" : undefined);
      const again = created === 1 ? ["node.registered"] : [];
      const events = ["node.registered", "node.deleted", ...again];
      expect(await membershipEventsOf(node.id)).toEqual(events);
    });
  });
});

describe("two approvals at once", () => {
  it("should be one event and one refusal", async () => {
    await inRounds("twice", async (node) => {
      const outcomes = await Promise.allSettled(admins.map(({ admin }) => admin.approveNode({ node: node.id })));
      const refused = outcomes.flatMap((it) => (it.status === "rejected" ? [describeError(it.reason)] : []));
      expect(refused).toMatchObject([{ code: FAILED_PRECONDITION, reason: ALREADY }]);
      expect(await membershipEventsOf(node.id)).toEqual(["node.registered", "node.approved"]);
    });
  });
});

/** The number of this code in gRPC. */
const FAILED_PRECONDITION = 9;
const ALREADY = "NODE_ALREADY_APPROVED";
