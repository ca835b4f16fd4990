import { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { refuse } from "@rollcall/errors";
import { Loop, type Task, takeFrom } from "@rollcall/process";
import type { RequestValidator } from "@rollcall/rpc";
import type { NodeWork } from "@rollcall/store";
import type { SharedLoop } from "../record/health-record.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { AgentWorkFrame, WorkHost } from "../session/session-host.ts";
import { reportPart } from "./convert.ts";
import { HeldWork, MOST_REPORTED, MOST_WANTED } from "./held-work.ts";
import { SpecCache } from "./spec-cache.ts";
import type { WorkFrame } from "./work-frames.ts";
import type { WorkRecord } from "./work-record.ts";

export interface WorkDeskOptions {
  readonly record: WorkRecord;
  readonly replica: Pick<Replica, "nodes" | "isContested">;
  readonly validator: Pick<RequestValidator, "check">;
  readonly loops: SharedLoop;
}

/** Nodes whose lists are read in one statement. */
const NODES_A_READ = 100;
/** References in one frame: some 40 KiB. */
const REFERENCES_A_FRAME = 200;
const FORGOTTEN = {
  desired: "FORGET",
  specDigest: Buffer.alloc(0),
  index: 0,
  ports: {},
  gpuUuids: [],
  reported: true,
} as const;
/** Executions that are saved in one transaction, unless one node reports more. */
const EXECUTIONS_A_SAVE = 2_000;

/** How long a node with more unknown executions than are recorded waits until it is asked again. */
const REPORT_AGAIN_MS = 60_000;

/**
 * The work of the nodes that a replica holds: tells agents what should run, and records what they report. Both are
 * repeated until they are confirmed, so a lost answer loses nothing: an agent that comes back is told the whole list
 * and reports all that it has.
 */
export class WorkDesk implements WorkHost {
  readonly tasks: readonly Task[];
  readonly #options: WorkDeskOptions;
  readonly #specs: SpecCache;
  /** Nodes whose agents must be told of changes. */
  readonly #untold = new Set<HeldNode>();
  /** Nodes whose agents wait for specs. */
  readonly #wanting = new Set<HeldNode>();
  /** Nodes whose ended executions may be forgotten. */
  readonly #ended = new Set<HeldNode>();
  /** Nodes with reports that are not in the record. */
  readonly #reported = new Set<HeldNode>();
  readonly #telling: Loop;
  readonly #saving: Loop;
  /** At the beginning, so that changes are followed from before the first list is read. */
  #hasNews = true;

  constructor(options: WorkDeskOptions) {
    this.#options = options;
    this.#specs = new SpecCache(options.record);
    this.#telling = new Loop({ ...options.loops, name: "tell-work", turn: () => this.#tell() });
    this.#saving = new Loop({ ...options.loops, name: "save-reports", turn: () => this.#save() });
    this.tasks = [this.#telling, this.#saving];
  }

  /** What some nodes should run may have changed: look for it. */
  observe(): void {
    this.#hasNews = true;
    this.#telling.call();
  }

  opened(node: HeldNode): void {
    node.work = new HeldWork();
    this.#untold.add(node);
    this.#telling.call();
  }

  onDigest(node: HeldNode, digest: bigint): void {
    const { work } = node;
    if (work === null) return;
    const isContested = this.#options.replica.isContested(node);
    if (work.isWithheld && !isContested) {
      // The whole list names what was left out.
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

  receive(node: HeldNode, frame: AgentWorkFrame): void {
    // An agent that did not say that it runs work has none.
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
            throw refuse("INVALID_REQUEST", `a node may report ${MOST_REPORTED} executions`);
          case "out-of-order":
            throw refuse("INVALID_REQUEST", "the number of a report must rise, and its parts follow each other");
        }
        return;
      case "want-specs":
        // An agent asks again while the record is away.
        for (const digest of frame.digests) {
          if (work.wanted.some((known) => Buffer.compare(known, digest) === 0)) continue;
          if (work.wanted.length >= MOST_WANTED) {
            throw refuse("INVALID_REQUEST", `an agent may wait for ${MOST_WANTED} specs at a time`);
          }
          // Not a part of all that came with it.
          work.wanted.push(new Uint8Array(digest));
        }
        this.#wanting.add(node);
        this.#telling.call();
        return;
    }
  }

  drained(node: HeldNode): void {
    this.#untold.add(node);
    if ((node.work?.wanted.length ?? 0) > 0) this.#wanting.add(node);
    this.#telling.call();
    if (this.#ended.has(node)) this.#saving.call();
  }

  /** Tell all agents what has changed, and send the specs that they wait for. */
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
        // A long transaction makes the database answer the same changes again and again.
        if (node.work.told === null || node.work.told < generation) this.#untold.add(node);
      }
    }
    while (this.#untold.size > 0) await this.#tellSome(takeFrom(this.#untold, NODES_A_READ));
    // One at a time: those after one whose specs cannot be read go on waiting. Those that come meanwhile have called
    // for a turn of their own, before which agents are told what should run.
    for (let left = this.#wanting.size; left > 0; left -= 1) {
      for (const node of takeFrom(this.#wanting, 1)) await this.#sendSpecs(node);
    }
  }

  async #tellSome(nodes: readonly HeldNode[]): Promise<void> {
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
      // Another session may have been opened meanwhile, which is told by itself.
      if (node !== undefined && work != null && node.work === work) this.#tellOne(node, work, list);
      works.delete(list.nodeId);
    }
    for (const [nodeId, { node, work }] of works) {
      if (work === null || node.work !== work || work.told !== null) continue;
      this.#tellOne(node, work, { nodeId, generation: 0n, references: [] });
    }
  }

  /** Send a list, in parts. When the agent does not read, the list is read again once it has. */
  #tellOne(node: HeldNode, work: HeldWork, { generation, references }: NodeWork): void {
    const isWhole = work.told === null;
    if (!isWhole && references.length === 0) return;
    // Another agent may have started what no report has named yet.
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
    if (!isWhole || work.ended.length === 0) return;
    this.#ended.add(node);
    this.#saving.call();
  }

  async #sendSpecs(node: HeldNode): Promise<void> {
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
    // Asked for meanwhile.
    if (work.wanted.length > 0 && this.#isServed(node) && node.work === work) {
      this.#wanting.add(node);
      this.#telling.call();
    }
  }

  /** Save all reports that wait, and acknowledge them. */
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
        if (!report.whole) continue;
        work.ended = report.executions.filter(({ observed }) => observed === "ENDED").map(({ id }) => id);
        this.#ended.add(node);
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

  /** A whole list leaves out what has ended: an agent that missed to be told of it forgets it by its whole report. */
  async #letForget(node: HeldNode): Promise<void> {
    const { record } = this.#options;
    const { work } = node;
    // Before the whole list is told, the agent takes no change; afterwards this is done again.
    if (work === null || work.told === null || work.ended.length === 0) return;
    const ids = await record.forgettable(node.id, work.ended);
    if (node.work !== work) return;
    const references = ids.map((id) => ({ ...FORGOTTEN, id }));
    for (let from = 0; from < references.length; from += REFERENCES_A_FRAME) {
      const isSent = node.stream?.sendWork({
        ...this.#changes(work),
        hasMore: from + REFERENCES_A_FRAME < references.length,
        references: references.slice(from, from + REFERENCES_A_FRAME),
      });
      if (isSent === true) continue;
      // One that has left reports all it has in its next session.
      if (node.stream !== null) this.#ended.add(node);
      return;
    }
  }

  /** A frame of changes without any. */
  #changes(work: HeldWork): Extract<WorkFrame, { readonly kind: "executions" }> {
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

  #isServed(node: HeldNode): boolean {
    return node.work !== null && node.stream !== null && this.#options.replica.nodes.find(node.id) === node;
  }
}
