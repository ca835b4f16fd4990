import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import pg from "pg";
import { POSTGRES_HEADER_BYTES, PostgresMessages } from "./postgres-messages.ts";

/**
 * A proxy in front of a Postgres that can run a statement in the sessions of its clients without their knowledge. This
 * puts a session into a state that the client does not expect.
 */
export class PoisoningProxy {
  /** The URL of the proxy. Clients connect to it instead. */
  readonly url: string;
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sessions = new Set<Session>();

  private constructor(server: Server, url: string, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.url = url;
    this.#target = target;
    server.on("connection", (client: Socket) => this.#join(client));
  }

  /** Listen on a free port of the loopback interface. Clients must not ask for TLS. */
  static async start(targetUrl: string): Promise<PoisoningProxy> {
    const { host, port, user, password, database } = new pg.Client({ connectionString: targetUrl });
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const own = typeof address === "object" && address !== null ? address.port : 0;
    const login = `${encodeURIComponent(user ?? "")}:${encodeURIComponent(password ?? "")}`;
    return new PoisoningProxy(server, `postgres://${login}@127.0.0.1:${own}/${database}`, { host, port });
  }

  /**
   * Run a statement in each session whose application name matches, as soon as the session is outside a transaction.
   * Resolves with the number of these sessions when all of them have run the statement or ended.
   */
  async poison(matches: (applicationName: string) => boolean, statement: string): Promise<number> {
    const chosen = [...this.#sessions].filter(({ applicationName }) => matches(applicationName));
    await Promise.all(chosen.map((session) => session.poison(statement)));
    return chosen.length;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    const { host, port } = this.#target;
    const server = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    const session = new Session(client, server);
    this.#sessions.add(session);
    client.on("close", () => this.#sessions.delete(session));
  }
}

const READY_FOR_QUERY = "Z";
/** Messages that Postgres sends without a request: notices, notifications and settings. */
const UNASKED = new Set(["N", "A", "S"]);
/** Messages that Postgres answers with one ReadyForQuery: a query, and the end of an extended query. */
const ASKS = new Set(["Q", "S"]);
const IDLE = "I".charCodeAt(0);

/** One connection of a client, message by message. */
class Session {
  applicationName = "";
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #fromServer = new PostgresMessages();
  #fromClient: PostgresMessages | null = null;
  /** Number of requests that the server has not answered, including the startup message. */
  #unanswered = 1;
  #isIdle = false;
  #poison: { readonly statement: string; readonly done: () => void } | null = null;
  /** Data from the client that arrived while the injected statement runs; null while none runs. */
  #held: Buffer[] | null = null;

  constructor(client: Socket, server: Socket) {
    this.#client = client;
    this.#server = server;
    client.on("data", (bytes: Buffer) => this.#onClient(bytes));
    server.on("data", (bytes: Buffer) => this.#onServer(bytes));
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("close", () => server.destroy());
    server.on("close", () => {
      client.end();
      this.#poison?.done();
    });
  }

  poison(statement: string): Promise<void> {
    if (this.#server.destroyed) return Promise.resolve();
    return new Promise((done) => {
      this.#poison = { statement, done };
      this.#inject();
    });
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #onClient(bytes: Buffer): void {
    if (this.#held !== null) {
      this.#held.push(bytes);
      return;
    }
    if (this.#fromClient === null) {
      // Parse messages only after the startup message, which has no type and arrives in one packet.
      this.#fromClient = new PostgresMessages();
      const words = bytes.subarray(8).toString().split("\0");
      this.applicationName = words[words.indexOf("application_name") + 1] ?? "";
    } else {
      for (const { type } of this.#fromClient.add(bytes)) if (ASKS.has(type)) this.#unanswered += 1;
    }
    this.#server.write(bytes);
  }

  #onServer(bytes: Buffer): void {
    for (const { type, whole } of this.#fromServer.add(bytes)) {
      const isOfPoison = this.#held !== null && !UNASKED.has(type);
      if (!isOfPoison) this.#client.write(whole);
      if (type !== READY_FOR_QUERY) continue;
      this.#isIdle = whole[POSTGRES_HEADER_BYTES] === IDLE;
      if (isOfPoison) this.#release();
      else {
        this.#unanswered -= 1;
        this.#inject();
      }
    }
  }

  #inject(): void {
    if (this.#poison === null || this.#unanswered > 0 || !this.#isIdle || this.#held !== null) return;
    this.#held = [];
    const text = Buffer.from(`${this.#poison.statement}\0`);
    const length = Buffer.alloc(4);
    length.writeInt32BE(text.length + length.length);
    this.#server.write(Buffer.concat([Buffer.from("Q"), length, text]));
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    this.#poison?.done();
    this.#poison = null;
    for (const bytes of held) this.#onClient(bytes);
  }
}
