import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ConnectionState } from "../../../libs/api/src/gen/rollcall/node/v1/node_pb.ts";
import { needsRoot } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { WorkFixture } from "../../../services/rollcall/src/testing/work-fixture.ts";
import { commandBlocks } from "../../support/readme-blocks.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { runDrill } from "../drill.ts";

const LIMIT_MS = 900_000;
const PAGE = readFileSync(join(workspaceRoot, "docs/write-an-agent.md"), "utf8");

function commandsOf(name: string): string {
  const block = commandBlocks(PAGE).find((one) => one.name === name);
  if (block === undefined) throw new Error(`docs/write-an-agent.md has no commands ${name}`);
  return block.commands;
}

// Only root can run executions as another user, so skip these tests otherwise.
const { describe: asRoot } = needsRoot();

asRoot("the examples of the kits, by the page's own commands", () => {
  let fixture: WorkFixture;
  const state = mkdtempSync(join(tmpdir(), "rollcall-kits-"));
  const agents: ChildProcess[] = [];

  beforeAll(async () => {
    chmodSync(state, 0o711);
    fixture = await WorkFixture.start();
  }, LIMIT_MS);

  afterAll(async () => {
    await Promise.all(agents.map(kill));
    await fixture.dispose();
    rmSync(state, { recursive: true, force: true });
  }, LIMIT_MS);

  function start(name: string): ChildProcess {
    const env = { ...process.env, SERVER: fixture.addresses.server, STATE: state, FLAGS: "--work-user nobody" };
    const child = spawn("sh", ["-euc", commandsOf(name)], {
      cwd: workspaceRoot,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    agents.push(child);
    return child;
  }

  it.each(["go", "python"])(
    "should join, be HEALTHY, run an execution, and find it again after a crash: %s",
    async (name) => {
      const node = `${name}-1`;
      const first = start(name);
      // Wait for the registration, because the commands build and install packages before they start anything.
      const registered = await until(
        "the agent to register, or its commands to end",
        async () => first.exitCode ?? (await fixture.client.node(node)),
        LIMIT_MS,
      );
      expect(registered).toMatchObject({ id: node });
      await fixture.client.becomes(node, "APPROVED CONNECTED HEALTHY");
      const job = fixture.service({ constraints: { node }, loss: { lostAfter: { seconds: 600n } } });
      await job.submit();
      const [execution] = await fixture.ready(job);
      const running = await fixture.running(job);
      expect(running).not.toEqual([]);
      await kill(first);
      await until("its end to be seen", async () => {
        return (await fixture.client.node(node))?.connection?.state !== ConnectionState.CONNECTED;
      });
      start(name);
      await until(
        "the agent to come back",
        async () => (await fixture.client.node(node))?.connection?.state === ConnectionState.CONNECTED,
        LIMIT_MS,
      );
      await fixture.client.becomes(node, "APPROVED CONNECTED HEALTHY");
      expect((await fixture.ready(job)).map(({ id }) => id)).toEqual([execution?.id]);
      expect(await fixture.running(job)).toEqual(running);
      await fixture.stopped(job);
    },
    LIMIT_MS,
  );
});

describe("the kits for agents", () => {
  it(
    "should live through the deaths of health replicas without an event of a loss",
    async () => {
      expect(await runDrill(["--short", "kits"], LIMIT_MS)).toContain("PASSED: 2 of 2 agents survived 4 kills");
    },
    LIMIT_MS,
  );

  it(
    "should pass the scenarios as the page says",
    async () => {
      const options = { cwd: workspaceRoot, timeout: LIMIT_MS, maxBuffer: 16 * 1_048_576 };
      const { stdout } = await promisify(execFile)("sh", ["-euc", commandsOf("conformance")], options);
      expect(stdout).toMatch(/^(\d+) of \1 scenarios passed$/m);
    },
    LIMIT_MS,
  );
});

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
