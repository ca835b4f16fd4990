import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { WebhookState } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { compactEvents, readEvents, type Store } from "@rollcall/store";
import { addNode, createTestDatabase, eventually, seededRandom, type TestDatabase } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { TestReceiver } from "../testing/test-receiver.ts";
import { append, WebhookRig } from "../testing/webhook-rig.ts";

let database: TestDatabase;
let store: Store;
let authority: TestAuthority;
let receiver: TestReceiver;
let rig: WebhookRig;

beforeEach(async () => {
  database = await createTestDatabase();
  ({ store } = database);
  authority = new TestAuthority();
  receiver = await new TestReceiver(authority).listen();
  rig = await WebhookRig.start({
    store,
    config: { "Webhooks.AllowedNetworks": ["127.0.0.1"], "Webhooks.AuthorityFile": authority.caFile },
  });
});

afterEach(async () => {
  await rig.close();
  await receiver.close();
  await database.drop();
  rmSync(authority.dir, { recursive: true, force: true });
});

const SPEC = { types: ["node.scheduling.changed"] };

async function set(name = "ops", spec: object = {}): Promise<string> {
  const { secret } = await rig.client.setWebhook({ name, spec: { url: receiver.url(), ...SPEC, ...spec } });
  return secret;
}

const statusOf = async (name = "ops") => (await rig.client.getWebhook({ name })).webhook?.status;

async function eventsOf(subject: string) {
  return (await readEvents(store.db, { after: 0n, limit: 100, subject })).events;
}

describe("deliverWebhooks()", () => {
  it("should deliver signed CloudEvents, each once, those of a subject in order", async () => {
    const secret = await set();
    rig.publish("i1");
    const subjects = Array.from({ length: 300 }, (_, index) => `n${index % 7}`);
    const last = await append(store, subjects);
    await eventually(() => expect(receiver.taken).toHaveLength(300));
    for (let index = 0; index < 7; index += 1) {
      const revisions = receiver.takenOf(`n${index}`);
      expect(revisions).toEqual([...revisions].sort((left, right) => Number(left - right)));
    }
    const [first] = receiver.taken;
    if (first === undefined) throw new Error("nothing was taken");
    expect(TestReceiver.verify(first, secret)).toMatchObject({
      specversion: "1.0",
      type: "io.rollcall.node.scheduling.changed",
      datacontenttype: "application/json",
      data: { actor: "system", reason: "TESTED" },
    });
    expect(first.headers["webhook-id"]).toBe(first.id);
    expect(first.headers["content-type"]).toBe("application/cloudevents+json; charset=utf-8");
    expect(() => TestReceiver.verify({ ...first, body: `${first.body} ` }, secret)).toThrow();
    await eventually(async () => expect(await statusOf()).toMatchObject({ revision: last, behind: 0n }));
    // Deliveries share connections.
    expect(receiver.connections).toBeLessThanOrEqual(8);
  });

  it("should block a subject whose delivery fails, deliver the others, and continue in order", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = ({ subject }) => (subject === "bad" ? 503 : 204);
    await append(store, ["bad", "a", "bad", "b", "bad"]);
    await eventually(() => expect(receiver.taken.map(({ subject }) => subject).sort()).toEqual(["a", "b"]));
    await eventually(async () => expect((await statusOf())?.blocked[0]?.failures).toBeGreaterThan(1));
    const status = await statusOf();
    expect(status).toMatchObject({ state: WebhookState.ACTIVE, blockedSubjects: 1 });
    expect(status?.blocked[0]).toMatchObject({ subject: "bad", failure: "the receiver answered 503" });
    const attempts = new Set(receiver.received.filter(({ subject }) => subject === "bad").map(({ id }) => id));
    expect(attempts.size).toBe(1);
    receiver.answer = () => 204;
    await append(store, ["bad", "c"]);
    await eventually(() => expect(receiver.takenOf("bad")).toHaveLength(4));
    const revisions = receiver.takenOf("bad");
    expect(revisions).toEqual([...revisions].sort((left, right) => Number(left - right)));
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(0));
  });

  it("should not redeliver what another process delivered while one receiver was slow", async () => {
    await set();
    const first = rig.publish("i1");
    // The receiver never responds to this subject.
    receiver.answer = ({ subject }) => (subject === "slow" ? () => {} : 204);
    const last = await append(store, ["slow", "a", "b", "a", "slow"]);
    await eventually(() => expect(receiver.taken).toHaveLength(3));
    await eventually(async () => expect(await statusOf()).toMatchObject({ revision: last, blockedSubjects: 1 }));
    await first.close();
    receiver.answer = () => 204;
    rig.publish("i2");
    await eventually(() => expect(receiver.takenOf("slow")).toHaveLength(2));
    await append(store, ["a", "b"]);
    await eventually(async () => expect(await statusOf()).toMatchObject({ behind: 0n, blockedSubjects: 0 }));
    expect([receiver.takenOf("a").length, receiver.takenOf("b").length]).toEqual([3, 2]);
  });

  it("should start nothing new while too many subjects are blocked, and lose nothing", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = () => 500;
    const subjects = Array.from({ length: 200 }, (_, index) => `n${index}`);
    await append(store, subjects);
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(64));
    expect(new Set(receiver.received.map(({ subject }) => subject)).size).toBe(64);
    receiver.answer = () => 200;
    await eventually(() => expect(new Set(receiver.taken.map(({ subject }) => subject)).size).toBe(200));
  });

  it("should pause when a subject has failed for too long, say so, and continue where it stopped", async () => {
    await set();
    rig.publish("i1", { config: { "Webhooks.PauseAfter": 1 } });
    receiver.answer = () => 500;
    await append(store, ["n1", "n1"]);
    await eventually(async () => expect((await statusOf())?.state).toBe(WebhookState.PAUSED));
    expect(await statusOf()).toMatchObject({ pauseReason: "DELIVERY_FAILED" });
    expect(await eventsOf("webhook/ops")).toMatchObject([
      { type: "webhook.set" },
      { type: "webhook.paused", reason: "DELIVERY_FAILED", actor: "system" },
    ]);
    receiver.answer = () => 204;
    await append(store, ["n1"]);
    await set();
    await eventually(() => expect(receiver.takenOf("n1")).toHaveLength(3));
    expect(await statusOf()).toMatchObject({ state: WebhookState.ACTIVE, pauseReason: "" });
  });

  it("should pause at once when the receiver is gone", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = () => 410;
    await append(store, ["n1"]);
    await eventually(async () => expect(await statusOf()).toMatchObject({ pauseReason: "GONE" }));
  });

  it("should not deliver again what was delivered before it paused", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = ({ subject }) => (subject === "gone" ? 410 : 204);
    await append(store, ["delivered", "gone"]);
    await eventually(async () => expect(await statusOf()).toMatchObject({ pauseReason: "GONE" }));
    expect(receiver.takenOf("delivered")).toHaveLength(1);
    receiver.answer = () => 204;
    await set();
    await eventually(() => expect(receiver.takenOf("gone")).toHaveLength(1));
    expect(receiver.takenOf("delivered")).toHaveLength(1);
  });

  it("should wait for as long as the receiver requests", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = () => (response) => response.writeHead(429, { "retry-after": "3600" }).end();
    await append(store, ["n1", "n2"]);
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(2));
    receiver.answer = () => 204;
    await append(store, ["n3"]);
    await eventually(() => expect(receiver.takenOf("n3")).toHaveLength(1));
    expect(receiver.received).toHaveLength(3);
  });

  it("should wait just as long when another subject recovers", async () => {
    await set();
    rig.publish("i1");
    receiver.answer = ({ subject }) =>
      subject === "told" ? (response) => response.writeHead(429, { "retry-after": "3600" }).end() : 500;
    await append(store, ["told", "away"]);
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(2));
    receiver.answer = () => 204;
    await append(store, ["away", "away"]);
    await eventually(() => expect(receiver.takenOf("away")).toHaveLength(3));
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(1));
    expect(receiver.received.filter(({ subject }) => subject === "told")).toHaveLength(1);
  });

  it("should pause deliveries while an admin wants it, and catch up afterwards", async () => {
    await set("ops", { paused: true });
    rig.publish("i1");
    await set("other");
    await append(store, ["n1"]);
    await eventually(() => expect(receiver.taken).toHaveLength(1));
    expect(await statusOf()).toMatchObject({ state: WebhookState.PAUSED, pauseReason: "OPERATOR_PAUSED" });
    await set("ops", { paused: false });
    await eventually(() => expect(receiver.taken).toHaveLength(2));
  });

  it("should deliver events of nodes with such labels, and when they leave the selection", async () => {
    await addNode(store, "in", { labels: { zone: "a" } });
    await addNode(store, "out", { labels: { zone: "b" } });
    await set("ops", { labelSelector: "zone=a", types: [] });
    rig.publish("i1");
    await append(store, ["in", "out", "in"]);
    await append(store, ["token"], "join.token.created");
    await append(store, ["in"]);
    await eventually(() => expect(receiver.taken).toHaveLength(3));
    expect(new Set(receiver.taken.map(({ subject }) => subject))).toEqual(new Set(["in"]));
  });

  it("should sign with both secrets after a rotation", async () => {
    const first = await set();
    rig.publish("i1");
    const { secret } = await rig.client.setWebhook({
      name: "ops",
      spec: { url: receiver.url(), ...SPEC },
      rotateSecret: true,
    });
    expect(secret).not.toBe(first);
    await append(store, ["n1"]);
    await eventually(() => expect(receiver.taken).toHaveLength(1));
    const [taken] = receiver.taken;
    if (taken === undefined) throw new Error("nothing was taken");
    expect(TestReceiver.verify(taken, first)).toBeDefined();
    expect(TestReceiver.verify(taken, secret)).toBeDefined();
  });

  it("should sign with the previous secret for at most a day, also during a delivery", async () => {
    const first = await set();
    const { secret } = await rig.client.setWebhook({
      name: "ops",
      spec: { url: receiver.url(), ...SPEC },
      rotateSecret: true,
    });
    await rig.client.testWebhook({ name: "ops" });
    const [tested] = receiver.received;
    if (tested === undefined) throw new Error("nothing was received");
    for (const each of [first, secret]) expect(TestReceiver.verify(tested, each)).toBeDefined();
    const until = new Date(Date.now() + 2_000);
    await store.db.updateTable("webhooks").set({ former_until: until }).execute();
    rig.publish("i1");
    await eventually(async () => {
      await append(store, ["n1"]);
      const last = receiver.received.at(-1);
      expect(last?.subject).toBe("n1");
      if (last === undefined) throw new Error("nothing was received");
      expect(TestReceiver.verify(last, secret)).toBeDefined();
      expect(() => TestReceiver.verify(last, first)).toThrow();
    });
  });

  it("should deliver for the others when one webhook cannot be read", async () => {
    await set("bad");
    await set("ops");
    await store.db.updateTable("webhooks").set({ label_selector: "((" }).where("name", "=", "bad").execute();
    rig.publish("i1");
    await append(store, ["n1"]);
    await eventually(() => expect(receiver.takenOf("n1")).toHaveLength(1));
    await store.db.updateTable("webhooks").set({ label_selector: "" }).where("name", "=", "bad").execute();
    await eventually(() => expect(receiver.takenOf("n1")).toHaveLength(2));
  });

  it("should search for rare types in steps", async () => {
    await set();
    for (let round = 0; round < 21; round += 1) {
      await append(
        store,
        Array.from({ length: 500 }, () => "token"),
        "join.token.created",
      );
    }
    const last = await append(store, ["n1"]);
    rig.publish("i1");
    await eventually(() => expect(receiver.takenOf("n1")).toEqual([last]));
  });

  it("should pause when its secret cannot be read, until it is rotated", async () => {
    await set();
    const wrong = rig.publish("i1", { config: { "Webhooks.SecretKey": "another key, which this cluster never had" } });
    await eventually(async () => expect(await statusOf()).toMatchObject({ pauseReason: "SECRET_UNREADABLE" }));
    await wrong.close();
    rig.publish("i2");
    await rig.client.setWebhook({ name: "ops", spec: { url: receiver.url(), ...SPEC }, rotateSecret: true });
    await append(store, ["n1"]);
    await eventually(() => expect(receiver.taken).toHaveLength(1));
  });

  it("should say when events were compacted before their delivery, and continue", async () => {
    await set("ops", { paused: true });
    const last = await append(store, ["n1", "n2", "n3"]);
    await compactEvents(store, -60_000);
    rig.publish("i1");
    await eventually(async () =>
      expect((await eventsOf("webhook/ops")).map(({ type }) => type)).toContain("webhook.behind"),
    );
    await set("ops", { paused: false });
    await append(store, ["n4"]);
    await eventually(() => expect(receiver.takenOf("n4")).toHaveLength(1));
    const told = (await eventsOf("webhook/ops")).filter(({ type }) => type === "webhook.behind");
    expect(told.length).toBe(2);
    expect((await statusOf())?.lostThrough).toBeGreaterThanOrEqual(last - 1n);
  });

  it("should also report it if only events of a blocked subject were compacted while paused", async () => {
    await set();
    const running = rig.publish("i1");
    receiver.answer = ({ subject }) => (subject === "bad" ? 500 : 204);
    const bad = await append(store, ["bad"]);
    await eventually(async () => expect((await statusOf())?.blockedSubjects).toBe(1));
    await set("ops", { paused: true });
    await running.close();
    const last = await append(store, ["n1"]);
    await compactEvents(store, -60_000);
    // Move the webhook's position ahead, so that only blocked events are lost.
    await store.db
      .updateTable("webhooks")
      .set({ revision: last + 1n })
      .execute();
    rig.publish("i2");
    await eventually(async () => {
      const told = (await eventsOf("webhook/ops")).filter(({ type }) => type === "webhook.behind");
      expect(told).toMatchObject([{ before: { revision: `${bad - 1n}` } }]);
    });
  });

  it("should redeliver from a revision on", async () => {
    await set();
    rig.publish("i1");
    await append(store, ["n1", "n2", "n1"]);
    await eventually(() => expect(receiver.taken).toHaveLength(3));
    const second = receiver.taken.map(({ revision }) => revision).sort((left, right) => Number(left - right))[1] ?? 0n;
    await eventually(async () => expect((await statusOf())?.behind).toBe(0n));
    const answer = await rig.client.replayDeliveries({ name: "ops", fromRevision: second });
    expect(answer.fromRevision).toBe(second);
    await eventually(() => expect(receiver.taken).toHaveLength(5));
    expect((await eventsOf("webhook/ops")).at(-1)).toMatchObject({ type: "webhook.replayed" });
  });

  it("should lose nothing and keep the order while publishers change and the receiver fails", async () => {
    const seed = 20_261_123;
    const random = seededRandom(seed);
    await set();
    receiver.answer = () => {
      const dice = random();
      if (dice < 0.1) return 500;
      return dice < 0.2 ? (response) => response.destroy() : 204;
    };
    const expected = new Map<string, bigint[]>();
    let publishers = [rig.publish("i0"), rig.publish("i1")];
    for (let round = 0; round < 12; round += 1) {
      const subjects = Array.from({ length: 25 }, () => `n${Math.floor(random() * 9)}`);
      const last = await append(store, subjects);
      for (const [index, subject] of subjects.entries()) {
        const revision = last - BigInt(subjects.length - 1 - index);
        expected.set(subject, [...(expected.get(subject) ?? []), revision]);
      }
      if (round % 3 !== 2) continue;
      const [oldest] = publishers;
      publishers = [...publishers.slice(1), rig.publish(`i${round + 2}`)];
      await oldest?.close();
    }
    await eventually(async () => {
      for (const [subject, revisions] of expected) expect(distinct(receiver.takenOf(subject))).toEqual(revisions);
    });
  });
});

/** Return each revision once, in order of first arrival. */
function distinct(revisions: readonly bigint[]): readonly bigint[] {
  return [...new Set(revisions)];
}
