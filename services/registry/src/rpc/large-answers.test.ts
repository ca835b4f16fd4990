import { fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ListNodesResponseSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { appendEvents, createTestDatabase, sendBearer } from "@rollcall/testkit";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { TestNode } from "../testing/test-node.ts";

const MIB = 1_048_576;
/** The default message limit of gRPC clients. */
const MOST_BYTES = 4 * MIB;

/** Nearly the largest allowed report of a node. */
const LARGEST: MessageInitShape<typeof NodeInfoSchema> = {
  hostname: "h".repeat(253),
  advertiseUrl: "u".repeat(2_000),
  interfaces: Array.from({ length: 128 }, (_, at) => ({
    name: `eth${at}`,
    addresses: Array.from({ length: 7 }, (_, index) => `${at}-${index}`.padEnd(60, "x")),
  })),
};
/** A report that was accepted by an earlier release without this limit. */
const FORMER = { ...LARGEST, hostname: "former", advertiseUrl: "u".repeat(900_000) };

const LARGEST_NODES = 120;
const FORMER_NODES = 6;
const ids = Array.from({ length: LARGEST_NODES + FORMER_NODES }, (_, at) => `n${1_000 + at}`);

let rig: Rig;
let registry: Client<typeof RegistryService>;
let events: Client<typeof EventService>;

beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  await seed(
    rig.store,
    ids.map((id) => new TestNode(id)),
    { infoOf: (_, index) => (index % 20 === 7 ? FORMER : LARGEST) },
  );
  const transport = createGrpcTransport({
    baseUrl: rig.baseUrl,
    readMaxBytes: MOST_BYTES,
    interceptors: [sendBearer(rig.token)],
  });
  registry = createClient(RegistryService, transport);
  events = createClient(EventService, transport);
});
afterAll(() => rig.close());

interface AnyPage<T> {
  readonly items: readonly T[];
  readonly next: string;
}

/** All items of a listing, and the number of its pages; the client must accept every page. */
async function readAll<T>(read: (pageToken: string) => Promise<AnyPage<T>>) {
  const items: T[] = [];
  let pages = 0;
  let pageToken = "";
  do {
    const page = await read(pageToken);
    items.push(...page.items);
    pages += 1;
    pageToken = page.next;
  } while (pageToken !== "");
  return { items, pages };
}

describe("the largest possible nodes, and larger ones of a previous release", () => {
  it.each(["id", "created desc"])("should be listed in pages that clients accept, by %s", async (orderBy) => {
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await registry.listNodes({ pageSize: 1_000, pageToken, orderBy });
      return { items: page.nodes, next: page.nextPageToken };
    });
    expect(items.map(({ id }) => id).sort()).toEqual(ids);
    const [first] = items;
    expect(first?.info?.interfaces).toHaveLength(128);
    expect(pages).toBeGreaterThan(5);
    expect(pages).toBeLessThan(20);
  });

  it("should be listed as JSON in the same pages", async () => {
    const { items } = await readAll(async (pageToken) => {
      const answer = await fetch(`${rig.baseUrl}/${RegistryService.typeName}/ListNodes`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${rig.token}` },
        body: JSON.stringify({ pageSize: 1_000, pageToken }),
      });
      const text = await answer.text();
      expect(text.length).toBeLessThan(MOST_BYTES);
      const page = fromJson(ListNodesResponseSchema, JSON.parse(text) as JsonValue);
      return { items: page.nodes, next: page.nextPageToken };
    });
    expect(items.map(({ id }) => id)).toEqual(ids);
  });

  it("should be watched in messages that clients accept", async () => {
    const seen: string[] = [];
    let messages = 0;
    for await (const { changes, snapshotComplete } of registry.watchNodes({}, { timeoutMs: 0 })) {
      messages += 1;
      for (const { change } of changes) if (change.case === "upserted") seen.push(change.value.id);
      if (snapshotComplete) break;
    }
    expect(seen).toEqual(ids);
    expect(messages).toBeGreaterThan(10);
  });

  it("should be sent to resuming watchers in messages that clients accept", async () => {
    const [first] = await eventsOf(rig.store);
    const start = { case: "afterRevision", value: first?.revision ?? 0n } as const;
    const seen = new Set<string>();
    for await (const { changes, snapshotComplete } of registry.watchNodes({ start }, { timeoutMs: 0 })) {
      for (const { change } of changes) {
        expect(change.case).toBe("upserted");
        if (change.case === "upserted") seen.add(change.value.id);
      }
      if (snapshotComplete) break;
    }
    expect(seen.size).toBe(ids.length - 1);
  });
});

const EVENTS = 200;

describe("large events and tombstones", () => {
  beforeAll(async () => {
    // The events and tombstones are as large as labels can make them.
    const text = (of: number, bytes: number) => String(of).padEnd(bytes, "x");
    await rig.store.transaction((tx) =>
      appendEvents(
        tx,
        Array.from({ length: EVENTS }, (_, at) => ({
          type: "node.hardware.degraded",
          ...{ subject: "n1000", actor: "system", reason: "TESTED", message: String(at + 1) },
          before: null,
          after: { text: text(at, 40_000) },
        })),
      ),
    );
    const labels = Array.from({ length: 100 }, (_, at) => ({
      ...{ tier: "agent", key: `key-${at}`, value: text(at, 300) },
    }));
    await rig.store.db
      .insertInto("node_tombstones")
      .values(
        Array.from({ length: 200 }, (_, at) => ({
          ...{ node_id: `gone-${at + 1}`, node_type: "COMPUTE" as const, last_epoch: 0 },
          ...{ actor: "system", reason: "COLLECTED", message: "" },
          last_state: JSON.stringify({ labels }),
        })),
      )
      .execute();
  });

  it("should be listed in pages that clients accept, each starting where the previous one ended", async () => {
    const [before] = await eventsOf(rig.store, "n1001");
    let resumeToken = "";
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await events.listEvents({ pageSize: 1_000, pageToken, subject: "n1000" });
      resumeToken ||= page.resumeToken;
      return { items: page.events, next: page.nextPageToken };
    });
    expect(before?.revision).toBeDefined();
    expect(items.slice(-EVENTS).map(({ message }) => message)).toEqual(
      Array.from({ length: EVENTS }, (_, at) => String(at + 1)),
    );
    expect(pages).toBeGreaterThan(2);
    // The resume token of a truncated page points to its last event.
    const start = { case: "resumeToken", value: resumeToken } as const;
    const watched: string[] = [];
    for await (const page of events.watchEvents({ start, subject: "n1000" }, { timeoutMs: 0 })) {
      watched.push(...page.events.map(({ id }) => id));
      if (watched.length > 0) break;
    }
    const at = items.findIndex(({ id }) => id === watched[0]);
    expect(at).toBeGreaterThan(0);
    const first = await events.listEvents({ pageSize: 1_000, subject: "n1000" });
    expect(first.events).toHaveLength(at);
  });

  it("should be explained as far as they fit, keeping the newest, newest last", async () => {
    const answer = await registry.explainNode({ node: "n1000", limit: 1_000 });
    const messages = answer.entries.map(({ event }) => Number(event?.message));
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.length).toBeLessThan(EVENTS);
    expect(messages).toEqual(messages.map((_, at) => EVENTS - messages.length + 1 + at));
    expect(answer.hasEarlier).toBe(true);
    expect(answer.node?.id).toBe("n1000");
  });

  it("should be listed for removed nodes in pages that clients accept", async () => {
    const { items, pages } = await readAll(async (pageToken) => {
      const page = await registry.listDeletedNodes({ pageSize: 1_000, pageToken });
      return { items: page.deletedNodes, next: page.nextPageToken };
    });
    expect(items.map(({ nodeId }) => nodeId)).toEqual(Array.from({ length: 200 }, (_, at) => `gone-${200 - at}`));
    expect(pages).toBeGreaterThan(2);
  });
});
