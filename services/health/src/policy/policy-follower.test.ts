import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { DEFAULT_HEALTH_POLICY, type PolicyOverride } from "@rollcall/domain";
import { type EventRow, type ReservedStore, readEvents, saveHealthPolicy } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { bareReplica } from "../testing/bare-replica.ts";
import { setPolicy } from "../testing/policies.ts";
import { PolicyFollower } from "./policy-follower.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  await database.store.db.deleteFrom("health_policies").execute();
});

afterAll(() => database.drop());

/**
 * Create a store that runs `meddle` once, after it has read the policies and before it returns them.
 */
function meddled(meddle: () => Promise<void>): ReservedStore {
  const { reserved } = database.store;
  let isDone = false;
  const db = reserved.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (!isDone && result.rows.some((row) => "facts" in row)) {
        isDone = true;
        await meddle();
      }
      return result;
    },
  });
  return { ...reserved, db };
}

function follow(store: ReservedStore = database.store.reserved) {
  const { replica } = bareReplica();
  const { policies } = replica;
  const changed: (string | null)[] = [];
  const follower = new PolicyFollower({
    store,
    instance: "own",
    configured: DEFAULT_HEALTH_POLICY,
    policies,
    onChanged: (nodeId) => changed.push(nodeId),
  });
  return { follower, changed, held: () => policies.policies.default };
}

async function set(override: PolicyOverride): Promise<EventRow> {
  await setPolicy(database.store, { kind: "default", override });
  const { events } = await readEvents(database.store.db, { after: 0n, limit: 1_000 });
  const last = events.at(-1);
  if (last === undefined) throw new Error("no event");
  return last;
}

const FIRST = { unhealthyAfterMs: 61_000 };
const SECOND = { unhealthyAfterMs: 62_000 };

describe("PolicyFollower", () => {
  it("should apply events logged while the store is read", async () => {
    const store = meddled(async () => rig.follower.observe([await set(SECOND)]));
    const rig = follow(store);
    await set(FIRST);
    await rig.follower.load();
    expect(rig.held()).toEqual(SECOND);
  });

  it("should skip events that the store already had when it was read", async () => {
    const first = await set(FIRST);
    await set(SECOND);
    const rig = follow(meddled(async () => rig.follower.observe([first])));
    await rig.follower.load();
    expect(rig.held()).toEqual(SECOND);
  });

  it("should follow nothing before the first read, and then report whose policies change", async () => {
    const first = await set(FIRST);
    const { follower, changed, held } = follow();
    follower.observe([first]);
    expect(held()).toBeNull();
    await follower.ready();
    expect([held(), changed]).toEqual([FIRST, [null]]);
    follower.observe([await set(SECOND)]);
    expect([held(), changed]).toEqual([SECOND, [null, null]]);
  });

  it("should detect and report a store whose policies differ from the log", async () => {
    await set(FIRST);
    const { follower, changed, held } = follow();
    await follower.load();
    await follower.load();
    expect(changed).toEqual([null]);
    await database.store.transaction((tx) =>
      saveHealthPolicy(tx, { kind: "default", override: SECOND }, { actor: "a", message: "" }),
    );
    await follower.load();
    expect([held(), changed]).toEqual([SECOND, [null, null]]);
  });
});
