import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, type Logger, type MetricsRegistry, renderMetrics, systemClock } from "@rollcall/process";
import { watchHttp1 } from "../connections/connection.ts";
import { ConnectionKeeper } from "../connections/connection-keeper.ts";
import { listeningError } from "../connections/listening-error.ts";
import { StoppableRequest } from "../connections/stoppable-request.ts";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import { HostGuard, type HostRule } from "../limits/host-guard.ts";
import type { RunningServer } from "../server-options.ts";

export interface ProbeServerOptions {
  readonly host: string;
  /** The port to listen on; 0 picks a free one. */
  readonly port: number;
  readonly ready: ReadyCheck;
  readonly metrics: MetricsRegistry;
  /** Renders `/metrics`, if the page shows more than the content of the registry. */
  readonly render?: (metrics: MetricsRegistry) => Promise<string>;
  readonly log: Logger;
  /** How long all checks together can take before they count as failed. Default 2 s. */
  readonly checkTimeoutMs?: number;
  /** The host names under which a browser can request /metrics; any if absent. */
  readonly hosts?: HostRule | undefined;
  /** Logs refused requests, with a limited number of lines. Without it, each refused request is logged. */
  readonly anonymousClients?: AnonymousLog;
  /**
   * Certificates to serve TLS with; clear text if absent. Client certificates are not requested, because kubelets and
   * scrapers have none.
   */
  readonly tls?: TlsSource;
  /**
   * Maximum number of concurrent connections. At the limit, an idle connection is closed for a new one. Default 64.
   */
  readonly maxConnections?: number;
  readonly clock?: Clock;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Default maximum number of connections. Kubelets and scrapers are few, and each needs few connections. */
const MAX_CONNECTIONS = 64;
const FIRST_BYTES_MS = 5_000;
const IDLE_MS = 10_000;

/** How many times longer a rest is than the run before it, so that runs take at most a fifth of the time. */
const REST_FACTOR = 4;
/** Longest rest, so that callers do not wait long after a slow run. */
const LONGEST_REST_MS = 200;

/**
 * Serve /livez (200 while the event loop runs), /readyz (named checks as JSON; 503 if one fails) and /metrics
 * (Prometheus text format) over HTTP or HTTPS.
 */
export async function createProbeServer(options: ProbeServerOptions): Promise<RunningServer> {
  const { anonymousClients = new AnonymousLog({ log: options.log }) } = options;
  const guard = new HostGuard({ ...options, anonymousClients });
  const { render = renderMetrics, clock = systemClock } = options;
  const answering: Answering = {
    ...options,
    metricsText: shareRuns(() => render(options.metrics), clock),
  };
  const listener: http.RequestListener = (request, response) => {
    request.resume();
    // Ignore a pipelined request whose connection was closed because of an earlier request.
    if (request.socket.destroyed) return;
    answerTo(request, answering, guard)
      .catch((error: unknown) => {
        options.log.error({ err: error, path: request.url }, "probe failed");
        return plain(500, "error");
      })
      .then(({ status, contentType, body }) => {
        response.writeHead(status, {
          "content-type": contentType,
          "content-length": Buffer.byteLength(body),
          "cache-control": "no-store",
        });
        response.end(request.method === "HEAD" ? undefined : body);
      })
      // Ignore a failed write: the prober has disconnected.
      .catch(() => {});
  };
  const server = createServer(listener, options.tls);
  const keeper = keepConnections(server, options);
  server.listen(options.port, options.host);
  await once(server, "listening").catch((error: unknown) => {
    keeper.close();
    throw listeningError(error, options.host, options.port);
  });
  const address = server.address();
  return {
    host: options.host,
    port: typeof address === "object" && address !== null ? address.port : options.port,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      // Abort scrapes instead of waiting for them, because waiting would delay the shutdown, and scrapers try again.
      server.closeAllConnections();
      await closed;
      keeper.close();
    },
  };
}

function createServer(listener: http.RequestListener, tls: TlsSource | undefined): http.Server {
  const stoppable = { IncomingMessage: StoppableRequest };
  if (tls === undefined) return http.createServer(stoppable, listener);
  const server = https.createServer({ ...tls.context, ...stoppable }, listener);
  const stop = tls.onChange((context) => server.setSecureContext(context));
  server.once("close", stop);
  return server;
}

/** Close idle connections for new ones, so that they do not keep probes out. */
function keepConnections(server: http.Server, options: ProbeServerOptions): ConnectionKeeper {
  const { log, metrics, clock = systemClock } = options;
  const keeper = new ConnectionKeeper({
    name: "probes",
    limits: {
      maxConnections: options.maxConnections ?? MAX_CONNECTIONS,
      freshMs: FIRST_BYTES_MS,
      idleMs: IDLE_MS,
      maxAnonymousOfAddress: Number.POSITIVE_INFINITY,
      spareBusyMs: Number.POSITIVE_INFINITY,
    },
    log,
    metrics,
    clock,
    // Turn accounting off: a probe that waits because of other requests from its address would get the process
    // restarted.
    accounts: null,
  });
  watchHttp1(server);
  const handshaking = new Map<string, net.Socket>();
  server.prependListener("connection", (socket: net.Socket) => {
    // Do nothing when the connection is accepted: the HTTP server already serves it, and probes never wait in a queue.
    keeper.accept(socket, () => {});
    if (options.tls === undefined || socket.destroyed) return;
    const peer = `${socket.remoteAddress} ${socket.remotePort}`;
    handshaking.set(peer, socket);
    socket.once("close", () => handshaking.delete(peer));
  });
  server.on("secureConnection", (socket: net.Socket) => {
    const raw = handshaking.get(`${socket.remoteAddress} ${socket.remotePort}`);
    if (raw !== undefined) keeper.secured(socket, raw);
  });
  server.on("error", (error) => keeper.notAccepted(error));
  return keeper;
}

interface Answering extends ProbeServerOptions {
  /** Render the metrics. This takes about 20 ms with a large registry, so concurrent requests share one run. */
  metricsText(): Promise<string>;
}

async function answerTo(request: http.IncomingMessage, options: Answering, guard: HostGuard): Promise<Answer> {
  if (request.method !== "GET" && request.method !== "HEAD") return plain(405, "use GET");
  switch (request.url?.split("?", 1)[0]) {
    case "/livez":
      return plain(200, "ok");
    case "/readyz": {
      const checks = await readyWithin(options);
      const ready = isReady(checks);
      const body = `${JSON.stringify({ ready, checks }, null, 2)}\n`;
      return { status: ready ? 200 : 503, contentType: "application/json", body };
    }
    case "/metrics": {
      const refusal = guard.refusalOf(request);
      if (refusal !== null) return plain(403, refusal.message);
      const body = await options.metricsText();
      return { status: 200, contentType: options.metrics.contentType, body };
    }
    default:
      return plain(404, "not found: try /livez, /readyz or /metrics");
  }
}

/** Run the readiness checks. They count as failed if they throw or hang. */
async function readyWithin(options: ProbeServerOptions): Promise<ReadyReport> {
  const { clock = systemClock, checkTimeoutMs = 2_000 } = options;
  const done = new AbortController();
  const late = clock.sleep(checkTimeoutMs, done.signal).then(
    () => failed(`no answer within ${checkTimeoutMs} ms`),
    () => failed("cancelled"),
  );
  try {
    return await Promise.race([Promise.resolve().then(options.ready), late]);
  } catch (error) {
    options.log.warn({ err: error }, "readiness check failed");
    return failed("the check itself failed");
  } finally {
    done.abort();
  }
}

function failed(message: string): ReadyReport {
  return { checks: { ok: false, message } };
}

function plain(status: number, text: string): Answer {
  return { status, contentType: "text/plain; charset=utf-8", body: `${text}\n` };
}

/** The result of one named readiness check. */
export interface CheckResult {
  readonly ok: boolean;
  /**
   * Whether the process works, but slowly, for the reason in the message. A degraded process is still ready: all
   * processes share the slow dependency, and a load balancer that removed all of them would cause an outage.
   */
  readonly degraded?: boolean;
  /** The result as text for people. */
  readonly message: string;
}

/** The results of the checks of a service's dependencies, keyed by name. The service is ready if every check is ok. */
export type ReadyReport = Readonly<Record<string, CheckResult>>;

/** Checks whether a service can do its work. */
export type ReadyCheck = () => ReadyReport | Promise<ReadyReport>;

export function isReady(report: ReadyReport): boolean {
  return Object.values(report).every((check) => check.ok);
}

/**
 * Share a costly operation between callers: one run at a time, with a rest after each. A caller that asks during a run
 * or a rest gets the result of the next run, so that the result reflects everything that happened before the caller
 * asked.
 */
export function shareRuns<T>(run: () => Promise<T>, clock: Clock): () => Promise<T> {
  const { signal } = new AbortController();
  let busy: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    const startMs = clock.nowMs();
    const begun = run();
    const rest = () => clock.sleep(Math.min(REST_FACTOR * (clock.nowMs() - startMs), LONGEST_REST_MS), signal);
    // Ignore a failure here, because the callers of the failed run get it.
    const rested = begun.then(rest, rest).then(() => {
      if (busy === rested) busy = null;
    });
    busy = rested;
    return begun;
  };
  return () => {
    if (next !== null) return next;
    if (busy === null) return begin();
    next = busy.then(() => {
      next = null;
      return begin();
    });
    return next;
  };
}
