import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type KeeperFrame,
  KeeperFrameSchema,
  type KeeperReply,
  KeeperRequestSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { until } from "@rollcall/testkit/time";
import { FrameReader, frameMessage } from "@rollcall/wire";
import type { KeeperSettings } from "../start-keeper.ts";

const MAIN = fileURLToPath(new URL("./keeper-main.ts", import.meta.url));

export interface KeeperProcessOptions {
  /** The descriptors that the keeper inherits, keyed by their numbers in the keeper. Default: none. */
  readonly descriptors?: Readonly<Record<number, number>>;
  /** The user that the keeper runs as. Default: this process's user. */
  readonly userId?: number;
}

/** A keeper in a separate process, which a test can kill. */
export class KeeperProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Start a keeper, and wait until it responds at its socket. */
  static async start(
    settings: KeeperSettings,
    socketPath: string,
    { descriptors = {}, userId }: KeeperProcessOptions = {},
  ): Promise<KeeperProcess> {
    const args = ["--conditions=source", MAIN, JSON.stringify(settings)];
    const last = Math.max(2, ...Object.keys(descriptors).map(Number));
    const stdio = Array.from({ length: last + 1 }, (_, number) => descriptors[number] ?? "ignore");
    const user = userId === undefined ? {} : { uid: userId, gid: userId };
    const child = spawn(process.execPath, args, { stdio, ...user });
    await until("a keeper that answers", async () => {
      const client = await KeeperClient.connect(socketPath);
      client.close();
      return true;
    });
    return new KeeperProcess(child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }
}

type RequestInit = NonNullable<MessageInitShape<typeof KeeperRequestSchema>["request"]>;

/** An agent that is connected to a keeper's socket, or a client that acts like one. */
export class KeeperClient {
  readonly frames: KeeperFrame["frame"][] = [];
  readonly socket: Socket;
  #nextId = 1;

  private constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader();
    socket.on("data", (chunk: Buffer) => {
      for (const message of reader.take(chunk)) this.frames.push(fromBinary(KeeperFrameSchema, message).frame);
    });
    socket.on("error", () => {});
  }

  static async connect(path: string): Promise<KeeperClient> {
    const socket = connect(path);
    await once(socket, "connect");
    return new KeeperClient(socket);
  }

  /** Send a request and wait for the reply. */
  async request(request: RequestInit): Promise<KeeperReply> {
    const id = this.#nextId;
    this.#nextId += 1;
    const message = create(KeeperRequestSchema, { id, request });
    this.socket.write(frameMessage(toBinary(KeeperRequestSchema, message)));
    return until(`a reply to ${request.case}`, () => {
      for (const frame of this.frames) if (frame.case === "reply" && frame.value.id === id) return frame.value;
      return undefined;
    });
  }

  close(): void {
    this.socket.destroy();
  }
}
