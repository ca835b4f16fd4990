import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { PostgresMessages } from "./postgres-messages.ts";

/** How the proxy changes the traffic. Tests can change this at any time. */
export interface PostgresWeather {
  /**
   * How long to delay each statement on its way to the server, in milliseconds. The statements of one
   * connection are delayed one after another.
   */
  statementDelayMs: number;
  /** Whether notifications are dropped, as by a pooler in transaction mode. */
  losesNotifications: boolean;
}

/** A proxy in front of a Postgres. It delays statements or drops notifications. */
export class SlowPostgresProxy {
  /** The URL of the proxy. Clients connect to this URL instead of the server's. */
  readonly url: string;
  readonly weather: PostgresWeather = { statementDelayMs: 0, losesNotifications: false };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, url: string, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.url = url;
    server.on("connection", (client: Socket) => this.#join(client, target));
  }

  /** Listen on a free port of the loopback interface. Clients must not ask for TLS. */
  static async start(targetUrl: string): Promise<SlowPostgresProxy> {
    const { host, port, user, password, database } = new pg.Client({ connectionString: targetUrl });
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const own = typeof address === "object" && address !== null ? address.port : 0;
    const login = `${encodeURIComponent(user ?? "")}:${encodeURIComponent(password ?? "")}`;
    return new SlowPostgresProxy(server, `postgres://${login}@127.0.0.1:${own}/${database}`, { host, port });
  }

  /** Number of sockets of proxied connections: two for each connection. */
  get sockets(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #join(client: Socket, { host, port }: { readonly host: string; readonly port: number }): void {
    const server = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        this.#sockets.delete(one);
        other.end();
      });
    }
    this.#passStatements(client, server);
    const messages = new PostgresMessages();
    server.on("data", (bytes: Buffer) => {
      for (const { type, whole } of messages.add(bytes)) {
        if (type !== NOTIFICATION || !this.weather.losesNotifications) client.write(whole);
      }
    });
  }

  #passStatements(client: Socket, server: Socket): void {
    let messages: PostgresMessages | null = null;
    let passed: Promise<unknown> = Promise.resolve();
    client.on("data", (bytes: Buffer) => {
      if (messages === null) {
        // Parse messages only after the startup message, which has no type and arrives in one packet.
        messages = new PostgresMessages();
        server.write(bytes);
        return;
      }
      for (const { type, whole } of messages.add(bytes)) {
        passed = passed.then(async () => {
          const { statementDelayMs } = this.weather;
          if (STATEMENTS.has(type) && statementDelayMs > 0) await delay(statementDelayMs);
          server.write(whole);
        });
      }
    });
  }
}

const NOTIFICATION = "A";
/** Messages that carry a statement: a query, and the end of an extended query. */
const STATEMENTS = new Set(["Q", "S"]);
