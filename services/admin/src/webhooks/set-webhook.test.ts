import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { insertWebhook } from "@rollcall/store";
import { createTestDatabase, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { eventsOf } from "../testing/record.ts";
import { createToken } from "../testing/rig.ts";
import { append, WebhookRig } from "../testing/webhook-rig.ts";
import { createSecretSeal } from "./seal-secret.ts";

let database: TestDatabase;
let rig: WebhookRig;
beforeAll(async () => {
  database = await createTestDatabase();
  rig = await WebhookRig.start({ store: database.store });
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const URL_TEXT = "https://ops.example/hook?key=of-the-path";
const spec = { url: URL_TEXT };

/** Everything in the database as one string. */
async function dump(): Promise<string> {
  const { db } = database.store;
  const tables = ["webhooks", "events", "audit_log", "request_ids"] as const;
  const rows = await Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute()));
  return JSON.stringify(rows, (_, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    const bytes = value as { readonly type?: unknown; readonly data?: unknown } | null;
    return bytes?.type === "Buffer" ? Buffer.from(bytes.data as number[]).toString("latin1") : value;
  });
}

describe("setWebhook()", () => {
  it("should create a webhook, show its secret once, and store it sealed", async () => {
    const { webhook, secret } = await rig.client.setWebhook({ name: "new", spec });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toMatchObject({ name: "new", spec: { url: URL_TEXT, paused: false }, status: { pauseReason: "" } });
    const written = await dump();
    const bytes = Buffer.from(secret.slice("whsec_".length), "base64");
    for (const form of [secret.slice("whsec_".length), bytes.toString("latin1"), bytes.toString("hex")]) {
      expect(written).not.toContain(form);
    }
    expect((await rig.client.setWebhook({ name: "new", spec })).secret).toBe("");
    const { webhook: shown } = await rig.client.getWebhook({ name: "new" });
    expect(JSON.stringify(shown, (_, value) => (typeof value === "bigint" ? `${value}` : value))).not.toContain(
      "whsec",
    );
  });

  it("should log only the host of the URL", async () => {
    await rig.client.setWebhook({ name: "quiet", spec, reason: "for ops" });
    const [event, ...others] = await eventsOf(database.store, "webhook/quiet");
    expect(others).toEqual([]);
    expect(event).toMatchObject({ type: "webhook.set", message: "for ops", after: { host: "ops.example" } });
    expect(JSON.stringify([event?.before, event?.after])).not.toContain("key=");
  });

  it("should change nothing if already set, and change the etag with each change", async () => {
    const { webhook: first } = await rig.client.setWebhook({
      name: "same",
      spec: { ...spec, types: ["node.approved"] },
    });
    const again = await rig.client.setWebhook({ name: "same", spec: { ...spec, types: ["node.approved"] } });
    expect(again.webhook?.etag).toBe(first?.etag);
    expect(await eventsOf(database.store, "webhook/same")).toHaveLength(1);
    const { webhook: changed } = await rig.client.setWebhook({ name: "same", spec, etag: first?.etag ?? "" });
    expect(changed?.etag).not.toBe(first?.etag);
    const late = await refusalOf(rig.client.setWebhook({ name: "same", spec, etag: first?.etag ?? "" }));
    expect(late.reason).toBe("ETAG_MISMATCH");
    expect((await refusalOf(rig.client.setWebhook({ name: "absent", spec, etag: "1" }))).reason).toBe("ETAG_MISMATCH");
  });

  it("should answer a repeated request with the same secret, only to the same token", async () => {
    const request = { name: "repeated", spec, requestId: randomUUID() };
    const first = await rig.client.setWebhook(request);
    expect(await rig.client.setWebhook(request)).toEqual(first);
    await rig.client.setWebhook({ name: "repeated", spec, rotateSecret: true });
    expect((await rig.client.setWebhook(request)).secret).toBe("");
  });

  it("should start where requested, within the log", async () => {
    const head = await append(database.store, ["n1", "n2"]);
    const from = await rig.client.setWebhook({
      name: "from",
      spec,
      start: { case: "afterRevision", value: head - 1n },
    });
    expect(from.webhook?.status?.revision).toBe(head - 1n);
    const all = await rig.client.setWebhook({ name: "all", spec, start: { case: "fromBeginning", value: true } });
    expect(all.webhook?.status?.revision).toBe(0n);
    const ahead = { name: "ahead", spec, start: { case: "afterRevision", value: head + 1_000n } as const };
    expect((await refusalOf(rig.client.setWebhook(ahead))).reason).toBe("REVISION_COMPACTED");
  });

  it.each([
    ["WEBHOOK_ADDRESS_REFUSED", { url: "http://ops.example/" }],
    ["WEBHOOK_ADDRESS_REFUSED", { url: "https://127.0.0.1/" }],
    ["WEBHOOK_ADDRESS_REFUSED", { url: "https://localhost/" }],
    ["WEBHOOK_ADDRESS_REFUSED", { url: "not a url" }],
    ["INVALID_REQUEST", { url: "" }],
    ["INVALID_REQUEST", { ...spec, types: ["node.aproved"] }],
    ["INVALID_REQUEST", { ...spec, labelSelector: "a in" }],
  ])("should refuse with %s: %j", async (reason, wrong) => {
    const error = await refusalOf(rig.client.setWebhook({ name: "wrong", spec: wrong }));
    expect(error.reason).toBe(reason);
    expect(error.message).not.toContain("key=");
  });

  it.each(["", "UPPER", "-a", "a-", "a".repeat(64), "a/b"])("should refuse the name %j", async (name) => {
    expect((await refusalOf(rig.client.setWebhook({ name, spec }))).reason).toBe("INVALID_REQUEST");
  });

  it("should create no more than the limit, all at once", async () => {
    const { webhooks } = await rig.client.listWebhooks({ pageSize: 1000 });
    const names = Array.from({ length: 97 - webhooks.length }, (_, index) => `many-${index}`);
    const facts = { types: [], excludeTypes: [], labelSelector: "", description: "", paused: false };
    await database.store.transaction(async (tx) => {
      const rest = { spec: { ...spec, ...facts }, secret: new Uint8Array(), revision: 0n, actor: "x" };
      for (const name of names) await insertWebhook(tx, { name, ...rest });
    });
    // Use fewer calls than the store has connections.
    const last = Array.from({ length: 6 }, (_, index) => rig.client.setWebhook({ name: `last-${index}`, spec }));
    const made = await Promise.allSettled(last);
    expect(made.filter(({ status }) => status === "rejected")).toHaveLength(3);
    expect((await refusalOf(rig.client.setWebhook({ name: "one-more", spec }))).reason).toBe("TOO_MANY_WEBHOOKS");
    const pages = [];
    let pageToken = "";
    do {
      const page = await rig.client.listWebhooks({ pageSize: 30, pageToken });
      pages.push(...page.webhooks.map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(pages).toEqual([...pages].sort());
    expect(pages).toHaveLength(100);
    await database.store.db.deleteFrom("webhooks").where("name", "like", "many-%").execute();
  });
});

describe("the other methods", () => {
  it("should refuse an unknown webhook", async () => {
    const calls = [
      rig.client.getWebhook({ name: "absent" }),
      rig.client.deleteWebhook({ name: "absent" }),
      rig.client.testWebhook({ name: "absent" }),
      rig.client.replayDeliveries({ name: "absent" }),
    ];
    for (const call of calls) expect((await refusalOf(call)).reason).toBe("WEBHOOK_NOT_FOUND");
    expect((await refusalOf(rig.client.listWebhooks({ pageToken: "x" }))).reason).toBe("INVALID_PAGE_TOKEN");
  });

  it("should be for admins only", async () => {
    const operator = rig.rig.clientOf(WebhookService, rig.rig.operator.text);
    expect((await refusalOf(operator.listWebhooks({}))).reason).toBe("ROLE_TOO_LOW");
    const viewer = rig.rig.clientOf(WebhookService, (await createToken(database.store, "viewer")).text);
    expect((await refusalOf(viewer.getWebhook({ name: "new" }))).reason).toBe("ROLE_TOO_LOW");
  });

  it("should delete with an event, and once", async () => {
    await rig.client.setWebhook({ name: "deleted", spec });
    await rig.client.deleteWebhook({ name: "deleted" });
    expect((await refusalOf(rig.client.deleteWebhook({ name: "deleted" }))).reason).toBe("WEBHOOK_NOT_FOUND");
    const types = (await eventsOf(database.store, "webhook/deleted")).map(({ type }) => type);
    expect(types).toEqual(["webhook.set", "webhook.deleted"]);
  });

  it("should replay neither undelivered nor deleted events", async () => {
    const head = await append(database.store, ["n1"]);
    await rig.client.setWebhook({ name: "replayed", spec, start: { case: "afterRevision", value: head } });
    const ahead = rig.client.replayDeliveries({ name: "replayed", fromRevision: head + 2n });
    expect((await refusalOf(ahead)).reason).toBe("WEBHOOK_NOT_THAT_FAR");
    const answer = await rig.client.replayDeliveries({ name: "replayed" });
    expect(answer).toMatchObject({ fromRevision: 1n, throughRevision: head });
    const nothing = rig.client.replayDeliveries({ name: "replayed", fromRevision: 1n });
    expect(await nothing).toMatchObject({ fromRevision: 1n, throughRevision: 0n });
  });

  it("should report the result of a test, without connecting to a private address", async () => {
    const resolve = async () => [{ address: "10.0.0.1", family: 4 }];
    const own = await WebhookRig.start({ store: database.store, resolve });
    await own.client.setWebhook({ name: "tested", spec });
    const answer = await own.client.testWebhook({ name: "tested" });
    expect(answer).toMatchObject({ delivered: false, statusCode: 0 });
    expect(answer.failure).toContain("ops.example resolves to 10.0.0.1, which is private");
    await own.close();
  });
});

describe("createSecretSeal()", () => {
  const secret = Buffer.alloc(32, 5);
  const cluster = Buffer.alloc(32, 1);
  const seal = createSecretSeal(cluster, undefined);

  it("should open what it sealed, only for the same webhook", () => {
    const sealed = seal.seal("a", secret);
    expect(seal.open("a", sealed)).toEqual(secret);
    expect(seal.open("b", sealed)).toBeNull();
    expect(seal.seal("a", secret)).not.toEqual(sealed);
    expect(createSecretSeal(cluster, "an outer key").open("a", sealed)).toBeNull();
    expect(createSecretSeal(Buffer.alloc(32, 2), undefined).open("a", sealed)).toBeNull();
  });

  it("should refuse data that was changed or truncated, at any byte", () => {
    const sealed = seal.seal("a", secret);
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8((changed.readUInt8(index) + 1) % 256, index);
      expect(seal.open("a", changed)).toBeNull();
      expect(seal.open("a", sealed.subarray(0, index))).toBeNull();
    }
  });
});
