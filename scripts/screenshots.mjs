// Takes pictures of every page of the console, light and dark, wide and narrow, of a `rollcall up` of its own with a few
// machines, with Debian's Chromium. The first argument is the folder for all of them; a few go to docs/images/console.
// As root its machines run a job too, since executions are another user's.
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PATIENCE_MS = 120_000;
const USAGE_MS = 3_000;
const PAGES = {
  overview: "/",
  nodes: "/nodes",
  node: "/nodes/gpu-1",
  usage: "/nodes/gpu-1?tab=usage",
  hardware: "/nodes/gpu-1?tab=hardware",
  work: "/nodes/gpu-1?tab=work",
  identity: "/nodes/gpu-1?tab=identity",
  approvals: "/approvals",
  join: "/join",
  events: "/events",
  jobs: "/jobs",
  job: "/jobs/web",
  execution: "/executions/EXECUTION",
  drains: "/drains",
  policies: "/policies",
  brake: "/brake",
  access: "/access",
  audit: "/audit",
  webhooks: "/webhooks",
  "control-plane": "/control-plane",
  "not-found": "/nothing",
};
/** Before each picture of a page: something to open on it. */
const OPENED = {
  palette: ["/nodes", (page) => page.keyboard.press("Control+k")],
  keys: ["/nodes", (page) => page.keyboard.press("?")],
  confirm: [
    "/nodes?type=compute",
    async (page) => {
      await page.getByLabel("Choose all nodes of this view").click();
      await page.getByRole("toolbar").getByRole("button", { name: "Drain", exact: true }).click();
      await page.getByRole("dialog").getByLabel("Reason (optional)").waitFor();
    },
  ],
  drain: ["/drains", (page) => page.getByRole("button", { name: "What it waits for" }).first().click()],
  policy: ["/policies", (page) => page.getByRole("button", { name: "Set a policy" }).click()],
};
/** The pictures that the docs show. */
const SHOWN = ["overview-dark-1280", "nodes-dark-1280", "approvals-dark-1280", "node-light-360"];

/** What lets an agent run processes, which only root can let run as another user. */
const WORK = process.getuid() === 0 ? ["--executors", "process", "--work-user", "nobody"] : [];

const out = resolve(process.argv[2] ?? join(ROOT, "dist/screenshots"));
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "rollcall-screenshots-"));
const children = [];
try {
  const [port, agentPort, probePort, internalPort] = await freePorts(4);
  const ports = { port, "agent-port": agentPort, "probe-port": probePort, "internal-port": internalPort };
  const flags = Object.entries(ports).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
  await start(
    ["up", "--data-dir", join(folder, "data"), ...flags, "--manual-approval", "--no-agent"],
    "everything is up",
  );
  const server = `127.0.0.1:${port}`;
  for (let index = 1; index <= 6; index += 1) {
    const words = [
      "agent",
      "--server",
      server,
      "--state-dir",
      join(folder, `gpu-${index}`),
      "--name",
      `gpu-${index}`,
      ...WORK,
    ];
    await start(words, "waiting for an operator's approval", plantGpus(index));
  }
  const token = readFileSync(join(folder, "data/admin-token"), "utf8").trim();
  const executionId = await decide(server, token);
  await takeAll(`http://${server}`, token, executionId);
} finally {
  for (const child of children) child.kill("SIGTERM");
  await Promise.all(children.map((child) => child.exitCode ?? new Promise((end) => child.once("exit", end))));
  rmSync(folder, { recursive: true, force: true });
}

/** Start a program, and wait until it says something. */
function start(words, said, env = {}) {
  const child = spawn(process.execPath, [join(ROOT, "bin/rollcall"), ...words], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  children.push(child);
  return new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`it did not say "${said}"`)), PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text) => {
      if (!text.includes(said)) return;
      clearTimeout(timer);
      done();
    });
    child.once("exit", (code) => failed(new Error(`it ended with ${code} before it said "${said}"`)));
  });
}

/** What lets an agent find two GPUs that are at work, on a machine that has none: the environment with their program. */
function plantGpus(machine) {
  const programs = join(folder, `programs-${machine}`);
  mkdirSync(programs);
  const bus = (gpu) => `00000000:${gpu === 0 ? "17" : "65"}:00.0`;
  const facts = [0, 1].map(
    (gpu) => `echo "${gpu}, NVIDIA H100 80GB HBM3, GPU-${machine}${gpu}5f2c1e-7b1d, 550.54.15, ${bus(gpu)}, 81559"`,
  );
  const usage = [0, 1].map(
    (gpu) =>
      `echo "${gpu}, $((50 + (s * 7 + ${gpu} * 31) % 45)), $((52000 + s * 97 % 9000)), 81559, $((58 + s * 3 % 11))"`,
  );
  const lines = ["#!/bin/sh", "s=$(date +%s)", 'case "$1" in', "*utilization*)", ...usage, ";;", "*)", ...facts];
  writeFileSync(join(programs, "nvidia-smi"), `${[...lines, ";;", "esac"].join("\n")}\n`, { mode: 0o755 });
  return { PATH: `${programs}:${process.env.PATH}` };
}

/**
 * Make a fleet that has something to show: machines that are approved, cordoned, labelled, drained, and that wait; a job
 * where machines take work. Answers the id of an execution, "none" where none runs.
 */
async function decide(server, token) {
  const call = async (service, method, body) => {
    const answer = await fetch(`http://${server}/rollcall.${service}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method}: ${await answer.text()}`);
    return answer.json();
  };
  const admin = (method, body) => call("admin.v1.AdminService", method, body);
  const nodes = ["gpu-1", "gpu-2", "gpu-3", "gpu-4"];
  await admin("ApproveNode", { selector: { nodes } });
  const set = { zone: "a", "rollcall.io/group": "train" };
  await admin("SetNodeLabels", { selector: { nodes: ["gpu-1", "gpu-2"] }, set });
  await admin("SetNodeLabels", { selector: { nodes: ["gpu-3", "gpu-4"] }, set: { zone: "b" } });
  const executionId = WORK.length === 0 ? "none" : await runJob(call);
  await admin("CordonNode", { node: "gpu-3", reason: "new disks" });
  await admin("MarkNodeUnhealthy", { node: "gpu-4", reason: "fan is loud" });
  await admin("DrainNode", { node: "gpu-2", reason: "new kernel", deadline: "3600s" });
  await call("admin.v1.JoinTokenService", "CreateJoinToken", { description: "rack 12", maxUses: 40, ttl: "86400s" });
  await call("admin.v1.AccessService", "CreateAccessToken", { name: "dashboards", role: "ROLE_VIEWER" });
  await call("admin.v1.HealthPolicyService", "SetHealthPolicy", {
    scope: { group: "train" },
    selector: "rollcall.io/group=train",
    values: { unhealthyAfter: "45s" },
    reason: "long steps",
  });
  const spec = {
    url: "https://ops.example/rollcall",
    description: "pages the operators",
    types: ["node.health.changed"],
  };
  await call("events.v1.WebhookService", "SetWebhook", { name: "ops", spec });
  return executionId;
}

async function runJob(call) {
  const command = ["sh", "-c", 'n=0; while :; do n=$((n + 1)); echo "served $n requests"; sleep 1; done'];
  const spec = { name: "web", type: "JOB_TYPE_SERVICE", count: 2, process: { command } };
  await call("scheduler.v1.JobService", "SubmitJob", { spec });
  for (let asked = 0; asked < 300; asked += 1) {
    const { executions = [] } = await call("scheduler.v1.JobService", "ListExecutions", { job: "web" });
    const ready = executions.find(({ state }) => state === "EXECUTION_STATE_READY");
    if (ready !== undefined) return ready.id;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error("no execution of the job became ready");
}

async function takeAll(origin, token, executionId) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`there is no ${executablePath}: CHROMIUM names the browser`);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    for (const theme of ["light", "dark"]) {
      for (const width of [1280, 360]) await takePages(browser, { origin, token, executionId, theme, width });
    }
  } finally {
    await browser.close();
  }
  const shown = join(ROOT, "docs/images/console");
  mkdirSync(shown, { recursive: true });
  for (const name of SHOWN) copyFileSync(join(out, `${name}.png`), join(shown, `${name}.png`));
}

async function takePages(browser, { origin, token, executionId, theme, width }) {
  const context = await browser.newContext({ viewport: { width, height: 760 }, colorScheme: theme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(origin);
  await page.getByLabel("Access token").fill(token);
  await page.screenshot({ path: join(out, `sign-in-${theme}-${width}.png`) });
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const live = page.getByTestId("link-state").filter({ hasText: "Live" });
  await live.waitFor({ state: "attached" });
  const take = async (name, path, open = async () => {}) => {
    await page.goto(origin + path.replace("EXECUTION", executionId));
    await live.waitFor({ state: "attached" });
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await open(page);
    // What a watch of usage tells comes with its second message.
    if (path.startsWith("/nodes")) await page.waitForTimeout(USAGE_MS);
    await page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) });
  };
  for (const [name, path] of Object.entries(PAGES)) await take(name, path);
  for (const [name, [path, open]] of Object.entries(OPENED)) await take(name, path, open);
  await context.close();
}

/** Ports that are free at the moment. */
async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
