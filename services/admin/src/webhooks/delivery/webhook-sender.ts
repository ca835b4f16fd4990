import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import { rootCertificates } from "node:tls";
import { type Attempt, type Network, parseNetwork } from "@rollcall/domain";
import { CLOUD_EVENT_MEDIA_TYPE } from "@rollcall/events/cloud-event";
import { type Clock, errorCode } from "@rollcall/process";
import { Webhook } from "standardwebhooks";
import {
  AddressRefusedError,
  boundedResolve,
  checkAddress,
  guardedLookup,
  type Resolve,
  systemResolve,
} from "./guarded-lookup.ts";
import { refusedWebhookUrl } from "./refused-url.ts";

export interface Delivery {
  readonly url: string;
  /** Secrets in the format of Standard Webhooks. Each secret adds a signature. */
  readonly secrets: readonly string[];
  /** The event's id. It lets receivers recognize a repeated delivery. */
  readonly id: string;
  /** A CloudEvent in structured JSON. */
  readonly body: string;
}

/** Posts events to receivers. */
export interface WebhookSender {
  /** Make one attempt. Rejects only when the signal aborts. */
  post(delivery: Delivery, signal: AbortSignal): Promise<Attempt>;
  /** Explains why events cannot be delivered to a URL; null when the URL itself shows no reason. */
  refusedUrl(url: string): string | null;
  close(): void;
}

export interface SenderOptions {
  readonly clock: Clock;
  readonly allowedNetworks: readonly string[];
  /** Additional certificate authorities; null for none. */
  readonly authorityFile: string | null;
  readonly timeoutMs: number;
  readonly userAgent: string;
  /** Resolves a name; the system's resolver when absent. */
  readonly resolve?: Resolve;
}

/** Size up to which responses are read to their end, so that their connections can be reused. */
const MOST_ANSWER_BYTES = 16_384;
const MOST_IDLE_CONNECTIONS = 32;
const IDLE_MS = 15_000;

/** Create a sender. It follows no redirects and uses no proxy. */
export function createWebhookSender(options: SenderOptions): WebhookSender {
  const { clock, timeoutMs, userAgent, authorityFile, resolve = systemResolve } = options;
  const allowed = options.allowedNetworks.map(networkOf);
  const agent = new Agent({
    keepAlive: true,
    maxFreeSockets: MOST_IDLE_CONNECTIONS,
    timeout: IDLE_MS,
    minVersion: "TLSv1.2",
    // Set explicitly, because the environment could turn off the verification.
    rejectUnauthorized: true,
    ...(authorityFile === null ? {} : { ca: [...rootCertificates, readFileSync(authorityFile, "utf8")] }),
  });
  const lookup = guardedLookup(boundedResolve(resolve), allowed);
  const refusal = (text: string) => refusedWebhookUrl(text, allowed);

  async function attempt(delivery: Delivery, signal: AbortSignal, isAgain: boolean): Promise<Attempt> {
    const refused = refusal(delivery.url);
    if (refused !== null) return { kind: "failed", error: refused };
    signal.throwIfAborted();
    const headers = { ...signedHeaders(delivery, clock.wallMs()), "user-agent": userAgent };
    // Do not use AbortSignal.any(), which would retain memory for each delivery as long as the process's signal exists.
    const ending = new AbortController();
    const onAbort = () => ending.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      ending.abort(new Error("timed out"));
    }, timeoutMs);
    const request = httpsRequest(delivery.url, { method: "POST", agent, headers, lookup, signal: ending.signal });
    request.once("socket", (socket) => checkPeer(socket as TLSSocket, allowed));
    try {
      const answered = new Promise<IncomingMessage>((resolve, reject) => {
        request.once("response", resolve).on("error", reject);
        // Also reject on `close`, the only event after a response with 101 to a request without an upgrade.
        request.once("close", () => reject(new Error("the connection was closed without a response")));
      });
      request.end(delivery.body);
      const response = await answered;
      await readShort(response);
      return {
        kind: "answered",
        status: response.statusCode ?? 0,
        retryAfter: response.headers["retry-after"] ?? null,
      };
    } catch (error) {
      signal.throwIfAborted();
      // Retry, because the receiver closed an idle connection at the moment when it was reused, and did not receive the
      // event.
      if (request.reusedSocket && !isAgain && errorCode(error) === "ECONNRESET") return attempt(delivery, signal, true);
      return { kind: "failed", error: wordsOf(error, isLate ? timeoutMs : null) };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  return {
    post: (delivery, signal) => attempt(delivery, signal, false),
    refusedUrl: refusal,
    close: () => agent.destroy(),
  };
}

/** The host of a URL, for log lines that people other than admins can read. */
export function hostOf(text: string): string {
  return URL.canParse(text) ? new URL(text).host : "";
}

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if (network === null) throw new Error(`Webhooks.AllowedNetworks: ${text} is not a network`);
  return network;
}

/**
 * The headers of https://www.standardwebhooks.com. A repeated delivery has the same id, and a signature over its own
 * time.
 */
function signedHeaders({ secrets, id, body }: Delivery, wallMs: number): Record<string, string> {
  const at = new Date(wallMs);
  return {
    "content-type": `${CLOUD_EVENT_MEDIA_TYPE}; charset=utf-8`,
    "content-length": String(Buffer.byteLength(body)),
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(wallMs / 1_000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}

/** Check the connected address again before sending, because a literal address needs no lookup. */
function checkPeer(socket: TLSSocket, allowed: readonly Network[]): void {
  if (!socket.connecting) return;
  socket.once("connect", () => {
    try {
      checkAddress(socket.remoteAddress ?? "", allowed);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
}

/** Read a short response completely, and close the connection of a longer one. The status counts in both cases. */
async function readShort(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      if (bytes > MOST_ANSWER_BYTES) break;
    }
  } catch {
    // Ignore a truncated response, because its status is known.
  }
}

/** Format an error for people. The text contains no part of a URL except the host. */
function wordsOf(error: unknown, timedOutMs: number | null): string {
  if (timedOutMs !== null) return `no response within ${timedOutMs / 1_000} s`;
  if (error instanceof AddressRefusedError) return error.message;
  const code = errorCode(error);
  const words = error instanceof Error ? error.message : String(error);
  return code === undefined || words.includes(code) ? words : `${words} (${code})`;
}
