import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { FaultProxy } from "@rollcall/testkit/fault-proxy";
import { SlowPostgresProxy } from "@rollcall/testkit/slow-postgres-proxy";
import { Client } from "pg";
import type { BenchContext } from "../../bench-context.ts";
import { PacedLoads } from "../../load/paced-loads.ts";
import { benchNodeId } from "../../seeds/bench-nodes.ts";
import { seedNodes } from "../../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../../servers/database.ts";
import { type BenchNats, startNats } from "../../servers/nats.ts";
import { freePorts, type ProcessPorts, portFlags, ROLLCALL_PROGRAM } from "../../servers/rollcall.ts";
import { ServerProcess } from "../../servers/server-process.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../servers/webhook-receiver.ts";
import type { Drill, DrillOptions, DrillResult } from "../drill.ts";
import { Decisions } from "./decisions.ts";
import { PlaneClient } from "./plane-client.ts";

interface Size {
  readonly agents: number;
  readonly intervalMs: number;
  readonly unhealthyAfterMs: number;
  /** How long each of these faults lasts: slow statements, an exhausted pool, and a slow NATS and webhook receiver. */
  readonly slowMs: number;
  readonly lockMs: number;
  readonly stallMs: number;
  /** The delay of responses from NATS and from the webhook receiver. */
  readonly answerMs: number;
  readonly webhookTimeoutMs: number;
}

const SIZES: Readonly<Record<"full" | "short", Size>> = {
  full: {
    ...{ agents: 200, intervalMs: 5_000, unhealthyAfterMs: 20_000 },
    ...{ slowMs: 90_000, lockMs: 30_000, stallMs: 10_000, answerMs: 20_000, webhookTimeoutMs: 10_000 },
  },
  short: {
    ...{ agents: 20, intervalMs: 500, unhealthyAfterMs: 5_000 },
    ...{ slowMs: 12_000, lockMs: 10_000, stallMs: 8_000, answerMs: 8_000, webhookTimeoutMs: 2_000 },
  },
};
const STATEMENT_DELAY_MS = 2_000;
/**
 * The number of concurrent callers. It is much higher than the 16 connections for calls, but lower than the number of
 * calls that one caller can have in flight.
 */
const FLOOD = 120;
/** A method that reads the locked table over a connection for calls. No limit on pages is checked before the read. */
const GET_JOIN_TOKEN = "rollcall.admin.v1.JoinTokenService/GetJoinToken";
/** The number of nodes to cordon and uncordon. They have no agents. */
const DECIDED = 5;
const NAMED_WITHIN_MS = 60_000;
const RECOVERS_WITHIN_MS = 180_000;
const STARTS_WITHIN_MS = 120_000;
const SCAN_EVERY_MS = 200;
/** The maximum growth of resident memory during the drill, in bytes. */
const MOST_GROWTH_BYTES = 256 * 2 ** 20;

/** Makes one dependency after the other slow, but not unavailable. */
export const slowDependencies: Drill = {
  name: "slow-dependencies",
  title: "Postgres, NATS and receivers of webhooks are slow, one after the other",
  run: async (context, options) => {
    const world = await SlowWorld.start(context, options);
    await world.slowStatements();
    await world.exhaustedPool();
    await world.lockedTable();
    await world.stalledCommits();
    await world.slowOutside();
    return world.result();
  },
};

interface Parts {
  readonly size: Size;
  readonly url: string;
  readonly token: string;
  readonly ports: ProcessPorts;
  readonly postgres: SlowPostgresProxy;
  readonly server: ServerProcess;
  readonly nats: { readonly server: BenchNats; readonly proxy: FaultProxy } | null;
  readonly receiver: WebhookReceiver;
}

/** How /readyz and doctor must name the slow dependency. */
interface Naming {
  readonly ready: RegExp;
  readonly doctor: RegExp;
}

/** One control plane with agents, callers and all dependencies. */
class SlowWorld {
  readonly #context: BenchContext;
  readonly #parts: Parts;
  readonly #loads: PacedLoads;
  readonly #complaints: string[] = [];
  readonly #client: PlaneClient;
  readonly #decisions: Decisions;
  #startRevision = "0";
  #startBytes = 0;
  #mostBytes = 0;
  #mostWaiting = 0;
  #refused = 0;

  private constructor(context: BenchContext, parts: Parts) {
    this.#context = context;
    this.#parts = parts;
    this.#loads = new PacedLoads(context, parts.size.agents);
    this.#client = new PlaneClient(parts.ports, parts.token, context.directory);
    const nodes = Array.from({ length: DECIDED }, (_, index) => benchNodeId(parts.size.agents + index));
    this.#decisions = new Decisions(this.#client, nodes);
  }

  static async start(context: BenchContext, { length, agents }: DrillOptions): Promise<SlowWorld> {
    const size = { ...SIZES[length], ...(agents === undefined ? {} : { agents }) };
    const { url } = await startDatabase(context);
    await seedNodes({ url, count: size.agents + DECIDED, identities: true });
    const postgres = await SlowPostgresProxy.start(url);
    context.atEnd(() => postgres.close());
    const nats = await startSlowNats(context);
    if (nats === null) context.progress("no nats-server on the PATH: the relay is not tested");
    const receiver = await startWebhookReceiver(context);
    const ports = await freePorts();
    const settings = [
      `Orchestrator.NodeManager.DisconnectTimeout=${size.unhealthyAfterMs}ms`,
      `Orchestrator.NodeManager.UnknownTimeout=${size.unhealthyAfterMs * 5}ms`,
      `Compute.Heartbeat.Interval=${size.intervalMs}ms`,
      "Webhooks.AllowedNetworks=127.0.0.1",
      `Webhooks.AuthorityFile=${receiver.caFile}`,
      `Webhooks.Timeout=${size.webhookTimeoutMs}ms`,
      ...(nats === null ? [] : [`Events.Nats.Url=nats://127.0.0.1:${nats.proxy.port}`]),
    ];
    const flags = settings.flatMap((setting) => ["--set", setting]);
    const server = await ServerProcess.start({
      program: ROLLCALL_PROGRAM,
      args: ["up", "--no-agent", "--data-dir", join(context.directory, "data"), ...portFlags(ports, true), ...flags],
      env: { DATABASE_URL: postgres.url },
      port: ports.api,
      logFile: join(context.directory, "up.log"),
    });
    context.atEnd(() => server.stop());
    const token = await createAccessToken(url, "admin");
    const world = new SlowWorld(context, { size, url, token, ports, postgres, server, nats, receiver });
    await world.#begin();
    return world;
  }

  /** Make every statement take 2 s. */
  async slowStatements(): Promise<void> {
    const { postgres, size } = this.#parts;
    const names = { ready: /the database is slow/, doctor: /(store|postgres)-latency .*(warning|problem)/ };
    postgres.weather.statementDelayMs = STATEMENT_DELAY_MS;
    await this.#during("Postgres at 2 s per statement", size.slowMs, names);
    postgres.weather.statementDelayMs = 0;
    await this.#recovers("Postgres at 2 s per statement");
  }

  /** Let callers take every connection, and let more callers wait than fit into the queue. */
  async exhaustedPool(): Promise<void> {
    const { size, url } = this.#parts;
    const holder = await lockTable(url, "join_tokens");
    let isOver = false;
    const flood = Array.from({ length: FLOOD }, async () => {
      while (!isOver) {
        const outcome = await this.#client.call(GET_JOIN_TOKEN, { id: "jt-none" });
        if (outcome !== "not_found") this.#refused += 1;
        await delay(SCAN_EVERY_MS);
      }
    });
    // Calls of doctor also wait for authentication and for a connection, and end at their deadline.
    const doctor =
      /^(calls-wait|connections|answers) problem|^(upkeep|webhooks) unknown .*(deadline|which is the limit)/m;
    const names = { ready: /in use, (\d+ calls waiting|a statement has been running)/, doctor };
    await this.#during("an exhausted pool", size.slowMs, names);
    isOver = true;
    await holder.end();
    await Promise.all(flood);
    if (this.#refused === 0) this.#complaints.push("an exhausted pool: no call was refused");
    await this.#recovers("an exhausted pool");
  }

  /** Lock the table of nodes. */
  async lockedTable(): Promise<void> {
    const { size, url } = this.#parts;
    const holder = await lockTable(url, "nodes");
    const names = { ready: /a statement has been running for/, doctor: /postgres-waits .*Lock relation/ };
    await this.#during("a locked table", size.lockMs, names);
    await holder.end();
    await this.#recovers("a locked table");
  }

  /**
   * Make commits wait for a synchronous standby that does not exist. They would wait in the same way for a disk that
   * does not respond.
   */
  async stalledCommits(): Promise<void> {
    const { size, url } = this.#parts;
    await alterSystem(url, "set synchronous_standby_names = 'nobody'");
    const names = {
      ready: /commits slowly|a statement has been running|no proof that the lease/,
      doctor: /postgres-waits .*SyncRep/,
    };
    await this.#during("commits that stall", size.stallMs, names);
    await alterSystem(url, "reset synchronous_standby_names");
    await this.#recovers("commits that stall");
  }

  /** Make NATS and the webhook receiver respond late. */
  async slowOutside(): Promise<void> {
    const { size, nats, receiver } = this.#parts;
    receiver.answerAfter(size.answerMs);
    const names = { ready: /drill: /, doctor: /webhooks .*warning/ };
    await this.#during("a slow receiver", size.slowMs, names);
    receiver.answerAfter(0);
    await this.#recovers("a slow receiver");
    if (nats === null) return;
    nats.proxy.delayAnswers(size.answerMs);
    const natsNames = { ready: /NATS has not acknowledged an event/, doctor: /nats(-relay)? .*(warning|problem)/ };
    await this.#during("a slow NATS", size.slowMs, natsNames);
    nats.proxy.delayAnswers(0);
    await this.#recovers("a slow NATS");
  }

  async result(): Promise<DrillResult> {
    await this.#decisions.stop();
    const { size } = this.#parts;
    // Wait until any node that fell silent during the last fault has been declared unhealthy.
    await delay(size.unhealthyAfterMs + size.intervalMs);
    const { gaps, reconnects } = await this.#loads.order({ kind: "report", gapMs: size.unhealthyAfterMs });
    const declared = await this.#subjects("node.health.changed", "after ->> 'health' <> 'HEALTHY'");
    const falsely = declared.filter((node) => !gaps.includes(node));
    if (falsely.length > 0) {
      this.#complaints.push(`${falsely.length} healthy nodes were declared unhealthy: ${falsely.slice(0, 3)}`);
    }
    this.#complaints.push(...(await this.#decisions.complaints(this.#parts.url, this.#startRevision)));
    const grownBytes = this.#mostBytes - this.#startBytes;
    if (grownBytes > MOST_GROWTH_BYTES) this.#complaints.push(`memory grew by ${mebibytes(grownBytes)}`);
    const { answered, asked } = this.#decisions;
    const passed = this.#complaints.length === 0;
    const lines = [
      `${passed ? "PASSED" : "FAILED"}: ${size.agents} agents, ${answered} of ${asked} decisions answered`,
      `  wrongly declared: ${falsely.length}`,
      `  reconnects:       ${reconnects}`,
      `  calls refused:    ${this.#refused}, ${this.#mostWaiting} waited at a time`,
      `  memory:           grew by ${mebibytes(grownBytes)} at most`,
      ...this.#complaints.map((complaint) => `  ${complaint}`),
    ];
    return { passed, text: lines.join("\n") };
  }

  async #begin(): Promise<void> {
    const { size, ports, server, receiver } = this.#parts;
    const { agents, intervalMs, unhealthyAfterMs } = size;
    const patienceMs = Math.max(unhealthyAfterMs / 3, (intervalMs * 4) / 3);
    await this.#loads.run({ ports: [ports.agents], isSpread: true, intervalMs, patienceMs });
    await this.#until("all agents to be HEALTHY", STARTS_WITHIN_MS, async () => (await this.#healthy()) === agents);
    const spec = { url: `https://127.0.0.1:${receiver.port}/`, types: ["node.scheduling.changed"] };
    const set = await this.#client.call("rollcall.events.v1.WebhookService/SetWebhook", { name: "drill", spec });
    if (set !== "answered") throw new Error(`SetWebhook failed: ${set}`);
    const { rows } = await withClient(this.#parts.url, (client) =>
      client.query<{ revision: string }>("select coalesce(max(revision), 0)::text as revision from events"),
    );
    this.#startRevision = rows[0]?.revision ?? "0";
    this.#decisions.start();
    await this.#recovers("nothing");
    this.#startBytes = server.residentBytes();
  }

  /** Check that /readyz and doctor name the slow dependency, and that memory and queues stay bounded. */
  async #during(title: string, ms: number, { ready, doctor }: Naming): Promise<void> {
    const startMs = performance.now();
    let [isNamedByReady, isNamedByDoctor] = [false, false];
    let [answer, found] = ["", ""];
    const isOver = () => {
      const passedMs = performance.now() - startMs;
      return passedMs > ms && ((isNamedByReady && isNamedByDoctor) || passedMs > NAMED_WITHIN_MS);
    };
    const examining = (async () => {
      while (!isOver() && !isNamedByDoctor) {
        found = await this.#client.doctor().catch(String);
        isNamedByDoctor = doctor.test(found);
      }
    })();
    while (!isOver()) {
      // Keep the previous response after a failure, because the server may close an idle connection just when it is
      // reused.
      answer = await this.#client.readyz().catch(() => answer);
      isNamedByReady ||= ready.test(answer);
      this.#mostBytes = Math.max(this.#mostBytes, this.#parts.server.residentBytes());
      this.#mostWaiting = Math.max(this.#mostWaiting, Number(/(\d+) calls waiting/.exec(answer)?.[1] ?? 0));
      await delay(SCAN_EVERY_MS);
    }
    await examining;
    if (!isNamedByReady) this.#complaints.push(`${title}: /readyz does not name it: ${answer}`);
    if (!isNamedByDoctor) this.#complaints.push(`${title}: doctor does not name it:\n${found}`);
    if (this.#parts.server.lastWords !== null) throw new Error(`the process exited: ${this.#parts.server.lastWords}`);
  }

  /** Wait until everything works again without intervention. */
  async #recovers(title: string): Promise<void> {
    const startMs = performance.now();
    const { nats, url, server } = this.#parts;
    const stored = await nats?.server.storedMessages();
    const before = this.#decisions.answered;
    const isDecided = async () => this.#decisions.answered > before + 2;
    await this.#until(`decisions after ${title}`, RECOVERS_WITHIN_MS, isDecided);
    const last = await this.#lastDecision();
    await this.#until(`the webhook after ${title}`, RECOVERS_WITHIN_MS, async () => this.#received(last));
    if (nats !== null) {
      await this.#until(`the relay after ${title}`, RECOVERS_WITHIN_MS, async () => {
        const { rows } = await withClient(url, (client) =>
          client.query("select from event_relay where revision >= $1", [last.split(" ")[1]]),
        );
        return rows.length === 1 && (await nats.server.storedMessages()) !== stored;
      });
    }
    await this.#until(`/readyz after ${title}`, RECOVERS_WITHIN_MS, async () => {
      const text = await this.#client.readyz();
      const leads = text.includes('"message": "leads"');
      return leads && text.includes('"ready": true') && !text.includes('"degraded": true');
    });
    const healthy = async () => (await this.#healthy()) === this.#parts.size.agents;
    await this.#until(`all nodes to be HEALTHY after ${title}`, RECOVERS_WITHIN_MS, healthy);
    if (server.lastWords !== null) throw new Error(`the process exited: ${server.lastWords}`);
    this.#context.progress(`after ${title}: works after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
  }

  async #until(what: string, limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
    const limitAtMs = performance.now() + limitMs;
    while (!(await isSo().catch(() => false))) {
      if (performance.now() > limitAtMs) throw new Error(`waited too long for ${what}: ${await this.#client.readyz()}`);
      await delay(SCAN_EVERY_MS);
    }
  }

  /** The last decision in the log, as text with subject and revision. */
  async #lastDecision(): Promise<string> {
    const { rows } = await withClient(this.#parts.url, (client) =>
      client.query<{ text: string }>(
        `select subject || ' ' || revision as text from events
         where type = 'node.scheduling.changed' order by revision desc limit 1`,
      ),
    );
    return rows[0]?.text ?? "";
  }

  #received(line: string): boolean {
    const { file } = this.#parts.receiver;
    return existsSync(file) && readFileSync(file, "utf8").includes(`${line}\n`);
  }

  async #healthy(): Promise<number> {
    const query = "select count(*)::integer as count from node_sessions where health = 'HEALTHY'";
    const { rows } = await withClient(this.#parts.url, (client) => client.query<{ count: number }>(query));
    return rows[0]?.count ?? 0;
  }

  async #subjects(type: string, condition: string): Promise<readonly string[]> {
    const { rows } = await withClient(this.#parts.url, (client) =>
      client.query<{ subject: string }>(
        `select distinct subject from events where revision > $1 and type = $2 and ${condition}`,
        [this.#startRevision, type],
      ),
    );
    return rows.map(({ subject }) => subject);
  }
}

async function startSlowNats(context: BenchContext): Promise<Parts["nats"]> {
  const server = await startNats(context).catch(() => null);
  if (server === null) return null;
  const proxy = await FaultProxy.start(Number(new URL(server.url).port));
  context.atEnd(() => proxy.close());
  return { server, proxy };
}

/** Lock a table exclusively until the returned connection ends. */
async function lockTable(url: string, table: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: "another-client" });
  client.on("error", () => {});
  await client.connect();
  await client.query(`begin; lock table ${table} in access exclusive mode`);
  return client;
}

/** Change the whole server, including open sessions. */
async function alterSystem(url: string, change: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`alter system ${change}`);
    await client.query("select pg_reload_conf()");
  });
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
