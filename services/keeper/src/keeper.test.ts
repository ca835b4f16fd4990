import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { eventually } from "@rollcall/testkit";
import type { NeverStarted } from "./execution/execution-machine.ts";
import type { ExecutionIdentity } from "./journal/execution-entry.ts";
import type { Keeper } from "./keeper.ts";
import { KeeperFixture } from "./testing/keeper-fixture.ts";

const LOST: NeverStarted = { cause: "GONE", message: "its machine has lost it" };

describe("Keeper", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await fixture.open();
  });

  afterEach(() => fixture.dispose());

  it("should run a process, keep its output, and report how it ends", async () => {
    const id = await fixture.sh("echo out; echo err >&2; exit 3");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 3, signal: null });
    await fixture.written(id, "out\n");
    await fixture.written(id, "err\n", "stderr");
  });

  it.each([
    ["exit 0", 0, null],
    ["exit 137", 137, null],
    ["kill -KILL $$", null, "SIGKILL"],
    ["kill -TERM $$", null, "SIGTERM"],
  ])("should distinguish exit codes from signals: %s", async (script, code, signal) => {
    const id = await fixture.sh(script);
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code, signal });
  });

  it("should pass a port check only while the execution itself listens there", async () => {
    // Run as this user, because the listener is the tests' own Node.js, which another user may not be allowed to run.
    await fixture.open({ rules: { user: null, closedUserIds: [] } });
    const other = createServer();
    await once(other.listen(0, "127.0.0.1"), "listening");
    const { port } = other.address() as AddressInfo;
    const check = {
      interval: durationFromMs(20),
      failures: 100_000,
      probe: { case: "tcp", value: { port: "web" } },
    } as const;
    const program = [
      "const server = require('node:net').createServer();",
      "const listen = () => server.listen(Number(process.env.PORT_WEB), '127.0.0.1');",
      "server.on('error', () => setTimeout(listen, 20));",
      "server.on('listening', () => console.log('listens'));",
      "listen();",
    ];
    const command = [process.execPath, "-e", program.join("")];
    const task = { case: "process", value: { command } } as const;
    const id = await fixture.start({ task, check }, { ports: { web: port } });
    try {
      await eventually(() => expect(failuresOf(id) > 2 || fixture.record(id).state.message !== "").toBe(true));
      expect(fixture.record(id).state.phase).toMatchObject({ kind: "running", wasReady: false });
    } finally {
      other.close();
    }
    await fixture.written(id, "listens");
    await eventually(() => expect(fixture.record(id).state.phase).toMatchObject({ kind: "running", isReady: true }));
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");

    function failuresOf(of: string): number {
      const { phase } = fixture.record(of).state;
      return phase.kind === "running" ? phase.failures : 0;
    }
  });

  it("should stop with the signal that the job names, and wait for the grace period", async () => {
    const id = await fixture.start({
      task: {
        case: "process",
        value: {
          command: ["sh", "-c", "trap 'echo bye; exit 7' INT; echo ready; while :; do sleep 0.05; done"],
          stop: { signal: "SIGINT", grace: durationFromMs(60_000) },
        },
      },
    });
    await fixture.written(id, "ready");
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", code: 7 });
    await fixture.written(id, "bye");
  });

  it("should kill an execution that ignores the signal after the grace period, with all its processes", async () => {
    const script =
      "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $!; wait; while :; do sleep 1; done";
    const value = { command: ["sh", "-c", script], stop: { grace: durationFromMs(50) } };
    const id = await fixture.start({ task: { case: "process", value } });
    await fixture.written(id, "\n");
    const child = Number(await fixture.output(id));
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGKILL" });
    // All processes received the signal at the same time, but the kernel ends them one after the other.
    await eventually(async () => expect(await alive(child)).toBe(false));
  });

  it.each([
    ["by the keeper", false],
    ["by the next keeper", true],
  ])("should end the remaining processes of an execution after a failed kill, %s", async (_by, isNext) => {
    let isFaulty = true;
    const options = {
      isBare: true,
      beforeKill: () => {
        if (isFaulty) throw new Error("EMFILE: too many open files");
      },
    };
    await fixture.open(options);
    const id = await fixture.sh("(trap '' TERM; exec sleep 1000) & echo $!");
    await fixture.phase(id, "ended");
    await fixture.written(id, "\n");
    const left = Number(await fixture.output(id));
    // The process can only be found by the execution's directories, so the directories must be removed last, even if
    // the control plane already knows the end.
    fixture.keeper.forget([id]);
    await fixture.keeper.tidy();
    await eventually(() => expect(fixture.record(id).forgottenWallMs).not.toBeNull());
    expect([await alive(left), fixture.keeper.isBusy]).toEqual([true, true]);
    isFaulty = false;
    if (isNext) await fixture.open(options);
    await eventually(async () => expect([await alive(left), fixture.keeper.isBusy]).toEqual([false, false]));
    expect(fixture.record(id).state.phase).toMatchObject({ kind: "ended", cause: "EXITED", code: 0 });
  });

  it.each([
    ["refused", async (keeper: Keeper, it: ExecutionIdentity) => keeper.refuse(it, "log-2", LOST)],
    ["started", async (keeper: Keeper, it: ExecutionIdentity) => keeper.start(it, "log-2")],
    ["stopped", async (keeper: Keeper, it: ExecutionIdentity) => keeper.stop(it, "log-2")],
  ])("should report the end again when a restored store has the execution %s", async (_what, name) => {
    const id = await fixture.sh("exit 3");
    await fixture.phase(id, "ended");
    fixture.keeper.forget([id]);
    await eventually(() => expect(fixture.record(id).forgottenWallMs).not.toBeNull());
    await name(fixture.keeper, fixture.record(id).identity);
    expect(fixture.record(id)).toMatchObject({ forgottenWallMs: null, logId: "log-2" });
    expect(fixture.record(id).state.phase).toMatchObject({ kind: "ended", cause: "EXITED", code: 3 });
    // An execution that its own store history has forgotten stays forgotten, even if that history names it again.
    fixture.keeper.forget([id]);
    await name(fixture.keeper, fixture.record(id).identity);
    expect(fixture.record(id).forgottenWallMs).not.toBeNull();
  });

  it("should not touch an execution of another keeper with the same id", async () => {
    const id = await fixture.sh("exec sleep 600");
    await fixture.phase(id, "running");
    const other = await KeeperFixture.create();
    try {
      await other.open();
      // The record of this execution was lost. The request kills everything that the execution left running.
      await other.keeper.refuse(fixture.record(id).identity, "log-1", LOST);
      expect(other.record(id).state.phase).toMatchObject({ kind: "ended", cause: "GONE" });
      await fixture.keeper.stop(fixture.record(id).identity, "log-1");
      expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGTERM" });
    } finally {
      await other.dispose();
    }
  });
});

async function alive(pid: number): Promise<boolean> {
  const { isAlive } = await import("./machine/process-name.ts");
  const { readFile } = await import("node:fs/promises");
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return stat !== null && (await isAlive({ pid, start: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "" }));
}
