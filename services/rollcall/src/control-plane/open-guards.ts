import {
  AnonymousBudget,
  type CallLimits,
  CallPlaces,
  clientAddress,
  DEFAULT_ANONYMOUS_BUDGET,
  DEFAULT_CALL_LIMITS,
  FailureLimiter,
  type HostKind,
  isInNetwork,
  NODE_FAILURE_LIMITS,
  NoiseTable,
  parseIpAddress,
  readNetwork,
  TOKEN_FAILURE_LIMITS,
} from "@rollcall/domain";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { AnonymousLog, CallAdmission, type ClientAddress, FailedAttempts } from "@rollcall/rpc";
import { createRefusalRecorder, type RefusalRecorder, type Store } from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";

/** Limits callers and records refusals, for all servers of a process. */
export interface CallGuards {
  readonly failures: FailedAttempts;
  readonly refusals: RefusalRecorder;
  readonly calls: CallAdmission;
  /** The log for lines about anonymous clients. */
  readonly anonymousClients: AnonymousLog;
  readonly clientAddress: ClientAddress;
  /** Write pending records. */
  close(): Promise<void>;
}

export interface GuardOptions {
  readonly store: Store;
  readonly config: ProcessConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/** Create the guards of a process. */
export function openGuards(options: GuardOptions): CallGuards {
  const limits = {
    token: new FailureLimiter(TOKEN_FAILURE_LIMITS),
    node: new FailureLimiter(NODE_FAILURE_LIMITS),
  };
  const { config, clock, log, metrics } = options;
  const evaluate = evaluateProxies(config["Listen.TrustedProxies"]);
  const anonymousClients = new AnonymousLog({
    log,
    clock,
    metrics,
    counts: new NoiseTable(),
    accounts: new AnonymousBudget(DEFAULT_ANONYMOUS_BUDGET, (host) => evaluate(host) === "proxy"),
  });
  const refusals = createRefusalRecorder(options);
  return {
    failures: new FailedAttempts(limits, clock),
    refusals,
    calls: new CallAdmission({ counts: new CallPlaces(callLimits(config, options.store)), metrics }),
    anonymousClients,
    clientAddress: (peer, headers) => clientAddress(peer, headers, evaluate),
    close: async () => {
      anonymousClients.close();
      await refusals.close();
    },
  };
}

/**
 * The limits of callers. They depend on the pool size of the store, because a worker's pool can be smaller than
 * configured.
 */
export function callLimits(config: ProcessConfig, store: Pick<Store, "use">): CallLimits {
  const poolSize = store.use().find(({ lane }) => lane === "calls")?.size ?? config["Database.PoolSize"];
  return {
    ...DEFAULT_CALL_LIMITS,
    callerCalls: config["Listen.CallsPerCaller"],
    callerStreams: config["Listen.StreamsPerCaller"],
    anonymous: config["Listen.CallsPerAddress"],
    node: config["Listen.NodeCallsPerAddress"],
    // Let one caller use at most half of the connections.
    callerWork: Math.max(1, Math.floor(poolSize / 2)),
  };
}

/** Returns a function that classifies an address as a trusted proxy or not, by configured addresses and networks. */
export function evaluateProxies(proxies: readonly string[]): (host: string) => HostKind {
  const trusted = proxies.map((text) => {
    const read = readNetwork(text);
    if (!read.ok) throw new Error(`${text} ${read.problem}`);
    return read.network;
  });
  return (host) => {
    const address = parseIpAddress(host);
    if (address === null) return "invalid";
    return trusted.some((network) => isInNetwork(address, network)) ? "proxy" : "other";
  };
}
