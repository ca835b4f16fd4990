import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  DeclaredStateService,
  StateAction,
  StateActionSchema,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type PolicyRig, startPolicyRig } from "../testing/policy-rig.ts";
import { eventsOf } from "../testing/record.ts";
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
const webhook = (name: string, description = "") => {
  const value = { name, spec: { url: `https://receiver.example/${name}`, description } };
  return { object: { case: "webhook", value } } as const;
};
const labels = (node: string, given: Record<string, string>) =>
  ({ object: { case: "nodeLabels", value: { node, labels: given } } }) as const;

const actionsOf = ({ changes }: { readonly changes: readonly { object: string; action: StateAction }[] }) =>
  Object.fromEntries(changes.map(({ object, action }) => [object, StateActionSchema.value[action]?.localName]));

describe("applyState()", () => {
  it("should make all that is declared, and then find nothing to do", async () => {
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

  it("should answer a repetition with the same request id as the first time, its secret included", async () => {
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

  it("should refuse another owner's object, change nothing, and take it over when it is told to", async () => {
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

  it("should name all that is wrong at once, and change nothing", async () => {
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

  it("should take no more labels in a call than the bound", async () => {
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

  it("should take of each object the role that its own methods take", async () => {
    await byOperator.applyState({ objects: [policy(6)], owner: "team" });
    const refused = byOperator.applyState({ objects: [policy(5), webhook("ops")], owner: "team" });
    expect(await refusalOf(refused)).toMatchObject({ reason: "ROLE_TOO_LOW", metadata: { required: "admin" } });
    await declared.applyState({ objects: [policy(6), webhook("ops")], owner: "team" });
    const pruning = byOperator.applyState({ objects: [policy(6)], owner: "team", prune: true });
    expect(await refusalOf(pruning)).toMatchObject({ reason: "ROLE_TOO_LOW" });
  });

  it("should let one of two owners win when both declare the same at once, and mix nothing", async () => {
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
