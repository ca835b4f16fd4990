import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  NodeStatus,
  type WatchNodesRequestSchema,
  type WatchNodesResponse,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { compactEvents } from "@rollcall/store";
import { createTestDatabase, saveLabels } from "@rollcall/testkit";
import { observe, operate } from "../testing/operator.ts";
import { someEvents } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { INFO, TestNode } from "../testing/test-node.ts";
import { type Watched, watchInBackground } from "../testing/watcher.ts";

type Request = MessageInitShape<typeof WatchNodesRequestSchema>;

let rig: Rig;
let watches: Watched<WatchNodesResponse>[] = [];

async function start(watchLimits: NonNullable<Parameters<typeof startRig>[1]>["watchLimits"] = {}) {
  rig = await startRig(await createTestDatabase(), {
    watchLimits: { bookmarkMs: 60_000, ...watchLimits },
  });
}

beforeEach(() => {
  watches = [];
});
afterEach(async () => {
  await Promise.all(watches.map((it) => it.stop()));
  await rig.close();
});

function watch(request: Request = {}): Watched<WatchNodesResponse> {
  const watched = watchInBackground((signal) => rig.registry.watchNodes(request, { signal, timeoutMs: 0 }));
  watches.push(watched);
  return watched;
}

/** The nodes of a client after it has applied these messages, in order, to the nodes it knew. */
function viewOf(messages: readonly WatchNodesResponse[], known: ReadonlyMap<string, Node> = new Map()) {
  const view = new Map(known);
  for (const { change } of messages.flatMap(({ changes }) => changes)) {
    if (change.case === "upserted") view.set(change.value.id, change.value);
    if (change.case === "removedId") view.delete(change.value);
  }
  return view;
}

const isComplete = (messages: readonly WatchNodesResponse[]) =>
  messages.some(({ snapshotComplete }) => snapshotComplete);
const stateOf = (view: ReadonlyMap<string, Node>, id: string) => view.get(id)?.membership?.state;
const nodes = (count: number) => Array.from({ length: count }, (_, at) => new TestNode(`n${at}`));

function resumeAfter(message: WatchNodesResponse | undefined): Request {
  return { start: { case: "resumeToken", value: message?.resumeToken ?? "" } };
}

describe("watchNodes()", () => {
  it("should send all nodes, a marker, and then every change", async () => {
    await start({ batchNodes: 4 });
    await seed(rig.store, nodes(10));
    const watched = watch();
    await watched.until(isComplete);
    expect([...viewOf(watched.messages).keys()].sort()).toEqual(nodes(10).map(({ id }) => id));
    const marker = watched.messages.findIndex(({ snapshotComplete }) => snapshotComplete);
    expect(watched.messages.slice(0, marker).map((it) => [it.changes.length, it.revision])).toEqual([
      [4, 0n],
      [4, 0n],
      [2, 0n],
    ]);
    await operate(rig.store, "n3", "reject");
    await operate(rig.store, "n4", "delete");
    await seed(rig.store, [new TestNode("new")]);
    await watched.until((messages) => viewOf(messages).has("new"));
    const view = viewOf(watched.messages);
    expect(stateOf(view, "n3")).toBe(MembershipState.REJECTED);
    expect(view.has("n4")).toBe(false);
    expect(view.size).toBe(10);
    const revisions = watched.messages.slice(marker).map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((one, other) => Number(one - other)));
  });

  it("should send only matching nodes, and remove those that no longer match", async () => {
    await start();
    await seed(rig.store, nodes(4), {
      infoOf: (_, index) => ({ ...INFO, labels: { zone: index < 2 ? "a" : "b" } }),
    });
    const byZone = watch({ labelSelector: "zone=a" });
    const byMembership = watch({ memberships: [MembershipState.REJECTED] });
    const byStatus = watch({ statuses: [NodeStatus.HEALTHY] });
    for (const watched of [byZone, byMembership, byStatus]) await watched.until(isComplete);
    const keysOf = (watched: Watched<WatchNodesResponse>) => [...viewOf(watched.messages).keys()];
    expect(keysOf(byZone).sort()).toEqual(["n0", "n1"]);
    expect(keysOf(byMembership)).toEqual([]);
    await operate(rig.store, "n2", "reject");
    await observe(rig.store, ["n3"], "HEALTHY");
    await byMembership.until((messages) => viewOf(messages).has("n2"));
    await byStatus.until((messages) => viewOf(messages).has("n3"));
    await operate(rig.store, "n2", "approve");
    await observe(rig.store, ["n3"], "UNHEALTHY");
    await operate(rig.store, "n1", "delete");
    await byMembership.until((messages) => viewOf(messages).size === 0);
    await byStatus.until((messages) => viewOf(messages).size === 0);
    await byZone.until((messages) => viewOf(messages).size === 1);
    const told = byZone.messages.flatMap(({ changes }) => changes.map(({ change }) => change.case));
    expect(told).toEqual(["upserted", "upserted", "removedId"]);
  });

  it("should send every node that one commit of thousands of events changed", async () => {
    await start();
    await seed(rig.store, nodes(2));
    const watched = watch();
    await watched.until(isComplete);
    const before = watched.messages.length;
    const busy = someEvents(2_500).map((event) => ({ ...event, subject: "n0" }));
    await rig.store.change(async (tx) => {
      await saveLabels(tx, "n1", "operator", [{ key: "last", value: "1", tier: "operator" }]);
      const [last] = someEvents(1);
      return { result: null, events: last === undefined ? [] : [...busy, { ...last, subject: "n1" }] };
    });
    await watched.until(
      (messages) =>
        viewOf(messages.slice(before))
          .get("n1")
          ?.labels.some(({ key }) => key === "last") === true,
    );
  });

  it("should send the rest of a change again to a client that resumes after its first part", async () => {
    await start({ batchNodes: 2 });
    await seed(rig.store, nodes(5));
    const before = watch();
    await before.until(isComplete);
    const told = before.messages.length;
    const changed = ["n0", "n1", "n2", "n3", "n4"];
    await rig.store.change(async (tx) => {
      for (const id of changed) await saveLabels(tx, id, "operator", [{ key: "k", value: "v", tier: "operator" }]);
      const events = someEvents(5).map((event, index) => ({ ...event, subject: `n${index}` }));
      return { result: null, events };
    });
    await before.until((messages) => viewOf(messages.slice(told)).size === changed.length);
    const parts = before.messages.slice(told).filter(({ changes }) => changes.length > 0);
    expect(parts.map(({ changes }) => changes.length)).toEqual([2, 2, 1]);
    await before.stop();
    const [first] = parts;
    const after = watch(resumeAfter(first));
    await after.until(isComplete);
    const all = viewOf(after.messages, viewOf(first === undefined ? [] : [first]));
    expect([...all.keys()].sort()).toEqual(changed);
  });

  it("should continue after a message's token with what was missed, and after a snapshot's token with a snapshot", async () => {
    await start({ batchNodes: 2 });
    await seed(rig.store, nodes(6));
    const before = watch();
    await before.until(isComplete);
    await before.stop();
    const known = viewOf(before.messages);
    await operate(rig.store, "n1", "reject");
    await operate(rig.store, "n2", "delete");
    await operate(rig.store, "n5", "reject");
    const after = watch(resumeAfter(before.messages.at(-1)));
    await after.until(isComplete);
    expect(after.messages.flatMap(({ changes }) => changes)).toHaveLength(3);
    const view = viewOf(after.messages, known);
    expect([...view.keys()].sort()).toEqual(["n0", "n1", "n3", "n4", "n5"]);
    expect(stateOf(view, "n5")).toBe(MembershipState.REJECTED);
    const again = watch(resumeAfter(before.messages[0]));
    await again.until(isComplete);
    expect(viewOf(again.messages).size).toBe(5);
    const value = before.messages.at(-1)?.revision ?? 0n;
    const byRevision = watch({ start: { case: "afterRevision", value } });
    await byRevision.until(isComplete);
    expect(viewOf(byRevision.messages, known)).toEqual(view);
  });

  it("should send bookmarks", async () => {
    await start({ bookmarkMs: 40 });
    const watched = watch({ labelSelector: "zone=nowhere" });
    await watched.until(isComplete);
    await seed(rig.store, nodes(1));
    const { resumeToken } = await rig.events.listEvents({});
    await watched.until((messages) => messages.some((it) => it.resumeToken === resumeToken));
    expect(watched.messages.flatMap(({ changes }) => changes)).toEqual([]);
  });

  it("should release a snapshot that is not read", async () => {
    await start({ batchNodes: 10, snapshotIdleMs: 50, snapshots: 1 });
    // The labels are random, because compression would make the snapshot fit into the buffers in between.
    const labelsOf = () =>
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`label-${at}`, randomBytes(30).toString("hex")]));
    await seed(rig.store, nodes(300), { infoOf: () => ({ ...INFO, labels: labelsOf() }) });
    const watched = watch();
    watched.pause();
    await watched.until(({ length }) => length === 1);
    // The only slot for snapshots is free again, although the first watch has not ended.
    const other = watch({ labelSelector: "zone=nowhere" });
    await other.until(isComplete);
    watched.resume();
    const error = describeError(await watched.ended());
    expect(error).toMatchObject({ code: Code.ResourceExhausted, reason: "WATCHER_TOO_SLOW" });
    expect(error.metadata.resumeToken).toBe(watched.messages[0]?.resumeToken);
  });

  it("should make watchers continue from their tokens when more changes at once than is buffered for them", async () => {
    await start({ windowBytes: 20_000 });
    await seed(rig.store, nodes(1));
    const watched = watch();
    await watched.until(isComplete);
    const known = watched.messages.at(-1);
    const many = Array.from({ length: 40 }, (_, at) => new TestNode(`m${at}`));
    await seed(rig.store, many, {
      infoOf: (node) => ({ ...INFO, advertiseUrl: node.id.padEnd(1_000, "x") }),
    });
    const error = describeError(await watched.ended());
    expect(error.reason).toBe("WATCHER_TOO_SLOW");
    expect(error.metadata.resumeToken).toBe(known?.resumeToken);
    const again = watch(resumeAfter(known));
    await again.until(isComplete);
    expect(viewOf(again.messages, viewOf(watched.messages)).size).toBe(41);
    // After that, the watch receives changes as usual.
    await operate(rig.store, "m7", "reject");
    await again.until((messages) => stateOf(viewOf(messages), "m7") === MembershipState.REJECTED);
  });

  it("should refuse a compacted revision, an invalid token, and an invalid selector", async () => {
    await start();
    await seed(rig.store, nodes(5));
    await compactEvents(rig.store, -60_000);
    const call = (request: Request) => watch(request).ended().then(describeError);
    expect(await call({ start: { case: "afterRevision", value: 1n } })).toMatchObject({
      code: Code.OutOfRange,
      reason: "REVISION_COMPACTED",
    });
    expect(await call({ start: { case: "resumeToken", value: "x" } })).toMatchObject({
      reason: "INVALID_RESUME_TOKEN",
    });
    expect(await call({ labelSelector: "zone in (" })).toMatchObject({
      reason: "INVALID_SELECTOR",
    });
  });

  it("should end when the server shuts down, with that reason", async () => {
    await start();
    const watched = watch();
    await watched.until(isComplete);
    await rig.shutDown();
    expect(describeError(await watched.ended())).toMatchObject({
      code: Code.Unavailable,
      reason: "SERVER_SHUTTING_DOWN",
    });
  });
});

describe("watchNodes(), read_mask", () => {
  it("should send each watcher the fields it names, in the snapshot and in every change", async () => {
    await start({ batchNodes: 4 });
    await seed(rig.store, nodes(5));
    const masks = [["membership.state"], ["etag"], []];
    const watched = masks.map((paths) => watch({ readMask: { paths } }));
    for (const one of watched) await one.until(isComplete);
    const etagBefore = viewOf(watched[1]?.messages ?? []).get("n3")?.etag;
    await operate(rig.store, "n3", "reject");
    const isRejected = (view: ReadonlyMap<string, Node>) =>
      stateOf(view, "n3") === MembershipState.REJECTED || (view.get("n3")?.etag || etagBefore) !== etagBefore;
    const [states, etags, wholes] = await Promise.all(
      watched.map(async (one) => {
        await one.until((messages) => isRejected(viewOf(messages)));
        return viewOf(one.messages);
      }),
    );
    const whole = wholes?.get("n3");
    expect(whole).toMatchObject({ membership: { state: MembershipState.REJECTED, reason: "OPERATOR_REJECTED" } });
    const state = states?.get("n3");
    expect(state).toMatchObject({ id: "n3", etag: "", membership: { state: MembershipState.REJECTED, reason: "" } });
    expect(state?.info).toBeUndefined();
    const etag = etags?.get("n3");
    expect(etag).toMatchObject({ id: "n3", etag: whole?.etag });
    expect(etag?.membership).toBeUndefined();
    expect([...(states?.keys() ?? [])].sort()).toEqual(["n0", "n1", "n2", "n3", "n4"]);
  });

  it("should be refused if it names no field", async () => {
    await start();
    const error = await rig.registry
      .watchNodes({ readMask: { paths: ["nope"] } }, { timeoutMs: 0 })
      [Symbol.asyncIterator]()
      .next()
      .catch((reason: unknown) => reason);
    expect(describeError(error).reason).toBe("INVALID_REQUEST");
  });
});
