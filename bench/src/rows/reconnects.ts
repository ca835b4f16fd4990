import { setTimeout as delay } from "node:timers/promises";
import type { Bench, BenchContext } from "../bench-context.ts";
import type { HeartbeatOrder, HeartbeatOutcome } from "../load/heartbeat-load.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { Figure } from "../report.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { startBareGoServer } from "../servers/bare-grpc-go.ts";
import { startBareServer } from "../servers/bare-grpcjs.ts";
import { startDatabase } from "../servers/database.ts";
import { quantileOf, readHistogram } from "../servers/replica-metrics.ts";
import { startService } from "../servers/rollcall.ts";
import type { Candidate } from "../servers/server-process.ts";

/**
 * The number of agents that connect at the same time. The agents of a returning fleet do not wait for each other.
 */
const AT_ONCE = 1_000;
const AIM_PER_SECOND = 3_000;
const AIM_LAG_MS = 100;
const LAG = "rollcall_health_loop_lag_seconds";
/** The time in milliseconds after which the replica holds its lease and has looked for orphans. */
const SETTLE_MS = 3_000;

interface TakenIn {
  readonly held: number;
  readonly perSecond: number;
  /** The CPU time of the server per agent. */
  readonly cpuMsEach: number;
}

/** Measures how fast known nodes reconnect when all of them connect at the same time. */
export const takeIn: Bench = {
  name: "reconnects",
  title: `known nodes that reconnect at once, ${AT_ONCE} at a time, to one replica, compared with bare gRPC servers`,
  async run(context) {
    const bare = await reconnectToBare(context, "grpc-js", await startBareServer(context));
    const go = await startBareGoServer(context);
    const bareGo = go === null ? null : await reconnectToBare(context, "grpc-go", go);
    const database = await startDatabase(context);
    await seedNodes({ url: database.url, count: context.size.agents, identities: true });
    const { server, port, ports } = await startService(context, "health", database.url);
    await delay(SETTLE_MS);
    const before = database.cpuSeconds();
    const ours = await reconnectTo(context, { server, port });
    const postgresMs = ((database.cpuSeconds() - before) / ours.held) * 1_000;
    const lagMs = quantileOf(await readHistogram(ports.probes, LAG), 0.99) * 1_000;
    await server.stop();
    return figuresOf({ agents: context.size.agents, ours, bare, bareGo, postgresMs, lagMs });
  },
};

async function reconnectToBare(context: BenchContext, name: string, candidate: Candidate): Promise<TakenIn> {
  const taken = await reconnectTo(context, candidate);
  context.progress(`bare ${name}: ${Math.round(taken.perSecond)} agents per second`);
  await candidate.server.stop();
  return taken;
}

async function reconnectTo(context: BenchContext, { server, port }: Candidate): Promise<TakenIn> {
  const load = new LoadProcess<HeartbeatOrder, HeartbeatOutcome>("heartbeat-load");
  context.atEnd(() => load.stop());
  const { agents } = context.size;
  await load.order({ kind: "prepare", agents });
  const before = server.cpuSeconds();
  const { held, elapsedMs } = await load.order({ kind: "hold", port, agents, atOnce: AT_ONCE });
  const cpuMsEach = ((server.cpuSeconds() - before) / held) * 1_000;
  await load.stop();
  return { held, perSecond: (held / elapsedMs) * 1_000, cpuMsEach };
}

function figuresOf(of: {
  readonly agents: number;
  readonly ours: TakenIn;
  readonly bare: TakenIn;
  /** Null if Go is not installed. */
  readonly bareGo: TakenIn | null;
  readonly postgresMs: number;
  readonly lagMs: number;
}): readonly Figure[] {
  const { agents, ours, bare, bareGo, postgresMs, lagMs } = of;
  const rate = { figure: "agents connected per second", measured: ours.perSecond, unit: "/s" };
  const cpu = { unit: "ms", against: "bare grpc-js", compared: bare.cpuMsEach, target: "" };
  return [
    { figure: "agents held", measured: ours.held, unit: "", against: "asked for", compared: agents, target: "1" },
    { ...rate, against: "aim", compared: AIM_PER_SECOND, target: "1 or more" },
    { ...rate, against: "bare grpc-js", compared: bare.perSecond, target: "" },
    ...(bareGo === null ? [] : [{ ...rate, against: "bare grpc-go", compared: bareGo.perSecond, target: "" }]),
    { figure: "CPU of the replica, per agent", measured: ours.cpuMsEach, ...cpu },
    { figure: "CPU of Postgres, per agent", measured: postgresMs, ...cpu },
    {
      figure: "loop lag, p99",
      measured: lagMs,
      unit: "ms",
      against: "aim",
      compared: AIM_LAG_MS,
      target: "1 or less",
    },
  ];
}
