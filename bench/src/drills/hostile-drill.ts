import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { ApiProber } from "../load/hostile/api-prober.ts";
import type { AttackOrder } from "../load/hostile/attack-load.ts";
import type { AttackOutcome } from "../load/hostile/attacker.ts";
import { GoodAgents } from "../load/hostile/good-agents.ts";
import type { HostileTarget } from "../load/hostile/scenario.ts";
import { hostileScenarios } from "../load/hostile/scenarios.ts";
import { LoadProcess } from "../load/load-process.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";
import type { Drill, DrillOptions, Verdict } from "./drill.ts";
import { type HostileLimits, hostileVerdict, type ScenarioOutcome } from "./hostile-verdict.ts";

interface HostileSize {
  readonly attackMs: number;
  /** How long after each scenario is watched as well. */
  readonly afterMs: number;
  /** What an attack leaves is to be gone by then: the longest patience of the server with a connection, and some. */
  readonly calmWithinMs: number;
}

const AGENTS = 50;
/** The first calls of all clients, before anything is compared with the start. */
const WARM_UP_MS = 2_000;
/** Nothing is measured while the last attack is still felt; what is felt for longer counts against the next. */
const SETTLED_WITHIN_MS = 5_000;
const READY_EVERY_MS = 50;
/** How long an operator waits for an answer: where time is not evaluated, the machine may do much else. */
const PATIENCE_MS = 10_000;
const LONG_PATIENCE_MS = 60_000;

const SIZES: Readonly<Record<"full" | "untimed" | "short", HostileSize>> = {
  full: { attackMs: 5_000, afterMs: 1_000, calmWithinMs: 120_000 },
  // The 99th percentile wants many acknowledgements; whether a stream is lost or a call is refused shows sooner.
  untimed: { attackMs: 2_000, afterMs: 500, calmWithinMs: 120_000 },
  short: { attackMs: 200, afterMs: 20, calmWithinMs: 60_000 },
};

const ON_TIME: HostileLimits = { ackP99Ms: 100, apiMs: 1_000 };
const AT_ANY_TIME: HostileLimits = { ackP99Ms: null, apiMs: null };

/** Everything that strangers and known callers can do wrong at the doors of one process, one after the other. */
export const hostile: Drill = {
  name: "hostile",
  title: "floods, broken frames, silence and greed at every port, beside 50 well-behaved agents",
  run: (context, options) => run(context, options, []),
};

/** The same where everything is encrypted. */
export const hostileTls: Drill = {
  name: "hostile-tls",
  title: "the same through TLS",
  run: (context, options) => run(context, options, ["--tls"]),
};

async function run(
  context: BenchContext,
  { length, agents = AGENTS, judgesTime }: DrillOptions,
  flags: readonly string[],
): Promise<Verdict> {
  const size = SIZES[length === "full" && !judgesTime ? "untimed" : length];
  const target = await startTarget(context, agents, flags);
  const { ports, authority, adminToken, viewerToken } = target;
  const secured = authority === undefined ? {} : { authority };
  const good = await GoodAgents.start(agents, { port: ports.agents, ...secured });
  context.atEnd(() => good.stop());
  const patienceMs = judgesTime ? PATIENCE_MS : LONG_PATIENCE_MS;
  const prober = new ApiProber({ port: ports.api, ...secured }, adminToken, patienceMs);
  context.atEnd(() => prober.stop());
  const attackers = new LoadProcess<AttackOrder, AttackOutcome>("hostile/attack-load");
  context.atEnd(() => attackers.stop());

  await delay(WARM_UP_MS);
  const before = await target.holds();
  // The garbage collection that came with it held up the acknowledgements.
  await delay(WARM_UP_MS);
  const outcomes: ScenarioOutcome[] = [];
  for (const { name } of hostileScenarios({ viewerToken }).filter(isChosen)) {
    await good.settled(SETTLED_WITHIN_MS);
    good.take();
    prober.take();
    const order = { scenario: name, ports, viewerToken, ...secured };
    const attack = await attackers.order({ ...order, durationMs: size.attackMs });
    await delay(size.afterMs);
    const lastWords = target.lastWords();
    if (lastWords !== null) throw new Error(`the server ended during ${name}:\n${lastWords}`);
    await prober.probe();
    const outcome = { name, attack, agents: good.take(), api: prober.take() };
    outcomes.push(outcome);
    context.progress(
      `${name}: acks p99 ${outcome.agents.p99Ms.toFixed(0)} ms, API at most ` +
        `${outcome.api.slowestMs.toFixed(0)} ms, ${attack.connections} connections`,
    );
  }
  await calm(target, before.descriptors, size.calmWithinMs);
  const after = await target.holds();
  const limits = judgesTime ? ON_TIME : AT_ANY_TIME;
  return hostileVerdict({ agents, outcomes, before, after }, limits);
}

/** SCENARIO names one to be tried alone. */
function isChosen({ name }: { readonly name: string }): boolean {
  const { SCENARIO } = process.env;
  return SCENARIO === undefined || SCENARIO.split(",").includes(name);
}

/** What a process has in its hands. */
interface Holdings {
  readonly descriptors: number;
  readonly heapBytes: number;
}

interface Target extends HostileTarget {
  readonly adminToken: string;
  readonly viewerToken: string;
  /** What the server said last, if it has ended. */
  lastWords(): string | null;
  descriptors(): number;
  holds(): Promise<Holdings>;
}

/** `rollcall up` as it is shipped, on a record with nodes whose agents can prove to be them. */
async function startTarget(context: BenchContext, agents: number, flags: readonly string[]): Promise<Target> {
  const { url } = await startDatabase(context);
  await seedNodes({ url, count: agents, identities: true });
  const ports = await freePorts();
  const directory = join(context.directory, "data");
  const server = await ServerProcess.start({
    program: ROLLCALL_PROGRAM,
    args: ["up", "--no-agent", "--data-dir", directory, ...portFlags(ports, true), ...flags],
    env: { DATABASE_URL: url },
    port: ports.api,
    logFile: join(context.directory, "up.log"),
  });
  context.atEnd(() => server.stop());
  // The port is open a moment before the process takes agents.
  while (server.lastWords === null && !(await isReady(ports.probes))) await delay(READY_EVERY_MS);
  const isTls = flags.includes("--tls");
  const descriptors = () => readdirSync(`/proc/${server.pid}/fd`).length;
  return {
    ports,
    ...(isTls ? { authority: readFileSync(join(directory, "tls/ca.pem"), "utf8") } : {}),
    adminToken: await createAccessToken(url, "admin"),
    viewerToken: await createAccessToken(url, "viewer"),
    lastWords: () => server.lastWords,
    descriptors,
    holds: async () => {
      const { heapBytes } = await server.memory();
      return { descriptors: descriptors(), heapBytes };
    },
  };
}

/** Whether a process says that it takes calls and agents. */
async function isReady(probePort: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${probePort}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Wait until as few descriptors are open as at the start, for as long as that may take. */
async function calm(target: Target, descriptors: number, withinMs: number): Promise<void> {
  const limitAtMs = performance.now() + withinMs;
  while (target.descriptors() > descriptors && performance.now() < limitAtMs) await delay(500);
}
