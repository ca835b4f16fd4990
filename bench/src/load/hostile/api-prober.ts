import { setTimeout as delay } from "node:timers/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ListNodesRequestSchema, ListNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { ServerAddress } from "../open-socket.ts";
import { UnaryClient } from "../unary-client.ts";

/** The results of API calls since the last reading. */
export interface ApiFared {
  readonly answers: number;
  /** Descriptions of calls that were refused, cut off, or not answered in time. */
  readonly failures: readonly string[];
  readonly slowestMs: number;
}

const LIST_NODES = "/rollcall.registry.v1.RegistryService/ListNodes";
const PAUSE_MS = 100;
const OPERATOR = "127.0.2.1";
const PAGE = toBinary(ListNodesRequestSchema, create(ListNodesRequestSchema, { pageSize: 10 }));

/** Makes ten calls a second, each on a new connection, as an operator's script would. */
export class ApiProber {
  readonly #server: ServerAddress;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #patienceMs: number;
  readonly #ended = new AbortController();
  #slowestMs = 0;
  #answers = 0;
  #failures: string[] = [];

  /** @param patienceMs how long a call can take before it counts as not answered. */
  constructor(server: ServerAddress, token: string, patienceMs: number) {
    this.#server = server;
    this.#patienceMs = patienceMs;
    this.#headers = { authorization: `Bearer ${token}` };
    void this.#goOn();
  }

  take(): ApiFared {
    const fared = {
      answers: this.#answers,
      failures: this.#failures,
      slowestMs: this.#slowestMs,
    };
    this.#slowestMs = 0;
    this.#answers = 0;
    this.#failures = [];
    return fared;
  }

  /** Make one call, and time it in the same way as the others. */
  async probe(): Promise<void> {
    const startMs = performance.now();
    try {
      await this.#list();
      this.#answers += 1;
    } catch (error) {
      this.#failures.push(error instanceof Error ? error.message : String(error));
    }
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startMs);
  }

  async stop(): Promise<void> {
    this.#ended.abort();
  }

  async #goOn(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await this.probe();
      await delay(PAUSE_MS);
    }
  }

  async #list(): Promise<void> {
    const client = new UnaryClient({ ...this.#server, localAddress: OPERATOR }, this.#headers);
    const tooLate = new AbortController();
    try {
      const answer = await Promise.race([
        client.ready.then(() => client.call(LIST_NODES, PAGE)),
        delay(this.#patienceMs, null, { signal: tooLate.signal }),
      ]);
      if (answer === null) throw new Error(`no answer in ${this.#patienceMs / 1_000} s`);
      const { nodes } = fromBinary(ListNodesResponseSchema, answer);
      if (nodes.length === 0) throw new Error("an empty page");
    } finally {
      tooLate.abort();
      client.close();
    }
  }
}
