import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { KeeperFixture } from "./testing/keeper-fixture.ts";

describe("Keeper", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await fixture.open();
  });

  afterEach(() => fixture.dispose());

  it("should run a process, keep what it writes, and see how it ends", async () => {
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
  ])("should tell codes from signals: %s", async (script, code, signal) => {
    const id = await fixture.sh(script);
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code, signal });
  });

  it("should stop with the signal that the job names, and wait for the grace", async () => {
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

  it("should kill after the grace what ignores the signal, with all that it began", async () => {
    const script =
      "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $!; wait; while :; do sleep 1; done";
    const value = { command: ["sh", "-c", script], stop: { grace: durationFromMs(50) } };
    const id = await fixture.start({ task: { case: "process", value } });
    await fixture.written(id, "\n");
    const child = Number(await fixture.output(id));
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGKILL" });
    await expect(alive(child)).resolves.toBe(false);
  });
});

async function alive(pid: number): Promise<boolean> {
  const { isAlive } = await import("./machine/process-name.ts");
  const { readFile } = await import("node:fs/promises");
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return stat !== null && (await isAlive({ pid, start: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "" }));
}
