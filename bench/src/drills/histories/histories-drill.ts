import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "@rollcall/domain";
import type { BenchContext } from "../../bench-context.ts";
import { seedNodes } from "../../seeds/seed-nodes.ts";
import { hasGo } from "../../servers/bare-grpc-go.ts";
import { type BenchDatabase, createAccessToken, startDatabase, withClient } from "../../servers/database.ts";
import { type RunningService, startService } from "../../servers/rollcall.ts";
import type { Drill, DrillOptions, DrillResult } from "../drill.ts";
import { buildChecker, checkHistories, describeOperation, type NodeReport } from "./checker.ts";
import { History } from "./history.ts";
import { HistoryClient } from "./history-client.ts";

interface Size {
  readonly operations: number;
  readonly nodes: number;
  /** The number of operations from one SIGKILL to the next. */
  readonly killEvery: number;
}

const SIZES: Readonly<Record<DrillOptions["length"], Size>> = {
  full: { operations: 10_000, nodes: 50, killEvery: 200 },
  short: { operations: 500, nodes: 5, killEvery: 100 },
};
const CLIENTS = 8;
const REPLICAS = 2;
const SERVICES = ["admin", "registry"] as const;
const SCAN_EVERY_MS = 10;
const RETURNS_WITHIN_MS = 120_000;
const MOST_SHOWN = 3;

/** Records histories of operations under SIGKILL, and checks them for linearizability. */
export const histories: Drill = {
  name: "histories",
  title: "SIGKILL of Postgres, admin and registry under 10,000 operations, whose histories must be linearizable",
  run: async (context, { length }) => {
    if (!(await hasGo())) return { passed: false, text: "FAILED: Go is not installed, which the checker needs" };
    const checker = join(context.directory, "histories-check");
    await buildChecker(checker);
    const { SEED } = process.env;
    const seed = SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(SEED);
    context.progress(`seed ${seed}`);
    const world = await HistoryWorld.start(context, SIZES[length], seed);
    await world.run();
    return world.result(checker);
  },
};

/** The processes and clients of a drill, and the recorded operations. */
class HistoryWorld {
  readonly #context: BenchContext;
  readonly #size: Size;
  readonly #seed: number;
  readonly #database: BenchDatabase;
  readonly #services: { readonly name: (typeof SERVICES)[number]; running: RunningService }[] = [];
  readonly #history = new History();
  readonly #complaints: string[] = [];
  readonly #kills = { postgres: 0, admin: 0, registry: 0 };
  #token = "";
  #started = 0;
  /** The number of operations that can start before the next killed process has returned. */
  #budget = 0;

  private constructor(context: BenchContext, size: Size, seed: number, database: BenchDatabase) {
    this.#context = context;
    this.#size = size;
    this.#seed = seed;
    this.#database = database;
    this.#budget = size.killEvery;
  }

  static async start(context: BenchContext, size: Size, seed: number): Promise<HistoryWorld> {
    const database = await startDatabase(context);
    await seedNodes({ url: database.url, count: size.nodes, identities: true });
    const world = new HistoryWorld(context, size, seed, database);
    world.#token = await createAccessToken(database.url, "admin");
    for (const name of SERVICES) {
      for (let replica = 0; replica < REPLICAS; replica += 1) {
        world.#services.push({ name, running: await startService(context, name, database.url, flagsOf(name)) });
      }
    }
    return world;
  }

  /** Let all clients work while processes are killed, and read all nodes at the end. */
  async run(): Promise<void> {
    const setting = {
      ...{ seed: this.#seed, history: this.#history, nodes: this.#size.nodes, token: this.#token },
      operations: Math.ceil(this.#size.operations / CLIENTS),
      adminPorts: this.#portsOf("admin"),
      registryPorts: this.#portsOf("registry"),
      started: () => this.#start(),
      complain: (complaint: string) => this.#complaints.push(complaint),
    };
    const clients = Array.from({ length: CLIENTS }, (_, number) => new HistoryClient(setting, number));
    await Promise.all([this.#kill(), ...clients.map((client) => client.run())]);
    await new HistoryClient(setting, CLIENTS).readAll();
  }

  async result(checker: string): Promise<DrillResult> {
    const reports = await checkHistories(checker, this.#history.operations);
    const wrong = reports.filter(({ result }) => result !== "OK");
    const { postgres, admin, registry } = this.#kills;
    const passed = wrong.length === 0 && this.#complaints.length === 0;
    const lines = [
      `${passed ? "PASSED" : "FAILED"}: ${this.#history.operations.length} operations on ${reports.length} nodes ` +
        `are ${wrong.length === 0 ? "" : "not "}linearizable (seed ${this.#seed})`,
      `  unknown outcomes: ${this.#history.open}, at most ${Math.max(...reports.map(({ open }) => open))} on one node`,
      `  refused:          ${this.#history.operations.filter(({ refusal }) => refusal !== undefined).length}`,
      `  killed:           Postgres ${postgres}, admin ${admin}, registry ${registry} times`,
      ...wrong.slice(0, MOST_SHOWN).flatMap(describeReport),
      ...this.#complaints.slice(0, MOST_SHOWN).map((complaint) => `  ${complaint}`),
    ];
    if (!passed) lines.push(`  the history is in ${await this.#keep()}`);
    return { passed, text: lines.join("\n") };
  }

  /** Wait until the next operation can start. */
  async #start(): Promise<void> {
    while (this.#started >= this.#budget) await delay(SCAN_EVERY_MS);
    this.#started += 1;
  }

  /** Kill one process after the other in the middle of operations, and restart each. */
  async #kill(): Promise<void> {
    const { operations, killEvery } = this.#size;
    const random = seededRandom(this.#seed);
    for (let number = 0; number < Math.floor(operations / killEvery); number += 1) {
      const atOperation = number * killEvery + Math.floor((killEvery * (1 + random())) / 2);
      while (this.#started < atOperation) await delay(SCAN_EVERY_MS);
      const service = SERVICES[Math.floor(number / 2) % SERVICES.length];
      const replica = Math.floor(random() * REPLICAS);
      if (number % 2 === 0 || service === undefined) await this.#killPostgres();
      else await this.#killService(service, replica);
      this.#budget += killEvery;
      if ((number + 1) % 5 === 0) this.#context.progress(`${this.#started} operations, ${number + 1} kills`);
    }
    this.#budget = Number.POSITIVE_INFINITY;
  }

  async #killPostgres(): Promise<void> {
    this.#database.kill();
    this.#kills.postgres += 1;
    const limitMs = performance.now() + RETURNS_WITHIN_MS;
    const isBack = () =>
      withClient(this.#database.url, (client) => client.query("select")).then(
        () => true,
        () => false,
      );
    while (!(await isBack())) {
      if (performance.now() > limitMs) throw new Error("Postgres did not return after SIGKILL");
      await delay(SCAN_EVERY_MS);
    }
  }

  async #killService(wanted: (typeof SERVICES)[number], replica: number): Promise<void> {
    const service = this.#services.filter(({ name }) => name === wanted)[replica];
    if (service === undefined) throw new Error(`${wanted} has no replica ${replica}`);
    const { server, ports } = service.running;
    server.signal("SIGKILL");
    await server.stop();
    this.#kills[service.name] += 1;
    const flags = flagsOf(service.name);
    service.running = await startService(this.#context, service.name, this.#database.url, flags, { ports });
  }

  #portsOf(wanted: string): readonly number[] {
    return this.#services.filter(({ name }) => name === wanted).map(({ running }) => running.port);
  }

  /** Keep the history when the drill's folder is removed. Returns its path. */
  async #keep(): Promise<string> {
    const folder = join(tmpdir(), "rollcall-histories");
    await mkdir(folder, { recursive: true });
    const kept = join(folder, `${this.#seed}.jsonl`);
    await this.#history.save(kept);
    return kept;
  }
}

/** New nodes wait for approval, so that the histories have nodes in every membership. */
function flagsOf(service: (typeof SERVICES)[number]): readonly string[] {
  return service === "registry" ? ["--set", "Orchestrator.NodeManager.ManualApproval=true"] : [];
}

function describeReport({ node, operations, result, minimal = [] }: NodeReport): readonly string[] {
  const shown = minimal.map((operation) => `    ${describeOperation(operation)}`);
  return [
    `  ${node}: ${result}, ${operations} operations${shown.length === 0 ? "" : "; no order explains these:"}`,
    ...shown,
  ];
}
