import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/time.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { processesOf } from "../../services/rollcall/src/testing/processes.ts";
import { endProcess, RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { testPage } from "../support/page-commands.ts";

const LIMIT_MS = 120_000;

describe("rollcall demo", () => {
  let root: string;
  let folder: string;
  let checkout: string;
  let demo: RollcallProcess;

  beforeAll(async () => {
    root = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-demo-"));
    checkout = layOutCheckout(root);
    folder = join(checkout, "rollcall-demo");
    const [port = 0] = await freePorts(1);
    demo = new RollcallProcess(["demo", "--dir", folder, "--port", String(port)]);
    await until(
      "the welcome",
      () => demo.out.includes("Ctrl-C stops everything") || demo.err.includes("failed"),
      LIMIT_MS,
    );
  }, LIMIT_MS);

  afterAll(async () => {
    demo.kill("SIGKILL");
    for (const { pid } of await processesOf(checkout)) endProcess(pid);
    for (const path of [root, checkout]) rmSync(path, { recursive: true, force: true, maxRetries: 20 });
  });

  const run = async (...words: readonly string[]) => {
    const command = new RollcallProcess(words, { ROLLCALL_DATA_DIR: join(folder, "control-plane") });
    const code = await command.exit();
    return { code, out: command.out };
  };
  const nodesOf = async () => (await run("job", "executions", "web", "--states", "ready", "-o", "csv")).out;

  it("should show a fleet with GPUs, jobs, and a machine to approve", async () => {
    const { out } = await run("node", "list", "-o", "csv", "--hide-header");
    expect(out).toMatch(/^edge-1,Compute,PENDING,/m);
    expect(out).toMatch(/^gpu-1,Compute,APPROVED,.*,4,/m);
    await until("the service", async () => {
      const ready = await nodesOf();
      return ready.includes("web-1") && ready.includes("web-2");
    });
    expect((await run("job", "why", "huge")).out).toContain("insufficient GPUs");
  });

  it("should crash a machine, move its work, and start it again", async () => {
    expect((await run("demo", "crash", "web-1", "--dir", folder)).out).toMatch(/^Ok: web-1 crashed/);
    expect((await run("node", "wait", "web-1", "--for", "disconnected,unhealthy", "--timeout", "60s")).code).toBe(0);
    await until("the move of the service", async () => !(await nodesOf()).includes("web-1"));
    expect((await run("demo", "start", "web-1", "--dir", folder)).out).toMatch(/^Ok: web-1 was started/);
    expect((await run("node", "wait", "web-1", "--for", "connected,healthy", "--timeout", "60s")).code).toBe(0);
    expect((await run("demo", "crash", "web-9", "--dir", folder)).code).toBe(1);
    expect((await run("demo", "--dir", folder)).code).toBe(1);
  });

  testPage(
    "docs/demo.md",
    [
      ["fleet", /gpu-1[\s\S]*train/],
      ["approve", /edge-1 approved[\s\S]*approved/],
      ["crash", /unhealthy[\s\S]*web-2/],
      ["start", /connected, healthy/],
      ["why", /insufficient GPUs/],
    ],
    () => ({ checkout, instead: {} }),
  );

  it("should stop everything together", async () => {
    demo.kill("SIGINT");
    expect(await demo.exit()).toBe(0);
    await until("the end of all parts", async () => (await processesOf(folder)).length === 0);
    expect((await run("demo", "crash", "web-1", "--dir", folder)).code).toBe(1);
  });
});
