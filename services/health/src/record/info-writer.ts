import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { nodeInfoEvents } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { Loop } from "@rollcall/process";
import type { RequestValidator } from "@rollcall/rpc";
import { type CallStore, type Change, lockNode, saveInfo, type Tx } from "@rollcall/store";
import { type NodeInfoRecord, nodeInfoToRecord, nodeInfoViolations } from "@rollcall/wire";
import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { SharedLoop } from "./health-record.ts";

export interface InfoWriterOptions {
  readonly store: CallStore;
  readonly replica: Replica;
  readonly validator: RequestValidator;
  /** Called when a report waits to be written. */
  readonly onQueued: () => void;
}

/** Most reports that wait. A further one is dropped: its agent sends it again at its interval. */
const MOST_QUEUED = 2_000;
const WRITES_AT_A_TIME = 8;
const IGNORED: Change<boolean> = { result: false, events: [] };

/** Writes node information that differs from the record. */
export class InfoWriter {
  readonly #options: InfoWriterOptions;
  /** The newest report of each node replaces an older one. */
  readonly #queue = new Map<HeldNode, NodeInfoRecord>();

  constructor(options: InfoWriterOptions) {
    this.#options = options;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /** Take a report. Throws INVALID_LABEL or INVALID_REQUEST, and keeps nothing then. */
  submit(node: HeldNode, info: NodeInfo): void {
    const report = nodeInfoToRecord(info);
    if (report.digest === node.infoDigest) {
      this.#queue.delete(node);
      return;
    }
    this.#check(info, report);
    if (this.#queue.size >= MOST_QUEUED && !this.#queue.has(node)) return;
    this.#queue.set(node, report);
    this.#options.onQueued();
  }

  /** Write until nothing waits. Call it again after an error: nothing is lost. */
  async flush(): Promise<void> {
    while (this.#queue.size > 0) {
      const batch = [...this.#queue].slice(0, WRITES_AT_A_TIME);
      const results = await Promise.allSettled(batch.map((it) => this.#write(it[0], it[1])));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
  }

  #check(info: NodeInfo, report: NodeInfoRecord): void {
    const { labels, others } = nodeInfoViolations(report);
    if (labels.length > 0) throw refuseFields("INVALID_LABEL", labels);
    this.#options.validator.check(NodeInfoSchema, info);
    if (others.length > 0) throw refuseFields("INVALID_REQUEST", others);
  }

  async #write(node: HeldNode, report: NodeInfoRecord): Promise<void> {
    const { store } = this.#options;
    const { result: isKept } = await store.change((tx) => this.#save(tx, node, report));
    if (isKept) node.infoDigest = report.digest;
    // A newer one may have come meanwhile.
    if (this.#queue.get(node) === report) this.#queue.delete(node);
  }

  /** Whether the record has the report now. A report on a fenced stream, or of a rejected node, has no effect. */
  async #save(tx: Tx, node: HeldNode, report: NodeInfoRecord): Promise<Change<boolean>> {
    const record = await lockNode(tx, node.id);
    if (record === null || record.membership.state === "REJECTED") return IGNORED;
    const { epoch, replicaId } = record.session;
    if (epoch !== node.epoch || replicaId !== this.#options.replica.instance) return IGNORED;
    const saved = await saveInfo(tx, node.id, report);
    // The report is saved later, so it must be compared again then.
    if (saved === "later") return IGNORED;
    return { result: true, events: saved === "saved" ? nodeInfoEvents(record, report) : [] };
  }
}

/** Write node information when some is new. */
export function writeNodeInfoTask(writer: InfoWriter, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "write-node-info", turn: () => writer.flush() });
}
