import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { failOnceAtEachCall, type Ports, stopAtEachCall } from "@rollcall/testkit/faults";
import type { Keeper } from "./keeper.ts";
import { FakeMachine, phaseOf } from "./testing/fake-machine.ts";
import { identityOf, type SpecInit } from "./testing/keeper-fixture.ts";

const LOG = "log-1";

/** The grace period exceeds every wait of these tests, so a test fails if an execution does not get its signal. */
const STOP = { grace: durationFromMs(600_000) };

const FILE_CALLS = ["files.open", "files.open.writeFile", "files.open.sync", "files.open.close", "files.rename"];
const PROGRAM_CALLS = ["program.launch", "program.look", "program.signal", "program.kill", "program.release"];

function newIdentity(more: SpecInit = {}) {
  return identityOf({ ...more, task: { case: "process", value: { command: ["true"], stop: STOP } } }, { id: "e1" });
}

/** Start an execution, and return whether it runs. If its launch fails, it has ended. */
async function isStarted(machine: FakeMachine, keeper: Keeper, id: string): Promise<boolean> {
  await machine.pass("its start", () => phaseOf(keeper, id)?.kind !== "starting");
  return phaseOf(keeper, id)?.kind === "running";
}

/** Start another keeper, and return what it reports at first. */
async function nextReport(machine: FakeMachine, ports: Ports, id: string): Promise<string | undefined> {
  const keeper = await ports.attempt(() => machine.open(ports));
  const phase = phaseOf(keeper, id);
  await keeper.close();
  return phase?.kind === "ended" ? phase.cause : phase?.kind;
}

describe("a keeper, one of whose calls fails", () => {
  it("should start an execution once, stop it with its signal, and store its end", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const machine = new FakeMachine();
      const identity = newIdentity();
      const { id } = identity;
      const keeper = await ports.attempt(() => machine.open(ports));
      await ports.attempt(() => keeper.start(identity, LOG));
      if (await isStarted(machine, keeper, id)) {
        await ports.attempt(() => keeper.stop(identity, LOG));
        expect(await machine.phase(keeper, id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGTERM" });
        await machine.pass("its release", () => !keeper.isBusy);
        keeper.forget([id]);
        // A failed write is repeated although nothing else happens.
        await machine.clock.pass(5_000);
        expect([machine.stored(id)]).toMatchObject(keeper.records());
        expect(await nextReport(machine, ports, id)).toBe("STOPPED");
        expect(machine.program(id)).toMatchObject({ starts: 1, signals: ["SIGTERM"] });
      } else {
        expect(ports.failed).toBe("program.launch");
        expect(phaseOf(keeper, id)).toMatchObject({ cause: "START_FAILED" });
      }
      await keeper.close();
    });
    expect([...new Set(calls)]).toEqual(expect.arrayContaining([...FILE_CALLS, ...PROGRAM_CALLS]));
  });

  it("should adopt executions whatever happens to one of them", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const machine = new FakeMachine();
      const identity = newIdentity();
      const first = await machine.open();
      await first.start(identity, LOG);
      await machine.phase(first, identity.id, "running");
      // The next keeper finds an execution that has ended and still has processes.
      machine.program(identity.id).isStuck = true;
      await first.stop(identity, LOG);
      await machine.phase(first, identity.id, "ended");
      await first.close();
      const next = await machine.open(ports).catch((error: unknown) => {
        if (ports.failed?.startsWith("program.") === true) throw error;
        return machine.open(ports);
      });
      machine.program(identity.id).isStuck = false;
      await machine.pass("its release", () => !next.isBusy);
      await next.close();
    });
    expect(calls).toEqual(expect.arrayContaining(["program.checkAfterEnd", "program.release"]));
  });

  it("should confirm a repeated start only when the execution is on disk", async () => {
    await failOnceAtEachCall(async (ports) => {
      const machine = new FakeMachine();
      const identity = newIdentity();
      const keeper = await ports.attempt(() => machine.open(ports));
      const starts = [1, 2].map(() => keeper.start(identity, LOG).then(() => machine.stored(identity.id)));
      const confirmed = (await Promise.allSettled(starts)).flatMap((it) =>
        it.status === "fulfilled" ? [it.value] : [],
      );
      expect(confirmed.length).toBeGreaterThan(0);
      for (const record of confirmed) expect(record?.identity.id).toBe(identity.id);
      await keeper.close();
    });
  });

  it("should remove an execution that was forgotten and ended long ago", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const machine = new FakeMachine();
      const identity = newIdentity();
      const keeper = await ports.attempt(() => machine.open(ports));
      await ports.attempt(() => keeper.stop(identity, LOG));
      await machine.phase(keeper, identity.id, "ended");
      keeper.forget([identity.id]);
      await machine.pass("its end", () => !keeper.isBusy);
      for (let pass = 0; pass < 3; pass += 1) {
        machine.clock.advance(2 * 86_400_000);
        await machine.clock.pass(0);
      }
      expect(keeper.records()).toEqual([]);
      expect(machine.files.paths).toEqual([]);
      await keeper.close();
    });
    expect(calls).toContain("files.rm");
  });

  it("should run the check of an execution again", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const machine = new FakeMachine();
      const check = {
        probe: { case: "command" as const, value: { command: ["true"] } },
        interval: durationFromMs(1_000),
        failures: 1,
      };
      const identity = newIdentity({ check });
      const keeper = await ports.attempt(() => machine.open(ports));
      await ports.attempt(() => keeper.start(identity, LOG));
      if (await isStarted(machine, keeper, identity.id)) {
        await machine.pass("its check", () => machine.program(identity.id).checks > 2);
        expect(phaseOf(keeper, identity.id)).toMatchObject({ kind: "running", isReady: true });
      }
      await keeper.close();
    });
    expect(calls).toContain("program.check");
  });
});

describe("a keeper that is stopped before a call", () => {
  it("should be followed by a keeper that starts nothing again, and completes a requested stop", async () => {
    const calls = await stopAtEachCall({
      world: async () => new FakeMachine(),
      life: async (machine, ports) => {
        const identity = newIdentity();
        const { id } = identity;
        const isAsked = ["stopping", "ended"].includes(machine.stored(id)?.state.phase.kind ?? "");
        const keeper = await machine.open(ports);
        if (!isAsked) {
          await keeper.start(identity, LOG);
          await machine.phase(keeper, id, "running");
          await keeper.stop(identity, LOG);
        }
        expect(await machine.phase(keeper, id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGTERM" });
        await machine.pass("its release", () => !keeper.isBusy);
        await keeper.close();
      },
      check: (machine) => {
        expect(machine.stored("e1")?.state.phase).toMatchObject({ cause: "STOPPED", signal: "SIGTERM" });
        expect(machine.program("e1")).toMatchObject({ starts: 1, signals: ["SIGTERM"] });
      },
    });
    expect([...new Set(calls)]).toEqual(expect.arrayContaining([...FILE_CALLS, ...PROGRAM_CALLS]));
  });
});
