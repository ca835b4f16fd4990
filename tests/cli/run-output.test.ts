import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { FakeStream } from "../../libs/testkit/src/index.ts";
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
/** The number of attempts of one reading; see keep-watching.ts. */
const ATTEMPTS = 6;

let workers: FakeWorkers;
let stream: FakeStream;

beforeAll(async () => {
  stream = await rig.connect("n1", { ...INFO, work: WORK }, { runsWork: true });
  workers = new FakeWorkers(rig.store);
  working = (async () => {
    for (let scan = 0; !over.signal.aborted; scan += 1) {
      if (scan % SCANS_PER_BEAT === 0) stream.beat();
      await workers.work(["n1"]);
      await sleep(SCAN_EVERY_MS);
    }
  })();
});

/** Respond to the next request for output with these frames. */
async function answer(...frames: readonly object[]): Promise<void> {
  const { token } = await stream.nextOf("logRequest");
  const call = stream.serveLogs();
  await call.send({ token });
  for (const frame of frames) await call.send(frame);
  call.end();
}

describe("run", () => {
  it("should read the output again after the command, if it could not be read while it ran", async () => {
    workers.fate = () => "RUNS";
    const command = rig.run("run --name late -- true", {
      streamLimits: { silenceMs: 60_000, giveUpMs: 60_000, firstPauseMs: 1 },
    });
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) await answer({ failure: "TOO_MANY_STREAMS" });
    workers.fate = () => "COMPLETES";
    await answer({ stream: 1, offset: 0n, data: Buffer.from("done\n") });
    const { code, out } = await command;
    expect({ code, out }).toEqual({ code: 0, out: "done\n" });
  });

  it("should continue after the output that was read while the command ran", async () => {
    workers.fate = () => "RUNS";
    const command = rig.run("run --name parts -- true", {
      streamLimits: { silenceMs: 60_000, giveUpMs: 0, firstPauseMs: 1 },
    });
    await answer({ stream: 1, offset: 0n, data: Buffer.from("one\n") }, { failure: "LOG_UNAVAILABLE" });
    workers.fate = () => "COMPLETES";
    const { token, offset } = await stream.nextOf("logRequest");
    expect(offset).toBe(4n);
    const call = stream.serveLogs();
    await call.send({ token });
    await call.send({ stream: 1, offset, data: Buffer.from("two\n") });
    call.end();
    const { code, out } = await command;
    expect({ code, out }).toEqual({ code: 0, out: "one\ntwo\n" });
  });
});
