import type { Bench, BenchContext } from "../bench-context.ts";
import type { HeartbeatOrder, HeartbeatOutcome } from "../load/heartbeat-load.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { Figure } from "../report.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { startBareGoServer } from "../servers/bare-grpc-go.ts";
import { startBareServer } from "../servers/bare-grpcjs.ts";
import { startDatabase } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";
import type { Candidate } from "../servers/server-process.ts";

/** The number of usage samples that a replica keeps for each node. */
const SAMPLES_KEPT = 60;
/** The memory in KiB that an agent may cost in addition to its cost in the bare server. */
const ALLOWED_KIB = 8;
const AIM_HEAP_KIB = 11;

/** Compares the health service with the minimum that any grpc-js server must do for the same bytes. */
export const heartbeats: Bench = {
  name: "heartbeats",
  title: "open streams, and Beats with the usage of two GPUs, compared with bare grpc-js and grpc-go servers",
  async run(context) {
    const bare = await measure(context, "bare server", startBareServer);
    const go = await startBareGoServer(context);
    const bareGo = go === null ? null : await measure(context, "bare Go server", async () => go);
    const health = await measure(context, "health service", startHealthService);
    const { agents } = context.size;
    return [...compare(agents, health, bare), ...(bareGo === null ? [] : compareWithGo(health, bareGo))];
  },
};

export interface Measurement {
  readonly held: number;
  readonly hellosPerSecond: number;
  readonly rssBytesPerAgent: number;
  readonly heapBytesPerAgent: number;
  /** The number of Beats acknowledged per second of CPU that the server used. */
  readonly acksPerCpuSecond: number;
}

export async function startHealthService(context: BenchContext): Promise<Candidate> {
  const database = await startDatabase(context);
  await seedNodes({ url: database.url, count: context.size.agents, identities: true });
  return startService(context, "health", database.url);
}

/** Connect agents and let them beat, each with this many running executions. */
export async function measure(
  context: BenchContext,
  name: string,
  start: (context: BenchContext) => Promise<Candidate>,
  executions = 0,
): Promise<Measurement> {
  const { agents, durationMs } = context.size;
  const { server, port } = await start(context);
  const load = new LoadProcess<HeartbeatOrder, HeartbeatOutcome>("heartbeat-load");
  context.atEnd(() => load.stop());

  const before = await server.memory();
  const hold = await load.order({ kind: "hold", port, agents, executions });
  context.progress(`${name}: ${hold.held} agents connected`);
  // Fill all sample rings before memory is measured, and get all code compiled before the rate is measured.
  await load.order({ kind: "beat", totalEach: SAMPLES_KEPT });
  const after = await server.memory();
  const cpuBefore = server.cpuSeconds();
  const beats = await load.order({ kind: "beat-for", durationMs });
  const cpuSeconds = server.cpuSeconds() - cpuBefore;
  if (beats.lost > 0) context.progress(`${name}: ${beats.lost} streams lost: ${beats.lastRefusal}`);
  await load.stop();
  await server.stop();
  return {
    held: beats.held,
    hellosPerSecond: (hold.held / hold.elapsedMs) * 1_000,
    rssBytesPerAgent: (after.rssBytes - before.rssBytes) / beats.held,
    heapBytesPerAgent: (after.heapBytes - before.heapBytes) / beats.held,
    acksPerCpuSecond: beats.acks / cpuSeconds,
  };
}

/**
 * Compare with the server in Go. There is no target, because memory and calls have other costs in another
 * language.
 */
function compareWithGo(ours: Measurement, go: Measurement): readonly Figure[] {
  const compared = { against: "bare grpc-go", target: "" };
  const rows = [
    ["memory per agent (resident)", "KiB", "rssBytesPerAgent", 1_024],
    ["memory per agent (heap, stacks)", "KiB", "heapBytesPerAgent", 1_024],
    ["acknowledged per second and core", "/s", "acksPerCpuSecond", 1],
    ["agents connected per second", "/s", "hellosPerSecond", 1],
  ] as const;
  return rows.map(([figure, unit, field, divisor]) => ({
    figure,
    measured: ours[field] / divisor,
    unit,
    ...compared,
    compared: go[field] / divisor,
  }));
}

function compare(agents: number, ours: Measurement, bare: Measurement): readonly Figure[] {
  const KIB = 1_024;
  const compared = { against: "bare grpc-js" };
  const heap = {
    figure: "memory per agent (heap, external)",
    measured: ours.heapBytesPerAgent / KIB,
    unit: "KiB",
  };
  return [
    {
      figure: "agents held",
      measured: ours.held,
      unit: "",
      against: "asked for",
      compared: agents,
      target: "1",
    },
    {
      figure: "memory per agent (resident)",
      measured: ours.rssBytesPerAgent / KIB,
      unit: "KiB",
      against: "bare grpc-js + 8 KiB",
      compared: bare.rssBytesPerAgent / KIB + ALLOWED_KIB,
      target: "1 or less",
    },
    { ...heap, ...compared, compared: bare.heapBytesPerAgent / KIB, target: "" },
    { ...heap, against: "aim", compared: AIM_HEAP_KIB, target: "1 or less" },
    {
      figure: "acknowledged per second and core",
      measured: ours.acksPerCpuSecond,
      unit: "/s",
      ...compared,
      compared: bare.acksPerCpuSecond,
      target: "1 or more",
    },
    {
      figure: "agents connected per second",
      measured: ours.hellosPerSecond,
      unit: "/s",
      ...compared,
      compared: bare.hellosPerSecond,
      target: "",
    },
  ];
}
