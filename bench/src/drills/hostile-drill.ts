import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { ApiProber } from "../load/hostile/api-prober.ts";
import type { AttackOrder } from "../load/hostile/attack-load.ts";
import type { AttackOutcome } from "../load/hostile/attacker.ts";
import { GoodAgents } from "../load/hostile/good-agents.ts";
import { hostileScenarios } from "../load/hostile/scenarios.ts";
import { LoadProcess } from "../load/load-process.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";
import type { Drill } from "./drill.ts";
import { type HostileLimits, hostileVerdict, type ScenarioOutcome } from "./hostile-verdict.ts";

interface HostileSize {
  readonly attackMs: number;
  /** How long after each scenario is watched as well. */
  readonly afterMs: number;
  /** What an attack leaves is to be gone by then: the longest patience of the server with a connection, and some. */
  readonly calmWithinMs: number;
}

const AGENTS = 50;
/** Of everybody's first calls, before anything is compared with what it was at the start. */
const WARM_UP_MS = 2_000;
/** Nothing is measured while the last attack is still felt; what is felt for longer counts against the next. */
const SETTLED_WITHIN_MS = 5_000;

const SIZES: Readonly<Record<"full" | "short", HostileSize>> = {
  full: { attackMs: 5_000, afterMs: 1_000, calmWithinMs: 120_000 },
  short: { attackMs: 200, afterMs: 20, calmWithinMs: 60_000 },
};

const ON_TIME: HostileLimits = { ackP99Ms: 100, apiMs: 1_000 };
const AT_ANY_TIME: HostileLimits = { ackP99Ms: null, apiMs: null };

/** Everything that strangers and known callers can do wrong at the doors of one process, one after the other. */
export const hostile: Drill = {
  name: "hostile",
  title: "floods, broken frames, silence and greed at every port, beside 50 well-behaved agents",
  run: async (context, { length, agents = AGENTS, judgesTime }) => {
    const size = SIZES[length];
    const target = await startTarget(context, agents);
    const good = await GoodAgents.start(agents, target.ports.agents);
    context.atEnd(() => good.stop());
    const prober = new ApiProber(target.ports.api, target.adminToken);
    context.atEnd(() => prober.stop());
    const attackers = new LoadProcess<AttackOrder, AttackOutcome>("hostile/attack-load");
    context.atEnd(() => attackers.stop());

    await delay(WARM_UP_MS);
    const before = await target.holds();
    const outcomes: ScenarioOutcome[] = [];
    for (const { name } of hostileScenarios(target).filter(isChosen)) {
      await good.settled(SETTLED_WITHIN_MS);
      good.take();
      prober.take();
      const order = { scenario: name, ports: target.ports, viewerToken: target.viewerToken };
      const attack = await attackers.order({ ...order, durationMs: size.attackMs });
      await delay(size.afterMs);
      await prober.probe();
      const outcome = { name, attack, agents: good.take(), api: prober.take() };
      outcomes.push(outcome);
      context.progress(
        `${name}: acks p99 ${outcome.agents.p99Ms.toFixed(0)} ms, API at most ${outcome.api.slowestMs.toFixed(0)} ms, ${attack.connections} connections`,
      );
    }
    const after = await calm(target, before.descriptors, size.calmWithinMs);
    const limits = judgesTime ? ON_TIME : AT_ANY_TIME;
    return hostileVerdict({ agents, outcomes, before, after }, limits);
  },
};

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

interface Target {
  readonly ports: { readonly api: number; readonly agents: number; readonly probes: number };
  readonly adminToken: string;
  readonly viewerToken: string;
  holds(): Promise<Holdings>;
}

/** `rollcall up` as it is shipped, on a record with nodes whose agents can prove to be them. */
async function startTarget(context: BenchContext, agents: number): Promise<Target> {
  const { url } = await startDatabase(context);
  await seedNodes({ url, count: agents, identities: true });
  const ports = await freePorts();
  const directory = join(context.directory, "data");
  const server = await ServerProcess.start({
    program: ROLLCALL_PROGRAM,
    args: ["up", "--no-agent", "--data-dir", directory, ...portFlags(ports, true)],
    env: { DATABASE_URL: url },
    port: ports.api,
    logFile: join(context.directory, "up.log"),
  });
  context.atEnd(() => server.stop());
  return {
    ports,
    adminToken: await createAccessToken(url, "admin"),
    viewerToken: await createAccessToken(url, "viewer"),
    holds: async () => {
      const { heapBytes } = await server.memory();
      return { descriptors: readdirSync(`/proc/${server.pid}/fd`).length, heapBytes };
    },
  };
}

/** Wait until no more descriptors are open than at the start, for as long as that may take. */
async function calm(target: Target, descriptors: number, withinMs: number): Promise<Holdings> {
  const limitAtMs = performance.now() + withinMs;
  for (;;) {
    const holds = await target.holds();
    if (holds.descriptors <= descriptors || performance.now() > limitAtMs) return holds;
    await delay(1_000);
  }
}
