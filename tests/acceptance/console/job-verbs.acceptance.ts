import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Browser } from "playwright-core";
import { JobType } from "../../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { RUNS_WORK } from "../../../services/rollcall/src/testing/work-fixture.ts";
import { adminToken, HAS_CHROMIUM, openConsole, seriousOf, startBrowser } from "./console-browser.ts";

const LIMIT_MS = 600_000;
// Only root can run executions as another user, so skip these tests otherwise.
const canRun = HAS_CHROMIUM && (process.getuid?.() === 0 || process.env.CI !== undefined);
const { describe: withChromium } = needs("to run as root, and chromium", canRun);

withChromium("the pages of jobs", () => {
  let fixture: UpFixture;
  let browser: Browser;

  beforeAll(async () => {
    fixture = await createUpFixture();
    await fixture.up("--manual-approval", "--no-agent");
    const { admin, registry } = fixture.client;
    await fixture.agent("worker", ...RUNS_WORK).logged("waiting for an operator's approval");
    await admin.approveNode({ node: "worker" });
    await fixture.client.becomes("worker", "APPROVED CONNECTED HEALTHY");
    await until("the worker to offer its executor", async () => {
      const { node } = await registry.getNode({ node: "worker" });
      return node?.info?.work?.executors.includes("process");
    });
    browser = await startBrowser();
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await fixture?.dispose();
  }, LIMIT_MS);

  const job = async (name = "web") => (await fixture.client.jobs.getJob({ name })).job;

  /** The job file of the job "shop". Its execution prints `word` and a number each second. */
  function shop(word: string): string {
    const script = `n=0; while :; do n=$((n+1)); echo "${word} $n"; sleep 1; done`;
    // JSON is YAML, too.
    const command = JSON.stringify(["sh", "-c", script]);
    return `name: shop\ntype: service\ncount: 1\nprocess: {command: ${command}}\nupdate: {minReadyTime: 0s}\n`;
  }

  async function submit(...command: string[]): Promise<void> {
    const task = { case: "process" as const, value: { command } };
    const update = { minReadyTime: { seconds: 0n } };
    const spec = { name: "web", type: JobType.SERVICE, count: 1, task, update, queueTimeout: { seconds: 300n } };
    await fixture.client.jobs.submitJob({ spec });
  }

  it(
    "should offer to revert a job whose update halted instead of restarting it, and do so",
    async () => {
      await submit("sleep", "600");
      await until("version 1 to be rolled out", async () => (await job())?.rolledOut);
      const origin = `http://${fixture.server}`;
      const { page, context, misdeeds } = await openConsole(browser, origin, adminToken(fixture.dataDirectory));
      await page.goto(`${origin}/jobs/web`);
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      await button("Restart").waitFor();
      expect(await button("Revert").count()).toBe(0);
      await submit("false");
      await page.getByText(/^The update halted: /).waitFor();
      await button("Revert").click();
      expect(await button("Restart").count()).toBe(0);
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Creates a version with the specification of version 1").waitFor();
      await dialog.getByText("rollcall job revert web 1").waitFor();
      await dialog.getByLabel("Reason (optional)").fill("it fails");
      await dialog.getByRole("button", { name: "Revert", exact: true }).click();
      await dialog.waitFor({ state: "detached" });
      await until("version 3 to be rolled out", async () => (await job())?.rolledOut);
      expect(await job()).toMatchObject({ version: 3, sameVersions: [1], readyVersion: 3, executions: { ready: 1 } });
      const { versions } = await fixture.client.jobs.listJobVersions({ name: "web", pageSize: 1 });
      expect(versions[0]?.reason).toMatch(/^reverted to version 1 by token:\S+: it fails$/);
      await button("Restart").waitFor();
      expect(await button("Revert").count()).toBe(0);
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should submit, edit, scale, restart and stop a job, and show its output as it is written",
    async () => {
      const origin = `http://${fixture.server}`;
      const { page, context, misdeeds } = await openConsole(browser, origin, adminToken(fixture.dataDirectory));
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      const dialog = page.getByRole("dialog");
      const inDialog = (name: string) => dialog.getByRole("button", { name, exact: true });
      const specification = dialog.getByLabel("Edit as YAML");
      const output = page.getByTestId("output");
      const isRolledOut = (version: number) =>
        until(`version ${version} to be rolled out`, async () => {
          const now = await job("shop");
          return now?.version === version && now.rolledOut;
        });

      await page.goto(`${origin}/jobs`);
      await button("Submit a job").click();
      await specification.fill("type: service");
      await dialog.getByText("name: is required").waitFor();
      expect(await inDialog("Submit").isDisabled()).toBe(true);
      await specification.fill(shop("served"));
      await inDialog("Preview").click();
      await dialog.getByText("Version 1: 1 execution (none would wait)").waitFor();
      expect(await seriousOf(page)).toEqual([]);
      await inDialog("Submit").click();
      await page.waitForURL(`${origin}/jobs/shop`);
      await output.getByText(/^served 3$/m).waitFor();
      await isRolledOut(1);
      expect(await seriousOf(page)).toEqual([]);

      // The panel follows the execution of the new version without being asked.
      await button("Edit").click();
      expect(await specification.inputValue()).toMatch(/^name: shop$/m);
      await specification.fill(shop("sold"));
      await dialog.getByLabel("Reason (optional)").fill("another word");
      await dialog.getByText("rollcall job run job.yaml -m 'another word'").waitFor();
      await inDialog("Submit").click();
      await output.getByText(/^sold 2$/m).waitFor();
      await isRolledOut(2);

      await button("Scale").click();
      await dialog.getByLabel("Executions wanted").fill("");
      expect(await inDialog("Scale").isDisabled()).toBe(true);
      await dialog.getByLabel("Executions wanted").fill("2");
      await inDialog("Scale").click();
      await dialog.waitFor({ state: "detached" });
      await until("two executions to be ready", async () => (await job("shop"))?.executions?.ready === 2);
      await page.locator("dt:text-is('Wanted') + dd:text-is('2')").waitFor();
      await page.locator("dt:text-is('Ready') + dd:text-is('2')").waitFor();

      const { executions: before } = await fixture.client.jobs.listExecutions({ job: "shop" });
      const old = before.filter(({ endTime }) => endTime === undefined).map(({ id }) => id);
      await button("Restart").click();
      await inDialog("Restart").click();
      await dialog.waitFor({ state: "detached" });
      await until("both executions to be replaced", async () => {
        const { executions } = await fixture.client.jobs.listExecutions({ job: "shop" });
        const live = executions.filter(({ endTime }) => endTime === undefined);
        return live.length === 2 && live.every(({ id }) => !old.includes(id));
      });

      await button("Stop").click();
      await inDialog("Stop").click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("Stopped", { exact: true }).first().waitFor();
      await button("Submit again").waitFor();
      expect(await button("Copy as command").count()).toBe(1);
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );
});
