import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction, GoodbyeKind } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import {
  DesiredState,
  EndReason,
  type ExecutionObservation,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { type Clock, silentLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import type { AgentHarness } from "../testing/agent-harness.ts";
import type { ServedStream } from "../testing/fake-control-plane.ts";
import { KeeperProgram, referenceTo, shellSpec } from "../testing/keeper-program.ts";
import { startKnown } from "../testing/running-agent.ts";
import { AgentWork } from "./agent-work.ts";
import { KEEPER_PATIENCE_MS } from "./keeper-condition.ts";
import type { KeeperAccess } from "./keeper-link.ts";

const RUN = DesiredState.RUN;
const STOP = DesiredState.STOP;
const FORGET = DesiredState.FORGET;
const UNTIL_TOLD = shellSpec("echo begun; while ! [ -e $HOME/go ]; do sleep 0.05; done; exit 4");

/** Time within which an agent starts at most one keeper. */
const START_EVERY_MS = 10_000;

describe("an agent with work", () => {
  /** How far the clock that controls the keeper is moved ahead. Timers run in real time. */
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  let program: KeeperProgram;
  let harness: AgentHarness;
  let generation = 0n;

  beforeEach(async () => {
    program = await KeeperProgram.create();
    harness = await startWorking();
  });

  afterEach(async () => {
    await stopAll();
    await harness.kill();
    await program.dispose();
  });

  async function startWorking(keeper: KeeperAccess | null = program.access): Promise<AgentHarness> {
    const started = await startKnown(() => {}, {
      work: {
        make: (onOffer) =>
          new AgentWork({
            keeper,
            nodeId: "node-1",
            clock,
            random: () => 0.5,
            log: silentLogger,
            onOffer,
          }),
        allocated: { cpu: { share: 0.5 }, memory: { share: 1 }, disk: { share: 1 } },
        ports: { min: 20_000, max: 32_000 },
      },
    });
    // After this time, the agent describes the machine without the keeper's greeting.
    await started.clock.pass(1_500);
    return started;
  }

  /** Serve all streams until `ask` returns a value, and return that value. Time passes with each attempt. */
  async function served<T>(what: string, ask: () => T | undefined): Promise<T> {
    return until(what, async () => {
      harness.clock.advance(60);
      for (const stream of harness.plane.streams) serve(stream);
      return ask();
    });
  }

  const answered = new WeakMap<ServedStream, number>();
  const specs = new Map([UNTIL_TOLD].map((one) => [Buffer.from(one.digest).toString("hex"), one]));

  function serve(stream: ServedStream): void {
    const from = answered.get(stream) ?? 0;
    answered.set(stream, stream.received.length);
    for (const frame of stream.received.slice(from)) {
      if (frame.case === "executionReport" && !frame.value.more) {
        stream.send({ case: "reportAck", value: { number: frame.value.number } });
      }
      if (frame.case !== "wantSpecs") continue;
      for (const digest of frame.value.digests) {
        const known = specs.get(Buffer.from(digest).toString("hex"));
        stream.send({ case: "spec", value: { digest, spec: known?.spec ?? new Uint8Array() } });
      }
    }
  }

  const reports = (stream = harness.plane.latest) =>
    stream.received.flatMap((frame) => (frame?.case === "executionReport" ? [frame.value] : []));

  /** The last observation of an execution on the newest stream. */
  const lastOf = (id: string): ExecutionObservation | undefined =>
    reports()
      .flatMap(({ observations }) => observations)
      .findLast((one) => one.id === id);

  function tell(desired: DesiredState, id: string, more: { logId?: string; whole?: boolean } = {}): void {
    generation += 1n;
    const { logId = "log-1", whole = true } = more;
    const references = [referenceTo(id, desired, UNTIL_TOLD)];
    harness.plane.latest.send({ case: "executions", value: { logId, generation, whole, references } });
  }

  const inState = (id: string, state: ObservedState) => () => {
    const last = lastOf(id);
    return last?.state === state ? last : undefined;
  };

  /** Kill the keeper once the agent is allowed to start a new one. */
  async function killKeeper(): Promise<void> {
    aheadMs += START_EVERY_MS;
    await program.kill();
  }

  async function stopAll(): Promise<void> {
    for (const id of ["e1", "e2"]) await writeFile(join(program.homeOf(id), "go"), "").catch(() => {});
  }

  it("should report that it runs work, and all its executions, without being asked", async () => {
    const [first] = harness.plane.latest.received;
    expect(first).toMatchObject({ case: "hello", value: { runsWork: true } });
    const report = await served("a whole report", () => reports()[0]);
    expect(report).toMatchObject({ number: 1n, whole: true, more: false, digest: 0n, observations: [] });
  });

  const infos = () =>
    harness.plane.latest.received.flatMap((frame) => (frame?.case === "nodeInfo" ? [frame.value] : []));

  it("should report what the machine offers once its keeper has answered", async () => {
    const work = await served("the capacity", () => infos().at(-1)?.work);
    expect(work).toMatchObject({ executors: ["process"], millicores: 4_000, portMin: 20_000, portMax: 32_000 });
  });

  it("should offer nothing, with the reason, once its keeper is down, and the same as before once it is back", async () => {
    const offered = await served("the capacity", () => infos().at(-1)?.work);
    const release = program.holdStarts();
    await killKeeper();
    aheadMs += KEEPER_PATIENCE_MS;
    const down = await served("the condition", () => infos().find(({ conditions }) => conditions.length > 0));
    expect(down).toMatchObject({ conditions: [{ reason: "KEEPER_DOWN" }] });
    expect(down.work).toBeUndefined();
    release();
    await served("the end of the condition", () => infos().at(-1)?.conditions.length === 0 || undefined);
    expect(infos().at(-1)?.work).toEqual(offered);
  });

  it("should fetch the spec, run the execution, and report its end until it is forgotten", async () => {
    tell(RUN, "e1");
    const ready = await served("an execution that is ready", inState("e1", ObservedState.READY));
    expect(ready).toMatchObject({ job: "job-1", specDigest: new Uint8Array(UNTIL_TOLD.digest) });
    await writeFile(join(program.homeOf("e1"), "go"), "");
    const ended = await served("its end", inState("e1", ObservedState.ENDED));
    expect(ended).toMatchObject({ endReason: EndReason.EXITED, exitCode: 4 });
    expect(ended.change).toBeGreaterThan(ready.change);
    tell(FORGET, "e1", { whole: false });
    await served("an empty digest", () => reports().findLast(({ digest }) => digest === 0n && reports().length > 1));
    const beat = await served("a beat that tells it", () => {
      const beats = harness.plane.latest.received.flatMap((frame) => (frame?.case === "beat" ? [frame.value] : []));
      return beats.findLast(({ executionsDigest }) => executionsDigest === 0n);
    });
    expect(beat.executionsDigest).toBe(0n);
  });

  it("should stop executions that are not desired, and report the ones that were never started", async () => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    tell(STOP, "e1");
    expect(await served("its end", inState("e1", ObservedState.ENDED))).toMatchObject({
      endReason: EndReason.STOPPED,
      signal: "SIGTERM",
    });
    tell(STOP, "e2", { whole: false });
    expect(await served("another end", inState("e2", ObservedState.ENDED))).toMatchObject({
      endReason: EndReason.STOPPED,
    });
  });

  it("should keep executions that a restored store wants stopped before it has their report", async () => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    harness.plane.latest.end(new Error("the database was restored"));
    await served("another stream", () => (harness.plane.streams.length > 1 ? true : undefined));
    tell(STOP, "e1", { logId: "log-2" });
    await served("a report to it", () => (lastOf("e1") === undefined ? undefined : true));
    // Once the server has acknowledged the report, its desired state applies.
    expect(reports()[0]?.observations).toMatchObject([{ id: "e1", state: ObservedState.READY }]);
    await served("its end", inState("e1", ObservedState.ENDED));
  });

  it.each([
    ["is rejected", { reason: ErrorReason.NODE_REJECTED, action: GoAwayAction.RECONNECT }],
    ["is deleted", { reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP }],
  ])("should stop running executions when the node %s", async (_, goAway) => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    expect(await program.runs("e1")).toBe(true);
    harness.plane.latest.goAway(goAway);
    await until("its end", async () => !(await program.runs("e1")));
  });

  it("should also stop starting executions when the node is deleted", async () => {
    const ids = Array.from({ length: 6 }, (_, index) => `e${index}`);
    const references = ids.map((id) => referenceTo(id, RUN, UNTIL_TOLD));
    harness.plane.latest.send({
      case: "executions",
      value: { logId: "log-1", generation: 1n, whole: true, references },
    });
    await served("the first", () => lastOf("e0"));
    harness.plane.latest.goAway({ reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP });
    await until("it to be idle", () => harness.agent.status().phase === "idle");
    await until("their end", async () => (await Promise.all(ids.map((id) => program.runs(id)))).every((runs) => !runs));
  });

  it("should keep running executions if a server that has sent nothing deletes the node", async () => {
    tell(RUN, "e1");
    const before = await served("an execution that is ready", inState("e1", ObservedState.READY));
    harness.plane.latest.end(new Error("the database was restored"));
    await served("another stream", () => (harness.plane.streams.length > 1 ? true : undefined));
    harness.plane.latest.goAway({ reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP });
    await until("it to be idle", () => harness.agent.status().phase === "idle");
    await harness.kill();
    harness = await startWorking();
    const again = await served("the same execution", inState("e1", ObservedState.READY));
    expect(again.startTime).toEqual(before.startTime);
  });

  it("should stop running executions if their history rejects the node before it has sent anything", async () => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    await harness.kill();
    harness = await startWorking();
    harness.plane.latest.goAway({
      ...{ reason: ErrorReason.NODE_REJECTED, action: GoAwayAction.RECONNECT },
      logId: "log-1",
    });
    await until("its end", async () => !(await program.runs("e1")));
  });

  it("should keep running executions if another history deletes the node", async () => {
    tell(RUN, "e1");
    const before = await served("an execution that is ready", inState("e1", ObservedState.READY));
    harness.plane.latest.end(new Error("the database was restored"));
    await served("another stream", () => (harness.plane.streams.length > 1 ? true : undefined));
    harness.plane.latest.goAway({ reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP, logId: "log-2" });
    await until("it to be idle", () => harness.agent.status().phase === "idle");
    await harness.kill();
    harness = await startWorking();
    const again = await served("the same execution", inState("e1", ObservedState.READY));
    expect(again.startTime).toEqual(before.startTime);
  });

  it("should report executions that its keeper has lost as gone, and not restart them", async () => {
    tell(RUN, "e1");
    const before = await served("an execution that is ready", inState("e1", ObservedState.READY));
    await program.loseRecords();
    await killKeeper();
    const gone = await served("its end", inState("e1", ObservedState.ENDED));
    expect(gone).toMatchObject({ endReason: EndReason.GONE });
    expect(gone.startTime).toBeUndefined();
    expect(before.startTime).toBeDefined();
  });

  it("should report the same if it was restarted in the meantime and the store remembers", async () => {
    await harness.kill();
    harness = await startWorking();
    const references = [{ ...referenceTo("e1", RUN, UNTIL_TOLD), reported: true }];
    const executions = { logId: "log-1", generation: 1n, whole: true, references };
    harness.plane.latest.send({ case: "executions", value: executions });
    expect(await served("its end", inState("e1", ObservedState.ENDED))).toMatchObject({ endReason: EndReason.GONE });
  });

  it("should stop its keeper's executions although its executors are off", async () => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    await harness.kill();
    harness = await startWorking(program.accessWith([]));
    await served("the execution", inState("e1", ObservedState.READY));
    expect(infos().at(-1)?.work).toBeUndefined();
    tell(STOP, "e1");
    expect(await served("its end", inState("e1", ObservedState.ENDED))).toMatchObject({
      endReason: EndReason.STOPPED,
    });
  });

  it("should confirm without a keeper that nothing runs", async () => {
    await harness.kill();
    harness = await startWorking(null);
    expect(harness.plane.latest.received[0]).toMatchObject({ case: "hello", value: { runsWork: true } });
    const report = await served("a whole report", () => reports()[0]);
    expect(report).toMatchObject({ whole: true, digest: 0n, observations: [] });
    tell(STOP, "e1");
    tell(RUN, "e2", { whole: false });
    expect(await served("an end", inState("e1", ObservedState.ENDED))).toMatchObject({ endReason: EndReason.STOPPED });
    expect(await served("a refusal", inState("e2", ObservedState.ENDED))).toMatchObject({
      endReason: EndReason.START_FAILED,
    });
    tell(FORGET, "e1", { whole: false });
    tell(FORGET, "e2", { whole: false });
    await served("nothing", () => reports().findLast(({ digest, number }) => digest === 0n && number > 1n));
  });

  it("should replace a killed keeper, and lose nothing", async () => {
    tell(RUN, "e1");
    await served("an execution that is ready", inState("e1", ObservedState.READY));
    await killKeeper();
    await served("another keeper", () => (program.starts > 1 ? true : undefined));
    await writeFile(join(program.homeOf("e1"), "go"), "");
    expect(await served("its end", inState("e1", ObservedState.ENDED))).toMatchObject({
      endReason: EndReason.EXITED,
      exitCode: 4,
    });
  });

  it("should leave executions running, and announce that it will be back", async () => {
    tell(RUN, "e1");
    const before = await served("an execution that is ready", inState("e1", ObservedState.READY));
    const closing = harness.agent.close("the agent was stopped");
    const goodbye = await served("a goodbye", () => harness.plane.latest.received.find((it) => it.case === "goodbye"));
    expect(goodbye).toMatchObject({ value: { kind: GoodbyeKind.RESTARTING } });
    await closing;
    await harness.kill();
    harness = await startWorking();
    const again = await served("the same execution", inState("e1", ObservedState.READY));
    expect(again.startTime).toEqual(before.startTime);
    expect(program.starts).toBe(1);
  });

  it("should find its executions again after it was killed", async () => {
    tell(RUN, "e1");
    const before = await served("an execution that is ready", inState("e1", ObservedState.READY));
    await harness.kill();
    expect(harness.plane.latest.received.some((frame) => frame.case === "goodbye")).toBe(false);
    harness = await startWorking();
    const [hello] = harness.plane.latest.received;
    expect(hello).toMatchObject({ case: "hello", value: { runsWork: true } });
    const again = await served("the same execution", inState("e1", ObservedState.READY));
    expect(again.startTime).toEqual(before.startTime);
    expect(reports()[0]).toMatchObject({ whole: true, number: 1n });
  });
});
