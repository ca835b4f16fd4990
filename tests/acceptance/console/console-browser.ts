import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

/** Debian's Chromium, as .ci/run installs it, unless the variable CHROMIUM names another. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/**
 * Whether the tests can use a browser. On CI's machines it is true even without a browser, so that the tests fail.
 */
export const HAS_CHROMIUM = existsSync(CHROMIUM) || process.env.CI !== undefined;

const PATIENCE_MS = 90_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Start the browser, without a sandbox if the user is root. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** The forbidden actions of a page. */
export interface Misdeeds {
  /**
   * Descriptions of requests to other origins, script errors, dialogs, and violations of the
   * Content-Security-Policy.
   */
  readonly found: string[];
}

/** A page of the console, and its forbidden actions so far. */
export interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly misdeeds: Misdeeds;
}

/** Options for opening a page. */
export interface OpenOptions {
  readonly width?: number;
  readonly theme?: "light" | "dark";
  /** The user agent that the browser sends. */
  readonly userAgent?: string;
  /** The maximum number of nodes that a page of this browser keeps. */
  readonly mostNodes?: number;
  /** Other origins that the page can request, such as an issuer for the sign-in. */
  readonly mayAsk?: readonly string[];
}

/** Open the console, and sign in with a token. */
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

/** Open a page in a separate browser context, without loading an address. */
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
      // Ignore the error, because the page is already closed.
    });
  });
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) found.push(message.text());
  });
  return { page, context, misdeeds: { found } };
}

/** Wait until the page shows that it is live. */
export async function untilLive(page: Page): Promise<void> {
  await page.getByTestId("link-state").filter({ hasText: "Live" }).waitFor({ state: "attached" });
}

/** Read the first access token of a control plane. */
export function adminToken(dataDirectory: string): string {
  return readFileSync(join(dataDirectory, "admin-token"), "utf8").trim();
}

/** Every page that a viewer can open without knowing the name of an object. */
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

/** A violation that axe found. */
interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** The serious and critical violations that axe finds on a page. */
export async function seriousOf(page: Page): Promise<readonly string[]> {
  // Load axe with the debugger, because the page's policy forbids inline scripts.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  const run = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)";
  const violations = await page.evaluate<readonly Violation[]>(run);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

const CELL_COLORS = `[6, 20, 34].map((x) => {
  const scale = window.devicePixelRatio;
  const drawing = document.querySelector("main canvas").getContext("2d");
  return [...drawing.getImageData(x * scale, 6 * scale, 1, 1).data].join(" ");
})`;

/** The colors of the first map's first two cells, and of the empty space after them. */
export function cellColors(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(CELL_COLORS);
}
