import type { Socket } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type KeeperFrameSchema as FrameSchema,
  type GreetingSchema,
  KeeperFrameSchema,
  type KeeperReplySchema,
  type KeeperRequest,
  KeeperRequestSchema,
  OutputStream,
  type ReadOutput,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { FrameReader, frameMessage } from "@rollcall/wire";
import { type Keeper, KeeperRefusal } from "../keeper.ts";
import type { OutputPlace } from "../output/execution-output.ts";
import { readSpec } from "../spec/read-spec.ts";
import { toIdentity, toKept } from "./to-kept.ts";

/** A keeper's description of itself. */
export type KeeperFacts = MessageInitShape<typeof GreetingSchema>;

/** Dependencies of a connection. */
export interface ConnectionServices {
  readonly keeper: Keeper;
  /** Returns the keeper's current description of itself. */
  readonly facts: () => KeeperFacts;
  readonly onRetire: () => void;
}

type Reply = MessageInitShape<typeof KeeperReplySchema>["reply"];

/**
 * Maximum bytes that an agent can leave unread. With more, the agent is disconnected. It requests the complete list
 * when it reconnects.
 */
const MOST_UNREAD_BYTES = 16_777_216;

/** How long a client can stay silent after connecting. An agent sends a request immediately. */
const GREET_LIMIT_MS = 10_000;

const MOST_PIECE_BYTES = 262_144;

/** An agent's connection to the keeper's socket. Requests are handled one after the other. */
export class KeeperConnection {
  readonly #socket: Socket;
  readonly #services: ConnectionServices;
  #unsubscribe: () => void = () => {};
  #isGreeted = false;

  constructor(socket: Socket, services: ConnectionServices) {
    this.#socket = socket;
    this.#services = services;
  }

  /** Serve until the agent disconnects. Rejects on input that no agent sends. */
  async run(): Promise<void> {
    const reader = new FrameReader();
    const silent = setTimeout(() => this.#socket.destroy(), GREET_LIMIT_MS);
    try {
      for await (const chunk of this.#socket) {
        for (const message of reader.take(chunk)) {
          clearTimeout(silent);
          await this.#answer(fromBinary(KeeperRequestSchema, message));
        }
      }
    } catch (error) {
      // Ignore errors of a closed connection, because a killed agent can leave its connection in any state.
      if (!this.#socket.destroyed) throw error;
    } finally {
      clearTimeout(silent);
      this.#unsubscribe();
    }
  }

  /** Send the keeper's current facts, if the agent has sent Greet. */
  announce(): void {
    if (this.#isGreeted) this.#send({ frame: { case: "greeting", value: this.#services.facts() } });
  }

  async #answer({ id, request }: KeeperRequest): Promise<void> {
    try {
      const reply = await this.#carryOut(request);
      this.#send({ frame: { case: "reply", value: { id, ...(reply && { reply }) } } });
    } catch (error) {
      const failed = !(error instanceof KeeperRefusal);
      const message = failed ? `the keeper failed: ${String(error)}` : error.message;
      this.#send({ frame: { case: "reply", value: { id, error: message.slice(0, 512), failed } } });
    }
    if (request.case === "greet") this.#list();
    if (request.case === "retire") this.#services.onRetire();
  }

  async #carryOut(request: KeeperRequest["request"]): Promise<Reply> {
    const { keeper, facts } = this.#services;
    switch (request.case) {
      case "greet":
        return { case: "greeting", value: facts() };
      case "start": {
        const { reference, spec, logId, nodeId } = request.value;
        const read = readSpec(spec);
        const job = read.ok ? read.plan.job : "";
        await keeper.start(toIdentity(reference, { job, nodeId, spec }), logId);
        return undefined;
      }
      case "stop": {
        const { reference, logId } = request.value;
        await keeper.stop(toIdentity(reference, NO_SPEC), logId);
        return undefined;
      }
      case "refuse": {
        const { reference, logId, message, lost } = request.value;
        await keeper.refuse(toIdentity(reference, NO_SPEC), logId, { cause: lost ? "GONE" : "START_FAILED", message });
        return undefined;
      }
      case "forget":
        keeper.forget(request.value.ids);
        return undefined;
      case "bind":
        keeper.bind(request.value.ids, request.value.logId);
        return undefined;
      case "seen":
        keeper.seen();
        return undefined;
      case "readOutput":
        return { case: "output", value: await this.#read(request.value) };
      case "probe":
      case "retire":
        return undefined;
      case undefined:
        throw new KeeperRefusal("unknown request");
    }
  }

  async #read({ id, stream, limit, times: isTimed, ...place }: ReadOutput) {
    const name = stream === OutputStream.STDERR ? "stderr" : "stdout";
    const limitBytes = limit === 0 ? MOST_PIECE_BYTES : Math.min(limit, MOST_PIECE_BYTES);
    const piece = await this.#services.keeper.read(id, name, { from: placeOf(place), limitBytes, isTimed });
    const times = piece.times.map(({ offset, atMs }) => ({ offset: BigInt(offset), time: timestampFromMs(atMs) }));
    return { offset: BigInt(piece.offset), data: piece.data, ended: piece.isEnd, cut: piece.isCut, times };
  }

  /** Send all executions, and then their changes. */
  #list(): void {
    this.#isGreeted = true;
    const { keeper } = this.#services;
    this.#unsubscribe();
    for (const record of keeper.records()) this.#send({ frame: { case: "changed", value: toKept(record) } });
    this.#send({ frame: { case: "listed", value: {} } });
    this.#unsubscribe = keeper.subscribe((record) => this.#send({ frame: { case: "changed", value: toKept(record) } }));
  }

  #send(frame: MessageInitShape<typeof FrameSchema>): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    if (socket.writableLength > MOST_UNREAD_BYTES) {
      socket.destroy();
      return;
    }
    socket.write(frameMessage(toBinary(KeeperFrameSchema, create(KeeperFrameSchema, frame))));
  }
}

function placeOf({ offset, tail, sinceMs }: Pick<ReadOutput, "offset" | "tail" | "sinceMs">): OutputPlace {
  if (sinceMs !== 0n) return { kind: "since", wallMs: Number(sinceMs) };
  return tail > 0n ? { kind: "tail", bytes: Number(tail) } : { kind: "offset", offset: Number(offset) };
}

const NO_SPEC = { job: "", nodeId: "", spec: new Uint8Array() };
