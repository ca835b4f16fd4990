import { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { refuse } from "@rollcall/errors";
import { Loop, type Task, takeFrom } from "@rollcall/process";
import type { RequestValidator } from "@rollcall/rpc";
import type { NodeWork } from "@rollcall/store";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { LiveWork, MOST_REPORTED, MOST_WANTED } from "../replica/live-work.ts";
import type { Replica } from "../replica/replica.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import type { AgentWorkFrame, WorkHost } from "../session/session-host.ts";
import { reportPart } from "./convert.ts";
import { SpecCache } from "./spec-cache.ts";
import type { WorkStore } from "./work-store.ts";

export interface WorkDispatcherOptions {
  readonly record: WorkStore;
  readonly replica: Pick<Replica, "nodes" | "isContested">;
  readonly validator: Pick<RequestValidator, "check">;
  readonly loops: SharedLoop;
}

/** Number of nodes whose lists are read in one statement. */
const NODES_A_READ = 100;
/** Number of references in one frame, which is about 40 KiB. */
const REFERENCES_A_FRAME = 200;
const FORGOTTEN = {
  desired: "FORGET",
  specDigest: Buffer.alloc(0),
  index: 0,
  ports: {},
  gpuUuids: [],
  reported: true,
} as const;
/** Number of executions to save in one transaction, unless one node reports more. */
const EXECUTIONS_A_SAVE = 2_000;

/**
 * How long to wait before requesting a report again from a node that reported more unknown executions than can be
 * saved.
 */
const REPORT_AGAIN_MS = 60_000;

/**
 * Dispatches the work of a replica's nodes: sends agents the executions that they should run, and saves their
 * reports. Both are repeated until acknowledged, so a lost response loses nothing: an agent that reconnects gets the
 * whole list and reports all of its executions.
 */
export class WorkDispatcher implements WorkHost {
  readonly tasks: readonly Task[];
  readonly #options: WorkDispatcherOptions;
  readonly #specs: SpecCache;
  /** Nodes with changes to send to their agents. */
  readonly #untold = new Set<LiveNode>();
  /** Nodes whose agents wait for specs. */
  readonly #wanting = new Set<LiveNode>();
  /** Nodes with ended executions that they can perhaps forget. */
  readonly #ended = new Set<LiveNode>();
  /** Nodes with reports that are not in the store yet. */
  readonly #reported = new Set<LiveNode>();
  readonly #telling: Loop;
  readonly #saving: Loop;
  /**
   * Whether there may be changes to read. Initially true, so that changes are followed before the first list is read.
   */
  #hasNews = true;

  constructor(options: WorkDispatcherOptions) {
    this.#options = options;
    this.#specs = new SpecCache(options.record);
    this.#telling = new Loop({ ...options.loops, name: "tell-work", turn: () => this.#tell() });
    this.#saving = new Loop({ ...options.loops, name: "save-reports", turn: () => this.#save() });
    this.tasks = [this.#telling, this.#saving];
  }

  /** Check for changes in the work that nodes should run. */
  observe(): void {
    this.#hasNews = true;
    this.#telling.call();
  }

  /** Called after jobs were deleted with their executions, because nodes can now forget the ended ones. */
  jobsDeleted(): void {
    for (const node of this.#options.replica.nodes.all()) if ((node.work?.ended.size ?? 0) > 0) this.#ended.add(node);
    this.#saving.call();
  }

  opened(node: LiveNode): void {
    node.work = new LiveWork();
    this.#untold.add(node);
    this.#telling.call();
  }

  onDigest(node: LiveNode, digest: bigint): void {
    const { work } = node;
    if (work === null) return;
    const isContested = this.#options.replica.isContested(node);
    if (work.isWithheld && !isContested) {
      // Send the whole list again, which includes the withheld executions.
      work.isWithheld = false;
      work.told = null;
      this.#untold.add(node);
      this.#telling.call();
    }
    const nowMs = this.#options.loops.clock.nowMs();
    if (!work.asksForReport(digest, isContested, nowMs)) return;
    const isSent = node.stream?.sendWork({ ...this.#changes(work), isReportWanted: true }) === true;
    if (!isSent) work.reportNotAsked();
  }

  receive(node: LiveNode, frame: AgentWorkFrame): void {
    // `work` is null for an agent whose Hello did not declare that it runs work.
    const { work } = node;
    if (work === null) return;
    switch (frame.kind) {
      case "report":
        this.#options.validator.check(ExecutionReportSchema, frame.report);
        switch (work.take(reportPart(frame.report))) {
          case "complete":
            this.#reported.add(node);
            this.#saving.call();
            return;
          case "more":
            return;
          case "too-many":
            throw refuse("INVALID_REQUEST", `a node can report at most ${MOST_REPORTED} executions`);
          case "out-of-order":
            throw refuse(
              "INVALID_REQUEST",
              "report numbers must increase, and the parts of a report must be consecutive",
            );
        }
        return;
      case "want-specs":
        // Skip duplicates. While the store is unavailable, an agent asks repeatedly for the same specs.
        for (const digest of frame.digests) {
          if (work.wanted.some((known) => Buffer.compare(known, digest) === 0)) continue;
          if (work.wanted.length >= MOST_WANTED) {
            throw refuse("INVALID_REQUEST", `an agent can wait for at most ${MOST_WANTED} specs at a time`);
          }
          // Store a copy, because a view would keep the whole frame in memory.
          work.wanted.push(new Uint8Array(digest));
        }
        this.#wanting.add(node);
        this.#telling.call();
        return;
    }
  }

  drained(node: LiveNode): void {
    this.#untold.add(node);
    if ((node.work?.wanted.length ?? 0) > 0) this.#wanting.add(node);
    this.#telling.call();
    if (this.#ended.has(node)) this.#saving.call();
  }

  /** Send all agents their changes and the specs that they wait for. */
  async #tell(): Promise<void> {
    const { record, replica } = this.#options;
    if (this.#hasNews) {
      this.#hasNews = false;
      const changed = await record.changedNodes().catch((error: unknown) => {
        this.#hasNews = true;
        throw error;
      });
      for (const { nodeId, generation } of changed) {
        const node = replica.nodes.find(nodeId);
        if (node?.work == null) continue;
        // Skip known changes. While a long transaction is open, the store returns the same changes repeatedly.
        if (node.work.told === null || node.work.told < generation) this.#untold.add(node);
      }
    }
    while (this.#untold.size > 0) await this.#tellSome(takeFrom(this.#untold, NODES_A_READ));
    // Handle one node at a time: if reading a node's specs fails, the nodes after it stay queued. A node added during
    // this loop has requested another tick, which sends lists before specs.
    for (let left = this.#wanting.size; left > 0; left -= 1) {
      for (const node of takeFrom(this.#wanting, 1)) await this.#sendSpecs(node);
    }
  }

  async #tellSome(nodes: readonly LiveNode[]): Promise<void> {
    const { record } = this.#options;
    const asked = nodes.filter((node) => this.#isServed(node));
    const queries = asked.map(({ id, work }) => ({ nodeId: id, after: work?.told ?? 0n }));
    const works = new Map(asked.map((node) => [node.id, { node, work: node.work }]));
    const lists = await record.readNodes(queries).catch((error: unknown) => {
      for (const node of asked) this.#untold.add(node);
      throw error;
    });
    for (const list of lists) {
      const { node, work } = works.get(list.nodeId) ?? {};
      // Skip a session that was opened during the read, because it gets its own list.
      if (node !== undefined && work != null && node.work === work) this.#tellOne(node, work, list);
      works.delete(list.nodeId);
    }
    for (const [nodeId, { node, work }] of works) {
      if (work === null || node.work !== work || work.told !== null) continue;
      this.#tellOne(node, work, { nodeId, generation: 0n, references: [] });
    }
  }

  /** Send a list in parts. If the agent does not read, the list is read again once the agent does. */
  #tellOne(node: LiveNode, work: LiveWork, { generation, references }: NodeWork): void {
    const isWhole = work.told === null;
    if (!isWhole && references.length === 0) return;
    // While the node is contested, withhold executions that no report has named, because another agent may have
    // started them.
    const isContested = this.#options.replica.isContested(node);
    const safe = references.filter(({ desired, reported }) => !isContested || desired !== "RUN" || reported);
    if (safe.length < references.length) work.isWithheld = true;
    for (let from = 0; from === 0 || from < safe.length; from += REFERENCES_A_FRAME) {
      const isSent = node.stream?.sendWork({
        ...this.#changes(work),
        generation,
        isWhole,
        hasMore: from + REFERENCES_A_FRAME < safe.length,
        references: safe.slice(from, from + REFERENCES_A_FRAME),
      });
      if (isSent !== true) return;
    }
    work.told = generation;
    for (const { id, desired } of references) if (desired === "FORGET") work.ended.delete(id);
    if (!isWhole || work.ended.size === 0) return;
    this.#ended.add(node);
    this.#saving.call();
  }

  async #sendSpecs(node: LiveNode): Promise<void> {
    const { work } = node;
    if (work === null) return;
    for (let left = work.wanted.length; left > 0 && this.#isServed(node) && node.work === work; left -= 1) {
      const [digest] = work.wanted;
      if (digest === undefined) return;
      const spec = await this.#specs.read(digest, work.wanted).catch((error: unknown) => {
        this.#wanting.add(node);
        throw error;
      });
      if (node.work !== work || node.stream?.sendWork({ kind: "spec", digest, spec }) !== true) return;
      work.wanted.shift();
    }
    // Continue if more specs were requested in the meantime.
    if (work.wanted.length > 0 && this.#isServed(node) && node.work === work) {
      this.#wanting.add(node);
      this.#telling.call();
    }
  }

  /** Save all waiting reports and acknowledge them. */
  async #save(): Promise<void> {
    while (this.#reported.size > 0) {
      const batch = this.#beginSave();
      if (batch.length === 0) continue;
      const { record } = this.#options;
      const { cutNodeIds } = await record.saveReports(batch.map(({ report }) => report)).catch((error: unknown) => {
        for (const { node, work } of batch) {
          work.notSaved();
          this.#reported.add(node);
        }
        throw error;
      });
      const againAtMs = this.#options.loops.clock.nowMs() + REPORT_AGAIN_MS;
      for (const { node, work, report } of batch) {
        if (cutNodeIds.includes(node.id)) work.askAgainAt(againAtMs);
        const number = BigInt(work.saved());
        if (node.work !== work) continue;
        node.stream?.sendWork({ kind: "report-ack", number });
        if (work.hasReport) this.#reported.add(node);
        if (report.whole) work.ended.clear();
        for (const { id, observed } of report.executions) if (observed === "ENDED") work.ended.add(id);
        if (report.whole) this.#ended.add(node);
      }
    }
    const nodes = takeFrom(this.#ended, this.#ended.size);
    for (const [index, node] of nodes.entries()) {
      await this.#letForget(node).catch((error: unknown) => {
        for (const left of nodes.slice(index)) this.#ended.add(left);
        throw error;
      });
    }
  }

  /**
   * Notify an agent of the ended executions that it can forget. The whole list leaves out ended executions, so an
   * agent that missed an order to forget one gets the order again after its whole report.
   */
  async #letForget(node: LiveNode): Promise<void> {
    const { record } = this.#options;
    const { work } = node;
    // The agent accepts no changes before the whole list was sent. After sending the list, #tellOne() repeats this
    // call.
    if (work === null || work.told === null || work.ended.size === 0) return;
    const ids = await record.forgettable(node.id, [...work.ended]);
    if (node.work !== work) return;
    const references = ids.map((id) => ({ ...FORGOTTEN, id }));
    for (let from = 0; from < references.length; from += REFERENCES_A_FRAME) {
      const isSent = node.stream?.sendWork({
        ...this.#changes(work),
        hasMore: from + REFERENCES_A_FRAME < references.length,
        references: references.slice(from, from + REFERENCES_A_FRAME),
      });
      if (isSent === true) {
        for (const { id } of references.slice(from, from + REFERENCES_A_FRAME)) work.ended.delete(id);
        continue;
      }
      // Skip an agent that has left, because it reports everything in its next session.
      if (node.stream !== null) this.#ended.add(node);
      return;
    }
  }

  /** An empty frame of changes. */
  #changes(work: LiveWork): Extract<WorkFrame, { readonly kind: "executions" }> {
    const logId = this.#options.record.logId();
    const generation = work.told ?? 0n;
    return {
      kind: "executions",
      logId,
      generation,
      isWhole: false,
      hasMore: false,
      isReportWanted: false,
      references: [],
    };
  }

  #beginSave() {
    const batch = [];
    let count = 0;
    for (const node of this.#reported) {
      this.#reported.delete(node);
      const { work, epoch } = node;
      const report = work?.beginSave(this.#options.replica.isContested(node));
      if (work == null || report == null) continue;
      batch.push({ node, work, report: { nodeId: node.id, epoch, ...report } });
      count += report.executions.length;
      if (count >= EXECUTIONS_A_SAVE) break;
    }
    return batch;
  }

  #isServed(node: LiveNode): boolean {
    return node.work !== null && node.stream !== null && this.#options.replica.nodes.find(node.id) === node;
  }
}
