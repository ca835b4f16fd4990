import { describe, expect, it } from "@jest/globals";
import { BareStream } from "../testing/bare-replica.ts";
import { liveNode } from "../testing/live-node.ts";
import type { LiveNode } from "./live-node.ts";
import { MOST_PACED, type NodeWatcher, WatchedNodes } from "./watched-nodes.ts";

interface Fleet {
  readonly watched: WatchedNodes;
  readonly paces: Map<string, number>;
  node(id: string): LiveNode;
}

/** Create nodes that remember the last interval that was sent to them. */
function fleet(ids: readonly string[], { heartbeatMs = 15_000, usageMs = 2_000 } = {}): Fleet {
  const intervals = { heartbeatMs, infoMs: 60_000, usageMs };
  const paces = new Map<string, number>();
  const nodes = new Map(
    ids.map((id) => {
      const stream = Object.assign(new BareStream(), { sendPace: (ms: number) => paces.set(id, ms) });
      return [id, liveNode(id, { intervals, stream })];
    }),
  );
  const node = (id: string) => nodes.get(id) as LiveNode;
  return { watched: new WatchedNodes((id) => nodes.get(id)), paces, node };
}

const watcher: NodeWatcher = { touched: () => {}, released: () => {} };

describe("WatchedNodes", () => {
  it("should make a node send heartbeats faster from its first watcher to its last", () => {
    const { watched, paces, node } = fleet(["a"]);
    const other = { ...watcher };
    expect(watched.paceMs(node("a"))).toBe(0);
    watched.watch("a", watcher);
    expect([paces.get("a"), watched.paceMs(node("a"))]).toEqual([2_000, 2_000]);
    watched.watch("a", other);
    watched.unwatch("a", watcher);
    watched.unwatch("a", watcher);
    expect(watched.paceMs(node("a"))).toBe(2_000);
    watched.unwatch("a", other);
    expect([paces.get("a"), watched.paceMs(node("a")), watched.size]).toEqual([15_000, 0, 0]);
  });

  it("should not change a node that already sends heartbeats as often", () => {
    const { watched, paces, node } = fleet(["a"], { heartbeatMs: 1_000, usageMs: 2_000 });
    watched.watch("a", watcher);
    expect([paces.size, watched.paceMs(node("a"))]).toEqual([0, 0]);
  });

  it("should pace at most 200 nodes, and another one once one is released", () => {
    const ids = Array.from({ length: MOST_PACED + 1 }, (_, index) => `n${index}`);
    const { watched, paces, node } = fleet(ids);
    for (const id of ids) watched.watch(id, watcher);
    const last = ids.at(-1) ?? "";
    expect([paces.size, paces.has(last), watched.paceMs(node(last))]).toEqual([200, false, 0]);
    watched.unwatch("n7", watcher);
    expect([paces.get("n7"), paces.get(last)]).toEqual([15_000, 2_000]);
  });

  it("should notify the watchers of that node only", () => {
    const { watched, node } = fleet(["a", "b"]);
    const seen: string[] = [];
    const watcher = {
      touched: ({ id }: LiveNode) => seen.push(`touched ${id}`),
      released: (id: string) => seen.push(`released ${id}`),
    };
    watched.watch("a", watcher);
    watched.touched(node("a"));
    watched.touched(node("b"));
    watched.released("a");
    watched.released("b");
    expect(seen).toEqual(["touched a", "released a"]);
  });
});
