import { randomBytes } from "node:crypto";
import { joinTokenText } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { insertJoinToken, joinTokenHash, openStore } from "@rollcall/store";
import type { Bench, BenchContext } from "../bench-context.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { RegistrationOrder, RegistrationOutcome } from "../load/registration-load.ts";
import { type Figure, percentile } from "../report.ts";
import { startDatabase, withClient } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";

const CONNECTIONS = 256;
const REGISTRIES = 2;
const WARM_UP_NODES = 2_000;
const AIM_PER_SECOND = 1_000;
const HALF_RATE = AIM_PER_SECOND / 2;
const AIM_P99_MS = 250;
const COMMITTERS = 16;

/** New nodes that register, each with a challenge, a signature, a preauthorized join token and a durable commit. */
export const registrations: Bench = {
  name: "registrations",
  title:
    `new nodes, challenge and join token included, ${CONNECTIONS} at once to ${REGISTRIES} registries, every one ` +
    "of them durable",
  async run(context) {
    const { url } = await startDatabase(context);
    const commitsPerSecond = await measureCommits(context, url);
    const ports: number[] = [];
    for (let count = 0; count < REGISTRIES; count += 1) {
      ports.push((await startService(context, "registry", url)).port);
    }
    const load = new LoadProcess<RegistrationOrder, RegistrationOutcome>("registration-load");
    context.atEnd(() => load.stop());

    const joinToken = await makeJoinToken(url);
    const shared = { ports, connections: CONNECTIONS, joinToken };
    await load.order({ ...shared, from: 0, count: WARM_UP_NODES });
    const count = Math.round((context.size.durationMs / 1_000) * AIM_PER_SECOND);
    context.progress(`registering ${count} nodes`);
    const full = await load.order({ ...shared, from: WARM_UP_NODES, count });
    const from = WARM_UP_NODES + count;
    context.progress(`registering ${HALF_RATE} nodes a second`);
    const half = await load.order({ ...shared, from, count: count / 2, perSecond: HALF_RATE });
    for (const { failed, lastFailure } of [full, half]) {
      if (failed > 0) context.progress(`${failed} were refused: ${lastFailure}`);
    }
    return figuresOf(full, half, commitsPerSecond);
  },
};

function figuresOf(full: RegistrationOutcome, half: RegistrationOutcome, commitsPerSecond: number): readonly Figure[] {
  const perSecond = (full.registered / full.elapsedMs) * 1_000;
  const rate = { figure: "registrations a second", measured: perSecond, unit: "/s" };
  const latency = {
    unit: "ms",
    against: `aim for p99 at ${HALF_RATE}/s`,
    beside: AIM_P99_MS,
  };
  const latenciesMs = Float64Array.from(half.latenciesMs);
  return [
    {
      figure: "registered",
      measured: full.registered + half.registered,
      unit: "",
      against: "asked for",
      beside: full.registered + full.failed + half.registered + half.failed,
      target: "1",
    },
    { ...rate, against: "aim", beside: AIM_PER_SECOND, target: "1 or more" },
    {
      ...rate,
      against: `bare commits, ${COMMITTERS} at once`,
      beside: commitsPerSecond,
      target: "",
    },
    {
      figure: "challenge and RegisterNode, p50",
      measured: percentile(latenciesMs, 0.5),
      ...latency,
      target: "",
    },
    {
      figure: "challenge and RegisterNode, p99",
      measured: percentile(latenciesMs, 0.99),
      ...latency,
      target: "1 or less",
    },
  ];
}

/**
 * Make a preauthorized token of any number of uses, as admin does; its text. The registry must have made the tables.
 */
async function makeJoinToken(url: string): Promise<string> {
  const log = silentLogger;
  const store = await openStore({ url, log, applicationName: "bench" });
  try {
    const id = randomBytes(6).toString("hex");
    const text = joinTokenText(store.clusterId(), id, randomBytes(32).toString("base64url"));
    await store.transaction((tx) =>
      insertJoinToken(tx, {
        ...{ id, hash: joinTokenHash(text), description: "bench", createdBy: "bench" },
        ...{ maxUses: null, ttlMs: null, nodeNamePattern: "", labels: {} },
        ...{ preauthorized: true, ephemeral: false },
      }),
    );
    return text;
  } finally {
    await store.close();
  }
}

/** Durable commits of one small row each: what the same Postgres does when nothing else is asked of it. */
async function measureCommits(context: BenchContext, url: string): Promise<number> {
  await withClient(url, (client) => client.query("create table bench_commits (at timestamptz)"));
  const end = performance.now() + Math.min(context.size.durationMs, 3_000);
  const begin = performance.now();
  const commits = await Promise.all(
    Array.from({ length: COMMITTERS }, () =>
      withClient(url, async (client) => {
        let count = 0;
        while (performance.now() < end) {
          await client.query("insert into bench_commits values (now())");
          count += 1;
        }
        return count;
      }),
    ),
  );
  const elapsedMs = performance.now() - begin;
  await withClient(url, (client) => client.query("drop table bench_commits"));
  return (commits.reduce((sum, count) => sum + count, 0) / elapsedMs) * 1_000;
}
