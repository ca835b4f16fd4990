import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { findBans, getNode } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

type State = "NONE" | "PENDING" | "APPROVED" | "REJECTED" | "BANNED" | "UNBANNED";
type Verb = "approveNode" | "rejectNode" | "deleteNode" | "banNode" | "unbanNode";

/** Bring a node into a state. BANNED and UNBANNED nodes were approved first. */
async function prepare(id: string, state: State): Promise<void> {
  if (state === "NONE") return;
  const isPlain = state !== "BANNED" && state !== "UNBANNED";
  await addNode(rig.store, id, isPlain ? state : "APPROVED");
  if (!isPlain) await rig.admin.banNode({ node: id });
  if (state === "UNBANNED") await rig.admin.unbanNode({ node: id });
}

/** The membership of the id after a verb, and whether the id is banned. */
async function outcomeOf(id: string): Promise<string> {
  const node = await getNode(rig.store.db, id);
  const bans = await findBans(rig.store.db, { nodeIds: [id], fingerprints: [] });
  return `${node?.membership.state ?? "gone"}${bans.length > 0 ? ", banned" : ""}`;
}

/**
 * The result of each verb in each state, or the reason for its refusal. A refusal changes
 * nothing.
 */
const TABLE: Readonly<Record<State, Readonly<Record<Verb, string>>>> = {
  NONE: {
    approveNode: "NODE_NOT_FOUND",
    rejectNode: "NODE_NOT_FOUND",
    deleteNode: "NODE_NOT_FOUND",
    banNode: "NODE_NOT_FOUND",
    unbanNode: "NODE_NOT_FOUND",
  },
  PENDING: {
    approveNode: "APPROVED",
    rejectNode: "REJECTED",
    deleteNode: "gone",
    banNode: "REJECTED, banned",
    unbanNode: "NODE_NOT_BANNED",
  },
  APPROVED: {
    approveNode: "NODE_ALREADY_APPROVED",
    rejectNode: "REJECTED",
    deleteNode: "gone",
    banNode: "REJECTED, banned",
    unbanNode: "NODE_NOT_BANNED",
  },
  REJECTED: {
    approveNode: "APPROVED",
    rejectNode: "NODE_ALREADY_REJECTED",
    deleteNode: "gone",
    banNode: "REJECTED, banned",
    unbanNode: "NODE_NOT_BANNED",
  },
  BANNED: {
    approveNode: "NODE_BANNED",
    rejectNode: "NODE_ALREADY_REJECTED",
    deleteNode: "gone, banned",
    banNode: "NODE_ALREADY_BANNED",
    unbanNode: "REJECTED",
  },
  UNBANNED: {
    approveNode: "APPROVED",
    rejectNode: "NODE_ALREADY_REJECTED",
    deleteNode: "gone",
    banNode: "REJECTED, banned",
    unbanNode: "NODE_NOT_BANNED",
  },
};

const CASES = (Object.keys(TABLE) as State[]).flatMap((state) =>
  (Object.keys(TABLE[state]) as Verb[]).map((verb) => [state, verb, TABLE[state][verb]] as const),
);

describe("memberships, as decided by operators", () => {
  it.each(CASES)("%s, %s: %s", async (state, verb, expected) => {
    const node = `${state}-${verb}`.toLowerCase();
    await prepare(node, state);
    const before = [await outcomeOf(node), (await eventsOf(rig.store, node)).length] as const;
    const call = rig.admin[verb]({ node, reason: "because" });
    if (expected.startsWith("NODE_")) {
      expect(await refusalOf(call)).toMatchObject({ reason: expected, metadata: { node } });
      expect([await outcomeOf(node), (await eventsOf(rig.store, node)).length]).toEqual(before);
      return;
    }
    await call;
    const events = await eventsOf(rig.store, node);
    expect([await outcomeOf(node), events.length]).toEqual([expected, before[1] + 1]);
    expect(events.at(-1)).toMatchObject({ actor: rig.operator.actor, message: "because" });
  });
});
