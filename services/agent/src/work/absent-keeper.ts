import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  GreetingSchema,
  type KeeperReply,
  KeeperReplySchema,
  type KeptExecution,
  KeptExecutionSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import {
  EndReason,
  type ExecutionObservationSchema,
  type ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { type KeeperListener, type KeeperPort, KeeperRefused, type KeeperRequestInit } from "./keeper-link.ts";

/** Each has one state. As high as a keeper's number of an execution that ends before it was started. */
const CHANGE = 2n;

/**
 * In place of the keeper of a machine that has none, and so runs nothing. It offers no executor, refuses what is to be
 * started, and confirms what is to be stopped: a drain of such a node would wait for it without end. What it has said
 * is kept until it is forgotten, in memory: after a restart it is told, and says, the same again.
 */
export class AbsentKeeper implements KeeperPort {
  readonly #listener: KeeperListener;
  readonly #wallMs: () => number;
  readonly #kept = new Map<string, KeptExecution>();

  constructor(listener: KeeperListener, wallMs: () => number) {
    this.#listener = listener;
    this.#wallMs = wallMs;
  }

  /** There is nothing to wait for. */
  readonly heardAtMs = null;

  async run(signal: AbortSignal): Promise<void> {
    this.#listener.onGreeting(create(GreetingSchema));
    for (const kept of this.#kept.values()) this.#listener.onChanged(kept);
    this.#listener.onListed();
    if (signal.aborted) return;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  async request(request: KeeperRequestInit): Promise<KeeperReply> {
    switch (request.case) {
      case "greet":
      case "seen":
      case "probe":
      case "retire":
        break;
      case "start":
      case "readOutput":
        throw new KeeperRefused("this machine runs no work");
      case "stop": {
        const { reference, logId = "" } = request.value;
        this.#end(reference, logId, { endReason: EndReason.STOPPED, message: "its machine runs no work" });
        break;
      }
      case "refuse": {
        const { reference, logId = "", message = "", lost } = request.value;
        const endReason = lost === true ? EndReason.GONE : EndReason.START_FAILED;
        this.#end(reference, logId, { endReason, message });
        break;
      }
      case "forget":
        for (const id of request.value.ids ?? []) {
          const kept = this.#kept.get(id);
          if (!this.#kept.delete(id) || kept === undefined) continue;
          this.#listener.onChanged({ ...kept, forgotten: true });
        }
        break;
      case "bind": {
        const { ids = [], logId = "" } = request.value;
        for (const id of ids) {
          const kept = this.#kept.get(id);
          if (kept !== undefined) this.#keep({ ...kept, logId });
        }
        break;
      }
    }
    return create(KeeperReplySchema);
  }

  #end(
    reference: MessageInitShape<typeof ExecutionReferenceSchema> | undefined,
    logId: string,
    end: MessageInitShape<typeof ExecutionObservationSchema>,
  ): void {
    const { id = "", specDigest = new Uint8Array() } = reference ?? {};
    if (this.#kept.has(id)) return;
    const endTime = timestampFromMs(this.#wallMs());
    const observation = { ...end, id, specDigest, endTime, state: ObservedState.ENDED, change: CHANGE };
    this.#keep(create(KeptExecutionSchema, { observation, logId }));
  }

  #keep(kept: KeptExecution): void {
    const { id = "" } = kept.observation ?? {};
    this.#kept.set(id, kept);
    this.#listener.onChanged(kept);
  }
}
