import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { clearMark, markUnhealthy, type Transition } from "@rollcall/domain";
import { addNode, createTestDatabase, saveMembership, type TestDatabase, testFingerprint } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { readEvents } from "../log/events.ts";
import { lockWithSessions } from "../nodes/nodes.ts";
import { saveNodeEffects } from "../nodes/save-node.ts";
import { allowReactions } from "./reactions.ts";
import { openSessions } from "./sessions.ts";
import { writeTransitions } from "./transitions.ts";

const REPLICA = "r";
const ACTOR = "replica:r";
const BEAT = { state: "HEALTHY", reason: "HEARTBEAT_RECEIVED", message: "", actor: ACTOR } as const;
const SILENT = {
  state: "UNHEALTHY",
  reason: "HEARTBEATS_MISSED",
  message: "",
  actor: ACTOR,
} as const;
const GONE = { ...SILENT, state: "UNKNOWN" } as const;
const GOODBYE = { ...SILENT, reason: "AGENT_SHUTDOWN" } as const;
const MARK = { sinceMs: 0, message: "smells", actor: "token:t" };

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(() => database.drop());

async function healthy(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await addNode(store, id);
  const machine = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "a:1", replicaId: REPLICA };
  await store.change((tx) =>
    openSessions(
      tx,
      ids.map((nodeId) => ({ nodeId, ...machine, keyFingerprint: testFingerprint(nodeId) })),
    ),
  );
  for (const id of ids) await turn(id, BEAT);
}

async function turn(nodeId: string, health: NonNullable<Transition["health"]>): Promise<void> {
  await writeTransitions(store, REPLICA, [{ nodeId, epoch: 1, health, group: "zone=a" }]);
}

async function reactionOf(id: string) {
  const row = await store.db
    .selectFrom("node_sessions")
    .select(["reaction", "loss", "loss_group", "lost_since"])
    .where("node_id", "=", id)
    .executeTakeFirstOrThrow();
  const { reaction, loss, loss_group: group, lost_since: since } = row;
  return { reaction, isLost: loss !== null, group, isTimed: since !== null };
}

const LOST = { reaction: "PENDING", isLost: true, group: "zone=a", isTimed: true };
const NONE = { reaction: null, isLost: false, group: null, isTimed: false };

async function allowedOf(id: string) {
  const types = ["node.reactions.allowed"] as const;
  const { events } = await readEvents(store.db, { after: 0n, limit: 100, subject: id, types });
  return events.map(({ reason }) => reason);
}

/** Mark a node as admin does. Returns the reaction that the mark allows, if any. */
async function markNode(id: string, mark: typeof MARK | null) {
  const by = { actor: MARK.actor, message: MARK.message, atMs: 1 };
  return store.transaction(async (tx) => {
    const [node] = await lockWithSessions(tx, [id]);
    if (node === undefined) throw new Error(`no node ${id}`);
    const decided = mark === null ? clearMark(node, by) : markUnhealthy(node, by);
    if (!decided.ok) throw new Error(decided.refusal.message);
    await saveNodeEffects(tx, node, decided.effects);
    const allowed = decided.events.find(({ type }) => type === "node.reactions.allowed");
    if (allowed === undefined) return null;
    const { group = "" } = (allowed.after ?? {}) as { readonly group?: string };
    return { nodeId: allowed.subject, group };
  });
}

const release = (most = 100, upTo = Number.MAX_SAFE_INTEGER) =>
  store.transaction((tx) => allowReactions(tx, [{ group: "zone=a", most, upTo }]));

describe("reactions", () => {
  it("should be pending after the transition, and gone when the node is back", async () => {
    await healthy("back");
    expect(await reactionOf("back")).toEqual(NONE);
    await turn("back", SILENT);
    expect(await reactionOf("back")).toEqual(LOST);
    await turn("back", GONE);
    expect(await reactionOf("back")).toEqual(LOST);
    await turn("back", BEAT);
    expect(await reactionOf("back")).toEqual(NONE);
    expect(await release()).toEqual([]);
  });

  it("should be released once, oldest first, up to the limit", async () => {
    await healthy("one", "two", "three");
    for (const id of ["two", "one", "three"]) await turn(id, SILENT);
    const [first] = await release(1);
    expect(first).toMatchObject({ nodeId: "two", group: "zone=a" });
    const both = await Promise.all([release(), release()]);
    expect(
      both
        .flat()
        .map(({ nodeId }) => nodeId)
        .sort(),
    ).toEqual(["one", "three"]);
    expect(await reactionOf("two")).toEqual({ ...LOST, reaction: "ALLOWED" });
    await turn("two", GONE);
    expect(await release()).toEqual([]);
  });

  it("should be allowed at once, with an event, when the node says goodbye", async () => {
    await healthy("leaver", "late");
    await turn("leaver", GOODBYE);
    expect(await reactionOf("leaver")).toEqual({ ...NONE, reaction: "ALLOWED", isTimed: true });
    await turn("late", SILENT);
    await turn("late", GOODBYE);
    expect(await reactionOf("late")).toMatchObject({ reaction: "ALLOWED", isLost: false });
    expect(await allowedOf("leaver")).toEqual(["AGENT_SHUTDOWN"]);
    expect(await allowedOf("late")).toEqual(["AGENT_SHUTDOWN"]);
    await turn("leaver", BEAT);
    expect(await reactionOf("leaver")).toEqual(NONE);
  });

  it("should be allowed by a mark, and not again for changes under it", async () => {
    await healthy("marked");
    const mark = (value: typeof MARK | null) => markNode("marked", value);
    expect(await mark(MARK)).toMatchObject({ nodeId: "marked", group: "" });
    await turn("marked", SILENT);
    await turn("marked", BEAT);
    expect(await reactionOf("marked")).toMatchObject({ reaction: "ALLOWED", isLost: false });
    await mark(null);
    expect(await reactionOf("marked")).toEqual(NONE);
    await turn("marked", SILENT);
    expect(await mark(MARK)).toMatchObject({ nodeId: "marked", group: "zone=a" });
    await mark(null);
    expect(await mark(MARK)).toBeNull();
  });

  it("should exist only for approved nodes, and be dropped by a rejection", async () => {
    await healthy("rejected");
    const membership = {
      state: "REJECTED",
      sinceMs: 0,
      reason: "R",
      message: "",
      actor: "t",
    } as const;
    await turn("rejected", SILENT);
    await store.transaction((tx) => saveMembership(tx, "rejected", membership));
    expect(await reactionOf("rejected")).toEqual(NONE);
    await turn("rejected", BEAT);
    await turn("rejected", SILENT);
    expect(await reactionOf("rejected")).toEqual(NONE);
  });

  it("should never be released for a node that was rejected in the meantime", async () => {
    const membership = {
      state: "REJECTED",
      sinceMs: 0,
      reason: "R",
      message: "",
      actor: "t",
    } as const;
    for (let round = 0; round < 20; round++) {
      const id = `race-${round}`;
      await healthy(id);
      await Promise.all([turn(id, SILENT), store.transaction((tx) => saveMembership(tx, id, membership))]);
      expect(await release()).toEqual([]);
      expect(await reactionOf(id)).toEqual(NONE);
    }
  });
});
