// Takes pictures of every page of the console, light and dark, wide and narrow, of a `rollcall up` of its own with a few
// machines, with Debian's Chromium. The first argument is the folder for all of them; a few go to docs/images/console.
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PATIENCE_MS = 120_000;
const PAGES = {
  overview: "/",
  nodes: "/nodes",
  node: "/nodes/gpu-1",
  usage: "/nodes/gpu-1?tab=usage",
  hardware: "/nodes/gpu-1?tab=hardware",
  identity: "/nodes/gpu-1?tab=identity",
  approvals: "/approvals",
  join: "/join",
  events: "/events",
  jobs: "/jobs",
  drains: "/drains",
  policies: "/policies",
  brake: "/brake",
  access: "/access",
  audit: "/audit",
  "control-plane": "/control-plane",
};
/** The pictures that the docs show. */
const SHOWN = ["overview-dark-1280", "nodes-dark-1280", "approvals-dark-1280", "node-light-360"];

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
    const words = ["agent", "--server", server, "--state-dir", join(folder, `gpu-${index}`), "--name", `gpu-${index}`];
    await start(words, "waiting for an operator's approval");
  }
  const token = readFileSync(join(folder, "data/admin-token"), "utf8").trim();
  await decide(server, token);
  await takeAll(`http://${server}`, token);
} finally {
  for (const child of children) child.kill("SIGTERM");
  await Promise.all(children.map((child) => child.exitCode ?? new Promise((end) => child.once("exit", end))));
  rmSync(folder, { recursive: true, force: true });
}

/** Start a program, and wait until it says something. */
function start(words, said) {
  const child = spawn(process.execPath, [join(ROOT, "bin/rollcall"), ...words], {
    stdio: ["ignore", "pipe", "inherit"],
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

/** Make a fleet that has something to show: machines that are approved, cordoned, labelled, and that wait. */
async function decide(server, token) {
  const call = async (method, body) => {
    const answer = await fetch(`http://${server}/rollcall.admin.v1.AdminService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method}: ${await answer.text()}`);
  };
  const nodes = ["gpu-1", "gpu-2", "gpu-3", "gpu-4"];
  await call("ApproveNode", { selector: { nodes } });
  await call("SetNodeLabels", {
    selector: { nodes: ["gpu-1", "gpu-2"] },
    set: { zone: "a", "rollcall.io/group": "train" },
  });
  await call("SetNodeLabels", { selector: { nodes: ["gpu-3", "gpu-4"] }, set: { zone: "b" } });
  await call("CordonNode", { node: "gpu-3", reason: "new disks" });
  await call("MarkNodeUnhealthy", { node: "gpu-4", reason: "fan is loud" });
}

async function takeAll(origin, token) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`there is no ${executablePath}: CHROMIUM names the browser`);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    for (const theme of ["light", "dark"]) {
      for (const width of [1280, 360]) await takePages(browser, origin, token, theme, width);
    }
  } finally {
    await browser.close();
  }
  const shown = join(ROOT, "docs/images/console");
  mkdirSync(shown, { recursive: true });
  for (const name of SHOWN) copyFileSync(join(out, `${name}.png`), join(shown, `${name}.png`));
}

async function takePages(browser, origin, token, theme, width) {
  const context = await browser.newContext({ viewport: { width, height: 760 }, colorScheme: theme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(origin);
  await page.getByLabel("Access token").fill(token);
  await page.screenshot({ path: join(out, `sign-in-${theme}-${width}.png`) });
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const live = page.getByTestId("link-state").filter({ hasText: "Live" });
  await live.waitFor({ state: "attached" });
  for (const [name, path] of Object.entries(PAGES)) {
    await page.goto(origin + path);
    await live.waitFor({ state: "attached" });
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) });
  }
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
