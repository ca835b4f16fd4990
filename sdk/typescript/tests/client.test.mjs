// Tests against a real control plane.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { after, before, test } from "node:test";
import { Client, NodeCache, Reason, RefusedError, UnreachableError } from "@rollcall/client";
import { Client as BrowserClient } from "@rollcall/client/browser";
import { NodeType } from "@rollcall/client/rollcall/node/v1/node_pb";
import { ControlPlane, eventually } from "./control-plane.mjs";

const NODE = hostname();
const LABELS = { types: ["node.labels.changed"] };
const plane = new ControlPlane();
/** @type {Client} */
let client;

before(async () => {
  await plane.start();
  client = plane.client({ timeoutMs: 60_000 });
  await eventually("this machine is listed", async () => (await ids()).includes(NODE));
});

after(async () => {
  client.close();
  await plane.dispose();
});

async function ids() {
  const found = [];
  for await (const node of client.registry.listNodes.each({ pageSize: 1 })) found.push(node.id);
  return found.sort();
}

/** @param {string} value @param {string} [requestId] */
function setLabel(value, requestId = "") {
  return client.admin.setNodeLabels({ node: NODE, set: { sdk: value }, requestId });
}

/** @param {import("@rollcall/client/rollcall/events/v1/events_pb").Event} event */
function labelOf(event) {
  return /** @type {any} */ (event.after).labels.sdk;
}

test("gets a node", async () => {
  const { node } = await client.registry.getNode({ node: NODE });
  assert.equal(node?.type, NodeType.COMPUTE);
});

test("iterates over pages", async () => {
  for (let number = 0; number < 5; number++) await setLabel(`page-${number}`);
  const values = [];
  for await (const event of client.events.listEvents.each({ pageSize: 2, ...LABELS })) values.push(labelOf(event));
  assert.deepEqual(
    values.filter((it) => it.startsWith("page-")),
    ["page-0", "page-1", "page-2", "page-3", "page-4"],
  );
});

test("reports the reason of a refusal", async () => {
  await assert.rejects(client.registry.getNode({ node: "nowhere" }), (error) => {
    assert.ok(error instanceof RefusedError);
    assert.equal(error.reason, Reason.NODE_NOT_FOUND);
    return true;
  });
  await assert.rejects(client.registry.listNodes({ pageSize: 100_000 }), (error) => {
    assert.ok(error instanceof RefusedError);
    assert.deepEqual(
      error.violations.map(({ field }) => field),
      ["page_size"],
    );
    return true;
  });
});

test("reports that a token is not accepted", async () => {
  const unknown = new Client({ server: plane.server, token: "wrong" });
  await assert.rejects(unknown.registry.listNodes(), { reason: Reason.TOKEN_INVALID });
  unknown.close();
});

test("reports that no server answers, after its retries", async () => {
  const nowhere = new Client({ server: "127.0.0.1:1", token: "none", retry: { attempts: 2, firstWaitMs: 1 } });
  await assert.rejects(nowhere.registry.listNodes(), UnreachableError);
  nowhere.close();
});

test("has one effect for one request id", async () => {
  const first = await setLabel("once", "the-same");
  const before = await client.events.listEvents({ pageSize: 1_000, ...LABELS });
  assert.deepEqual(await setLabel("once", "the-same"), first);
  const after = await client.events.listEvents({ pageSize: 1_000, ...LABELS });
  assert.equal(after.events.length, before.events.length);
});

test("retries an unanswered change across a crash, with one effect", async () => {
  const before = await client.events.listEvents({ pageSize: 1_000, ...LABELS });
  await plane.end("SIGKILL");
  const patient = plane.client({ timeoutMs: 120_000, retry: { attempts: 1_000, longestWaitMs: 200 } });
  const change = patient.admin.setNodeLabels({ node: NODE, set: { sdk: "over-a-crash" } });
  await plane.start();
  await change;
  patient.close();
  const after = await client.events.listEvents({ pageSize: 1_000, ...LABELS });
  assert.equal(after.events.length, before.events.length + 1);
});

test("neither loses nor repeats events across crashes", async () => {
  const watch = client.watchEvents(LABELS);
  /** @type {string[]} */
  const seen = [];
  const following = (async () => {
    for await (const event of watch) seen.push(labelOf(event));
  })();
  await eventually("it follows", () => watch.bookmark !== null);
  const expected = [];
  for (let crash = 0; crash < 2; crash++) {
    for (let number = 0; number < 20; number++) {
      expected.push(`crash-${crash}-${number}`);
      await setLabel(`crash-${crash}-${number}`);
    }
    await plane.crash();
  }
  await setLabel("the-end");
  await eventually("all are seen", () => seen.length > expected.length);
  assert.deepEqual(seen, [...expected, "the-end"]);
  watch.close();
  await following;
});

test("resumes from a bookmark within a message", async () => {
  const { resumeToken } = await client.events.listEvents({ pageSize: 1_000 });
  for (let number = 0; number < 10; number++) await setLabel(`mark-${number}`);
  const seen = [];
  let bookmark = resumeToken;
  for (let number = 0; number < 10; number++) {
    const watch = client.watchEvents(LABELS, { bookmark });
    for await (const event of watch) {
      seen.push(labelOf(event));
      break;
    }
    bookmark = watch.bookmark ?? "";
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 10 }, (_, number) => `mark-${number}`),
  );
});

test("reports that a bookmark is from another log", async () => {
  const watch = client.watchEvents(LABELS, { bookmark: "nonsense@1" });
  await assert.rejects(watch[Symbol.asyncIterator]().next(), { reason: Reason.INVALID_RESUME_TOKEN });
});

test("keeps every node across a crash", async () => {
  /** @type {string[]} */
  const changed = [];
  const cache = new NodeCache(client, { onChange: ({ after }) => changed.push(after?.id ?? "") });
  await cache.synced();
  await plane.crash();
  await setLabel("after-the-crash");
  await eventually(
    "the label has arrived",
    () => cache.get(NODE)?.labels.some((it) => it.value === "after-the-crash") ?? false,
  );
  const listed = await ids();
  await eventually("it has the listed nodes", () => cache.list().length === listed.length);
  assert.deepEqual(
    cache
      .list()
      .map(({ id }) => id)
      .sort(),
    listed,
  );
  assert.ok(changed.includes(NODE));
  cache.close();
});

test("reports what a cache's listener throws", async () => {
  const cache = new NodeCache(client, {
    onChange: () => {
      throw new Error("broken listener");
    },
  });
  await assert.rejects(cache.synced(), /broken listener/);
  assert.throws(() => cache.list(), /broken listener/);
});

test("makes calls and watches like a page", async () => {
  const token = readFileSync(plane.tokenFile, "utf8").trim();
  const page = new BrowserClient({ server: `http://${plane.server}`, token });
  assert.equal((await page.registry.getNode({ node: NODE })).node?.id, NODE);
  await assert.rejects(page.registry.getNode({ node: "nowhere" }), { reason: Reason.NODE_NOT_FOUND });
  const { resumeToken } = await page.events.listEvents({ pageSize: 1_000 });
  await setLabel("seen-by-a-page");
  for await (const event of page.watchEvents(LABELS, { bookmark: resumeToken })) {
    assert.equal(labelOf(event), "seen-by-a-page");
    break;
  }
});
