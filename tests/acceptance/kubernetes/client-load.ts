import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { JobSpecSchema, JobType } from "../../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { describeError } from "../../../libs/errors/src/index.ts";
import type { SecureClients } from "../../../services/rollcall/src/testing/secure-clients.ts";

const MOST_ATTEMPTS = 8;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;
/**
 * The gRPC codes UNAVAILABLE and ABORTED. After these codes, either nothing was done or the call can be repeated.
 */
const MAY_PASS = new Set([14, 10]);

/**
 * Make a call in the way that clients should. Retry after UNAVAILABLE or a RetryInfo, with growing delays, but
 * never sooner than the server asks. The call must be safe to repeat.
 */
export async function retrying<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      const { retryAfterMs } = describeError(error);
      const mayPass = retryAfterMs !== undefined || MAY_PASS.has(Number(Object(error).code)) || wasNotTaken(error);
      if (attempt === MOST_ATTEMPTS || !mayPass) throw error;
      await delay(Math.max(retryAfterMs ?? 0, Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt)));
    }
  }
}

/**
 * Whether a server that shuts down refused to start the call. Connect reports this as INTERNAL, and gRPC reports
 * it as UNAVAILABLE.
 */
function wasNotTaken(error: unknown): boolean {
  return String(error).includes("NGHTTP2_REFUSED_STREAM");
}

/** Clients that read, change and watch without a pause. */
export interface ClientLoad {
  readonly calls: number;
  readonly failures: readonly string[];
  /**
   * Stop after the watches have received everything that has happened. Returns the revisions of the events that
   * the watches received.
   */
  stop(): Promise<readonly bigint[]>;
}

const PAUSE_MS = 50;
/** The number of seconds that a job waits for a node. It is longer than any test. */
const WAIT_FOR_NODE_S = 3_600;

/** List the revisions of all events. */
export async function revisionsOf(clients: SecureClients): Promise<readonly bigint[]> {
  const revisions: bigint[] = [];
  let pageToken = "";
  do {
    const page = await retrying(() => clients.events.listEvents({ pageSize: 1_000, pageToken }));
    revisions.push(...page.events.map(({ revision }) => revision));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return revisions;
}

/** Start clients of a control plane with this node. */
export function startLoad(clients: SecureClients, nodeId: string): ClientLoad {
  const ending = new AbortController();
  const watching = new AbortController();
  const failures: string[] = [];
  let calls = 0;
  /** @param next creates each call. A created call can be repeated unchanged. */
  const repeat = async (name: string, next: () => () => Promise<unknown>) => {
    while (!ending.signal.aborted) {
      calls += 1;
      await retrying(next()).catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
      await delay(PAUSE_MS);
    }
  };
  let turn = 0;
  const change = (): (() => Promise<unknown>) => {
    turn += 1;
    const request = { node: nodeId, requestId: `load-${process.pid}-${turn}`, reason: "load" };
    return turn % 2 === 1 ? () => clients.admin.cordonNode(request) : () => clients.admin.uncordonNode(request);
  };
  let version = 0;
  /** Submit a job that fits no node, so that each version waits and is stored as submitted. */
  const submit = (): (() => Promise<unknown>) => {
    version += 1;
    const spec = create(JobSpecSchema, {
      ...{ name: "load", type: JobType.BATCH, count: 1, constraints: { node: "absent" } },
      queueTimeout: { seconds: BigInt(WAIT_FOR_NODE_S + version) },
      task: { case: "process", value: { command: ["true"] } },
    });
    return () => clients.jobs.submitJob({ spec, requestId: `load-${process.pid}-job-${version}` });
  };
  const revisions: bigint[] = [];
  let token: string | null = null;
  const watch = async () => {
    while (!watching.signal.aborted) {
      const start =
        token === null
          ? ({ case: "fromBeginning", value: true } as const)
          : ({ case: "resumeToken", value: token } as const);
      try {
        for await (const answer of clients.events.watchEvents({ start }, { signal: watching.signal })) {
          revisions.push(...answer.events.map(({ revision }) => revision));
          token = answer.resumeToken;
        }
      } catch (error) {
        if (!watching.signal.aborted) await delay(describeError(error).retryAfterMs ?? PAUSE_MS);
      }
    }
  };
  const loops = [
    repeat("GetNode", () => () => clients.registry.getNode({ node: nodeId })),
    repeat("ListNodes", () => () => clients.registry.listNodes({})),
    repeat("GetNodeHealth", () => () => clients.health.getNodeHealth({ node: nodeId })),
    repeat("CordonNode", change),
    repeat("ListJobs", () => () => clients.jobs.listJobs({})),
    repeat("SubmitJob", submit),
  ];
  const watcher = watch();
  return {
    get calls() {
      return calls;
    },
    failures,
    stop: async () => {
      ending.abort();
      await Promise.all(loops);
      const last = (await revisionsOf(clients)).at(-1) ?? 0n;
      for (let waitedMs = 0; (revisions.at(-1) ?? 0n) < last && waitedMs < 30_000; waitedMs += PAUSE_MS) {
        await delay(PAUSE_MS);
      }
      watching.abort();
      await watcher;
      return revisions;
    },
  };
}
