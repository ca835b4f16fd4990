import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Node, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { getNode, type Store, type Node as StoredNode } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { label } from "../testing/operator.ts";
import * as changes from "../testing/record-changes.ts";
import { wholeNodes } from "../testing/resuming-node-watcher.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { INFO, TestNode } from "../testing/test-node.ts";
import { type Watched, watchInBackground } from "../testing/watcher.ts";

// Checks that for every write to a node, either the watch reports the write, or no list shows it.

const MACHINE = new TestNode("n1");
const MARKER = new TestNode("zz-marker");

let rig: Rig;
let store: Store;
beforeEach(async () => {
  rig = await startRig(await createTestDatabase());
  store = rig.store;
  await seed(store, [MACHINE, MARKER]);
});
afterEach(() => rig.close());

async function node(): Promise<StoredNode> {
  const record = await getNode(store.db, MACHINE.id);
  if (record === null) throw new Error("the node is gone");
  return record;
}

const connect = (variant: number) => changes.connect(store, MACHINE.id, variant);
const beat = { state: "HEALTHY", reason: "HEARTBEAT_RECEIVED", message: "" } as const;
const report = (cores: number) =>
  seed(store, [MACHINE], { infoOf: () => ({ ...INFO, cpu: { model: "Abacus", threads: cores } }) });

interface Case {
  readonly name: string;
  /** A step that runs before the write. */
  before?(): Promise<void>;
  write(): Promise<unknown>;
}

const CASES: readonly Case[] = [
  {
    name: "a stream that is opened again at the same replica",
    before: () => connect(0),
    write: () => connect(0),
  },
  {
    name: "a stream that moves to another replica",
    before: () => connect(0),
    write: () => connect(1),
  },
  {
    name: "an adoption of a node that is disconnected",
    before: async () => {
      await connect(0);
      await changes.disconnect(store, await node(), 0);
    },
    write: () => changes.adopt(store),
  },
  {
    name: "another reason of the same connection",
    before: async () => {
      await connect(0);
      await changes.disconnect(store, await node(), 0);
    },
    write: async () => changes.disconnect(store, await node(), 1),
  },
  {
    name: "another reason of the same connection, under a mark",
    before: async () => {
      await connect(0);
      await changes.disconnect(store, await node(), 0);
      await changes.mark(store, MACHINE.id, true);
    },
    write: async () => changes.disconnect(store, await node(), 1),
  },
  {
    name: "another reason of the same health",
    before: async () => {
      await connect(0);
      await changes.evaluate(store, await node(), "UNHEALTHY", 1);
    },
    write: async () => changes.evaluate(store, await node(), "UNHEALTHY", 2),
  },
  { name: "a key that is offered", write: () => changes.offerKey(store, MACHINE.id) },
  {
    name: "another cause of the same hold",
    before: async () => {
      await connect(0);
      await report(4);
      await changes.settle(store, await node(), 0);
      await report(2);
    },
    write: async () => changes.settle(store, await node(), 0),
  },
  {
    name: "a drain under other conditions, and its end",
    write: () => changes.drain(store, MACHINE.id),
  },
  {
    name: "an unexpected reboot that is over",
    before: async () => {
      await connect(0);
      await changes.disconnect(store, await node(), 0);
      await connect(4);
      await changes.write(store, await node(), beat);
    },
    write: async () => {
      await changes.ageReboot(store, MACHINE.id);
      await changes.settle(store, await node(), 0);
    },
  },
  {
    name: "another policy for a node that flaps",
    before: async () => {
      await connect(0);
      for (let turn = 1; turn < 9; turn++)
        await changes.evaluate(store, await node(), turn % 2 === 0 ? "UNHEALTHY" : "HEALTHY", 1);
      await changes.settle(store, await node(), 0);
    },
    write: async () => changes.settle(store, await node(), 3),
  },
  {
    name: "two machines that use a node's identity, of which another one comes",
    before: async () => {
      for (const variant of [0, 2, 0, 2, 0, 2]) await connect(variant);
    },
    // One of the two machines connects from another port, and then the other one after a reboot.
    write: async () => {
      await connect(10);
      await connect(4);
    },
  },
  {
    name: "a process of the control plane that is back with another release",
    before: () => changes.runOrchestrator(store, 1),
    write: () => changes.runOrchestrator(store, 2),
  },
];

function apply(messages: readonly WatchNodesResponse[]) {
  const nodes = new Map<string, Node>();
  for (const { change } of messages.flatMap((message) => message.changes)) {
    if (change.case === "upserted") nodes.set(change.value.id, change.value);
    if (change.case === "removedId") nodes.delete(change.value);
  }
  return wholeNodes(nodes.values());
}

/** The log is ordered, so when the marker's change has arrived, all earlier changes have also arrived. */
async function passMarker(watch: Watched<WatchNodesResponse>): Promise<void> {
  await label(store, MARKER.id, "marker", "here");
  await watch.until((messages) =>
    messages.some(({ changes: all }) => all.some(({ change }) => change.case === "upserted" && isMarked(change.value))),
  );
}

const isMarked = ({ id, labels }: Node) => id === MARKER.id && labels.some(({ key }) => key === "marker");

describe("WatchNodes and ListNodes", () => {
  it.each(CASES)("should agree in every field after $name", async ({ before, write }) => {
    await before?.();
    const watch = watchInBackground((signal) => rig.registry.watchNodes({}, { signal, timeoutMs: 0 }));
    await watch.until((messages) => messages.some((message) => message.snapshotComplete));
    await write();
    await passMarker(watch);
    const { nodes } = await rig.registry.listNodes({});
    expect(apply(watch.messages)).toEqual(wholeNodes(nodes));
    await watch.stop();
  });

  it("should not report a stream that advances, and report the log once", async () => {
    await connect(0);
    const { revision } = await rig.registry.listNodes({});
    const watch = watchInBackground((signal) =>
      rig.registry.watchNodes(
        { start: { case: "afterRevision", value: revision }, types: [NodeType.COMPUTE] },
        { signal, timeoutMs: 0 },
      ),
    );
    await watch.until((messages) => messages.some((message) => message.snapshotComplete));
    await connect(1);
    await connect(1);
    await passMarker(watch);
    const changed = watch.messages.flatMap((message) => message.changes);
    expect(changed.map(({ change }) => change.case === "upserted" && change.value.id)).toEqual([MARKER.id]);
    await watch.stop();
    const { events } = await rig.events.listEvents({
      subject: MACHINE.id,
      afterRevision: revision,
    });
    expect(events).toMatchObject([
      {
        type: "node.session.moved",
        reason: "STREAM_MOVED",
        before: { replica: "replica-0" },
        after: { replica: "replica-1" },
      },
    ]);
    const others = {
      subject: MACHINE.id,
      afterRevision: revision,
      excludeTypes: ["node.session.moved"],
    };
    expect((await rig.events.listEvents(others)).events).toEqual([]);
  });
});
