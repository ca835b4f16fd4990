import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";

/** A page that was handed to the browser. */
export interface OpenedPage {
  /** Remove what led there. */
  close(): Promise<void>;
}

/** How the user's own browser is asked to open a file, by the platform of `shell.runsOn`. */
const OPENERS: readonly (readonly [platform: string, command: string])[] = [
  ["darwin", "open"],
  ["linux", "xdg-open"],
];

/** An opener that runs on has found a browser. */
const TAKES_AT_MOST_MS = 5_000;

/**
 * Open an address in the user's browser. The address holds a secret: other users see the words of a command, so that it
 * goes through a file that this user alone may read. Throws Failure when no browser can be opened.
 */
export async function openPage(url: string, { env, runsOn }: Pick<Shell, "env" | "runsOn">): Promise<OpenedPage> {
  const opener = OPENERS.find(([platform]) => runsOn.platform.startsWith(platform));
  if (opener === undefined) throw noBrowser(`this platform, ${runsOn.platform}, has no known way to open one`);
  // The folder is its maker's alone, too.
  const folder = await mkdtemp(join(env.TMPDIR || tmpdir(), "rollcall-console-"));
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const file = join(folder, "sign-in.html");
    await writeFile(file, redirectTo(url), { mode: 0o600, flag: "wx" });
    await runOpener(opener[1], pathToFileURL(file).href, env);
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Ends when the opener does, or leaves it alone when it is the browser itself. */
function runOpener(command: string, file: string, env: Shell["env"]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [file], { env: { ...env }, stdio: "ignore", detached: true });
    const timer = setTimeout(resolve, TAKES_AT_MOST_MS);
    child.once("error", (cause) => {
      clearTimeout(timer);
      reject(noBrowser(`${command}: ${Object(cause).code ?? cause.message}`, cause));
    });
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve();
      else reject(noBrowser(`${command} ended with ${code ?? signal}`));
    });
    child.unref();
  });
}

function noBrowser(why: string, cause?: unknown): Failure {
  const message = `cannot open a browser: ${why}\nhint: \`rollcall console --no-open\` prints the address instead`;
  return new Failure(message, { cause });
}

/** No script, since a browser may run none in files. */
function redirectTo(url: string): string {
  const written = url.replace(/[&"<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  return [
    "<!doctype html>",
    '<html lang="en">',
    '<meta charset="utf-8">',
    '<meta name="referrer" content="no-referrer">',
    `<meta http-equiv="refresh" content="0;url=${written}">`,
    "<title>Rollcall</title>",
    `<p><a href="${written}">Sign in to the console</a></p>`,
    "</html>",
    "",
  ].join("\n");
}
