import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  GreetingSchema,
  type KeeperReply,
  KeeperReplySchema,
  type LiveExecution,
  LiveExecutionSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import {
  EndReason,
  type ExecutionObservationSchema,
  type ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { type KeeperListener, type KeeperPort, KeeperRefused, type KeeperRequestInit } from "./keeper-link.ts";

/**
 * The change number of every execution, because without a keeper each execution has only one state. A keeper uses the
 * same number when an execution ends before it was started.
 */
const CHANGE = 2n;

/**
 * Replaces the keeper on a machine that has none and therefore runs nothing. It offers no executor, refuses every
 * start, and confirms every stop, because a drain of the node would otherwise never end. Its responses stay in memory
 * until they are forgotten. After a restart it receives the same requests and gives the same responses.
 */
export class AbsentKeeper implements KeeperPort {
  readonly #listener: KeeperListener;
  readonly #wallMs: () => number;
  readonly #kept = new Map<string, LiveExecution>();

  constructor(listener: KeeperListener, wallMs: () => number) {
    this.#listener = listener;
    this.#wallMs = wallMs;
  }

  /** Null, because there is no keeper to wait for. */
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
    this.#keep(create(LiveExecutionSchema, { observation, logId }));
  }

  #keep(kept: LiveExecution): void {
    const { id = "" } = kept.observation ?? {};
    this.#kept.set(id, kept);
    this.#listener.onChanged(kept);
  }
}
