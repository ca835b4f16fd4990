import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";

/** A page that was opened in the browser. */
export interface OpenedPage {
  /** Remove the temporary file that redirects to the page. */
  close(): Promise<void>;
}

/** The commands that open a file in the user's browser, each with its platform as in `shell.runsOn`. */
const OPENERS: readonly (readonly [platform: string, command: string])[] = [
  ["darwin", "open"],
  ["linux", "xdg-open"],
];

/** Time in milliseconds after which an opener that is still running is assumed to be the browser itself. */
const TAKES_AT_MOST_MS = 5_000;

/**
 * Open an address in the user's browser. The address contains a secret, and other users can see the arguments of a
 * command. It is therefore passed in a file that only this user can read. Throws Failure when no browser can be opened.
 */
export async function openPage(url: string, { env, runsOn }: Pick<Shell, "env" | "runsOn">): Promise<OpenedPage> {
  const opener = OPENERS.find(([platform]) => runsOn.platform.startsWith(platform));
  if (opener === undefined) throw noBrowser(`the platform ${runsOn.platform} is not supported`);
  // mkdtemp makes the folder accessible only to this user.
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

/** Run the opener. Resolves when it exits. After TAKES_AT_MOST_MS, resolves and leaves the opener running. */
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
      else reject(noBrowser(`${command} exited with ${code ?? signal}`));
    });
    child.unref();
  });
}

function noBrowser(why: string, cause?: unknown): Failure {
  const message = `cannot open a browser: ${why}\nhint: \`rollcall console --no-open\` prints the address instead`;
  return new Failure(message, { cause });
}

/** Return a page that redirects without a script, because a browser may not run scripts in local files. */
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
