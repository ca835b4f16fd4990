import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import type { Bench, BenchContext } from "../bench-context.ts";
import type { Figure } from "../report.ts";
import { benchNodeId } from "../seeds/bench-nodes.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";
import type { ServerProcess } from "../servers/server-process.ts";
import { countOf, offerWork, submitService } from "../servers/work-of-nodes.ts";

const NODES = 5_000;
const JOBS = 10;
const EXECUTIONS = 100_000;
/** The millicores that one execution asks for. A node is full with 1,000 executions. */
const MILLICORES = 50;
const MILLION = 1_000_000;
const MIB = 1_048_576;
/** The size in MiB of the old generation in a process that was started without flags, on a machine with 4 GiB. */
const MOST_MIB = 2_048;
/** How long to wait without any progress. */
const LIMIT_MS = 300_000;
const NOMAD_A_SECOND = 3_750;
const LOSS_TARGET_S = 3;

/** Measures placing and committing executions, and losing a full node. The scheduler is a separate process. */
export const work: Bench = {
  name: "work",
  title: `${EXECUTIONS} executions onto ${NODES} nodes`,
  run: (context) =>
    place(context, EXECUTIONS, async (client) => {
      const lostS = await loseFullNode(context, client);
      return {
        ...{ figure: "1,000 executions of a lost node replaced", measured: lostS, unit: "s" },
        ...{ against: "aim", compared: LOSS_TARGET_S, target: "1 or less" },
      };
    }),
};

/** Places a million executions, as in Nomad's challenge C1M, and measures the memory that the scheduler needs. */
export const workMillion: Bench = {
  name: "work-million",
  title: `${MILLION} executions onto ${NODES} nodes`,
  run: (context) =>
    place(context, MILLION, async (_client, server) => {
      const { rssBytes } = await server.memory();
      return {
        ...{ figure: "memory of the scheduler, resident", measured: rssBytes / MIB, unit: "MiB" },
        ...{ against: "bound", compared: MOST_MIB, target: "1 or less" },
      };
    }),
};

/** Place this many executions of ten jobs. `then` takes another measurement afterwards. */
async function place(
  context: BenchContext,
  executions: number,
  then: (client: Client, server: ServerProcess) => Promise<Figure>,
): Promise<readonly Figure[]> {
  const database = await startDatabase(context);
  await seedNodes({ url: database.url, count: NODES, identities: false });
  const token = await createAccessToken(database.url, "admin");
  return withClient(database.url, async (client) => {
    await offerWork(client, { millicores: 50_000 });
    await connectAll(client);
    const { server, port } = await startService(context, "scheduler", database.url);
    context.progress(`${NODES} nodes seeded, the scheduler runs`);
    const before = { process: server.cpuSeconds(), postgres: database.cpuSeconds() };
    const startedAtMs = performance.now();
    for (let job = 0; job < JOBS; job += 1) {
      await submitService(port, token, { name: `bench-${job}`, count: executions / JOBS, millicores: MILLICORES });
    }
    await until(client, "select coalesce(sum(executions), 0)::integer as count from node_allocations", executions);
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const cpuOf = (figure: string, usedSeconds: number): Figure => ({
      ...{ figure, measured: (usedSeconds * 1_000_000) / executions, unit: "µs/execution" },
      ...{ against: "one core at 10,000 per second", compared: 100, target: "" },
    });
    const cpu = [
      cpuOf("CPU of the scheduler", server.cpuSeconds() - before.process),
      cpuOf("CPU of Postgres", database.cpuSeconds() - before.postgres),
    ];
    context.progress(`placed in ${seconds.toFixed(1)} s`);
    const more = await then(client, server);
    return [
      {
        ...{ figure: "placed and committed", measured: executions / seconds, unit: "/s" },
        ...{ against: "Nomad's C1M, five servers", compared: NOMAD_A_SECOND, target: "2.7 or more" },
      },
      ...cpu,
      more,
    ];
  });
}

/** Write to the store what it would contain if all agents had connected. */
async function connectAll(client: Client): Promise<void> {
  await client.query("update node_sessions set connection = 'CONNECTED', health = 'HEALTHY'");
  await client.query("vacuum analyze");
}

/** Lose a node and allow the reaction. Returns the seconds until everything that ran there has been replaced. */
async function loseFullNode(context: BenchContext, client: Client): Promise<number> {
  const { rows } = await client.query<{ readonly id: string; readonly count: number }>(
    "select node_id as id, executions as count from node_allocations order by executions desc, node_id limit 1",
  );
  const { id = benchNodeId(0), count = 0 } = rows[0] ?? {};
  context.progress(`${id} is lost with ${count} executions`);
  const startedAtMs = performance.now();
  await client.query("begin");
  await client.query(
    `update node_sessions set health = 'UNHEALTHY', connection = 'DISCONNECTED', reaction = 'ALLOWED'
     where node_id = $1`,
    [id],
  );
  const event = { type: "node.reactions.allowed", subject: id, actor: "replica:r", reason: "NO_STORM", message: "" };
  await client.query("select append_events($1::jsonb)", [JSON.stringify([event])]);
  await client.query("commit");
  await until(
    client,
    `select count(*)::integer as count from executions where node_id = '${id}' and replaced_by is not null`,
    count,
  );
  return (performance.now() - startedAtMs) / 1_000;
}

async function until(client: Client, query: string, wanted: number): Promise<void> {
  let limit = performance.now() + LIMIT_MS;
  for (let before = 0; ; ) {
    const count = await countOf(client, query);
    if (count >= wanted) return;
    if (count > before) limit = performance.now() + LIMIT_MS;
    before = count;
    if (performance.now() > limit) throw new Error(`${count} of ${wanted} after ${LIMIT_MS / 1_000} s`);
    await delay(100);
  }
}
