import type { Socket } from "node:net";
import { type ConnectTarget, openSocket, resetSocket } from "../open-socket.ts";
import type { HostileTarget, Scenario } from "./scenario.ts";

/** The result of a scenario. */
export interface AttackOutcome {
  readonly connections: number;
  /** Connections that the server, or its kernel, ended or did not take. */
  readonly ended: number;
  readonly bytes: number;
}

/** One stranger has one address. */
const STRANGER = "127.0.1.1";
/** So many connections in a second, whatever the server does with them. */
const MOST_CONNECTIONS_A_SECOND = 1_000;
/**
 * A peer on another machine has a network between itself and the server; loopback has none. Of all connections
 * together.
 */
const MOST_BYTES_A_SECOND = 20 * 1_048_576;
const TURN_MS = 10;

/** Carries out one scenario: bounded in connections, in bytes, and in time. */
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
    // Probes are plain HTTP everywhere.
    const isSecure = authority !== undefined && scenario.port !== "probes";
    this.#server = {
      port: ports[scenario.port],
      localAddress: STRANGER,
      ...(isSecure ? { authority } : {}),
    };
  }

  /** Go on until `endAtMs` of this process's monotonic clock, then leave without a word. */
  async run(endAtMs: number): Promise<AttackOutcome> {
    let lastMs = performance.now();
    for (;;) {
      const nowMs = performance.now();
      if (nowMs >= endAtMs) break;
      this.#turn((nowMs - lastMs) / 1_000);
      lastMs = nowMs;
      await new Promise((resolve) => setTimeout(resolve, TURN_MS));
    }
    for (const socket of this.#open.keys()) socket.destroy();
    return { connections: this.#connections, ended: this.#ended, bytes: this.#bytes };
  }

  #turn(passedSeconds: number): void {
    // What was not used is not saved up.
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
    // Before the handshake of TLS is done nothing that it carries would be sent.
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
    // Gone in one movement with what it has written: it does not wait for what the server thinks of it.
    this.#open.delete(socket);
    if (then === "resets") resetSocket(socket);
    else socket.end(() => socket.destroy());
  }
}
