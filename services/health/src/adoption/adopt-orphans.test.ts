import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import type { EventRow } from "@rollcall/store";
import type { HealthStore } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { adopted } from "../testing/bare-replica.ts";
import { liveNode } from "../testing/live-node.ts";
import { OrphanAdopter } from "./adopt-orphans.ts";

const AWAY = new Error("the database is away");

/**
 * Create an adopter whose store lists `recorded` as the nodes of this replica. A store method fails while its name is
 * in `failing`.
 */
function setUp(recorded: readonly string[]) {
  const opening = new Set<string>();
  const failing = new Set<keyof HealthStore>();
  const orphans: string[][] = [];
  const held: string[][] = [];
  const present = new Map<string, LiveNode>();
  const released: string[] = [];
  const applied: string[] = [];
  /** Callbacks that run during the store's `held` and `labelsOf` queries. */
  const meanwhile = { act: () => {}, label: () => {} };
  const answer = async <T>(name: keyof HealthStore, value: T): Promise<T> => {
    if (failing.has(name)) throw AWAY;
    return value;
  };
  const rowsOf = (ids: readonly string[]) =>
    ids.map((nodeId) => {
      return { ...adopted(2), nodeId, previousReplicaId: "lost", connectionBefore: "CONNECTED" as const };
    });
  const adopter = new OrphanAdopter({
    log: silentLogger,
    record: {
      currentRevision: () => answer("currentRevision", 7n),
      adoptOrphans: () => answer("adoptOrphans", rowsOf(orphans.shift() ?? [])),
      held: (nodeIds: readonly string[] | null) => {
        meanwhile.act();
        return answer("held", rowsOf(recorded.filter((id) => nodeIds?.includes(id) ?? true)));
      },
      labelsOf: () => {
        meanwhile.label();
        return answer("labelsOf", new Map());
      },
    },
    replica: {
      mayOpen: true,
      nodes: { all: () => present.values(), find: (nodeId: string) => present.get(nodeId) },
      notOurs: ({ id }: { readonly id: string }) => {
        present.delete(id);
        released.push(id);
      },
      adopt: (rows: readonly { readonly nodeId: string }[]) => {
        const ids = rows.map(({ nodeId }) => nodeId);
        if (ids.length > 0) held.push(ids);
        return new Set(ids.filter((id) => !present.has(id)));
      },
      apply: (events: readonly EventRow[]) => void applied.push(...events.map(({ subject }) => subject)),
    },
    isOpening: (nodeId: string) => opening.has(nodeId),
    policiesKnown: async () => {},
    knowPeers: async () => {},
    onAdopted: () => {},
  });
  return { adopter, opening, failing, orphans, held, present, released, applied, meanwhile };
}

const eventOf = (subject: string) => ({ subject }) as EventRow;

describe("OrphanAdopter", () => {
  it("should read its nodes from the store only when in doubt", async () => {
    const { adopter, held } = setUp(["a"]);
    await adopter.turn();
    expect(held).toEqual([]);
    adopter.doubt(null);
    await adopter.turn();
    expect(held).toEqual([["a"]]);
    expect(adopter.isUncertain).toBe(false);
  });

  it("should release held nodes of other replicas, unless a session of theirs opens or has opened since", async () => {
    const { adopter, opening, present, released, meanwhile } = setUp(["ours"]);
    for (const id of ["ours", "theirs", "opening", "reopened"]) present.set(id, liveNode(id, { epoch: 1 }));
    opening.add("opening");
    meanwhile.act = () => {
      present.set("reopened", liveNode("reopened", { epoch: 2 }));
      present.set("new", liveNode("new", { epoch: 1 }));
    };
    adopter.doubt(null);
    await adopter.turn();
    expect(released).toEqual(["theirs"]);
  });

  it("should not release a node whose session is opening, and look it up again", async () => {
    const { adopter, opening, held } = setUp(["a", "b"]);
    opening.add("b");
    adopter.doubt(null);
    await adopter.turn();
    expect(held).toEqual([["a"]]);
    expect(adopter.isUncertain).toBe(true);
    opening.clear();
    await adopter.turn();
    expect(held.at(-1)).toEqual(["b"]);
    expect(adopter.isUncertain).toBe(false);
  });

  it("should look up only doubted nodes, and hold or release no others", async () => {
    const { adopter, held, present, released } = setUp(["a", "b"]);
    for (const id of ["gone", "other"]) present.set(id, liveNode(id, { epoch: 1 }));
    adopter.doubt(["b", "gone", "b"]);
    await adopter.turn();
    expect({ held, released }).toEqual({ held: [["b"]], released: ["gone"] });
    expect(adopter.isUncertain).toBe(false);
  });

  it("should look up every node once more are doubted than it remembers", async () => {
    const { adopter, held } = setUp(["a", "b"]);
    adopter.doubt(Array.from({ length: 20_001 }, (_, index) => `n${index}`));
    await adopter.turn();
    expect(held).toEqual([["a", "b"]]);
  });

  it.each([
    { name: "held", doubted: null },
    { name: "held", doubted: ["a"] },
    { name: "labelsOf", doubted: null },
    { name: "labelsOf", doubted: ["a"] },
  ] as const)("should look up $doubted again after $name() has failed", async ({ name, doubted }) => {
    const { adopter, failing, held } = setUp(["a"]);
    adopter.doubt(doubted);
    failing.add(name);
    await expect(adopter.turn()).rejects.toBe(AWAY);
    failing.clear();
    await adopter.turn();
    expect(held).toEqual([["a"]]);
  });

  it.each(["adoptOrphans", "labelsOf"] as const)(
    "should look up what was adopted when %s() fails, which may have been committed",
    async (name) => {
      const { adopter, failing, orphans, held } = setUp(["a"]);
      orphans.push(["a"]);
      failing.add(name);
      await expect(adopter.turn()).rejects.toBe(AWAY);
      expect(adopter.isUncertain).toBe(true);
      failing.clear();
      orphans.length = 0;
      await adopter.turn();
      expect(held).toEqual([["a"]]);
    },
  );

  it("should apply events logged while nodes are read, if it did not hold them before", async () => {
    const { adopter, orphans, present, applied, meanwhile } = setUp([]);
    orphans.push(["new", "known"]);
    present.set("known", liveNode("known", { epoch: 2 }));
    meanwhile.label = () => adopter.observe([eventOf("new"), eventOf("known"), eventOf("other")]);
    adopter.observe([eventOf("new")]);
    await adopter.turn();
    expect(applied).toEqual(["new"]);
    adopter.observe([eventOf("new")]);
    expect(adopter.isUncertain).toBe(false);
  });

  it("should look up every node after more events than it keeps", async () => {
    const { adopter, applied, meanwhile } = setUp(["a"]);
    adopter.doubt(["a"]);
    meanwhile.label = () => adopter.observe(Array.from({ length: 10_001 }, () => eventOf("a")));
    await adopter.turn();
    expect(applied).toEqual([]);
    expect(adopter.isUncertain).toBe(true);
  });

  it("should look up a held node again that the store does not name, once its session has opened", async () => {
    const { adopter, opening, present, released } = setUp([]);
    present.set("a", liveNode("a", { epoch: 1 }));
    opening.add("a");
    adopter.doubt(null);
    await adopter.turn();
    expect(released).toEqual([]);
    opening.clear();
    await adopter.turn();
    expect(released).toEqual(["a"]);
  });

  it("should adopt in batches until no orphans are left", async () => {
    const { adopter, orphans, held } = setUp([]);
    const full = Array.from({ length: 500 }, (_, index) => `n${index}`);
    orphans.push(full, ["last"]);
    await adopter.turn();
    expect(held).toEqual([full, ["last"]]);
  });
});
