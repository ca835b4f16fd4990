import { chmod, chown, rename, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "@rollcall/process";
import type { Keeper } from "../keeper.ts";
import { KeeperConnection, type KeeperFacts } from "./keeper-connection.ts";

/** What a socket is opened with. */
export interface KeeperSocketOptions {
  /** In a directory that only the keeper's user can enter, unless it is given to another. */
  readonly path: string;
  /** Make it in such a directory, give it to this user, and only then move it to its path. Default: it is not. */
  readonly given?: { readonly from: string; readonly userId: number } | null;
  readonly keeper: Keeper;
  readonly facts: KeeperFacts;
  /** Told when an agent asks the keeper to end. */
  readonly onRetire: () => void;
  readonly log: Logger;
}

/** One agent, one that takes over from it, and a person who looks. */
const MOST_CONNECTIONS = 8;

/** Where agents reach the keeper. */
export class KeeperSocket {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: KeeperSocketOptions) {
    this.#server = createServer((socket) => this.#serve(socket, options));
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /** Listen. What is left of an earlier keeper's socket is removed: the caller holds the keeper's lock. */
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

  /** Agents that are connected. */
  get connections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket, { keeper, facts, onRetire, log }: KeeperSocketOptions): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    const connection = new KeeperConnection(socket, { keeper, facts, onRetire });
    connection.run().catch((error: unknown) => {
      log.warn({ err: error }, "connection of an agent ended");
      socket.destroy();
    });
  }
}
