import { setImmediate as nextLoopTick } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { currentRevision, getNode, readEvents } from "@rollcall/store";
import { createTestDatabase, eventually, seededRandom } from "@rollcall/testkit";
import { label, observe, operate } from "../testing/operator.ts";
import * as changes from "../testing/record-changes.ts";
import { wholeNodes } from "../testing/resuming-node-watcher.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { TestNode } from "../testing/test-node.ts";
import { watchInBackground } from "../testing/watcher.ts";

const NODES = 30;
const WRITERS = 3;
const FILTERS = [{}, { memberships: [MembershipState.APPROVED], labelSelector: "zone!=b", orderBy: "status" }];

let rig: Rig;
const machines = Array.from({ length: NODES }, (_, index) => new TestNode(`n${index}`));

beforeAll(async () => {
  rig = await startRig(await createTestDatabase(), { watchLimits: { bookmarkMs: 40 } });
  await seed(rig.store, machines);
});
afterAll(() => rig.close());

/** Change nodes at random until the signal aborts. */
async function write(writer: number, ending: AbortSignal): Promise<number> {
  const { store } = rig;
  const random = seededRandom(writer + 7);
  const below = (limit: number) => Math.floor(random() * limit);
  let written = 0;
  for (; !ending.aborted; written += 1) {
    const node = machines[below(NODES)] ?? machines[0];
    if (node === undefined) return written;
    const { id } = node;
    const variant = below(100);
    const steps = [
      () => seed(store, [node]),
      () => observe(store, [id], variant % 2 === 0 ? "HEALTHY" : "UNHEALTHY"),
      () => operate(store, id, variant % 3 === 0 ? "reject" : "approve"),
      () => operate(store, id, variant % 4 === 0 ? "delete" : "approve"),
      () => label(store, id, "zone", variant % 2 === 0 ? "a" : "b"),
      () => changes.connect(store, id, variant),
      () => changes.cordon(store, id, variant % 2 === 0),
      async () => {
        const record = await getNode(store.db, id);
        if (record !== null) await changes.disconnect(store, record, variant);
      },
    ];
    // Ignore errors of changes that the table of memberships forbids.
    await steps[below(steps.length)]?.().catch(() => {});
    await nextLoopTick();
  }
  return written;
}

/** List in small pages during many writes. */
async function listSlowly(filter: (typeof FILTERS)[number]) {
  const nodes = new Map<string, Node>();
  let [pageToken, revision] = ["", 0n];
  do {
    const page = await rig.registry.listNodes({ ...filter, pageSize: 3, pageToken });
    if (pageToken !== "") expect(page.revision).toBe(revision);
    for (const node of page.nodes) nodes.set(node.id, node);
    ({ nextPageToken: pageToken, revision } = page);
    const from = await currentRevision(rig.store.db);
    await eventually(async () => expect(await currentRevision(rig.store.db)).toBeGreaterThan(from + 2n));
  } while (pageToken !== "");
  return { nodes, revision };
}

describe("a list and a watch after its revision", () => {
  it.each(FILTERS)("should result in the current fleet, whatever is written concurrently: %j", async (filter) => {
    const ending = new AbortController();
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer, ending.signal));
    const { nodes, revision } = await listSlowly(filter);
    const { orderBy: _, ...selection } = { orderBy: "", ...filter };
    const start = { case: "afterRevision", value: revision } as const;
    const watch = watchInBackground((signal) =>
      rig.registry.watchNodes({ ...selection, start }, { signal, timeoutMs: 0 }),
    );
    const events = watchInBackground((signal) => rig.events.watchEvents({ start }, { signal, timeoutMs: 0 }));
    await watch.until((messages) => messages.length > 3);
    ending.abort();
    await Promise.all(writers);
    // Wait until both watches have reached the newest revision.
    const head = await currentRevision(rig.store.db);
    await Promise.all([
      watch.until((messages) => (messages.at(-1)?.revision ?? 0n) >= head),
      events.until((messages) => (messages.at(-1)?.revision ?? 0n) >= head),
    ]);

    for (const { change } of watch.messages.flatMap((message) => message.changes)) {
      if (change.case === "upserted") nodes.set(change.value.id, change.value);
      if (change.case === "removedId") nodes.delete(change.value);
    }
    const fresh = await rig.registry.listNodes({ ...filter, pageSize: 1_000 });
    expect(fresh.revision).toBe(head);
    expect(wholeNodes(nodes.values())).toEqual(wholeNodes(fresh.nodes));

    const log = await readEvents(rig.store.db, { after: revision, limit: 100_000 });
    expect(log.events.length).toBeGreaterThan(10);
    const seen = events.messages.flatMap((message) => message.events.map(({ id }) => id));
    expect(seen).toEqual(log.events.map(({ id }) => id));
    await Promise.all([watch.stop(), events.stop()]);
  });

  it("should return how far a list of events goes, also when nothing matches", async () => {
    const head = await currentRevision(rig.store.db);
    expect((await rig.events.listEvents({ subject: "nobody" })).revision).toBe(head);
    const { events, revision } = await rig.events.listEvents({ pageSize: 2 });
    expect(revision).toBe(events.at(-1)?.revision);
  });
});
