import type { Socket } from "node:net";
import { type ConnectTarget, openSocket, resetSocket } from "../open-socket.ts";
import type { HostileTarget, Scenario } from "./scenario.ts";

/** The result of a scenario. */
export interface AttackOutcome {
  readonly connections: number;
  /** The number of connections that the server or its kernel closed or refused. */
  readonly ended: number;
  readonly bytes: number;
}

/** The address from which all attacks come, because the attacker is a single anonymous client. */
const ATTACKER_ADDRESS = "127.0.1.1";
/** The maximum number of new connections per second, regardless of how fast the server closes them. */
const MOST_CONNECTIONS_A_SECOND = 1_000;
/**
 * The maximum number of bytes per second on all connections together. On another machine, the network
 * would limit the attacker; the loopback interface does not.
 */
const MOST_BYTES_A_SECOND = 20 * 1_048_576;
const LOOP_TICK_MS = 10;

/** Runs one scenario, with bounded connections, bytes and time. */
export class Attacker {
  readonly #scenario: Scenario;
  readonly #server: ConnectTarget;
  readonly #open = new Map<Socket, { round: number; isBlocked: boolean }>();
  #connections = 0;
  #ended = 0;
  #bytes = 0;
  #mayConnect = 0;
  #mayWrite = 0;

  constructor(scenario: Scenario, { ports, authority }: HostileTarget) {
    this.#scenario = scenario;
    // Probes always use plain HTTP.
    const isSecure = authority !== undefined && scenario.port !== "probes";
    this.#server = {
      port: ports[scenario.port],
      localAddress: ATTACKER_ADDRESS,
      ...(isSecure ? { authority } : {}),
    };
  }

  /** Run until `endAtMs` of this process's monotonic clock, then abandon all connections. */
  async run(endAtMs: number): Promise<AttackOutcome> {
    let lastMs = performance.now();
    for (;;) {
      const nowMs = performance.now();
      if (nowMs >= endAtMs) break;
      this.#turn((nowMs - lastMs) / 1_000);
      lastMs = nowMs;
      await new Promise((resolve) => setTimeout(resolve, LOOP_TICK_MS));
    }
    for (const socket of this.#open.keys()) socket.destroy();
    return { connections: this.#connections, ended: this.#ended, bytes: this.#bytes };
  }

  #turn(passedSeconds: number): void {
    // Limit the share, so that unused budget does not accumulate.
    const share = Math.min(passedSeconds, 0.1);
    this.#mayConnect = Math.min(this.#mayConnect, 10) + MOST_CONNECTIONS_A_SECOND * share;
    this.#mayWrite = MOST_BYTES_A_SECOND * share;
    while (this.#open.size < this.#scenario.connections && this.#mayConnect >= 1) {
      this.#mayConnect -= 1;
      this.#connect();
    }
    const { flood } = this.#scenario;
    if (flood === undefined) return;
    for (let wrote = true; wrote && this.#mayWrite > 0; ) {
      wrote = false;
      for (const [socket, state] of this.#open) {
        if (socket.connecting || state.isBlocked || this.#mayWrite <= 0) continue;
        const chunk = flood(state.round);
        state.round += 1;
        state.isBlocked = !this.#write(socket, chunk);
        wrote = true;
      }
    }
  }

  #connect(): void {
    const { open, reads = true, flood } = this.#scenario;
    const socket = openSocket(this.#server);
    const state = { round: 0, isBlocked: false };
    this.#open.set(socket, state);
    this.#connections += 1;
    socket.on("error", () => {}); // "close" follows.
    socket.on("close", () => {
      if (this.#open.delete(socket)) this.#ended += 1;
    });
    socket.on("drain", () => {
      state.isBlocked = false;
    });
    if (reads) socket.resume();
    else socket.pause();
    // Wait until the connection is ready, because bytes written before the TLS handshake is complete
    // would not be sent.
    socket.on(this.#server.authority === undefined ? "connect" : "secureConnect", () => {
      if (open.length > 0) this.#write(socket, open);
      if (flood === undefined) this.#leave(socket);
    });
  }

  #write(socket: Socket, bytes: Buffer): boolean {
    this.#bytes += bytes.length;
    this.#mayWrite -= bytes.length;
    return socket.write(bytes);
  }

  #leave(socket: Socket): void {
    const { then = "stays" } = this.#scenario;
    if (then === "stays") return;
    if (then === "half-closes") {
      socket.end();
      return;
    }
    // Close right after writing, without waiting for the server.
    this.#open.delete(socket);
    if (then === "resets") resetSocket(socket);
    else socket.end(() => socket.destroy());
  }
}
