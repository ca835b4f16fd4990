import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type ServeLogsRequest, ServeLogsRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { mapError } from "@rollcall/errors";
import type { FrameReader } from "@rollcall/rpc";
import type { LogCall, LogProxy } from "../work/log-proxy.ts";

/** An agent's call of ServeLogs in memory. Like a call on a connection, it delivers no frame while it is paused. */
export class FakeLogCall implements LogCall {
  readonly #reader: FrameReader<ServeLogsRequest>;
  readonly #frames: (ServeLogsRequest | null)[] = [];
  #isPaused = false;
  #hasEnded = false;

  constructor(proxy: LogProxy) {
    this.#reader = proxy.serve(this);
  }

  /** Send a piece of output, or end the agent's half with null. */
  push(piece: MessageInitShape<typeof ServeLogsRequestSchema> | null): void {
    this.#frames.push(piece === null ? null : create(ServeLogsRequestSchema, piece));
    this.#deliver();
  }

  /** End the call with an error, as the server does. */
  fail(error: unknown): void {
    this.#over(mapError(error));
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    process.nextTick(() => {
      this.#isPaused = false;
      this.#deliver();
    });
  }

  write(): boolean {
    return true;
  }

  end(error?: unknown): void {
    this.#over(error === undefined ? null : mapError(error));
  }

  explain(): void {}

  #deliver(): void {
    while (!this.#isPaused && !this.#hasEnded && this.#frames.length > 0) {
      const frame = this.#frames.shift() ?? null;
      if (frame === null) this.#reader.onHalfClose();
      else this.#reader.onFrame(frame);
    }
  }

  #over(error: ConnectError | null): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    process.nextTick(() => this.#reader.onGone(error));
  }
}
