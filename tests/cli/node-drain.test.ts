import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { endDrains, getDrain, getDrains, getNode, noteSchedulerLeads } from "../../libs/store/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

// Run without a scheduler, so that drains end only when a test ends them.
const rig = useControlPlane(undefined, "", ["scheduler"]);
beforeAll(() => noteSchedulerLeads(rig.store.reserved));
afterEach(() => rig.removeNodes());

/** End drains as a scheduler does when nothing is running on the nodes. */
async function end(...ids: readonly string[]): Promise<void> {
  const evaluated = await getDrains(rig.store.db, ids);
  const actor = "scheduler:tester";
  await rig.store.change(async (tx) => ({ result: null, events: await endDrains(tx, [...evaluated.values()], actor) }));
}

const stateOf = async (id: string) => (await getNode(rig.store.db, id))?.scheduling.state;

describe("node drain", () => {
  it("should start the drain, say what it waits for, and exit when the node is drained", async () => {
    await rig.register("n1");
    let told = false;
    const { code, out, err } = await rig.run("node drain n1 --deadline 2h --ignore-daemons -m disk", {
      onError: () => {
        if (!told) void end("n1");
        told = true;
      },
    });
    expect({ code, out }).toEqual({ code: 0, out: "Ok: n1 is draining\nn1 is drained\n" });
    expect(err).toMatch(/^n1 is waiting until \S+ \S+ \((2h|1h|119m) left\) for the scheduler to confirm /);
    expect(await getDrain(rig.store.db, "n1")).toMatchObject({
      ...{ deadlineMs: 7_200_000, ignoreDaemons: true, force: false, reason: "disk" },
    });
    expect(await stateOf("n1")).toBe("DRAINED");
    const { out: shown } = await rig.run("node describe n1");
    expect(shown).toMatch(/Scheduling +drained .*node drained: disk/);
    expect((await rig.run("node list --show scheduling --filter-status unknown")).out).toContain("drained");
    expect((await rig.run("node why n1")).out).toContain("rollcall node undrain n1");
  });

  it("should not wait with --detach, and fail if the drain is cancelled", async () => {
    await rig.register("n1");
    expect(await rig.run("node drain n1 --detach --force")).toEqual({ code: 0, out: "Ok: n1 is draining\n", err: "" });
    let cancelled = false;
    const watched = await rig.run("node drain n1 --monitor", {
      onError: () => {
        if (!cancelled) void rig.run("node undrain n1");
        cancelled = true;
      },
    });
    expect(watched).toMatchObject({ code: 1, err: expect.stringContaining("the drain of node n1 was cancelled") });
  });

  it("should drain a selection in batches", async () => {
    for (const id of ["a1", "a2", "b1"]) {
      await rig.register(id);
      await rig.run(`node label ${id} rack=${id.slice(0, 1)}`);
    }
    const ended = new Set<string>();
    const { code, out, err } = await rig.run("node drain --labels rack=a --max-parallel 1 --yes", {
      onError: (all) => {
        for (const [, id = ""] of all.matchAll(/^(a\d) is waiting until/gm)) {
          if (!ended.has(id)) void end(id);
          ended.add(id);
        }
      },
    });
    expect(code).toBe(0);
    expect(out).toMatch(/a1 is drained\na2 is drained\n$/);
    expect(err).toMatch(/^a1 is waiting until [\s\S]*^a2 is waiting until /m);
    // Read the order from the log, because on a busy machine a drain may have begun before the command first reads it.
    const turns = ["DRAIN_BEGINS", "NODE_DRAINED"];
    const events = (await Promise.all(["a1", "a2"].map((id) => rig.client.events(id)))).flat();
    const inOrder = events.toSorted((left, right) => Number(left.revision - right.revision));
    expect(inOrder.filter(({ reason }) => turns.includes(reason)).map((it) => [it.subject, it.reason])).toEqual([
      ["a1", "DRAIN_BEGINS"],
      ["a1", "NODE_DRAINED"],
      ["a2", "DRAIN_BEGINS"],
      ["a2", "NODE_DRAINED"],
    ]);
    expect(await stateOf("b1")).toBe("ELIGIBLE");
    expect((await rig.run("node summary")).out).toMatch(/^Scheduling: .*2 drained$/m);
    const listed = await rig.run("node list --labels rack=a -o name");
    expect(listed.out).toBe("a1\na2\n");
    const undrained = await rig.run("node undrain --filter-scheduling drained --yes -o name");
    expect(undrained).toMatchObject({ code: 0, out: "a1\na2\n" });
  });

  it.each([
    ["node drain n1 --max-parallel 0", "cannot use '0' as max-parallel value"],
    ["node drain n1 --deadline soon", "cannot use 'soon' as deadline value"],
    ["node drain --monitor", "name the nodes whose drains to monitor"],
    ["node cordon n1 --until noon", "cannot use 'noon' as until value, should be a duration from now"],
  ])("should refuse %s", async (line, message) => {
    expect(await rig.run(line)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
  });
});

describe("node undrain", () => {
  it("should treat a node that is not draining as done, and fail with --strict", async () => {
    await rig.register("n1");
    expect(await rig.run("node undrain n1")).toMatchObject({
      ...{ code: 0, out: "Ok: n1 was not draining\n", err: "" },
    });
    expect(await rig.run("node undrain n1 --strict")).toMatchObject({ code: 1, out: "" });
  });
});

describe("node cordon --until", () => {
  it("should store the given time, or the time after the given duration", async () => {
    for (const [id, until] of [
      ["n1", "2h"],
      ["n2", "2099-05-01T12:00:00Z"],
    ] as const) {
      await rig.register(id);
      expect(await rig.run(`node cordon ${id} --until ${until}`)).toEqual({
        code: 0,
        out: `Ok: ${id} cordoned\n`,
        err: "",
      });
    }
    const untilOf = async (id: string) => (await getNode(rig.store.db, id))?.holds[0]?.untilMs ?? 0;
    expect(await untilOf("n2")).toBe(Date.UTC(2099, 4, 1, 12));
    expect((await untilOf("n1")) - Date.now()).toBeGreaterThan(6_000_000);
    expect((await rig.run("node describe n2")).out).toContain("hold operator until 2099-05-01 12:00:00Z");
  });
});
