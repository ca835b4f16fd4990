import { randomUUID } from "node:crypto";
import { setImmediate as nextLoopTick } from "node:timers/promises";
import {
  type Clock,
  createMetrics,
  type Logger,
  type MetricsRegistry,
  renderMetrics,
  silentLogger,
  superviseTasks,
} from "@rollcall/process";
import { createGrpcServer, createRpcServer, type RunningServer } from "@rollcall/rpc";
import {
  currentRevision,
  EventFeed,
  listHealthReplicas,
  releaseLease,
  renewLease,
  type Store,
  takeLease,
  WorkSignals,
} from "@rollcall/store";
import { ManualClock, until } from "@rollcall/testkit/time";
import { createApp, type HealthApp } from "../app.ts";
import { HEALTH_KEYS, type HealthConfig } from "../config.ts";
import type { HealthProcess } from "../health-process.ts";

export interface TestReplicaOptions extends Partial<Pick<HealthProcess, "limits" | "random" | "brakeTimes">> {
  readonly store: Store;
  readonly config?: Partial<HealthConfig>;
  /**
   * The clock of the replica. Default: a manual clock. With any other clock, the replica's detector runs
   * automatically.
   */
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly feedPollMs?: number;
}

/** The replicas of a test file, closed together even when a test fails. */
export class TestReplicas {
  readonly #replicas: TestReplica[] = [];

  async start(options: TestReplicaOptions): Promise<TestReplica> {
    const replica = await TestReplica.start(options);
    this.#replicas.push(replica);
    return replica;
  }

  async close(): Promise<void> {
    await Promise.all(this.#replicas.splice(0).map((replica) => replica.close()));
  }
}

/**
 * Short thresholds are safe here, because the test's time passes tick by tick, as in a process that is never paused.
 */
const TEST_THRESHOLDS = {
  "Orchestrator.NodeManager.DisconnectTimeout": 3_000,
  "Orchestrator.NodeManager.UnknownTimeout": 9_000,
  "Compute.Heartbeat.Interval": 1_000,
} as const satisfies Partial<HealthConfig>;

/** A complete replica with a real port and a real store; the test controls its time. */
export class TestReplica {
  readonly instance: string;
  readonly app: HealthApp;
  readonly clock: Clock;
  readonly store: Store;
  readonly metrics: MetricsRegistry;
  readonly #feed: EventFeed;
  readonly #server: RunningServer;
  readonly #internal: RunningServer;
  readonly #tasks: AbortController;
  readonly #done: Promise<void>;

  static async start(options: TestReplicaOptions): Promise<TestReplica> {
    const { store, log = silentLogger, clock = new ManualClock(), config, limits, random } = options;
    const instance = randomUUID();
    const metrics = createMetrics({ defaults: false });
    const feed = new EventFeed({ store: store.reserved, log, pollMs: options.feedPollMs ?? 200 });
    const app = createApp({
      store,
      feed,
      signals: new WorkSignals(feed),
      instance,
      config: { ...defaults(), ...TEST_THRESHOLDS, ...config },
      clock,
      log,
      metrics,
      gatherMs: 0,
      ...(limits === undefined ? {} : { limits }),
      ...(random === undefined ? {} : { random }),
      ...(options.brakeTimes === undefined ? {} : { brakeTimes: options.brakeTimes }),
    });
    await feed.start();
    const server = await createGrpcServer({
      host: "127.0.0.1",
      port: 0,
      routes: app.agentRoutes,
      log,
      metrics,
      logCalls: false,
      closeGraceMs: 500,
    });
    const internal = await createRpcServer({
      host: "127.0.0.1",
      port: 0,
      ...app.internal,
      authenticate: async () => null,
      log,
      metrics,
      closeGraceMs: 500,
    });
    const servers = { server, internal };
    const replica = new TestReplica({
      ...servers,
      instance,
      app,
      clock,
      store,
      metrics,
      feed,
      log,
    });
    await replica.takeLease();
    await replica.advertised();
    return replica;
  }

  private constructor(
    parts: Pick<TestReplica, "instance" | "app" | "clock" | "store" | "metrics"> & {
      readonly feed: EventFeed;
      readonly server: RunningServer;
      readonly internal: RunningServer;
      readonly log: Logger;
    },
  ) {
    this.instance = parts.instance;
    this.app = parts.app;
    this.clock = parts.clock;
    this.store = parts.store;
    this.metrics = parts.metrics;
    this.#feed = parts.feed;
    this.#server = parts.server;
    this.#internal = parts.internal;
    this.#tasks = new AbortController();
    const isManual = parts.clock instanceof ManualClock;
    // With a manual clock, the test itself runs the detector, tick by tick.
    const tasks = parts.app.tasks.filter(({ name }) => !isManual || name !== "failure-detection-task");
    const { signal } = this.#tasks;
    this.#done = superviseTasks(tasks, { log: parts.log, clock: parts.clock, signal }).done;
  }

  /** Where agents connect. */
  get address(): string {
    return `127.0.0.1:${this.#server.port}`;
  }

  /** The address for calls from other replicas. */
  get internalAddress(): string {
    return `127.0.0.1:${this.#internal.port}`;
  }

  /** Advertise the replica's addresses, and wait until the store has them. */
  async advertised(): Promise<void> {
    const { address: agentEndpoint, internalAddress, instance } = this;
    this.app.advertise({ agentEndpoint, internalAddress, queryEndpoint: "" });
    await until("the replica to be advertised", async () => {
      const listed = await listHealthReplicas(this.store.db);
      return listed.some((it) => it.instance === instance && it.internalAddress === internalAddress);
    });
  }

  /** Take the lease, as the process's lease keeper would. */
  async takeLease(): Promise<void> {
    const { instance } = this;
    await takeLease(this.store.db, { name: instance, instance, service: "health", address: "" });
    this.app.onLeaseHeld();
  }

  /** Renew the lease with the replica's report, as the process's lease keeper would. */
  async renew(): Promise<void> {
    await renewLease(this.store.db, this.instance, this.instance, this.app.leaseReport());
  }

  /** Wait until every event logged so far has been applied. */
  async caughtUp(): Promise<void> {
    await this.#feed.caughtUpTo(await currentRevision(this.store.db));
  }

  /**
   * Let time pass as in a process that is never delayed: tick by tick, reading the sockets before each run of the
   * detector.
   */
  async pass(ms: number): Promise<void> {
    const { clock } = this;
    if (!(clock instanceof ManualClock)) throw new Error("only a manual clock can be moved");
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      await nextLoopTick();
      this.app.replica.evaluate();
    }
  }

  /** The value of one line of /metrics, given its name with labels. */
  async metric(line: string): Promise<number | undefined> {
    const lines = (await renderMetrics(this.metrics)).split("\n");
    const found = lines.find((it) => it.startsWith(`${line} `));
    return found === undefined ? undefined : Number(found.slice(line.length + 1));
  }

  /** Stop following the log, like a replica that is cut off from the store. */
  async cutOff(): Promise<void> {
    await this.#feed.close();
  }

  /** Shut down the replica as SIGTERM does. Does nothing if it has ended. */
  async close(): Promise<void> {
    if (this.#tasks.signal.aborted) return;
    await this.app.close();
    await this.kill();
    await releaseLease(this.store.db, this.instance, this.instance);
  }

  /** End the replica as SIGKILL does: agents are not notified, and its lease stays. */
  async kill(): Promise<void> {
    this.#tasks.abort();
    await this.#done;
    await this.#feed.close();
    await Promise.all([this.#server.close(), this.#internal.close()]);
  }
}

function defaults(): HealthConfig {
  const entries = Object.entries(HEALTH_KEYS).map(([path, key]) => [path, key.default]);
  return Object.fromEntries(entries) as HealthConfig;
}
