import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { eventually, type FakeStream, until } from "../../libs/testkit/src/index.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { FakeWorkers } from "../../services/scheduler/src/testing/fake-workers.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const over = new AbortController();
let working: Promise<unknown> | undefined;
// This hook must run before the control plane closes the store. Hooks run in the order of their definition.
afterAll(async () => {
  over.abort();
  await working;
});
const rig = useControlPlane();
const WORK = {
  ...{ executors: ["process"], millicores: 4_000, memoryBytes: 8n * 1024n ** 3n, diskBytes: 1024n ** 4n },
  ...{ portMin: 20_000, portMax: 20_100 },
};
const SCAN_EVERY_MS = 100;
const BEAT_EVERY_MS = 500;
/** The machines of each test. */
const POOLS = {
  drain: ["d1", "d2"],
  dead: ["x1", "x2"],
  storm: ["s1", "s2", "s3", "s4"],
  kept: ["k1"],
  update: ["u1"],
};

let workers: FakeWorkers;
const streams = new Map<string, FakeStream>();

beforeAll(async () => {
  workers = new FakeWorkers(rig.store);
  const repeat = async (everyMs: number, act: () => unknown) => {
    while (!over.signal.aborted) {
      await act();
      await sleep(everyMs);
    }
  };
  // Send Beats independently of everything else, so that a machine is silent only if a test requires it.
  const beating = repeat(BEAT_EVERY_MS, () => {
    for (const stream of streams.values()) stream.beat();
  });
  working = Promise.all([beating, repeat(SCAN_EVERY_MS, () => workers.work([...streams.keys()]))]);
  for (const [pool, ids] of Object.entries(POOLS)) {
    for (const id of ids) {
      streams.set(id, await rig.connect(id, { ...INFO, work: WORK }));
      expect(await rig.run(`node label ${id} pool=${pool} zone=${pool}`)).toMatchObject({ code: 0 });
    }
  }
  const thresholds = "--unhealthy-after 6s --unknown-after 10m --heartbeat-interval 1s";
  expect(await rig.run(`policy set --default ${thresholds}`)).toMatchObject({ code: 0 });
});
beforeEach(() => {
  workers.fate = () => "RUNS";
});

/** Lose machines. From now on, they send nothing. */
function lose(...ids: readonly string[]): void {
  for (const id of ids) {
    streams.delete(id);
    workers.turnOff(id);
  }
}

async function submit(name: string, pool: string, text: string): Promise<void> {
  const head = `name: ${name}\ntype: service\nselector: pool=${pool}\nqueueTimeout: 1h\n`;
  const path = join(rig.folder, `${name}.yaml`);
  writeFileSync(path, `${head}process: {command: [x]}\nupdate: {minReadyTime: 0s}\n${text}`);
  expect(await rig.run(`job run --detach ${path}`)).toMatchObject({ code: 0, err: expect.any(String) });
}

const READY = (name: string, count: number) =>
  eventually(async () => {
    const { out } = await rig.run(`job executions ${name} --states ready -o name`);
    expect(out.split("\n").filter((line) => line !== "")).toHaveLength(count);
  });
const TIME = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ";

/** Join the lines of a response, because they wrap at other positions if ids have another length. */
const inOneLine = (text: string) => text.replaceAll(/\s+/g, " ");

/**
 * The time limit for the expected explanation. It is long, because the control plane declares a silent machine lost
 * later if it was delayed itself.
 */
const PATIENCE_MS = 150_000;

async function why(subject: string, expected: RegExp): Promise<void> {
  let said = "";
  try {
    await until(
      `the answer of ${subject}`,
      async () => {
        const { out, err } = await rig.run(subject);
        said = inOneLine(out + err);
        return expected.test(said);
      },
      PATIENCE_MS,
    );
  } catch {
    expect(said).toMatch(expected);
  }
}

describe("why", () => {
  it("should explain what delays a drain whose service fits nowhere else, and until when", async () => {
    const large = "resources: {cores: 3}\ncount: 1\n";
    await submit("moving", "drain", large);
    await READY("moving", 1);
    const from = (await rig.run("job executions moving -o csv --hide-header")).out.match(/\b(d[12])\b/)?.[1] ?? "";
    await submit("filling", "drain", large);
    await READY("filling", 1);
    const held = new RegExp(
      `execution \\S+ of moving on ${from}: the node is draining, and no other node fits: .*insufficient cores.* ` +
        `since ${TIME}, until ${TIME} at the latest to change that: rollcall node drain ${from} --force`,
    );
    let cancelled = false;
    let answers: Promise<void> | undefined;
    const drained = await rig.run(`node drain ${from} --deadline 1h`, {
      onError: (all) => {
        if (cancelled || !held.test(inOneLine(all))) return;
        cancelled = true;
        answers = (async () => {
          await why("job why moving", held);
          await why(`node why ${from}`, held);
        })().finally(() => rig.run(`node undrain ${from}`));
      },
    });
    await answers;
    expect(drained).toMatchObject({ code: 1, err: expect.stringContaining("was cancelled") });
    expect(inOneLine(drained.err)).toMatch(held);
  });

  it("should say that a drain whose agent died waits for its confirmation", async () => {
    await submit("orphaned", "dead", "count: 1\nresources: {cores: 0.25}\n");
    await READY("orphaned", 1);
    const node = (await rig.run("job executions orphaned -o csv --hide-header")).out.match(/\b(x[12])\b/)?.[1] ?? "";
    const stream = streams.get(node);
    lose(node);
    await why(`node list --filter-status unhealthy -o name`, new RegExp(`^${node} $`));
    const drained = await rig.run(`node drain ${node} -m disk`);
    const over = `the drain of node ${node} has ended, but its agent has not confirmed that its executions ended`;
    expect(drained).toMatchObject({ code: 1, err: expect.stringContaining(over) });
    expect(drained.out).not.toContain("is drained");
    expect(await rig.run("node list --filter-scheduling unconfirmed -o name")).toMatchObject({ out: `${node}\n` });
    expect(await rig.run("node list --filter-scheduling drained -o name")).toMatchObject({ out: "" });
    expect((await rig.run(`node describe ${node}`)).out).toMatch(/Scheduling +unconfirmed .*drain unconfirmed: disk/);
    expect((await rig.run("node summary")).out).toMatch(/^Scheduling: .*1 unconfirmed/m);
    await why(`node why ${node}`, /drain unconfirmed/);
    expect(workers.runningOn(node)).toHaveLength(1);
    // A forced drain does not wait for the confirmation.
    const forced = await rig.run(`node drain ${node} --force`);
    expect(forced).toMatchObject({ code: 0, err: expect.stringContaining("they may still be running") });
    // A repetition without --force accepts only confirmed ends, although the drain itself stays forced.
    for (const again of [`node drain ${node}`, `node drain ${node} --monitor`]) {
      expect(await rig.run(again)).toMatchObject({ code: 1, err: expect.stringContaining(over) });
    }
    workers.turnOn(node);
    if (stream !== undefined) streams.set(node, stream);
    await why("node list --filter-scheduling drained -o name", new RegExp(`^${node} $`));
    expect(workers.runningOn(node)).toEqual([]);
  });

  it("should explain that the brake delays reactions, how fast it releases them, and which command releases all", async () => {
    await submit("stormy", "storm", "count: 4\nplacement: {maxPerNode: 1}\nresources: {cores: 0.25}\n");
    await READY("stormy", 4);
    lose("s1", "s2", "s3");
    const held = new RegExp(
      "^job stormy is active; 3 executions are waiting, moving or lost 3 executions of stormy on .*: " +
        "its node is lost, and the brake of zone=storm is (partial: it releases 1 a minute|full: it releases none) " +
        `since ${TIME}, (until ${TIME} at the latest|with no time limit) ` +
        "to change that: rollcall brake release --now --group zone=storm",
    );
    await why("job why stormy", held);
    await why("node why s2", /execution \S+ of stormy on s2: its node is lost, and the brake of zone=storm/);
    const { out } = await rig.run("job why stormy -o json");
    expect(JSON.parse(out)).toMatchObject({ waits: [{ reason: "BRAKE_HOLDS", executions: 3, job: "stormy" }] });
    expect(await rig.run("brake release --now --group zone=storm --yes")).toMatchObject({ code: 0 });
    await why("job why stormy", /no other node fits: .*maximum executions of this job reached/);
  });

  it("should say that a lost execution is kept, since the job does not replace it", async () => {
    await submit("kept", "kept", "count: 1\nresources: {cores: 0.25}\nloss: {replace: false}\n");
    await READY("kept", 1);
    lose("k1");
    await why(
      "job why kept",
      new RegExp(
        `execution (\\S+) of kept on k1: its node is lost, and the job's loss.replace is false: .* ` +
          `since ${TIME}, with no time limit to change that: rollcall job stop --execution \\1 `,
      ),
    );
  });

  it("should say which version a halted update leaves, since when, and why", async () => {
    await submit("halting", "update", "count: 2\nresources: {cores: 0.25}\n");
    await READY("halting", 2);
    workers.fate = () => "FAILS";
    const running = new Set(workers.runningOn("u1"));
    workers.fate = (id) => (running.has(id) ? "RUNS" : "FAILS");
    await submit("halting", "update", "count: 2\nresources: {cores: 0.5}\n");
    await why(
      "job why halting",
      new RegExp(
        "(execution \\S+|2 executions) of halting on u1: it is not replaced, because the update to version 2 halted: " +
          "execution " +
          `\\S+ on node u1 failed.* since ${TIME}, with no time limit to change that: rollcall job `,
      ),
    );
  });

  it("should say until when a node is held for flapping", async () => {
    await rig.register("f1");
    const at = Date.now();
    const outages = JSON.stringify([{ startedAtMs: at - 60_000, endedAtMs: at }]);
    const hold = { kind: "FLAPPING", sinceMs: at, message: "3 outages within 10 min", actor: "replica:r" };
    const { db } = rig.store;
    await db
      .updateTable("node_sessions")
      .set({ outages, flapping_since: new Date(at) })
      .where("node_id", "=", "f1")
      .execute();
    const holds = JSON.stringify([hold]);
    await db.updateTable("nodes").set({ holds }).where("id", "=", "f1").execute();
    const { out } = await rig.run("node why f1");
    expect(out).toMatch(new RegExp(`node flapping since ${TIME}, until ${TIME} at the latest\\n +to change that: `));
  });
});
