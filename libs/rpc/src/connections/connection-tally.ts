import { type Clock, counter, type Logger, type MetricsRegistry } from "@rollcall/process";

/** Why a port closed or refused a connection. */
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

/** The log message for each reason; null for reasons that are no problem. */
const MESSAGES: Readonly<Record<EndReason, string | null>> = {
  silent: null,
  idle: null,
  unresponsive: "connections that no longer answer were cut",
  flood: "connections that flooded were cut",
  shed: "connections without a call were cut to make room at the limit",
  refused_port: "connections refused because the port is at its limit",
  refused_address: "connections refused because their address is at its limit of anonymous connections",
  out_of_descriptors: "connections without a call were cut because no file descriptors were left",
  not_accepted: "connections could not be accepted",
};

/**
 * Shortest time between two lines for the same reason in milliseconds, whatever the number of
 * connections.
 */
const SAY_EVERY_MS = 60_000;
const NAMED_ADDRESSES = 3;

interface Unsaid {
  connections: number;
  readonly from: Set<string>;
  saidAtMs: number;
}

/** Counts the connections that a port closes or refuses, and summarizes them in the log. */
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
      help: "Connections that a port closed or refused, by reason.",
      labelNames: ["port", "reason"],
    });
  }

  /**
   * Count a connection.
   *
   * @param from the connection's address, or the error code.
   */
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

  /**
   * Log the counts of each reason whose last line is old enough. Must be called about once a second.
   */
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
