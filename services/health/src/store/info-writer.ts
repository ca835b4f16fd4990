import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { nodeInfoEvents } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { Loop } from "@rollcall/process";
import type { RequestValidator } from "@rollcall/rpc";
import { type CallStore, type Change, lockNode, saveInfo, type Tx } from "@rollcall/store";
import { type NodeInfoRow, nodeInfoToRow, nodeInfoViolations } from "@rollcall/wire";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { Replica } from "../replica/replica.ts";

export interface InfoWriterOptions {
  readonly store: CallStore;
  readonly replica: Replica;
  readonly validator: RequestValidator;
  /** Called when a report is queued. */
  readonly onQueued: () => void;
}

/** Maximum number of queued reports. More are dropped, because agents send them again at their interval. */
const MOST_QUEUED = 2_000;
const WRITES_AT_A_TIME = 8;
const IGNORED: Change<boolean> = { result: false, events: [] };

/** Writes node information to the store when it has changed. */
export class InfoWriter {
  readonly #options: InfoWriterOptions;
  /** The newest report of each node. */
  readonly #queue = new Map<LiveNode, NodeInfoRow>();

  constructor(options: InfoWriterOptions) {
    this.#options = options;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /** Queue a report. Throws INVALID_LABEL or INVALID_REQUEST without queueing it. */
  submit(node: LiveNode, info: NodeInfo): void {
    const report = nodeInfoToRow(info);
    if (report.digest === node.infoDigest) {
      this.#queue.delete(node);
      return;
    }
    this.#check(info, report);
    if (this.#queue.size >= MOST_QUEUED && !this.#queue.has(node)) return;
    this.#queue.set(node, report);
    this.#options.onQueued();
  }

  /** Write until the queue is empty. After an error, the remaining reports stay queued for the next call. */
  async flush(): Promise<void> {
    while (this.#queue.size > 0) {
      const batch = [...this.#queue].slice(0, WRITES_AT_A_TIME);
      const results = await Promise.allSettled(batch.map((it) => this.#write(it[0], it[1])));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
  }

  #check(info: NodeInfo, report: NodeInfoRow): void {
    const { labels, others } = nodeInfoViolations(report);
    if (labels.length > 0) throw refuseFields("INVALID_LABEL", labels);
    this.#options.validator.check(NodeInfoSchema, info);
    if (others.length > 0) throw refuseFields("INVALID_REQUEST", others);
  }

  async #write(node: LiveNode, report: NodeInfoRow): Promise<void> {
    const { store } = this.#options;
    const { result: isKept } = await store.change((tx) => this.#save(tx, node, report));
    if (isKept) node.infoDigest = report.digest;
    // Keep a newer report that arrived during the write.
    if (this.#queue.get(node) === report) this.#queue.delete(node);
  }

  /**
   * Save a report. Returns whether the store now has it. A report from a fenced stream, or of a rejected node,
   * has no effect.
   */
  async #save(tx: Tx, node: LiveNode, report: NodeInfoRow): Promise<Change<boolean>> {
    const record = await lockNode(tx, node.id);
    if (record === null || record.membership.state === "REJECTED") return IGNORED;
    const { epoch, replicaId } = record.session;
    if (epoch !== node.epoch || replicaId !== this.#options.replica.instance) return IGNORED;
    const saved = await saveInfo(tx, node.id, report);
    // saveInfo() has postponed this report, so compare it again when the agent sends it next.
    if (saved === "later") return IGNORED;
    return { result: true, events: saved === "saved" ? nodeInfoEvents(record, report) : [] };
  }
}

/** Write node information when a report is queued. */
export function writeNodeInfoTask(writer: InfoWriter, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "write-node-info", turn: () => writer.flush() });
}
