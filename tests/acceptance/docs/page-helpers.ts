import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";

const SCAN_MS = 100;

/**
 * Confirm each device login at the demo's issuer as this person, immediately after it has started. Returns a
 * function that stops the confirmations.
 */
export function approveLogins(issuerUrl: () => string, person: string): () => void {
  const timer = setInterval(async () => {
    const page = await fetch(`${issuerUrl()}/verify`).then(
      (response) => response.text(),
      () => "",
    );
    for (const [, code = ""] of page.matchAll(/name="code" value="([^"]+)"/g)) {
      await fetch(`${issuerUrl()}/verify`, { method: "POST", body: new URLSearchParams({ code, person }) });
    }
  }, SCAN_MS);
  return () => clearInterval(timer);
}

/** Find processes that may still run after a failure. A page writes their ids to files NAME.pid. */
export async function leftOf(checkout: string): Promise<readonly number[]> {
  const files = (await readdir(checkout)).filter((name) => name.endsWith(".pid"));
  const pids = await Promise.all(files.map(async (name) => Number(await readFile(join(checkout, name), "utf8"))));
  return pids.filter((pid) => pid > 1);
}

/** The tarball that docs/first-day.md unpacks. */
const TARBALL = "rollcall-0.1.0-linux-x64";

/** Write a program that runs a command. */
export function writeProgram(path: string, command: string): void {
  writeFileSync(path, `#!/bin/sh\nunset NODE_OPTIONS\n${command}\n`);
  chmodSync(path, 0o755);
}

/** Pack a tarball as docs/first-day.md unpacks it. Its program runs the current sources. */
export function packNewVersion(checkout: string): void {
  const folder = join(checkout, TARBALL);
  mkdirSync(folder);
  cpSync(join(checkout, "bin"), join(folder, "bin"), { recursive: true });
  execFileSync("tar", ["-czf", `${TARBALL}.tar.gz`, TARBALL], { cwd: checkout });
  rmSync(folder, { recursive: true });
}

/** Replace a page's ports by free ones. Returns the replacements, keyed by port. */
export async function freePortsOf(ports: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const free = await freePorts(ports.length);
  return Object.fromEntries(ports.map((port, at) => [port, String(free[at])]));
}
