import { isIPv6 } from "node:net";
import { hostname } from "node:os";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { createApp as createAdmin, type LoginIssuer } from "@rollcall/admin";
import { type ConsoleApp, createApp as createConsole, type PageFiles } from "@rollcall/console";
import type { OwnerQuota } from "@rollcall/domain";
import {
  type AuthorityFeed,
  agentEndpointOf,
  createApp as createHealth,
  createQueryApp,
  type HealthApp,
} from "@rollcall/health";
import type { Authenticator } from "@rollcall/identity";
import { oidcIssuersOf } from "@rollcall/identity/oidc";
import type { Clock, Logger, MetricsRegistry, Task } from "@rollcall/process";
import { createApp as createRegistry } from "@rollcall/registry";
import type {
  AnonymousLog,
  CheckResult,
  FailedAttempts,
  HttpPage,
  LogReader,
  PeerTls,
  PolicyTable,
  ReadyReport,
} from "@rollcall/rpc";
import { createApp as createScheduler } from "@rollcall/scheduler";
import { CallLogReader, EventFeed, exposeFeed, type NotificationState, type Store, WorkSignals } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { consoleSettings } from "./console-parts.ts";
import { exposure, exposureFacts } from "./exposure.ts";
import type { ProcessNats } from "./open-nats.ts";
import type { ProcessPlan } from "./process-plan.ts";

/**
 * How long changes to nodes are gathered into one statement. While many nodes change, gathering is cheaper for
 * Postgres, and saves every replica a read of the event log. The first change after a pause is not delayed.
 */
const GATHER_MS = 100;

/** The objects that the services of one process share. */
export interface SharedParts {
  readonly store: Store;
  readonly config: ControlPlaneConfig;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** How to reach other processes over TLS; null for clear text. */
  readonly peerTls?: PeerTls | null;
  /** The authorities that agents should trust; null when none are announced. */
  readonly authorities?: AuthorityFeed | null;
  /** Identifies a caller by its token. */
  readonly authenticate: Authenticator;
  /** The console's pages; null when they are not served or not built. */
  readonly pages?: PageFiles | null;
  /** Limits callers that fail to authenticate too often. */
  readonly failures: FailedAttempts;
  /** The log for lines about anonymous clients. */
  readonly anonymousClients: AnonymousLog;
}

/** All services of one process. */
export interface Services {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Pages served over plain HTTP. */
  readonly pages: readonly HttpPage[];
  readonly tasks: readonly Task[];
  /** The agents' side, in a process that runs health. */
  readonly health: HealthApp | null;
  /** The pages and browser sign-in, in a process that runs the console. */
  readonly console: ConsoleApp | null;
  ready(): Promise<ReadyReport>;
  /** Reads the event log, and waits until this process has read a revision that a call requires. */
  readonly logReader: LogReader;
  /** Whether Postgres notifications fail to arrive, so that this process finds changes by polling. */
  lacksNotifications(): boolean;
  /** How long the slowest reader of the event log in this process has been behind, in milliseconds. */
  feedLagMs(): number;
  /** Start following the event log in a process that runs health. In other processes, the first watch starts it. */
  start(): Promise<void>;
  /** Finish calls in progress, and write pending changes. */
  close(): Promise<void>;
}

/** The members that every service has. */
interface App {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly pages?: readonly HttpPage[];
  readonly tasks: readonly Task[];
  ready(): ReadyReport | Promise<ReadyReport>;
  close(): Promise<void>;
}

function quotaOf(config: ControlPlaneConfig): OwnerQuota {
  const limit = (value: number) => (value === 0 ? null : value);
  return {
    jobs: limit(config["Quota.Jobs"]),
    executions: limit(config["Quota.Executions"]),
    millicores: limit(config["Quota.Cores"] * 1_000),
  };
}

/** Create the services of a process, without listening or running tasks. */
export function createServices(plan: ProcessPlan, parts: SharedParts, nats: ProcessNats | null): Services {
  const { store, log } = parts;
  const feed = new EventFeed({ store: store.reserved, log, clock: parts.clock });
  exposeFeed(parts.metrics, feed);
  const signals = new WorkSignals(feed);
  const quota = quotaOf(parts.config);
  const apps: App[] = [];
  let health: HealthApp | null = null;
  let pages: ConsoleApp | null = null;
  for (const service of plan.services) {
    const shared = { ...parts, log: parts.log.child({ service }) };
    if (service === "registry") {
      const warnings = exposure(exposureFacts(plan.host, parts.config));
      apps.push(createRegistry({ ...shared, feed, warnings, outward: nats?.outward ?? null }));
    }
    if (service === "admin") {
      apps.push(createAdmin({ ...shared, feed, quota, loginIssuers: loginIssuersOf(parts.config) }));
    }
    if (service === "console") {
      const settings = consoleSettings(plan, parts.config, parts.peerTls ?? null);
      pages = createConsole({ ...shared, ...settings, pages: parts.pages ?? null });
      apps.push(pages);
    }
    if (service === "health-query") apps.push(createQueryApp({ ...shared, feed }));
    if (service === "scheduler") apps.push(createScheduler({ ...shared, feed, signals, quota }));
    if (service === "health") {
      health = createHealth({ ...shared, feed, signals, gatherMs: GATHER_MS, onBeat: nats?.onBeat ?? null });
      apps.push(health);
    }
  }
  return {
    routes: (router) => {
      for (const app of apps) app.routes(router);
    },
    services: apps.flatMap((app) => app.services),
    policies: Object.assign({}, ...apps.map((app) => app.policies)),
    pages: apps.flatMap((app) => app.pages ?? []),
    tasks: apps.flatMap((app) => app.tasks),
    health,
    console: pages,
    ready: async () => ({
      ...Object.assign({}, ...(await Promise.all(apps.map((app) => app.ready())))),
      notifications: NOTIFICATIONS[feed.notifications],
    }),
    logReader: new CallLogReader({ store, feed, clock: parts.clock }),
    lacksNotifications: () => feed.notifications === "missing",
    feedLagMs: () => Math.max(0, ...feed.lags().map(({ sinceEndMs }) => sinceEndMs)),
    start: async () => {
      if (health !== null || plan.services.includes("health-query")) await feed.start();
    },
    close: async () => {
      await Promise.all(apps.map((app) => app.close()));
      await feed.close();
    },
  };
}

const NOTIFICATIONS: Readonly<Record<NotificationState, CheckResult>> = {
  unknown: { ok: true, message: "not checked yet" },
  arriving: { ok: true, message: "arrive" },
  missing: {
    ok: true,
    degraded: true,
    message:
      "do not arrive, so changes are noticed seconds late: set Database.DirectURL to the address of Postgres itself, " +
      "without a pooler in transaction mode",
  },
};

/** The issuers that people can log in with from the command line. */
function loginIssuersOf(config: ControlPlaneConfig): readonly LoginIssuer[] {
  return oidcIssuersOf(config).flatMap(({ issuer, clientId, audience, scopes }) =>
    clientId === null ? [] : [{ issuer, clientId, audience, scopes }],
  );
}

/** The address for agents' streams: HOST:PORT, or ":PORT" for the host at which they reached the registry. */
export function agentEndpoint(plan: ProcessPlan, config: ControlPlaneConfig, port: number): string {
  return agentEndpointOf({
    advertise: config["Health.AdvertiseAddress"],
    port,
    hostname:
      config["Listen.AdvertiseHost"] === undefined && plan.services.includes("registry")
        ? null
        : advertisedHost(plan, config),
  });
}

/**
 * The host at which other machines reach this process, in the form that precedes a port. A process that listens on
 * loopback must not advertise the machine's name, which would lead elsewhere.
 */
export function advertisedHost({ host: listening }: Pick<ProcessPlan, "host">, config: ControlPlaneConfig): string {
  const everywhere = listening === "0.0.0.0" || listening === "::";
  const host = config["Listen.AdvertiseHost"] ?? (everywhere ? hostname() : listening);
  return isIPv6(host) ? `[${host}]` : host;
}
