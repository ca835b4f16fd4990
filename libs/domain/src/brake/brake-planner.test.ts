import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Fleet, type FleetNode } from "../testing/brake-fleet.ts";
import { BRAKE_CLUSTER } from "./brake.ts";

const FROZEN = { frozen: { sinceMs: 0, actor: "token:t", reason: "hands off" } };

describe("BrakePlanner", () => {
  let fleet: Fleet;

  beforeEach(() => {
    fleet = new Fleet({ "zone=a": 100, "zone=b": 200, "": 50 });
    fleet.run(5);
  });

  it("should let a single loss go at once, as soon as two further reports are there", () => {
    const [node] = fleet.of("zone=a");
    fleet.lose(node === undefined ? [] : [node]);
    expect(fleet.look().went).toEqual([]);
    fleet.report();
    expect(fleet.look().went).toEqual([]);
    fleet.report();
    expect(fleet.look().went).toEqual([node]);
    expect(fleet.run(100)).toEqual([]);
  });

  it("should brake a group before its first loss, while the rest of the cluster continues", () => {
    fleet.silence(fleet.of("zone=a"));
    fleet.report();
    const { plan } = fleet.look();
    expect(plan.changes).toMatchObject([
      {
        group: "zone=a",
        before: "NORMAL",
        after: "FULL",
        size: 100,
        counts: { silent: 100, lost: 0 },
      },
    ]);
    fleet.lose(fleet.of("zone=a"));
    const others = [...fleet.of("zone=b").slice(0, 3), ...fleet.of("").slice(0, 2)];
    fleet.lose(others);
    expect(new Set(fleet.run(300))).toEqual(new Set(others));
    expect(fleet.mode("zone=a")).toBe("FULL");
    expect(fleet.mode(BRAKE_CLUSTER)).toBe("NORMAL");
  });

  it("should release a tenth of the group a minute while the brake is PARTIAL, and the rest once it gives", () => {
    const lost = fleet.of("zone=a").slice(0, 60);
    fleet.silence(lost);
    fleet.run(2);
    expect(fleet.mode("zone=a")).toBe("PARTIAL");
    fleet.lose(lost);
    expect(fleet.run(60).length).toBeLessThanOrEqual(10);
    expect(fleet.run(60)).toHaveLength(10);
    fleet.recover(lost.slice(55));
    const back = lost.slice(55);
    const rest = fleet.run(10);
    expect(fleet.mode("zone=a")).toBe("NORMAL");
    expect(lost.filter(({ reaction }) => reaction === "ALLOWED")).toHaveLength(55);
    expect(rest.some((node) => back.includes(node))).toBe(false);
  });

  it("should keep the window of a storm until the share falls, however long that takes", () => {
    const lost = fleet.of("zone=a");
    fleet.silence(lost);
    fleet.run(1);
    fleet.lose(lost);
    fleet.run(600);
    expect(fleet.mode("zone=a")).toBe("FULL");
    fleet.recover(lost.slice(0, 1));
    fleet.run(1);
    expect(fleet.mode("zone=a")).toBe("PARTIAL");
    expect(fleet.planner.marks().windows.get("zone=a")).toBe(0);
    fleet.recover(lost.slice(0, 45));
    fleet.run(3);
    expect(fleet.mode("zone=a")).toBe("NORMAL");
  });

  it("should count a group that has grown since its storm began as large as it is", () => {
    const lost = fleet.of("zone=a").slice(0, 90);
    fleet.silence(lost);
    fleet.run(2);
    fleet.lose(lost);
    fleet.run(3);
    expect(fleet.mode("zone=a")).toBe("PARTIAL");
    for (let index = 0; index < 40; index++)
      fleet.nodes.push({ group: "zone=a", state: "HEALTHY", loss: 0, reaction: null });
    fleet.run(2);
    const late = fleet.of("zone=a").slice(-20);
    fleet.lose(late);
    fleet.run(3);
    // 110 nodes are lost, more than the 100 that the group had at first, and 30 are healthy.
    expect(fleet.mode("zone=a")).toBe("PARTIAL");
    fleet.recover(lost.slice(0, 33));
    fleet.run(3);
    expect(fleet.mode("zone=a")).toBe("NORMAL");
  });

  it("should hold groups back by the cluster's brake too, and sum up slow losses of a minute", () => {
    const all = [...fleet.of("zone=a"), ...fleet.of("zone=b").slice(0, 105)];
    const went: FleetNode[] = [];
    for (let second = 0; second < 41; second++) {
      fleet.lose(all.slice(second * 5, second * 5 + 5));
      went.push(...fleet.run(1));
    }
    expect(fleet.mode(BRAKE_CLUSTER)).toBe("PARTIAL");
    const before = went.length;
    // The cluster releases 35 reactions per minute. Zone a is completely lost, so none of its nodes is released.
    expect(fleet.mode("zone=a")).toBe("FULL");
    expect(fleet.run(60).length).toBeLessThanOrEqual(35);
    expect(before).toBeLessThan(200);
  });

  it("should hold everything back while it is frozen, and start over when it is released", () => {
    fleet.set(BRAKE_CLUSTER, FROZEN);
    const lost = fleet.of("zone=b").slice(0, 2);
    fleet.lose(lost);
    expect(fleet.run(120)).toEqual([]);
    expect(fleet.mode(BRAKE_CLUSTER)).toBe("FROZEN");
    fleet.set(BRAKE_CLUSTER, { frozen: null });
    expect(fleet.run(3)).toEqual(lost);
  });

  it("should release everything that an operator orders, and decide again about later losses", () => {
    const lost = fleet.of("zone=a");
    fleet.silence(lost);
    fleet.run(1);
    fleet.lose(lost);
    expect(fleet.run(10)).toEqual([]);
    fleet.set("zone=a", { orders: 1, orderedLoss: 100 });
    const { plan, went } = fleet.look();
    expect(plan.changes).toMatchObject([{ group: "zone=a", before: "FULL", after: "NORMAL" }]);
    expect(went).toEqual(lost);
    expect(fleet.run(100)).toEqual([]);
    expect(fleet.mode("zone=a")).toBe("NORMAL");
    expect(fleet.rows.has("zone=a")).toBe(false);
  });

  it("should continue with a storm after a restart, and release nothing before it has seen two reports", () => {
    const lost = fleet.of("zone=a").slice(0, 80);
    fleet.silence(lost);
    fleet.run(2);
    fleet.lose(lost);
    const single = fleet.of("zone=b").slice(0, 1);
    fleet.lose(single);
    fleet.restart();
    expect(fleet.look().went).toEqual([]);
    expect(fleet.mode("zone=a")).toBe("PARTIAL");
    expect(fleet.run(3)).toEqual(single);
    expect(fleet.run(60).length).toBeLessThanOrEqual(10);
  });

  it("should notice a storm only by losses, without reports of its replica", () => {
    fleet.lose(fleet.of("zone=a"));
    fleet.restart();
    fleet.look();
    expect(fleet.run(100)).toEqual([]);
    expect(fleet.mode("zone=a")).toBe("FULL");
  });

  it("should never brake two nodes, and forget groups that are gone", () => {
    const small = new Fleet({ "zone=pair": 2, "zone=rest": 50 });
    small.run(2);
    small.lose(small.of("zone=pair"));
    expect(small.run(3)).toHaveLength(2);
    small.nodes.splice(0, 2);
    small.run(200);
    expect(small.planner.states().has("zone=pair")).toBe(false);
  });

  it("should keep its invariants under random events", () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constantFrom("silence", "lose", "recover"),
        group: GROUP,
        count: fc.nat(60),
      }),
      fc.record({
        kind: fc.constantFrom("freeze", "thaw", "order"),
        group: GROUP,
        count: fc.constant(0),
      }),
      fc.record({ kind: fc.constantFrom("restart", "wait"), group: GROUP, count: fc.nat(30) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const random = new Fleet({ "zone=a": 40, "zone=b": 60, "": 10 });
        random.run(3);
        for (const it of steps) {
          apply(random, it);
          random.report();
          checkLook(random);
        }
      }),
      { numRuns: 150 },
    );
  });
});

const GROUP = fc.constantFrom("zone=a", "zone=b", "");

function apply(
  fleet: Fleet,
  { kind, group, count }: { readonly kind: string; readonly group: string; readonly count: number },
): void {
  const some = fleet.of(group).slice(0, count);
  const brake = group === "" ? BRAKE_CLUSTER : group;
  if (kind === "silence") fleet.silence(some);
  if (kind === "lose") fleet.lose(some);
  if (kind === "recover") fleet.recover(some);
  if (kind === "freeze") fleet.set(brake, FROZEN);
  if (kind === "thaw" && fleet.rows.has(brake)) fleet.set(brake, { frozen: null });
  if (kind === "order") {
    const orderedLoss = Math.max(...fleet.nodes.map(({ loss }) => loss));
    const { orders = 0 } = fleet.rows.get(brake) ?? {};
    fleet.set(brake, { orders: orders + 1, orderedLoss });
  }
  if (kind === "restart") fleet.restart();
  if (kind === "wait") for (let look = 0; look < count; look++) checkLook(fleet);
}

/** Check that no node is released twice, while it is healthy, or while its brake is FULL or FROZEN. */
function checkLook(fleet: Fleet): void {
  const pending = new Set(fleet.nodes.filter(({ reaction }) => reaction === "PENDING"));
  const { plan, went } = fleet.look();
  expect(new Set(went).size).toBe(went.length);
  for (const node of went) expect(pending.has(node)).toBe(true);
  // Not even an order releases what an operator froze since.
  for (const { group } of went) expect([fleet.mode(BRAKE_CLUSTER), fleet.mode(group)]).not.toContain("FROZEN");
  if (plan.orders.length > 0) return;
  for (const { group } of went) {
    expect(["FULL", "FROZEN"]).not.toContain(fleet.mode(BRAKE_CLUSTER));
    if (group !== "") expect(["FULL", "FROZEN"]).not.toContain(fleet.mode(group));
  }
}
