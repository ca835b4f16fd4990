import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

/** Debian's Chromium, as .ci/run installs it. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Whether there is a browser to test with. On CI's machine there has to be one. */
export const HAS_CHROMIUM = existsSync(CHROMIUM) || process.env.CI !== undefined;

const PATIENCE_MS = 90_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Start the browser. As root it has no sandbox of its own. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** What a page did that it must not do. */
export interface Misdeeds {
  /** Requests to any other origin, errors of scripts, dialogs, and what the Content-Security-Policy refused. */
  readonly found: string[];
}

/** A page of the console, and what it did wrong so far. */
export interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly misdeeds: Misdeeds;
}

/** How a page is opened. */
export interface OpenOptions {
  readonly width?: number;
  readonly theme?: "light" | "dark";
  /** What the browser says that it is. */
  readonly userAgent?: string;
  /** How many nodes a page of this browser keeps at most. */
  readonly mostNodes?: number;
  /** Other origins to which requests may go, as to an issuer to sign in at. */
  readonly mayAsk?: readonly string[];
}

/** Open the console signed in with a token. */
export async function openConsole(
  browser: Browser,
  origin: string,
  token: string,
  options: OpenOptions = {},
): Promise<ConsolePage> {
  const opened = await openPage(browser, origin, options);
  const { page } = opened;
  await page.goto(origin);
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await untilLive(page);
  return opened;
}

/** Open a page of a browser of its own, at no address yet. */
export async function openPage(browser: Browser, origin: string, options: OpenOptions = {}): Promise<ConsolePage> {
  const viewport = { width: options.width ?? 1280, height: 800 };
  const { theme = "light", userAgent, mayAsk = [] } = options;
  const agent = userAgent === undefined ? {} : { userAgent };
  const context = await browser.newContext({ viewport, colorScheme: theme, ...agent });
  context.setDefaultTimeout(PATIENCE_MS);
  if (options.mostNodes !== undefined) {
    await context.addInitScript(`localStorage.setItem("rollcall.most-nodes", "${options.mostNodes}")`);
  }
  const page = await context.newPage();
  const found: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    const isOwn = [origin, `blob:${origin}`, ...mayAsk].some((start) => url.startsWith(start));
    if (!isOwn) found.push(`request to ${url}`);
  });
  page.on("pageerror", (error) => found.push(`error ${error.message}`));
  page.on("dialog", (dialog) => {
    found.push(`dialog ${dialog.message()}`);
    dialog.dismiss().catch(() => {
      // The page has gone with it.
    });
  });
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) found.push(message.text());
  });
  return { page, context, misdeeds: { found } };
}

/** Wait until the page says that it is live. */
export async function untilLive(page: Page): Promise<void> {
  await page.getByTestId("link-state").filter({ hasText: "Live" }).waitFor({ state: "attached" });
}

/** The first access token of a control plane. */
export function adminToken(dataDirectory: string): string {
  return readFileSync(join(dataDirectory, "admin-token"), "utf8").trim();
}

/** Every page that a reader may reach without a name. */
export const PAGES = [
  "/",
  "/nodes",
  "/approvals",
  "/join",
  "/events",
  "/jobs",
  "/drains",
  "/policies",
  "/brake",
  "/access",
  "/audit",
  "/webhooks",
  "/control-plane",
] as const;

/** Something that axe found. */
interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What axe finds that is serious or critical. */
export async function seriousOf(page: Page): Promise<readonly string[]> {
  // The page's own policy forbids inline scripts, so the tool comes in through the debugger.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  const run = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)";
  const violations = await page.evaluate<readonly Violation[]>(run);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}
