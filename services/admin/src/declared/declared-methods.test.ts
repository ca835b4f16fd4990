import { once } from "node:events";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  DeclaredStateService,
  StateAction,
  StateActionSchema,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { countDeclaredObjects, lockHealthPolicies, saveDeclaredObjects } from "@rollcall/store";
import { createTestDatabase, eventually, refusalOf } from "@rollcall/testkit";
import { type PolicyRig, startPolicyRig } from "../testing/policy-rig.ts";
import { addNode, eventsOf } from "../testing/record.ts";
import { createToken } from "../testing/rig.ts";

let rig: PolicyRig;
let declared: Client<typeof DeclaredStateService>;
let byOperator: Client<typeof DeclaredStateService>;
let webhooks: Client<typeof WebhookService>;

beforeAll(async () => {
  rig = await startPolicyRig(await createTestDatabase());
  const admin = await createToken(rig.store, "admin");
  declared = rig.clientOf(DeclaredStateService, admin.text);
  byOperator = rig.clientOf(DeclaredStateService, rig.operator.text);
  webhooks = rig.clientOf(WebhookService, admin.text);
});

beforeEach(async () => {
  await rig.clear();
  for (const table of ["declared_objects", "webhooks"] as const) await rig.store.db.deleteFrom(table).execute();
});

afterAll(() => rig.close());

const policy = (seconds: number) => {
  const scope = { scope: { case: "default", value: true } } as const;
  const value = { scope, values: { infoInterval: durationFromMs(seconds * 1_000) } };
  return { object: { case: "healthPolicy", value } } as const;
};
const group = (name: string, seconds: Readonly<Record<string, number>>) => {
  const scope = { scope: { case: "group", value: name } } as const;
  const values = Object.fromEntries(Object.entries(seconds).map(([key, it]) => [key, durationFromMs(it * 1_000)]));
  return { object: { case: "healthPolicy", value: { scope, selector: "gpu", values } } } as const;
};
/** Whether a transaction of this database waits for an advisory lock. */
async function waitsForALock(): Promise<boolean> {
  type Locks = {
    pg_locks: { locktype: string; granted: boolean; database: number };
    pg_database: { oid: number; datname: string };
  };
  const waiting = await rig.store.db
    .withTables<Locks>()
    .selectFrom("pg_locks")
    .innerJoin("pg_database", "pg_database.oid", "pg_locks.database")
    .select("locktype")
    .where("locktype", "=", "advisory")
    .where("granted", "=", false)
    .where((eb) => eb("datname", "=", eb.fn<string>("current_database", [])))
    .execute();
  return waiting.length > 0;
}
const webhook = (name: string, description = "") => {
  const value = { name, spec: { url: `https://receiver.example/${name}`, description } };
  return { object: { case: "webhook", value } } as const;
};
const labels = (node: string, given: Record<string, string>) =>
  ({ object: { case: "nodeLabels", value: { node, labels: given } } }) as const;

const actionsOf = ({ changes }: { readonly changes: readonly { object: string; action: StateAction }[] }) =>
  Object.fromEntries(changes.map(({ object, action }) => [object, StateActionSchema.value[action]?.localName]));

describe("applyState()", () => {
  it("should create everything declared, and then find nothing to do", async () => {
    const objects = [policy(7), labels("n2", { rack: "r1", row: "3" }), webhook("ops")];
    const request = { objects, owner: "team" };
    const made = {
      "health-policy/default": "CREATE",
      "node-label/n2/rack": "CREATE",
      "node-label/n2/row": "CREATE",
      "webhook/ops": "CREATE",
    };
    expect(actionsOf(await declared.planState(request))).toEqual(made);
    expect((await webhooks.listWebhooks({})).webhooks).toEqual([]);
    const first = await declared.applyState({ ...request, reason: "from a file" });
    expect(actionsOf(first)).toEqual(made);
    expect(first.secrets).toMatchObject([{ webhook: "ops", secret: expect.stringMatching(/^whsec_/) }]);
    const [event] = (await eventsOf(rig.store, "health-policy/default")).slice(-1);
    expect(event).toMatchObject({ type: "policy.health.set", message: "from a file" });
    const told = await eventsOf(rig.store, "health-policy/default");
    const again = await declared.applyState(request);
    expect(Object.values(actionsOf(again))).toEqual(Array(4).fill("UNCHANGED"));
    expect(again.secrets).toEqual([]);
    expect(await eventsOf(rig.store, "health-policy/default")).toEqual(told);
  });

  it("should answer a repeated request id as the first time, including the secret", async () => {
    const request = { objects: [webhook("again")], owner: "team", requestId: "declared-once" };
    const first = await declared.applyState(request);
    await webhooks.setWebhook({ name: "again", spec: { url: "https://receiver.example/other" } });
    expect(await declared.applyState(request)).toEqual(first);
    expect((await webhooks.getWebhook({ name: "again" })).webhook?.spec?.url).toBe("https://receiver.example/other");
  });

  it("should show what was edited by hand, and overwrite it", async () => {
    const request = { objects: [webhook("ops", "file")], owner: "team" };
    await declared.applyState(request);
    await webhooks.setWebhook({ name: "ops", spec: { url: "https://receiver.example/ops", description: "hand" } });
    const { changes } = await declared.planState(request);
    const differences = [{ field: "description", before: '"hand"', after: '"file"', edited: true }];
    expect(changes).toMatchObject([{ object: "webhook/ops", action: StateAction.UPDATE, differences }]);
    await declared.applyState(request);
    expect((await webhooks.getWebhook({ name: "ops" })).webhook?.spec?.description).toBe("file");
  });

  it("should prune what the owner applied before, and nothing else", async () => {
    await declared.applyState({ objects: [webhook("mine"), labels("n1", { rack: "r1" })], owner: "team" });
    await declared.applyState({ objects: [webhook("theirs")], owner: "other" });
    await declared.applyState({ objects: [webhook("unowned")] });
    const kept = { objects: [policy(9)], owner: "team" };
    expect(Object.keys(actionsOf(await declared.applyState(kept)))).toEqual(["health-policy/default"]);
    expect(actionsOf(await declared.applyState({ ...kept, prune: true }))).toEqual({
      "health-policy/default": "UNCHANGED",
      "node-label/n1/rack": "PRUNE",
      "webhook/mine": "PRUNE",
    });
    expect((await webhooks.listWebhooks({})).webhooks.map(({ name }) => name)).toEqual(["theirs", "unowned"]);
    const { node } = await rig.admin.setNodeLabels({ node: "n1", set: { probe: "x" } });
    expect(node?.labels.map(({ key }) => key).sort()).toEqual(["gpu", "probe"]);
  });

  it("should refuse another owner's object, change nothing, and take it over if requested", async () => {
    await declared.applyState({ objects: [webhook("ops")], owner: "team" });
    const request = { objects: [policy(8), webhook("ops", "mine now")], owner: "other" };
    expect(actionsOf(await declared.planState(request))).toMatchObject({ "webhook/ops": "CONFLICT" });
    const refusal = await refusalOf(declared.applyState(request));
    expect(refusal).toMatchObject({
      reason: "DECLARED_BY_ANOTHER_OWNER",
      metadata: { object: "webhook/ops", owner: "team" },
    });
    expect((await rig.policies.listHealthPolicies({})).policies).toEqual([]);
    expect(actionsOf(await declared.applyState({ ...request, takeOver: true }))).toMatchObject({
      "webhook/ops": "UPDATE",
    });
    expect(actionsOf(await declared.planState({ objects: [], owner: "team", prune: true }))).toEqual({});
  });

  it("should name all problems at once, and change nothing", async () => {
    const objects = [
      webhook("ops"),
      webhook("ops"),
      { object: { case: "webhook", value: { name: "open", spec: { url: "http://receiver.example" } } } } as const,
      labels("n1", { "not a key": "x" }),
    ];
    const refusal = await refusalOf(declared.applyState({ objects, owner: "team" }));
    expect(refusal).toMatchObject({ reason: "INVALID_DECLARED_STATE" });
    expect((await webhooks.listWebhooks({})).webhooks).toEqual([]);
    const missing = declared.applyState({ objects: [policy(5), labels("nowhere", { a: "b" })], owner: "team" });
    expect(await refusalOf(missing)).toMatchObject({ reason: "INVALID_DECLARED_STATE" });
    expect((await rig.policies.listHealthPolicies({})).policies).toEqual([]);
  });

  it("should accept no more labels in a call than the limit", async () => {
    const many = (count: number) => {
      const keys = (node: number) => Array.from({ length: 64 }, (_, key) => node * 64 + key).filter((n) => n < count);
      return Array.from({ length: Math.ceil(count / 64) }, (_, node) =>
        labels(`no${node}`, Object.fromEntries(keys(node).map((n) => [`k${n}`, "v"]))),
      );
    };
    const over = await refusalOf(declared.applyState({ objects: many(2_001), owner: "team" }));
    expect(over).toMatchObject({ reason: "INVALID_DECLARED_STATE", message: expect.stringContaining("2001") });
    const within = await refusalOf(declared.applyState({ objects: many(2_000), owner: "team" }));
    expect(within).toMatchObject({ message: expect.stringMatching(/^[^;]*there is no node no0/) });
  });

  it("should require for each object the role that its own methods require", async () => {
    await byOperator.applyState({ objects: [policy(6)], owner: "team" });
    const refused = byOperator.applyState({ objects: [policy(5), webhook("ops")], owner: "team" });
    expect(await refusalOf(refused)).toMatchObject({ reason: "ROLE_TOO_LOW", metadata: { required: "admin" } });
    await declared.applyState({ objects: [policy(6), webhook("ops")], owner: "team" });
    const pruning = byOperator.applyState({ objects: [policy(6)], owner: "team", prune: true });
    expect(await refusalOf(pruning)).toMatchObject({ reason: "ROLE_TOO_LOW" });
  });

  it("should change no more nodes and policies in a call than the bounds, and prune the rest by calls that follow", async () => {
    const ids = Array.from({ length: 101 }, (_, index) => `many${String(index).padStart(3, "0")}`);
    for (const id of ids) await addNode(rig.store, id, "APPROVED");
    const all = ids.map((id) => labels(id, { rack: "r1" }));
    const refusal = { reason: "TOO_MANY_DECLARED_OBJECTS", metadata: { most: "100" } };
    expect(await refusalOf(declared.applyState({ objects: all, owner: "team" }))).toMatchObject(refusal);
    expect(await refusalOf(declared.planState({ objects: all, owner: "team" }))).toMatchObject(refusal);
    await declared.applyState({ objects: all.slice(0, 60), owner: "team" });
    // Objects that already match do not count against the limits.
    await declared.applyState({ objects: all, owner: "team" });
    const kept = { objects: [labels("n1", { rack: "r1" })], owner: "team", prune: true };
    const first = await declared.applyState(kept);
    const pruned = (of: typeof first) => of.changes.filter(({ action }) => action === StateAction.PRUNE).length;
    expect([pruned(first), first.more]).toEqual([99, true]);
    const second = await declared.applyState(kept);
    expect([pruned(second), second.more]).toEqual([2, false]);
    const groups = Array.from({ length: 21 }, (_, index) => group(`g${index}`, { unhealthyAfter: 60 }));
    expect(await refusalOf(declared.applyState({ objects: groups }))).toMatchObject({
      reason: "TOO_MANY_DECLARED_OBJECTS",
      metadata: { most: "20" },
    });
  });

  it("should forget any number of missing objects in addition to those that it prunes", async () => {
    await declared.applyState({ objects: [webhook("mine")], owner: "team" });
    const gone = (index: number) => ({
      name: `webhook/gone${index}`,
      owner: "team",
      fields: {},
      nodeId: null,
      actor: "a",
    });
    const objects = Array.from({ length: 2_500 }, (_, index) => gone(index));
    await rig.store.transaction((tx) => saveDeclaredObjects(tx, objects));
    const request = { objects: [], owner: "team", prune: true };
    const first = await declared.applyState(request);
    expect([first.changes.length, first.more]).toEqual([2_000, true]);
    const second = await declared.applyState(request);
    expect(actionsOf(second)).toMatchObject({ "webhook/mine": "PRUNE", "webhook/gone999": "FORGET" });
    expect([second.changes.length, second.more]).toEqual([501, false]);
    expect(await countDeclaredObjects(rig.store.db)).toBe(0);
  });

  it("should leave nodes unlocked while policies of many nodes are changed, and stop when the caller is gone", async () => {
    const [held, locked] = [new AbortController(), new AbortController()];
    const holding = rig.store.transaction(async (tx) => {
      await lockHealthPolicies(tx);
      locked.abort();
      if (!held.signal.aborted) await once(held.signal, "abort");
    });
    if (!locked.signal.aborted) await once(locked.signal, "abort");
    const leaving = new AbortController();
    const objects = [policy(5), labels("n1", { aisle: "9" })];
    const applying = refusalOf(declared.applyState({ objects, owner: "team" }, { signal: leaving.signal }));
    await eventually(async () => expect(await waitsForALock()).toBe(true));
    const free = rig.store.transaction((tx) =>
      tx.selectFrom("nodes").select("id").where("id", "=", "n1").forNoKeyUpdate().noWait().execute(),
    );
    expect(await free).toHaveLength(1);
    leaving.abort();
    await applying;
    held.abort();
    await holding;
    // This call waits for the lock of the abandoned call.
    expect(Object.values(actionsOf(await declared.planState({ objects, owner: "team" })))).toEqual([
      "CREATE",
      "CREATE",
    ]);
  });

  it("should write an audit row for each object that gets another owner or is forgotten", async () => {
    await webhooks.setWebhook({ name: "found", spec: { url: "https://receiver.example/found" } });
    await declared.applyState({ objects: [webhook("found"), webhook("taken"), webhook("same")], owner: "team" });
    const objects = [webhook("taken", "mine now"), webhook("same")];
    await declared.applyState({ objects, owner: "other", takeOver: true, reason: "moved" });
    await webhooks.deleteWebhook({ name: "taken" });
    await declared.applyState({ objects: [webhook("same")], owner: "other", prune: true });
    const rows = await rig.store.db
      .selectFrom("audit_log")
      .select(["target", "reason"])
      .where("method", "like", "%ApplyState")
      .where("target", "in", ["webhook/found", "webhook/taken", "webhook/same"])
      .orderBy("sequence")
      .execute();
    expect(rows).toEqual([
      { target: "webhook/found", reason: "owner changed from none to team" },
      { target: "webhook/same", reason: "owner changed from team to other: moved" },
      { target: "webhook/taken", reason: "owner changed from team to other: moved" },
      { target: "webhook/taken", reason: "no longer owned by other, because it no longer exists" },
    ]);
  });

  it("should write nothing that is stored already", async () => {
    const request = { objects: [webhook("ops"), labels("n1", { rack: "r1" })], owner: "team" };
    await declared.applyState(request);
    await rig.store.db
      .updateTable("declared_objects")
      .set({ applied_at: new Date(0) })
      .execute();
    await declared.applyState({ ...request, objects: [...request.objects, webhook("new")], prune: true });
    const rows = await rig.store.db
      .selectFrom("declared_objects")
      .select(["name", "applied_at"])
      .orderBy("name")
      .execute();
    expect(rows.map(({ name, applied_at }) => [name, applied_at.getTime() === 0])).toEqual([
      ["node-label/n1/rack", true],
      ["webhook/new", false],
      ["webhook/ops", true],
    ]);
  });

  it("should refuse in a plan what applying refuses, and leave no traces", async () => {
    const contradictory = { objects: [group("a", { unhealthyAfter: 600 })], owner: "team" };
    const applied = await refusalOf(declared.applyState(contradictory));
    expect(applied).toMatchObject({ reason: expect.stringMatching(/CONTRADICTION/) });
    expect(await refusalOf(declared.planState(contradictory))).toMatchObject({ reason: applied.reason });
    const before = await eventsOf(rig.store, "health-policy/default");
    await declared.planState({ objects: [policy(7), webhook("ops")], owner: "team" });
    expect(await eventsOf(rig.store, "health-policy/default")).toEqual(before);
    expect((await webhooks.listWebhooks({})).webhooks).toEqual([]);
  });

  it("should prune only what the caller confirmed", async () => {
    await declared.applyState({ objects: [webhook("one"), webhook("two")], owner: "team" });
    const request = { objects: [], owner: "team", prune: true };
    const refused = declared.applyState({ ...request, confirmed: { objects: ["webhook/one"] } });
    expect(await refusalOf(refused)).toMatchObject({
      reason: "INVALID_DECLARED_STATE",
      message: expect.stringContaining("webhook/two"),
    });
    expect((await webhooks.listWebhooks({})).webhooks).toHaveLength(2);
    await declared.applyState({ ...request, confirmed: { objects: ["webhook/one", "webhook/two"] } });
    expect((await webhooks.listWebhooks({})).webhooks).toEqual([]);
  });

  it("should let one of two concurrent owners win, and mix nothing", async () => {
    for (let round = 0; round < 5; round += 1) {
      const of = (owner: string) => ({
        objects: [labels("n1", { [`a${round}`]: owner }), labels("n2", { [`b${round}`]: owner })],
        owner,
      });
      const done = await Promise.allSettled([declared.applyState(of("one")), declared.applyState(of("two"))]);
      expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const winner = done[0]?.status === "fulfilled" ? "one" : "two";
      expect(Object.values(actionsOf(await declared.planState(of(winner))))).toEqual(["UNCHANGED", "UNCHANGED"]);
    }
  });
});
