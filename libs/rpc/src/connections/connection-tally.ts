import { type Clock, counter, type Logger, type MetricsRegistry } from "@rollcall/process";

/** Why a port ended a connection, or did not take it. */
export type EndReason =
  | "silent"
  | "idle"
  | "unresponsive"
  | "flood"
  | "shed"
  | "refused_port"
  | "refused_address"
  | "out_of_descriptors"
  | "not_accepted";

/** What the log says of each; null for what is no trouble. */
const MESSAGES: Readonly<Record<EndReason, string | null>> = {
  silent: null,
  idle: null,
  unresponsive: "connections that no longer answer were cut",
  flood: "connections that flooded were cut",
  shed: "connections without a call were cut for new ones at the limit",
  refused_port: "connections refused, the port has as many as it may",
  refused_address: "connections refused, their address has as many strangers as it may",
  out_of_descriptors: "connections without a call were cut, no file descriptors were left",
  not_accepted: "connections could not be accepted",
};

/** One line for each reason within so long, however many connections it concerns. */
const SAY_EVERY_MS = 60_000;
const NAMED_ADDRESSES = 3;

interface Unsaid {
  connections: number;
  readonly from: Set<string>;
  saidAtMs: number;
}

/** Counts the connections that a port ended or refused, and sums them up in the log. */
export class ConnectionTally {
  readonly #port: string;
  readonly #log: Logger;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #ended: ReturnType<typeof counter<"port" | "reason">>;
  readonly #unsaid = new Map<EndReason, Unsaid>();

  constructor(
    port: string,
    deps: {
      readonly log: Logger;
      readonly metrics: MetricsRegistry;
      readonly clock: Pick<Clock, "nowMs">;
    },
  ) {
    this.#port = port;
    this.#log = deps.log;
    this.#clock = deps.clock;
    this.#ended = counter(deps.metrics, {
      name: "rollcall_connections_ended_total",
      help: "Connections that a port ended, or did not take, by why.",
      labelNames: ["port", "reason"],
    });
  }

  /** Count a connection. @param from its address, or the code of what failed. */
  add(reason: EndReason, from: string): void {
    this.#ended.inc({ port: this.#port, reason });
    if (MESSAGES[reason] === null) return;
    let unsaid = this.#unsaid.get(reason);
    if (unsaid === undefined) {
      unsaid = { connections: 0, from: new Set(), saidAtMs: Number.NEGATIVE_INFINITY };
      this.#unsaid.set(reason, unsaid);
    }
    unsaid.connections += 1;
    if (unsaid.from.size < NAMED_ADDRESSES) unsaid.from.add(from);
  }

  /** Write what was counted, where its last line is long enough ago. To be called every second or so. */
  say(): void {
    const nowMs = this.#clock.nowMs();
    for (const [reason, unsaid] of this.#unsaid) {
      if (unsaid.connections === 0 || nowMs - unsaid.saidAtMs < SAY_EVERY_MS) continue;
      const { connections, from } = unsaid;
      const fields = { port: this.#port, reason, connections, from: [...from] };
      this.#log.warn(fields, MESSAGES[reason] ?? "");
      unsaid.connections = 0;
      from.clear();
      unsaid.saidAtMs = nowMs;
    }
  }
}
