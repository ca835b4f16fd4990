import {
  type CallLimits,
  CallPlaces,
  clientAddress,
  DEFAULT_CALL_LIMITS,
  DEFAULT_STRANGER_BUDGET,
  FailureLimiter,
  type HostJudgement,
  isInNetwork,
  NODE_FAILURE_LIMITS,
  NoiseTable,
  parseIpAddress,
  readNetwork,
  StrangerBudget,
  TOKEN_FAILURE_LIMITS,
} from "@rollcall/domain";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { CallAdmission, type ClientAddress, FailedAttempts, StrangerLog } from "@rollcall/rpc";
import { type CallStore, createRefusalRecorder, type RefusalRecorder } from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";

/** What limits callers and records refusals: shared by all servers of a process. */
export interface CallGuards {
  readonly failures: FailedAttempts;
  readonly refusals: RefusalRecorder;
  readonly calls: CallAdmission;
  /** Where lines about those are written who are not known. */
  readonly strangers: StrangerLog;
  readonly clientAddress: ClientAddress;
  /** Write what is not written yet. */
  close(): Promise<void>;
}

export interface GuardOptions {
  readonly store: CallStore;
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
  const judge = judgeProxies(config["Listen.TrustedProxies"]);
  const strangers = new StrangerLog({
    log,
    clock,
    metrics,
    counts: new NoiseTable(),
    accounts: new StrangerBudget(DEFAULT_STRANGER_BUDGET, (host) => judge(host) === "proxy"),
  });
  const refusals = createRefusalRecorder(options);
  return {
    failures: new FailedAttempts(limits, clock),
    refusals,
    calls: new CallAdmission({ counts: new CallPlaces(callLimits(config)), metrics }),
    strangers,
    clientAddress: (peer, headers) => clientAddress(peer, headers, judge),
    close: async () => {
      strangers.close();
      await refusals.close();
    },
  };
}

function callLimits(config: ProcessConfig): CallLimits {
  const { callerWork } = DEFAULT_CALL_LIMITS;
  return {
    ...DEFAULT_CALL_LIMITS,
    callerCalls: config["Listen.CallsPerCaller"],
    callerStreams: config["Listen.StreamsPerCaller"],
    stranger: config["Listen.CallsPerAddress"],
    node: config["Listen.NodeCallsPerAddress"],
    // A record with more connections is meant for more readers.
    callerWork: Math.max(callerWork, Math.floor(config["Database.PoolSize"] / 2)),
  };
}

/** Tell trusted proxies from other addresses, by addresses and networks as the configuration has them. */
export function judgeProxies(proxies: readonly string[]): (host: string) => HostJudgement {
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
