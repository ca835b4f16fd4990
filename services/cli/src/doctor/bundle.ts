import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { systemErrorWords } from "@rollcall/process";
import { createTarGzip } from "nanotar";
import { findDataDirectory, readRunFile } from "../client/data-directory.ts";
import { Failure } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import { formatBytes } from "../output/units.ts";
import type { RunAgain } from "../parts.ts";
import type { Shell } from "../shell.ts";

/** A file of the bundle. */
interface BundleFile {
  readonly name: string;
  readonly data: string;
}

/** The commands whose output is collected. None of them prints secrets. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  "version.json": ["version", "-o", "json"],
  "doctor.json": ["doctor", "-o", "json"],
  "status.json": ["status", "-o", "json"],
  "node-summary.json": ["node", "summary", "-o", "json"],
  "processes.json": ["node", "list", "--type", "control-plane", "-o", "json"],
  "jobs.csv": ["job", "list", "-o", "csv"],
  "policies.json": ["policy", "list", "-o", "json"],
  "brakes.json": ["brake", "status", "-o", "json"],
  "events.json": ["events", "--last", "500", "-o", "json"],
  "configuration.csv": ["config", "list", "-o", "csv"],
};

const UNITS = "rollcall*";
const LOG_LINES = "2000";
const FETCH_LIMIT_MS = 10_000;
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Write an archive (.tar.gz) that contains what a maintainer needs in order to help, and that only its user can read.
 * Prints the contents of the archive. For each part that cannot be read, the archive contains the reason instead.
 */
export async function writeBundle(shell: Shell, options: GlobalOptions, file: string, again: RunAgain): Promise<void> {
  const files: BundleFile[] = [];
  for (const [name, words] of Object.entries(COMMANDS)) {
    shell.err.write(`rollcall ${words.join(" ")} ...\n`);
    const { code, out, err } = await again([...words, ...flagsOf(options)]);
    shell.interrupted.throwIfAborted();
    if (out !== "") files.push({ name, data: out });
    if (err !== "" || out === "") files.push({ name: `${name}.stderr.txt`, data: `exit code ${code}\n${err}` });
  }
  files.push(await attempt("metrics.txt", () => readMetrics(shell)), await attempt("logs.txt", () => readLogs(shell)));
  const path = resolve(shell.cwd, file);
  try {
    await writeFile(path, await createTarGzip([...files]), { mode: 0o600, flag: "wx" });
  } catch (cause) {
    throw new Failure(`cannot write ${path}: ${systemErrorWords(cause)}`, { cause });
  }
  for (const { name, data } of files) {
    shell.out.write(`${name.padEnd(NAME_WIDTH)} ${formatBytes(Buffer.byteLength(data))}\n`);
  }
  shell.out.write(
    `Ok: ${path} written. It has names of nodes, jobs and people, but no secrets: read it before you send it\n`,
  );
}

const NAME_WIDTH = 32;

/** The flags that make another command reach the same control plane. */
function flagsOf(options: GlobalOptions): readonly string[] {
  const { server, registry, health, admin, scheduler, context, token, tokenFile, caFile } = options;
  const { clientCert, clientKey, tlsServerName, timeout } = options;
  const flags = {
    ...{ server, registry, health, admin, scheduler, context, token, "token-file": tokenFile, "ca-file": caFile },
    ...{ "client-cert": clientCert, "client-key": clientKey, "tls-server-name": tlsServerName, timeout },
  };
  return Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
}

async function attempt(name: string, read: () => Promise<string>): Promise<BundleFile> {
  try {
    return { name, data: await read() };
  } catch (error) {
    return { name, data: `cannot be read: ${error instanceof Error ? error.message : String(error)}\n` };
  }
}

/** The metrics of the control plane of this machine. */
async function readMetrics(shell: Shell): Promise<string> {
  const runFile = readRunFile(findDataDirectory(shell));
  if (runFile === null) throw new Error("no `rollcall up` runs on this machine; add /metrics of each process yourself");
  const signal = AbortSignal.any([shell.interrupted, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  const response = await fetch(`http://${runFile.probes}/metrics`, { signal });
  if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
  return response.text();
}

/** The latest log lines of the services of this machine. */
async function readLogs({ interrupted: signal }: Shell): Promise<string> {
  const words = ["--unit", UNITS, "--lines", LOG_LINES, "--no-pager", "--output", "cat"];
  const { stdout } = await promisify(execFile)("journalctl", words, { signal, maxBuffer: MOST_BYTES });
  if (stdout.trim() === "") throw new Error("the journal has no lines of rollcall units; add the log yourself");
  return stdout;
}
