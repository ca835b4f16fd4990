import { chmod, chown, rename, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "@rollcall/process";
import type { Keeper } from "../keeper.ts";
import { KeeperConnection, type KeeperFacts } from "./keeper-connection.ts";

export interface KeeperSocketOptions {
  /** The path of the socket. Unless `given` is set, only the keeper's user can enter its directory. */
  readonly path: string;
  /**
   * Create the socket in the directory `from`, change its owner to this user, and only then move it to its path.
   * Default: the owner does not change.
   */
  readonly given?: { readonly from: string; readonly userId: number } | null;
  readonly keeper: Keeper;
  /** Returns the keeper's current description of itself. */
  readonly facts: () => KeeperFacts;
  /** Called when an agent asks the keeper to exit. */
  readonly onRetire: () => void;
  readonly log: Logger;
}

/**
 * Maximum number of connections: enough for an agent, a second agent that takes over from it, and someone who
 * inspects the keeper.
 */
const MOST_CONNECTIONS = 8;

/** The socket at which agents reach the keeper. */
export class KeeperSocket {
  readonly #server: Server;
  readonly #connections = new Map<Socket, KeeperConnection>();

  private constructor(options: KeeperSocketOptions) {
    this.#server = createServer((socket) => this.#serve(socket, options));
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /**
   * Listen. Removes the socket of an earlier keeper, which is gone because the caller holds the keeper's lock.
   */
  static async open(options: KeeperSocketOptions): Promise<KeeperSocket> {
    const { path, given = null } = options;
    const first = given?.from ?? path;
    await rm(first, { force: true });
    const opened = new KeeperSocket(options);
    await new Promise<void>((resolve, reject) => {
      opened.#server.once("error", reject);
      opened.#server.listen(first, () => {
        opened.#server.off("error", reject);
        resolve();
      });
    });
    await chmod(first, 0o600);
    if (given !== null) {
      await chown(first, given.userId, -1);
      await rename(first, path);
    }
    return opened;
  }

  /** Number of connected agents. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Notify agents that the keeper's facts have changed. */
  announce(): void {
    for (const connection of this.#connections.values()) connection.announce();
  }

  async close(): Promise<void> {
    for (const socket of this.#connections.keys()) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket, { keeper, facts, onRetire, log }: KeeperSocketOptions): void {
    const connection = new KeeperConnection(socket, { keeper, facts, onRetire });
    this.#connections.set(socket, connection);
    socket.once("close", () => this.#connections.delete(socket));
    connection.run().catch((error: unknown) => {
      log.warn({ err: error }, "agent connection failed");
      socket.destroy();
    });
  }
}
