import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { FaultProxy } from "../../libs/testkit/src/wire/fault-proxy.ts";
import type { Outcome, Surroundings } from "../../services/cli/src/testing/run.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { FakeWorkers } from "../../services/scheduler/src/testing/fake-workers.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const over = new AbortController();
let working: Promise<void> | undefined;
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
const SCAN_EVERY_MS = 50;
const SCANS_PER_BEAT = 20;

let workers: FakeWorkers;
let proxy: FaultProxy;

beforeAll(async () => {
  const stream = await rig.connect("n1", { ...INFO, work: WORK });
  await rig.connect("n2");
  workers = new FakeWorkers(rig.store);
  working = (async () => {
    for (let scan = 0; !over.signal.aborted; scan += 1) {
      if (scan % SCANS_PER_BEAT === 0) stream.beat();
      await workers.work(["n1"]);
      await sleep(SCAN_EVERY_MS);
    }
  })();
  proxy = await FaultProxy.start(Number(rig.address.split(":")[1]));
});
afterAll(() => proxy.close());
beforeEach(() => proxy.silence(false));

/** Run a command through the proxy. Streams are broken after a short silence. */
function follow(line: string, giveUpMs: number, surroundings: Surroundings = {}): Promise<Outcome> {
  return rig.run(line, {
    env: { ROLLCALL_SERVER: `127.0.0.1:${proxy.port}` },
    streamLimits: { silenceMs: 1_000, giveUpMs, firstPauseMs: 50 },
    ...surroundings,
  });
}

const LONG_MS = 600_000;

/** Call a function when a command first prints something. */
function atFirstOutput(call: () => void): Surroundings {
  let isCalled = false;
  const onOutput = () => {
    if (!isCalled) call();
    isCalled = true;
  };
  return { onOutput, onError: onOutput };
}

/** Submit a batch job that runs until `fate` changes. */
async function submit(name: string): Promise<void> {
  writeFileSync(join(rig.folder, `${name}.yaml`), `name: ${name}\ntype: batch\nprocess: {command: [sleep, 9d]}\n`);
  expect(await rig.run(`job run --detach ${name}.yaml`)).toMatchObject({ code: 0 });
}

describe("commands that follow", () => {
  it.each([
    ["job wait slp", 0, /^connection lost: nothing was received for 1s; trying again$/m],
    ["run --name cmd -- false", 1, /^connection lost: nothing was received for 1s; trying again$/m],
  ] as const)("should reconnect when their connection falls silent: %s", async (line, code, err) => {
    await submit("slp");
    let isOver = false;
    workers.fate = () => (isOver ? (code === 0 ? "COMPLETES" : "FAILS") : "RUNS");
    const output = atFirstOutput(() => {
      proxy.forget();
      isOver = true;
    });
    expect(await follow(line, LONG_MS, output)).toMatchObject({ code, err: expect.stringMatching(err) });
  });

  it("should reconnect when their connection falls silent: events --follow", async () => {
    const output = atFirstOutput(() => {
      proxy.forget();
      void rig.run("node cordon n2");
    });
    const { code, out, err } = await follow("events --follow --last 1 --limit 2 -o csv", LONG_MS, output);
    expect({ code, err }).toEqual({ code: 0, err: "connection lost: nothing was received for 1s; trying again\n" });
    expect(out.trim().split("\n")).toHaveLength(3);
  });

  it.each([
    ["job run stuck.yaml", 3],
    ["job wait stuck", 3],
    ["run -- sleep 9d", 75],
    ["events --follow", 3],
    ["node drain n1 --deadline 1h", 3],
  ])("should give up when the control plane stays silent: %s", async (line, code) => {
    workers.fate = () => "RUNS";
    if (line.includes("stuck")) await submit("stuck");
    const output = atFirstOutput(() => proxy.silence(true));
    const outcome = await follow(line, 1_000, output);
    expect(outcome).toMatchObject({ code, err: expect.stringMatching(/^failed to .*: nothing was received for 1s$/m) });
  });
});
