import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, type Logger, type MetricsRegistry, renderMetrics, systemClock } from "@rollcall/process";
import type { RunningServer } from "../connect/server-options.ts";
import { ConnectionKeeper } from "../connections/connection-keeper.ts";
import { listeningError } from "../connections/listening-error.ts";
import { StoppableRequest } from "../connections/stoppable-request.ts";
import { HostGuard, type HostRule } from "../limits/host-guard.ts";
import { StrangerLog } from "../limits/stranger-log.ts";

export interface ProbeServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly ready: ReadyCheck;
  readonly metrics: MetricsRegistry;
  /** What `/metrics` shows, where that is more than the registry's content. */
  readonly render?: (metrics: MetricsRegistry) => Promise<string>;
  readonly log: Logger;
  /** How long all checks together may take before they count as failed. Default 2 s. */
  readonly checkTimeoutMs?: number;
  /** Which names a browser may ask for /metrics by; any when absent. */
  readonly hosts?: HostRule | undefined;
  /** Where lines about refused requests are written. Without it each is written to the log. */
  readonly strangers?: StrangerLog;
  /** Speak TLS. Kubelets and scrapers have no certificates: none are asked for here. In clear text when absent. */
  readonly tls?: TlsSource;
  /** Most connections at a time. At the limit those that ask for nothing give way to new ones. Default 64. */
  readonly maxConnections?: number;
  readonly clock?: Clock;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Kubelets and scrapers are few, and each asks for little. */
const MAX_CONNECTIONS = 64;
const FIRST_BYTES_MS = 5_000;
const IDLE_MS = 10_000;

/** A rest is so many times as long as the run before it: runs take a fifth of the time at most. */
const REST_FACTOR = 4;
/** A run that waited for something else does not make callers wait for long. */
const LONGEST_REST_MS = 200;

/**
 * Serve /livez (200 while the event loop turns), /readyz (named checks as JSON; 503 when one fails) and /metrics
 * (Prometheus' text format) over HTTP or HTTPS.
 */
export async function createProbeServer(options: ProbeServerOptions): Promise<RunningServer> {
  const { strangers = new StrangerLog({ log: options.log }) } = options;
  const guard = new HostGuard({ ...options, strangers });
  const { render = renderMetrics, clock = systemClock } = options;
  const answering: Answering = {
    ...options,
    metricsText: shareRuns(() => render(options.metrics), clock),
  };
  const listener: http.RequestListener = (request, response) => {
    request.resume();
    // One request was sent behind the other, and their connection was cut for it.
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
      // The prober went away.
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
      // A scrape that is cut is taken again; an end that waits for a scraper is worse.
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

/** Connections that ask for nothing must not keep probes out: they give way to new ones. */
function keepConnections(server: http.Server, options: ProbeServerOptions): ConnectionKeeper {
  const { log, metrics, clock = systemClock } = options;
  const keeper = new ConnectionKeeper({
    name: "probes",
    limits: {
      maxConnections: options.maxConnections ?? MAX_CONNECTIONS,
      freshMs: FIRST_BYTES_MS,
      idleMs: IDLE_MS,
      maxStrangersOfAddress: Number.POSITIVE_INFINITY,
      spareBusyMs: Number.POSITIVE_INFINITY,
    },
    log,
    metrics,
    clock,
    // A probe that waits for what its neighbours did would end the process.
    accounts: null,
  });
  keeper.watchHttp1(server);
  const handshaking = new Map<string, net.Socket>();
  server.prependListener("connection", (socket: net.Socket) => {
    // The HTTP server serves the connection itself; probes are never queued.
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
  /** Costs some 20 ms with a large registry, so that many at once share it. */
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

/** A check that throws or hangs is a check that failed. */
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

/** One named check of readiness. */
export interface CheckResult {
  readonly ok: boolean;
  /**
   * Whether the process does its work, but late, because of what the message names. That does not make it unready: the
   * others depend on the same, and a balancer that took all of them out would make an outage of it.
   */
  readonly degraded?: boolean;
  /** What was found, for people. */
  readonly message: string;
}

/** What a service depends on right now, by the name of the check. Ready means that each is ok. */
export type ReadyReport = Readonly<Record<string, CheckResult>>;

/** Find out whether a service can do its work. */
export type ReadyCheck = () => ReadyReport | Promise<ReadyReport>;

/** Whether everything is ok. */
export function isReady(report: ReadyReport): boolean {
  return Object.values(report).every((check) => check.ok);
}

/**
 * Let callers share what is costly: one run at a time, with a rest after each, and those who ask meanwhile get the
 * outcome of the next run, which sees all that had happened when they asked.
 */
export function shareRuns<T>(run: () => Promise<T>, clock: Clock): () => Promise<T> {
  const { signal } = new AbortController();
  let busy: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    const startMs = clock.nowMs();
    const begun = run();
    const rest = () => clock.sleep(Math.min(REST_FACTOR * (clock.nowMs() - startMs), LONGEST_REST_MS), signal);
    // A failure goes to the callers that asked for that run.
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
