import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Limiter } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";
import { createTestDatabase, ManualClock, settle, type TestDatabase } from "@rollcall/testkit";
import { leaseSnapshot } from "./leased-snapshot.ts";

const IDLE_MS = 30_000;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

/** Leases for one snapshot at a time. */
function setUp() {
  const clock = new ManualClock();
  const places = new Limiter(1);
  const { signal } = new AbortController();
  const lease = (store: CallStore = database.store) => {
    return leaseSnapshot({ store, clock, places, idleMs: IDLE_MS, signal });
  };
  return { clock, lease };
}

async function* numbers() {
  yield 1;
  yield 2;
}

describe("leaseSnapshot()", () => {
  it("should free the slot of a closed one, and of one that could not be opened", async () => {
    const { lease } = setUp();
    const first = await lease();
    let isOpen = false;
    const second = lease().then((snapshot) => {
      isOpen = true;
      return snapshot;
    });
    await settle();
    expect(isOpen).toBe(false);
    await first.close();
    await (await second).close();
    const away: CallStore = {
      ...database.store,
      get db(): never {
        throw new Error("the database is away");
      },
    };
    await expect(lease(away)).rejects.toThrow("the database is away");
    await (await lease()).close();
  });

  it("should release a snapshot that is idle for too long, and free its slot", async () => {
    const { clock, lease } = setUp();
    const snapshot = await lease();
    await clock.pass(IDLE_MS - 1);
    expect(await snapshot.read(async () => "read")).toBe("read");
    await clock.pass(IDLE_MS - 1);
    const pieces = snapshot.pieces(numbers);
    expect((await pieces.next()).value).toBe(1);
    await clock.pass(IDLE_MS);
    expect(await snapshot.read(async () => "read")).toBeNull();
    expect(await pieces.next()).toEqual({ done: false, value: null });
    expect((await pieces.next()).done).toBe(true);
    await (await lease()).close();
  });

  it("should return all pieces to a slow reader that stays below the idle timeout", async () => {
    const { clock, lease } = setUp();
    const snapshot = await lease();
    const read: (number | null)[] = [];
    for await (const piece of snapshot.pieces(numbers)) {
      read.push(piece);
      await clock.pass(IDLE_MS - 1);
    }
    expect(read).toEqual([1, 2]);
    await snapshot.close();
    await snapshot.close();
  });
});
