import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PoisoningProxy } from "@rollcall/testkit/poisoning-proxy";
import type { BenchContext } from "../bench-context.ts";
import { PacedLoads } from "../load/paced-loads.ts";
import { benchNodeId } from "../seeds/bench-nodes.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { type BenchNats, startNats } from "../servers/nats.ts";
import { freePorts, type ProcessPorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";
import { startWebhookReceiver } from "../servers/webhook-receiver.ts";
import type { Drill, DrillOptions, DrillResult } from "./drill.ts";
import { DatabaseSessions, DEAFENING, faultsOf, LONG_LIVED, SERVER_FAULTS, SESSION_POISONS } from "./poisons.ts";

interface Size {
  readonly agents: number;
  readonly intervalMs: number;
  readonly unhealthyAfterMs: number;
  /** How long a fault of the database lasts. In the full drill, it outlasts a lease. */
  readonly faultMs: number;
}

const SIZES: Readonly<Record<"full" | "short", Size>> = {
  full: { agents: 200, intervalMs: 1_000, unhealthyAfterMs: 10_000, faultMs: 20_000 },
  short: { agents: 20, intervalMs: 500, unhealthyAfterMs: 5_000, faultMs: 500 },
};
/**
 * The time limit for poisoning a session. A session is poisoned between transactions, and each transaction ends
 * within seconds.
 */
const POISONS_WITHIN_MS = 60_000;
/** The time limit for everything to work again after the fault. */
const RECOVERS_WITHIN_MS = 90_000;
const CALL_TIMEOUT_MS = 20_000;
const SCAN_EVERY_MS = 100;
/** The time limit for the process and its agents to connect. */
const STARTS_WITHIN_MS = 120_000;
const NODE = benchNodeId(0);

/** Causes every error that makes one session or all sessions useless, on each long-lived connection. */
export const poisonedSessions: Drill = {
  name: "poisoned-sessions",
  title: "sessions of Postgres become read-only, lose their role, statements or transaction, or end",
  run: async (context, options) => {
    const world = await PoisonedWorld.start(context, options);
    if (options.length === "full") await world.eachConnection();
    await world.allConnections();
    return world.result();
  },
};

/** One control plane, and the checks that it must pass after each fault. */
class PoisonedWorld {
  readonly #context: BenchContext;
  readonly #size: Size;
  readonly #url: string;
  readonly #token: string;
  readonly #ports: ProcessPorts;
  readonly #proxy: PoisoningProxy;
  readonly #server: ServerProcess;
  readonly #loads: PacedLoads;
  readonly #nats: BenchNats | null;
  readonly #receivedFile: string;
  readonly #complaints: string[] = [];
  #startRevision = "0";
  #scenarios = 0;
  #calls = { answered: 0, unavailable: 0 };

  private constructor(
    context: BenchContext,
    parts: {
      readonly size: Size;
      readonly url: string;
      readonly token: string;
      readonly ports: ProcessPorts;
      readonly proxy: PoisoningProxy;
      readonly server: ServerProcess;
      readonly nats: BenchNats | null;
      readonly receivedFile: string;
    },
  ) {
    this.#context = context;
    this.#size = parts.size;
    this.#url = parts.url;
    this.#token = parts.token;
    this.#ports = parts.ports;
    this.#proxy = parts.proxy;
    this.#server = parts.server;
    this.#nats = parts.nats;
    this.#receivedFile = parts.receivedFile;
    this.#loads = new PacedLoads(context, parts.size.agents);
  }

  static async start(context: BenchContext, { length, agents }: DrillOptions): Promise<PoisonedWorld> {
    const size = { ...SIZES[length], ...(agents === undefined ? {} : { agents }) };
    const { url } = await startDatabase(context);
    await seedNodes({ url, count: size.agents, identities: true });
    const proxy = await PoisoningProxy.start(url);
    context.atEnd(() => proxy.close());
    const nats = await startNats(context).catch(() => null);
    if (nats === null) context.progress("no nats-server on the PATH: the relay is not tested");
    const receiver = await startWebhookReceiver(context);
    const ports = await freePorts();
    const settings = [
      `Orchestrator.NodeManager.DisconnectTimeout=${size.unhealthyAfterMs}ms`,
      `Orchestrator.NodeManager.UnknownTimeout=${size.unhealthyAfterMs * 5}ms`,
      `Compute.Heartbeat.Interval=${size.intervalMs}ms`,
      "Webhooks.AllowedNetworks=127.0.0.1",
      `Webhooks.AuthorityFile=${receiver.caFile}`,
      ...(nats === null ? [] : [`Events.Nats.Url=${nats.url}`]),
    ];
    const flags = settings.flatMap((setting) => ["--set", setting]);
    const server = await ServerProcess.start({
      program: ROLLCALL_PROGRAM,
      args: ["up", "--no-agent", "--data-dir", join(context.directory, "data"), ...portFlags(ports, true), ...flags],
      env: { DATABASE_URL: proxy.url },
      port: ports.api,
      logFile: join(context.directory, "up.log"),
    });
    context.atEnd(() => server.stop());
    const token = await createAccessToken(url, "admin");
    const receivedFile = receiver.file;
    const world = new PoisonedWorld(context, { size, url, token, ports, proxy, server, nats, receivedFile });
    await world.#begin(receiver.port);
    return world;
  }

  /** Apply each poison to each connection, one after the other. */
  async eachConnection(): Promise<void> {
    for (const [kind, name] of LONG_LIVED) {
      for (const poison of SESSION_POISONS) await this.#poisonSessions(kind, [name], poison);
      await this.#breakDatabase(kind, [name]);
    }
  }

  /** Apply each poison to all connections at the same time. */
  async allConnections(): Promise<void> {
    const names = [...LONG_LIVED.values()];
    for (const poison of SESSION_POISONS) await this.#poisonSessions("all", names, poison);
    await this.#breakDatabase("all", names);
    for (const { name, begin, end } of SERVER_FAULTS) await this.#whileBroken(`server, ${name}`, begin, end);
  }

  async result(): Promise<DrillResult> {
    // Wait until any node that fell silent during the last fault has been declared unhealthy.
    await delay(this.#size.unhealthyAfterMs + this.#size.intervalMs);
    const { gaps, reconnects } = await this.#loads.order({ kind: "report", gapMs: this.#size.unhealthyAfterMs });
    const { rows } = await withClient(this.#url, (client) =>
      client.query<{ subject: string }>(
        `select distinct subject from events where revision > $1 and type = 'node.health.changed'
           and after ->> 'health' <> 'HEALTHY'`,
        [this.#startRevision],
      ),
    );
    const falsely = rows.map(({ subject }) => subject).filter((node) => !gaps.includes(node));
    if (falsely.length > 0)
      this.#complaints.push(`${falsely.length} healthy nodes were declared unhealthy: ${falsely.slice(0, 3)}`);
    const { answered, unavailable } = this.#calls;
    const passed = this.#complaints.length === 0;
    const lines = [
      `${passed ? "PASSED" : "FAILED"}: ${this.#scenarios} faults, ${this.#size.agents} agents`,
      `  calls:          ${answered} answered, ${unavailable} UNAVAILABLE`,
      `  wrongly declared: ${falsely.length}`,
      `  reconnects:     ${reconnects}`,
      ...this.#complaints.map((complaint) => `  ${complaint}`),
    ];
    return { passed, text: lines.join("\n") };
  }

  async #begin(receiverPort: number): Promise<void> {
    const { agents, intervalMs, unhealthyAfterMs } = this.#size;
    const patienceMs = Math.max(unhealthyAfterMs / 3, (intervalMs * 4) / 3);
    await this.#loads.run({ ports: [this.#ports.agents], isSpread: true, intervalMs, patienceMs });
    await this.#until("all agents to be HEALTHY", STARTS_WITHIN_MS, async () => (await this.#healthy()) === agents);
    const spec = { url: `https://127.0.0.1:${receiverPort}/`, types: ["node.scheduling.changed"] };
    const set = await this.#call("rollcall.events.v1.WebhookService/SetWebhook", { name: "drill", spec });
    if (set !== "answered") throw new Error(`SetWebhook failed: ${set}`);
    await this.#expectWorking("at the start");
    this.#startRevision = await this.#lastRevision();
  }

  async #poisonSessions(
    kind: string,
    names: readonly string[],
    [name, statement]: readonly [string, string],
  ): Promise<void> {
    const title = `${kind}, ${name}`;
    const before = await this.#feedPids();
    const poisoned = this.#proxy.poison((it) => names.includes(it), statement);
    const isLate = delay(POISONS_WITHIN_MS, null, { ref: false });
    const count = await Promise.race([poisoned, isLate]);
    if (count === null) throw new Error(`${title}: no session became idle`);
    if (count === 0) {
      this.#complaints.push(`${title}: there was no session to poison`);
    }
    for (let times = 0; times < 3; times += 1) await this.#change(title);
    if (DEAFENING.has(statement) && names.includes(LONG_LIVED.get("feed") ?? "")) {
      await this.#untilRecovered(title, "another connection to listen", async () => {
        const after = await this.#feedPids();
        return after.length > 0 && !after.some((pid) => before.includes(pid));
      });
    }
    await this.#expectWorking(title);
  }

  async #breakDatabase(kind: string, names: readonly string[]): Promise<void> {
    for (const { name, begin, end } of faultsOf(names)) await this.#whileBroken(`${kind}, ${name}`, begin, end);
  }

  async #whileBroken(
    title: string,
    begin: (sessions: DatabaseSessions) => Promise<void>,
    end: (sessions: DatabaseSessions) => Promise<void>,
  ): Promise<void> {
    await this.#administer(begin);
    const endAtMs = performance.now() + this.#size.faultMs;
    do {
      await this.#change(title);
      await delay(SCAN_EVERY_MS);
    } while (performance.now() < endAtMs);
    // Wait, because the server refuses all connections for a while after a crash.
    await this.#untilRecovered(title, "the administrator's connection", async () => {
      await this.#administer(end);
      return true;
    });
    await this.#expectWorking(title);
  }

  async #administer(work: (sessions: DatabaseSessions) => Promise<void>): Promise<void> {
    const sessions = await DatabaseSessions.open(this.#url);
    try {
      await work(sessions);
    } finally {
      await sessions.close();
    }
  }

  /** Check that everything that uses the database works, and that the process was not restarted. */
  async #expectWorking(title: string): Promise<void> {
    this.#scenarios += 1;
    const startMs = performance.now();
    const stored = await this.#nats?.storedMessages();
    await this.#untilRecovered(title, "/readyz to be 200", () => this.#isReady());
    await this.#untilRecovered(title, "a change to be answered", () => this.#change(title));
    const revision = await this.#lastRevision();
    await this.#untilRecovered(title, "the webhook's delivery", async () => this.#received(revision));
    await this.#untilRecovered(title, "the relay", async () => (await this.#nats?.storedMessages()) !== stored);
    await this.#untilRecovered(title, "the feed", async () => (await this.#feedPids()).length === 1);
    const counter = await this.#leaseCounter();
    await this.#untilRecovered(title, "the lease", async () => (await this.#leaseCounter()) > counter);
    if (this.#server.lastWords !== null) throw new Error(`the process exited: ${this.#server.lastWords}`);
    this.#context.progress(`${title}: works after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
  }

  async #untilRecovered(title: string, what: string, isSo: () => Promise<boolean>): Promise<void> {
    if (what === "the relay" && this.#nats === null) return;
    await this.#until(`${what} (${title})`, RECOVERS_WITHIN_MS, isSo);
  }

  async #until(what: string, limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
    const limitAtMs = performance.now() + limitMs;
    while (!(await isSo().catch(() => false))) {
      if (performance.now() > limitAtMs) throw new Error(`waited too long for ${what}`);
      await delay(SCAN_EVERY_MS);
    }
  }

  /** List nodes, then cordon and uncordon a node. Returns whether the last call was answered. */
  async #change(title: string): Promise<boolean> {
    let isAnswered = false;
    for (const [method, body] of [
      ["rollcall.registry.v1.RegistryService/ListNodes", { pageSize: 5 }],
      ["rollcall.admin.v1.AdminService/CordonNode", { node: NODE }],
      ["rollcall.admin.v1.AdminService/UncordonNode", { node: NODE }],
    ] as const) {
      const outcome = await this.#call(method, body);
      isAnswered = outcome === "answered";
      if (outcome === "answered" || outcome === "unavailable") this.#calls[outcome] += 1;
      else this.#complaints.push(`${title}: ${method} returned ${outcome}`);
    }
    return isAnswered;
  }

  /** Make a call. Returns "answered", "unavailable", or a description of any other response. */
  async #call(method: string, body: object): Promise<string> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.#ports.api}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${this.#token}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const text = await answer.text();
      if (answer.ok) return "answered";
      if (JSON.parse(text).code === "unavailable") return "unavailable";
      // CordonNode was UNAVAILABLE and had no effect, so there is nothing to undo.
      return text.includes("NODE_NOT_CORDONED") ? "answered" : text.slice(0, 300);
    } catch (error) {
      return String(error);
    }
  }

  async #isReady(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.#ports.probes}/readyz`);
    await answer.text();
    return answer.ok;
  }

  async #feedPids(): Promise<readonly number[]> {
    let pids: readonly number[] = [];
    await this.#administer(async (sessions) => {
      pids = await sessions.pids(LONG_LIVED.get("feed") ?? "");
    });
    return pids;
  }

  #received(revision: string): boolean {
    if (!existsSync(this.#receivedFile)) return false;
    return readFileSync(this.#receivedFile, "utf8").includes(`${NODE} ${revision}\n`);
  }

  async #healthy(): Promise<number> {
    const query = "select count(*)::integer as count from node_sessions where health = 'HEALTHY'";
    const { rows } = await withClient(this.#url, (client) => client.query<{ count: number }>(query));
    return rows[0]?.count ?? 0;
  }

  /** The revision of the last event about the node that the drill changes. */
  async #lastRevision(): Promise<string> {
    const { rows } = await withClient(this.#url, (client) =>
      client.query<{ revision: string }>(
        `select coalesce(max(revision), 0)::text as revision from events
         where subject = $1 and type = 'node.scheduling.changed'`,
        [NODE],
      ),
    );
    return rows[0]?.revision ?? "0";
  }

  async #leaseCounter(): Promise<number> {
    const { rows } = await withClient(this.#url, (client) =>
      client.query<{ counter: string }>("select counter::text as counter from leases where name = instance"),
    );
    return Number(rows[0]?.counter);
  }
}
