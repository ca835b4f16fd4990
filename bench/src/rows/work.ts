import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import type { Bench, BenchContext } from "../bench-context.ts";
import { benchNodeId } from "../seeds/bench-nodes.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";

const NODES = 5_000;
const JOBS = 10;
const EXECUTIONS = 100_000;
/** A node is full with 1,000 executions. */
const MILLICORES = 50;
const LIMIT_MS = 300_000;
const NOMAD_A_SECOND = 3_750;
const LOSS_TARGET_S = 3;

/** Executions placed and committed, and the loss of a full node, with the scheduler in a process of its own. */
export const work: Bench = {
  name: "work",
  title: `${EXECUTIONS} executions onto ${NODES} nodes`,
  async run(context) {
    const database = await startDatabase(context);
    await seedNodes({ url: database.url, count: NODES, identities: false });
    const token = await createAccessToken(database.url, "admin");
    return withClient(database.url, async (client) => {
      await offerWork(client);
      const { server, port } = await startService(context, "scheduler", database.url);
      context.progress(`${NODES} nodes seeded, the scheduler runs`);
      const before = { process: server.cpuSeconds(), postgres: database.cpuSeconds() };
      const startedAtMs = performance.now();
      for (let job = 0; job < JOBS; job += 1) await submit(port, token, `bench-${job}`);
      await until(client, "select coalesce(sum(executions), 0)::integer as count from node_allocations", EXECUTIONS);
      const seconds = (performance.now() - startedAtMs) / 1_000;
      const cpu = {
        process: ((server.cpuSeconds() - before.process) * 1_000_000) / EXECUTIONS,
        postgres: ((database.cpuSeconds() - before.postgres) * 1_000_000) / EXECUTIONS,
      };
      context.progress(`placed in ${seconds.toFixed(1)} s`);
      const lostS = await loseFullNode(context, client);
      const cpuOf = (figure: string, measured: number) => {
        return {
          figure,
          measured,
          unit: "µs/execution",
          against: "one core at 10,000 a second",
          beside: 100,
          target: "",
        };
      };
      return [
        {
          ...{ figure: "placed and committed", measured: EXECUTIONS / seconds, unit: "/s" },
          ...{ against: "Nomad's C1M, five servers", beside: NOMAD_A_SECOND, target: "2.7 or more" },
        },
        cpuOf("CPU of the scheduler", cpu.process),
        cpuOf("CPU of Postgres", cpu.postgres),
        {
          ...{ figure: "1,000 executions of a lost node replaced", measured: lostS, unit: "s" },
          ...{ against: "aim", beside: LOSS_TARGET_S, target: "1 or less" },
        },
      ];
    });
  },
};

/** As if each node's agent had connected and offered what it has. */
async function offerWork(client: Client): Promise<void> {
  const offer = { executors: ["process"], millicores: 50_000, memoryBytes: "500000000000", diskBytes: "1000000000000" };
  await client.query("update nodes set info = info || jsonb_build_object('work', $1::jsonb)", [JSON.stringify(offer)]);
  await client.query("update node_sessions set connection = 'CONNECTED', health = 'HEALTHY'");
  await client.query("vacuum analyze");
}

async function submit(port: number, token: string, name: string): Promise<void> {
  const spec = {
    ...{ name, type: "JOB_TYPE_SERVICE", count: EXECUTIONS / JOBS, queueTimeout: "3600s" },
    ...{ resources: { millicores: MILLICORES }, process: { command: ["sleep", "infinity"] } },
  };
  const answer = await fetch(`http://127.0.0.1:${port}/rollcall.scheduler.v1.JobService/SubmitJob`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ spec }),
  });
  if (!answer.ok) throw new Error(`${name} was not taken: ${await answer.text()}`);
}

/** Lose a node and allow the reaction; seconds until all that ran there has been replaced. */
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
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    const { rows } = await client.query<{ readonly count: number }>(query);
    const count = rows[0]?.count ?? 0;
    if (count >= wanted) return;
    if (performance.now() > limit) throw new Error(`${count} of ${wanted} after ${LIMIT_MS / 1_000} s`);
    await delay(100);
  }
}
