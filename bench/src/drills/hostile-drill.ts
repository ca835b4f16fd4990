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
import type { Drill, DrillOptions, DrillResult } from "./drill.ts";
import { type HostileLimits, hostileResult, type ScenarioOutcome } from "./hostile-result.ts";

interface HostileSize {
  readonly attackMs: number;
  /** How long to continue watching after each scenario. */
  readonly afterMs: number;
  /**
   * The time limit for the effects of an attack to disappear: the server's longest timeout for a connection, plus
   * a margin.
   */
  readonly calmWithinMs: number;
}

const AGENTS = 50;
/** The time in which all clients make their first calls, before the baseline is measured. */
const WARM_UP_MS = 2_000;
/**
 * How long to wait for the effects of an attack to end. An effect that lasts longer is attributed to the next
 * attack.
 */
const SETTLED_WITHIN_MS = 5_000;
const READY_EVERY_MS = 50;
/**
 * How long an operator waits for a response. The longer time applies if times are not evaluated, because then the
 * machine may be busy.
 */
const PATIENCE_MS = 10_000;
const LONG_PATIENCE_MS = 60_000;

const SIZES: Readonly<Record<"full" | "untimed" | "short", HostileSize>> = {
  full: { attackMs: 5_000, afterMs: 1_000, calmWithinMs: 120_000 },
  // Short attacks are enough if times are not evaluated, because only the 99th percentile needs many
  // acknowledgements.
  untimed: { attackMs: 2_000, afterMs: 500, calmWithinMs: 120_000 },
  short: { attackMs: 200, afterMs: 20, calmWithinMs: 60_000 },
};

const ON_TIME: HostileLimits = { ackP99Ms: 100, apiMs: 1_000 };
const AT_ANY_TIME: HostileLimits = { ackP99Ms: null, apiMs: null };

/**
 * Misuses the ports of one process in every way that anonymous clients and known callers can, one scenario after
 * the other.
 */
export const hostile: Drill = {
  name: "hostile",
  title: "floods, broken frames, silence and greed at every port, next to 50 well-behaved agents",
  run: (context, options) => run(context, options, []),
};

/** Runs the same scenarios over TLS. */
export const hostileTls: Drill = {
  name: "hostile-tls",
  title: "the same over TLS",
  run: (context, options) => run(context, options, ["--tls"]),
};

async function run(
  context: BenchContext,
  { length, agents = AGENTS, limitsTime }: DrillOptions,
  flags: readonly string[],
): Promise<DrillResult> {
  const size = SIZES[length === "full" && !limitsTime ? "untimed" : length];
  const target = await startTarget(context, agents, flags);
  const { ports, authority, adminToken, viewerToken } = target;
  const secured = authority === undefined ? {} : { authority };
  const good = await GoodAgents.start(agents, { port: ports.agents, ...secured });
  context.atEnd(() => good.stop());
  const patienceMs = limitsTime ? PATIENCE_MS : LONG_PATIENCE_MS;
  const prober = new ApiProber({ port: ports.api, ...secured }, adminToken, patienceMs);
  context.atEnd(() => prober.stop());
  const attackers = new LoadProcess<AttackOrder, AttackOutcome>("hostile/attack-load");
  context.atEnd(() => attackers.stop());

  await delay(WARM_UP_MS);
  const before = await target.holds();
  // Wait, because holds() collects garbage, and garbage collection delays acknowledgements.
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
    if (lastWords !== null) throw new Error(`the server exited during ${name}:\n${lastWords}`);
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
  const limits = limitsTime ? ON_TIME : AT_ANY_TIME;
  return hostileResult({ agents, outcomes, before, after }, limits);
}

/** Whether to run a scenario. The variable SCENARIO selects a single scenario. */
function isChosen({ name }: { readonly name: string }): boolean {
  const { SCENARIO } = process.env;
  return SCENARIO === undefined || SCENARIO.split(",").includes(name);
}

/** The resources that a process holds. */
interface Holdings {
  readonly descriptors: number;
  readonly heapBytes: number;
}

interface Target extends HostileTarget {
  readonly adminToken: string;
  readonly viewerToken: string;
  /** The server's last output if it has ended; otherwise null. */
  lastWords(): string | null;
  descriptors(): number;
  holds(): Promise<Holdings>;
}

/** Start the shipped `rollcall up` on a store with nodes whose agents can prove their identity. */
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
  // Wait until the process accepts agents. Its port opens shortly before that.
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

/** Whether a process reports that it accepts calls and agents. */
async function isReady(probePort: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${probePort}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Wait until the number of open descriptors is back to `descriptors`, for at most the given time. */
async function calm(target: Target, descriptors: number, withinMs: number): Promise<void> {
  const limitAtMs = performance.now() + withinMs;
  while (target.descriptors() > descriptors && performance.now() < limitAtMs) await delay(500);
}
