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

/** One delivery. */
export interface Delivery {
  readonly url: string;
  /** Secrets as Standard Webhooks writes them: each of them signs. */
  readonly secrets: readonly string[];
  /** The event's id, by which receivers recognise a repetition. */
  readonly id: string;
  /** A CloudEvent in structured JSON. */
  readonly body: string;
}

/** Posts events to receivers. */
export interface WebhookSender {
  /** The outcome of one attempt. Rejects only when the signal aborts. */
  post(delivery: Delivery, signal: AbortSignal): Promise<Attempt>;
  /** Why events may not be posted to a URL, for people; null when nothing forbids it so far. */
  refusedUrl(url: string): string | null;
  close(): void;
}

/** How events are posted. */
export interface SenderOptions {
  readonly clock: Clock;
  readonly allowedNetworks: readonly string[];
  /** Further authorities; null for none. */
  readonly authorityFile: string | null;
  readonly timeoutMs: number;
  readonly userAgent: string;
  /** Finds the addresses of a name; the system's way when absent. */
  readonly resolve?: Resolve;
}

/** Answers are read to their end, so that their connection can be used again, as far as they are this short. */
const MOST_ANSWER_BYTES = 16_384;
const MOST_IDLE_CONNECTIONS = 32;
const IDLE_MS = 15_000;

/** Create what posts events. Redirects are not followed, and no proxy is used. */
export function createWebhookSender(options: SenderOptions): WebhookSender {
  const { clock, timeoutMs, userAgent, authorityFile, resolve = systemResolve } = options;
  const allowed = options.allowedNetworks.map(networkOf);
  const agent = new Agent({
    keepAlive: true,
    maxFreeSockets: MOST_IDLE_CONNECTIONS,
    timeout: IDLE_MS,
    minVersion: "TLSv1.2",
    // Whatever the environment says.
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
    // Not AbortSignal.any(): of a signal that lives as long as the process it keeps something for each delivery.
    const ending = new AbortController();
    const onAbort = () => ending.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      ending.abort(new Error("the time is over"));
    }, timeoutMs);
    const request = httpsRequest(delivery.url, { method: "POST", agent, headers, lookup, signal: ending.signal });
    request.once("socket", (socket) => checkPeer(socket as TLSSocket, allowed));
    try {
      const answered = new Promise<IncomingMessage>((resolve, reject) => {
        request.once("response", resolve).on("error", reject);
        // An answer of 101 is none to a request without an upgrade: only this event comes.
        request.once("close", () => reject(new Error("the connection was closed without an answer")));
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
      // The receiver closed an idle connection as it was used again: the event has not reached it.
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

/** The host of a URL, for lines that others than admins see. */
export function hostOf(text: string): string {
  return URL.canParse(text) ? new URL(text).host : "";
}

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if (network === null) throw new Error(`Webhooks.AllowedNetworks: ${text} is no network`);
  return network;
}

/** See https://www.standardwebhooks.com: a repetition has the same id, and a signature of its own time. */
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

/** What was connected to is looked at again, before anything is sent: a literal address needs no look-up. */
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

/** Read a short answer to its end; the connection of a longer one is closed. Its status counts in either case. */
async function readShort(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      if (bytes > MOST_ANSWER_BYTES) break;
    }
  } catch {
    // An answer that is cut short has been given: its status is known.
  }
}

/** An error for people; never more of a URL than its host. */
function wordsOf(error: unknown, timedOutMs: number | null): string {
  if (timedOutMs !== null) return `no answer within ${timedOutMs / 1_000} s`;
  if (error instanceof AddressRefusedError) return error.message;
  const code = errorCode(error);
  const words = error instanceof Error ? error.message : String(error);
  return code === undefined || words.includes(code) ? words : `${words} (${code})`;
}
