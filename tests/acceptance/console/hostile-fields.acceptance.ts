import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { AccessService, Role } from "../../../libs/api/src/gen/rollcall/admin/v1/access_pb.ts";
import { BrakeService } from "../../../libs/api/src/gen/rollcall/admin/v1/brake_pb.ts";
import { HealthPolicyService } from "../../../libs/api/src/gen/rollcall/admin/v1/health_policy_pb.ts";
import { JoinTokenService } from "../../../libs/api/src/gen/rollcall/admin/v1/join_token_pb.ts";
import { WebhookService } from "../../../libs/api/src/gen/rollcall/events/v1/webhooks_pb.ts";
import { JobType } from "../../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { clientWith } from "../../../services/console/src/testing/console-rig.ts";
import { TestNode } from "../../../services/registry/src/testing/test-node.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { RUNS_WORK } from "../../../services/rollcall/src/testing/work-fixture.ts";
import { adminToken, HAS_CHROMIUM, openConsole, PAGES, seriousOf, startBrowser, untilLive } from "./console-browser.ts";

const LIMIT_MS = 600_000;
/**
 * Create a string that opens a dialog, requests another origin or runs a script if a page uses it as markup or as an
 * address.
 */
const hostile = (where: string) =>
  `"'><img src=https://evil.example/x onerror=alert(1)><script>alert(2)</script>{{7*7}}\${7*7}<b>${where}`;
/** Create a similar string for fields of at most 64 characters. */
const brief = (where: string) => `"><img src=x onerror=alert(1)>${where}`.slice(0, 64);

// Only root can run executions as another user, so skip these tests otherwise.
const canRun = HAS_CHROMIUM && (process.getuid?.() === 0 || process.env.CI !== undefined);
const { describe: withChromium } = needs("to run as root, and chromium", canRun);

withChromium("the console with markup in every field that a machine or an operator may fill", () => {
  const issuer = new TestIssuer();
  let fixture: UpFixture;
  let browser: Browser;
  let origin: string;
  let executionId: string;

  beforeAll(async () => {
    await issuer.start();
    issuer.claims = { sub: brief("subject"), rollcall_role: "viewer" };
    fixture = await createUpFixture();
    const oidc = [`OIDC.Issuer=${issuer.url}`, "OIDC.Audience=rollcall", "OIDC.ClientID=rollcall-cli"];
    const settings = [...oidc, "OIDC.RoleClaim=rollcall_role"].flatMap((one) => ["--set", one]);
    await fixture.up("--manual-approval", "--no-agent", ...settings);
    browser = await startBrowser();
    origin = `http://${fixture.server}`;
    await fill();
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await fixture?.dispose();
    await issuer.stop();
  }, LIMIT_MS);

  /** Write such strings to every field of the API that accepts free text. */
  async function fill(): Promise<void> {
    const { admin, registry, jobs } = fixture.client;
    const bearing = { authorization: `Bearer ${adminToken(fixture.dataDirectory)}`, "user-agent": brief("agent") };
    await new TestNode("mallory").register(registry, {
      hostname: hostile("hostname"),
      advertiseUrl: hostile("advertise"),
      agentVersion: brief("version"),
      os: { family: brief("f"), name: hostile("os"), kernel: hostile("kernel"), architecture: brief("arch") },
      cpu: { model: hostile("cpu"), threads: 8 },
      memoryBytes: 2n ** 34n,
      diskBytes: 2n ** 40n,
      numaNodes: [{ id: 0, cpus: brief("cpus"), memoryBytes: 2n ** 33n, distances: [10] }],
      gpus: [
        {
          index: 0,
          name: hostile("gpu"),
          uuid: brief("uuid"),
          vendor: brief("vendor"),
          pciAddress: brief("pci"),
          driverVersion: brief("driver"),
        },
      ],
      interfaces: [{ name: brief("eth"), addresses: ["192.0.2.1"], mac: "02:00:00:00:00:01" }],
      vm: { capable: false, message: brief("vm") },
    });
    const nodes = { selector: { nodes: ["mallory"] } };
    await admin.approveNode({ ...nodes, reason: hostile("approve") });
    await admin.cordonNode({ ...nodes, reason: hostile("cordon") });
    await admin.markNodeUnhealthy({ ...nodes, reason: hostile("mark") });
    await admin.setNodeLabels({ ...nodes, set: { zone: "a" }, reason: hostile("label") });
    await admin.drainNode({ ...nodes, reason: hostile("drain"), deadline: { seconds: 3_600n } });
    await new TestNode("waiting").register(registry, { hostname: hostile("waiting"), cpu: { model: hostile("cpu") } });
    const client = <S extends Parameters<typeof clientWith>[1]>(service: S) => clientWith(origin, service, bearing);
    await client(JoinTokenService).createJoinToken({ description: hostile("join token") });
    await client(AccessService).createAccessToken({ name: hostile("access token").slice(0, 128), role: Role.VIEWER });
    await client(HealthPolicyService).setHealthPolicy({
      scope: { scope: { case: "default", value: true } },
      values: { flappingHold: { seconds: 0n } },
      reason: hostile("policy"),
    });
    await client(BrakeService).freezeReactions({ reason: hostile("freeze") });
    await client(WebhookService).setWebhook({
      name: "ops",
      spec: { url: `https://ops.example/${encodeURI(brief("hook"))}?x="><img>`, description: hostile("webhook") },
      reason: hostile("set webhook"),
    });
    // Make a refused call, so that the audit log contains the name.
    await admin.cordonNode({ node: hostile("no such node") }).catch(() => {});
    await fixture.agent("worker", ...RUNS_WORK).logged("waiting for an operator's approval");
    await admin.approveNode({ node: "worker" });
    await fixture.client.becomes("worker", "APPROVED CONNECTED HEALTHY");
    await until("the worker to offer its executor", async () => {
      const { node } = await registry.getNode({ node: "worker" });
      return node?.info?.work?.executors.includes("process");
    });
    await jobs.submitJob({
      spec: {
        name: "writes",
        type: JobType.SERVICE,
        count: 1,
        annotations: { note: hostile("annotation") },
        task: {
          case: "process",
          value: {
            command: ["sh", "-c", 'echo "$0"; echo "$0" >&2; sleep 600', `${hostile("log line")}\u001b[31mred`],
            env: { HOSTILE: hostile("environment") },
          },
        },
      } as never,
      reason: hostile("job"),
    });
    executionId = await until("the execution to run", async () => {
      const { executions } = await jobs.listExecutions({ job: "writes" });
      return executions[0]?.id ?? null;
    });
  }

  /** Count the elements that exist only if a page used one of the strings as markup. */
  const markup = (page: Page) =>
    page.evaluate<number>(
      "document.querySelectorAll('main img, main script, main b, [onerror], iframe, object, embed').length",
    );

  it(
    "should show it as text on every page, and do nothing that it says",
    async () => {
      const bearer = adminToken(fixture.dataDirectory);
      const { page, context, misdeeds } = await openConsole(browser, origin, bearer, { userAgent: brief("agent") });
      const pages: readonly (readonly [path: string, ...texts: string[]])[] = [
        ...PAGES.map((path) => [path] as const),
        ["/nodes?show=hostname,os,cpu-model,gpu-models,message,version,architecture&type=compute", "hostname", "gpu"],
        ["/nodes?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"],
        ["/nodes/mallory", "cordon", "mark"],
        ["/nodes/mallory?tab=usage"],
        ["/nodes/mallory?tab=hardware", "hostname", "kernel", "gpu", "cpu", "advertise"],
        ["/nodes/mallory?tab=identity", "drain"],
        ["/nodes/mallory?tab=work"],
        [`/nodes/${encodeURIComponent(hostile("no such node"))}`, "no such node"],
        ["/approvals", "waiting", "cpu"],
        ["/join", "join token"],
        ["/events", "mark"],
        [`/events?subject=${encodeURIComponent(hostile("subject"))}`],
        ["/drains", "drain"],
        ["/policies", "policy"],
        ["/brake", "freeze"],
        ["/audit", "cordon"],
        ["/access"],
        ["/webhooks"],
        ["/jobs/writes", "environment", "annotation"],
        [`/executions/${executionId}`, "log line"],
        [`/jobs/${encodeURIComponent(hostile("no job"))}`],
        [`/no-page/${encodeURIComponent(hostile("path"))}`],
      ];
      for (const [path, ...texts] of pages) {
        await page.goto(`${origin}${path}`);
        await untilLive(page);
        await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
        for (const text of texts) {
          // The page shows the string exactly as written.
          await page.getByText(`</script>{{7*7}}\${7*7}<b>${text}`).first().waitFor({ state: "attached" });
        }
        expect({ path, markup: await markup(page), found: misdeeds.found }).toEqual({ path, markup: 0, found: [] });
      }
      await page.goto(`${origin}/webhooks`);
      await page.getByRole("button", { name: "ops", exact: true }).click();
      await page.getByText("<b>webhook").waitFor();
      await page.goto(`${origin}/drains`);
      await page.getByRole("button", { name: "Details" }).click();
      await page.getByText("Started").waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Page, node or command" }).fill("mallory");
      await page.getByRole("option").getByText("onerror").first().waitFor();
      expect([await markup(page), misdeeds.found]).toEqual([0, []]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should have nothing serious for axe to find where work runs",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, adminToken(fixture.dataDirectory));
      const pages: readonly (readonly [path: string, shown: string])[] = [
        ["/nodes/worker?tab=usage", "Session and heartbeats"],
        ["/nodes/worker?tab=work", "Offered resources"],
        ["/jobs/writes", "Specification"],
        [`/executions/${executionId}`, "Output"],
        ["/no-page", "Page not found"],
      ];
      for (const [path, shown] of pages) {
        await page.goto(`${origin}${path}`);
        await untilLive(page);
        await page.getByRole("heading", { name: shown }).waitFor();
        await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
        expect({ path, wrong: await seriousOf(page) }).toEqual({ path, wrong: [] });
      }
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should show a person as an issuer names them, and name their sessions so",
    async () => {
      const person = clientWith(origin, AccessService, { authorization: `Bearer ${await issuer.token()}` });
      expect((await person.whoAmI({})).actor).toBe(`user:${brief("subject")}`);
      const { page, context, misdeeds } = await openConsole(browser, origin, await issuer.token());
      await page.getByText(`user:${brief("subject")}`).waitFor();
      const admin = await openConsole(browser, origin, adminToken(fixture.dataDirectory));
      await admin.page.goto(`${origin}/access`);
      await admin.page
        .getByText(`user:${brief("subject")}`)
        .first()
        .waitFor();
      expect([await markup(page), await markup(admin.page)]).toEqual([0, 0]);
      expect([...misdeeds.found, ...admin.misdeeds.found]).toEqual([]);
      for (const one of [context, admin.context]) await one.close();
    },
    LIMIT_MS,
  );
});
