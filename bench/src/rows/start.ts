import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Bench, BenchContext } from "../bench-context.ts";
import { percentile } from "../report.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";

const RUNS = 15;
const AIM_LIST_MS = 150;
const AIM_HEALTHY_MS = 15_000;
const HEALTHY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 30_000;

const execute = promisify(execFile);

/** Measures how long a person at a terminal waits. */
export const start: Bench = {
  name: "start",
  title: "an empty data directory until this machine is HEALTHY, and one `node list`",
  async run(context) {
    const bareMs = await timeOf(["-e", ""]);
    const up = await startUp(context);
    const listMs = await timeOf([ROLLCALL_PROGRAM, "node", "list", "--server", up.server], up.environment);
    const aim = { unit: "ms", against: "aim", target: "1 or less" };
    return [
      {
        figure: "rollcall up, until HEALTHY",
        measured: up.healthyAfterMs,
        ...aim,
        compared: AIM_HEALTHY_MS,
      },
      { figure: "rollcall node list", measured: listMs, ...aim, compared: AIM_LIST_MS },
      {
        figure: "rollcall node list",
        measured: listMs,
        unit: "ms",
        against: "node without a program",
        compared: bareMs,
        target: "",
      },
    ];
  },
};

interface RunningUp {
  readonly server: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly healthyAfterMs: number;
}

async function startUp(context: BenchContext): Promise<RunningUp> {
  const dataDirectory = join(context.directory, "data");
  const ports = await freePorts();
  const begin = performance.now();
  const up = spawn(process.execPath, [ROLLCALL_PROGRAM, "up", "--data-dir", dataDirectory, ...portFlags(ports, true)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  up.stderr.on("data", (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4_000);
  });
  context.atEnd(async () => {
    if (up.exitCode !== null) return;
    const exit = once(up, "exit");
    up.kill("SIGTERM");
    const killer = setTimeout(() => up.kill("SIGKILL"), STOP_LIMIT_MS);
    await exit;
    clearTimeout(killer);
  });

  const server = `127.0.0.1:${ports.api}`;
  const environment = { ROLLCALL_DATA_DIR: dataDirectory };
  while (!(await seesHealthyNode(server, join(dataDirectory, "admin-token")))) {
    if (up.exitCode !== null || performance.now() - begin > HEALTHY_LIMIT_MS) {
      throw new Error(`no node became HEALTHY:\n${output}`);
    }
    await delay(50);
  }
  return { server, environment, healthyAfterMs: performance.now() - begin };
}

async function seesHealthyNode(server: string, tokenFile: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://${server}/rollcall.registry.v1.RegistryService/ListNodes`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}`,
      },
      body: JSON.stringify({ statuses: ["NODE_STATUS_HEALTHY"] }),
    });
    const { nodes = [] } = (await answer.json()) as { nodes?: readonly unknown[] };
    return nodes.length > 0;
  } catch {
    // Ignore the failure, because at first neither the token nor the port exists.
    return false;
  }
}

/** Return the median run time of a program, including its start and end. */
async function timeOf(args: readonly string[], environment = {}): Promise<number> {
  const timesMs = new Float64Array(RUNS);
  for (let run = 0; run < RUNS; run++) {
    const begin = performance.now();
    await execute(process.execPath, [...args], { env: { ...process.env, ...environment } });
    timesMs[run] = performance.now() - begin;
  }
  return percentile(timesMs, 0.5);
}
