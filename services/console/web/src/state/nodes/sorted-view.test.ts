import { describe, expect, it } from "@jest/globals";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NO_FILTER, nodeTest } from "./node-filter.ts";
import type { NodeRow } from "./node-row.ts";
import type { RowChange } from "./node-snapshot.ts";
import { ORDERS, type OrderBy, SortedView } from "./sorted-view.ts";
import { testRow } from "./testing/test-rows.ts";

/** Random numbers from a fixed seed, so that every run is the same. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

describe("SortedView", () => {
  it.each<[OrderBy, boolean, number]>([
    ["id", false, 3],
    ["id", true, 3],
    ["cores", false, 40],
    ["health", true, 700],
  ])("should equal a view rebuilt by %s, reversed %s, in parts of %d", (by, reversed, size) => {
    const chance = seeded(7);
    const filter = nodeTest({ ...NO_FILTER, health: ["HEALTHY", "UNKNOWN"] });
    if (!filter.ok) throw new Error(filter.message);
    const rows = new Map<string, NodeRow>();
    const view = new SortedView([], filter.test, { by, reversed });
    for (let step = 0; step < 30; step += 1) {
      const changes: RowChange[] = [];
      for (let at = 0; at < size; at += 1) {
        const id = `n${chance(300)}`;
        const before = rows.get(id);
        const health = {
          state: [HealthState.HEALTHY, HealthState.UNHEALTHY, HealthState.UNKNOWN][chance(3)] ?? HealthState.UNKNOWN,
        };
        const info = { cpu: { threads: chance(4) } };
        const after = chance(4) === 0 ? undefined : testRow(id, {}, { health, info });
        if (after === undefined) rows.delete(id);
        else rows.set(id, after);
        changes.push({ before, after });
      }
      view.apply(changes);
      const again = new SortedView(rows.values(), filter.test, { by, reversed });
      expect(view.rows.map(({ id }) => id)).toEqual(again.rows.map(({ id }) => id));
      expect(view.rows.map(({ cores }) => cores)).toEqual(again.rows.map(({ cores }) => cores));
    }
  });

  it.each((Object.keys(ORDERS) as OrderBy[]).flatMap((by) => [[by, false] as const, [by, true] as const]))(
    "should order by %s, then by id, reversed %s, in whatever order rows arrive",
    (by, reversed) => {
      const chance = seeded(11);
      const rows = Array.from({ length: 200 }, (_, at) =>
        testRow(`n${(at * 37) % 200}`, chance(3) === 0 ? {} : { zone: `z${chance(4)}` }, {
          info: { cpu: { threads: chance(12) }, memoryBytes: BigInt(chance(5)), agentVersion: `0.${chance(3)}` },
          createTime: { seconds: BigInt(chance(1_000)), nanos: 0 },
        }),
      );
      const key = ORDERS[by];
      const expected = rows.toSorted((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = x < y ? -1 : x > y ? 1 : a.id < b.id ? -1 : 1;
        return reversed ? -order : order;
      });
      const view = new SortedView(rows, () => true, { by, reversed });
      expect(view.rows.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    },
  );

  it("should start over with other nodes, as after missed changes", () => {
    const view = new SortedView([testRow("a"), testRow("ghost")], (row) => row.id !== "hidden", {
      by: "id",
      reversed: true,
    });
    view.reset([testRow("a"), testRow("hidden"), testRow("b")]);
    expect(view.rows.map(({ id }) => id)).toEqual(["b", "a"]);
    view.apply([{ before: testRow("b"), after: undefined }]);
    expect(view.rows.map(({ id }) => id)).toEqual(["a"]);
  });

  it("should report whether any of its rows changed", () => {
    const view = new SortedView([testRow("a")], (row) => row.id !== "hidden", { by: "id", reversed: false });
    expect(view.apply([{ before: undefined, after: testRow("hidden") }])).toBe(false);
    expect(view.apply([{ before: testRow("a"), after: testRow("a", { zone: "b" }) }])).toBe(true);
  });
});
