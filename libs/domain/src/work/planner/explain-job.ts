import { refusalText } from "../explain.ts";
import type { JobSpec } from "../job-spec.ts";
import { chooseGrant } from "../placement/choose-grant.ts";
import type { PlacementReason } from "../placement/node-class.ts";
import { type PlacementRequest, placementRequest } from "../placement/placement-request.ts";
import { PlacementSearch } from "../placement/placement-search.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { couldFit, countRefusals, matchingNodes } from "../placement/refusals.ts";
import { nextInPlace } from "../retry-replica.ts";
import { countVacant, untouchedNodes } from "./vacant-nodes.ts";
import { isBarred, isPerNode, isPlaced, type JobReplica, type LiveJob, liveIn, type WorkState } from "./work-state.ts";

/** Maximum number of replicas that a preview places. */
const MOST_PREVIEWED = 1_000;

/** A reason why nodes cannot run an execution, and how many nodes it affects. */
export interface ExplainedRefusal {
  readonly reason: PlacementReason;
  /** For people. */
  readonly message: string;
  readonly nodes: number;
}

/** Why replicas of a job are not running. */
export interface JobExplanation {
  /** The number of replicas that wait for a node. */
  readonly waiting: number;
  /** The number of replicas that failed and will be retried later. */
  readonly retrying: number;
  /** When the first of the failed replicas is retried; null if none will be retried. */
  readonly nextTryAtMs: number | null;
  /** Why nodes cannot run one more execution, the most frequent reason first; empty if no replica waits. */
  readonly refusals: readonly ExplainedRefusal[];
  /** Total number of nodes. */
  readonly nodes: number;
}

/** One replica in the preview of a job, and the node on which it would be placed. */
export interface PreviewedPlace {
  readonly index: number;
  readonly nodeId: string;
  /** The execution that is running now; null if there is none. */
  readonly executionId: string | null;
  readonly isReplaced: boolean;
}

/** The effects of submitting a job now. */
export interface JobPreview {
  readonly places: readonly PreviewedPlace[];
  /** The number of replicas that would wait for a node. */
  readonly waiting: number;
  readonly refusals: readonly ExplainedRefusal[];
  readonly nodes: number;
  /** Whether any node could run the job if nothing else ran on the node. */
  readonly couldFit: boolean;
}

/** Explain why replicas of a job are not running; null if the job is unknown. */
export function explainJob(state: WorkState, name: string, nowMs: number): JobExplanation | null {
  const job = state.jobs.get(name);
  if (job === undefined) return null;
  const tries = [...job.places.values()].flatMap((place) => nextTry(job, place, nowMs));
  const isCounted = !isPerNode(job.record) && job.record.state === "ACTIVE";
  // Count the empty replicas if the memory has never planned, because it then has not recorded which of them wait.
  const waiting = isCounted
    ? Math.max(0, job.empty.size - tries.length) + untouched(job)
    : Math.max(0, countVacant(state, job) - tries.length) + untouchedNodes(state, job).length;
  return {
    waiting,
    retrying: tries.length,
    nextTryAtMs: tries.length === 0 ? null : tries.reduce((one, other) => Math.min(one, other)),
    ...(waiting === 0 || isBarred(job.record)
      ? { refusals: [], nodes: state.pool.size }
      : explainRefusals(state, job.request, job.counts)),
  };
}

/** How many replicas have never had an execution. */
function untouched({ record, fresh, places }: LiveJob): number {
  let found = 0;
  for (let index = fresh; index < record.count; index += 1) if (!places.has(index)) found += 1;
  return found;
}

/** Preview where the executions of a job would be placed if it were submitted now. Changes nothing. */
export function previewJob(state: WorkState, spec: JobSpec): JobPreview {
  const known = state.jobs.get(spec.name);
  const request = placementRequest(spec);
  state.pool.use(request);
  const counts = new Map(known?.counts);
  const places = isPerNode({ spec } as LiveJob["record"])
    ? previewPerNode(state, request, known, counts)
    : previewCounted(state, request, known, counts);
  const preview = {
    ...places,
    couldFit: couldFit(state.pool, request),
  };
  state.pool.unuse(request);
  return places.waiting === 0 ? { ...preview, refusals: [] } : preview;
}

function previewCounted(
  state: WorkState,
  request: PlacementRequest,
  known: LiveJob | undefined,
  counts: Map<string, number>,
): Omit<JobPreview, "couldFit"> {
  const { pool } = state;
  const { spec } = request;
  const isRolled = known !== undefined && spec.type === "service";
  // An update of a service replaces every running execution, so none of them counts as staying.
  const staying = new Map(isRolled ? [] : known?.staying);
  const search = new PlacementSearch(pool, request, { counts, staying });
  const places: PreviewedPlace[] = [];
  const taken: (() => void)[] = [];
  let waiting = 0;
  for (let index = 0; index < Math.min(spec.count, MOST_PREVIEWED); index += 1) {
    const place = known?.places.get(index);
    const live = place === undefined ? undefined : liveIn(place)?.record;
    if (live !== undefined && !isRolled) {
      places.push({ index, nodeId: live.nodeId, executionId: live.id, isReplaced: false });
      continue;
    }
    const node = search.best();
    const grant = node === null ? null : chooseGrant(node, request);
    if (node === null || grant === null) {
      // A running execution gives its resources to its replacement, so only a replica without an execution has to wait.
      if (live === undefined) waiting += 1;
      else places.push({ index, nodeId: live.nodeId, executionId: live.id, isReplaced: true });
      continue;
    }
    pool.take(node.id, grant);
    for (const sums of [counts, staying]) sums.set(node.id, (sums.get(node.id) ?? 0) + 1);
    taken.push(() => pool.release(node.id, grant));
    places.push({ index, nodeId: node.id, executionId: live?.id ?? null, isReplaced: live !== undefined });
  }
  // Explain while the previewed grants are in place, because they are among the reasons why the other replicas wait.
  const explained = explainRefusals(state, request, counts);
  for (const release of taken) release();
  return { places, waiting, ...explained };
}

function previewPerNode(
  state: WorkState,
  request: PlacementRequest,
  known: LiveJob | undefined,
  counts: Map<string, number>,
): Omit<JobPreview, "couldFit"> {
  const { pool } = state;
  const search = new PlacementSearch(pool, { ...request, spec: { ...request.spec, maxPerNode: 0 } }, null);
  const places: PreviewedPlace[] = [];
  let waiting = 0;
  for (const [index, nodeId] of matchingNodes(pool, request).entries()) {
    const place = known?.replicaByNode.get(nodeId);
    const live = place === undefined ? undefined : liveIn(place)?.record;
    const node: PoolNode | null = live === undefined ? search.onNode(nodeId) : null;
    if (live === undefined && node === null) waiting += 1;
    else if (places.length < MOST_PREVIEWED) {
      const executionId = live?.id ?? null;
      places.push({ index: place?.index ?? index, nodeId, executionId, isReplaced: live !== undefined });
    }
  }
  return { places, waiting, ...explainRefusals(state, request, counts) };
}

function explainRefusals(
  { pool }: WorkState,
  request: PlacementRequest,
  counts: ReadonlyMap<string, number>,
): { readonly refusals: readonly ExplainedRefusal[]; readonly nodes: number } {
  const { counts: found, nodes } = countRefusals(pool, request, counts);
  return { nodes, refusals: found.map((one) => ({ ...one, message: refusalText(one.reason) })) };
}

function nextTry({ record, request }: LiveJob, place: JobReplica, nowMs: number): readonly number[] {
  const { last, lastRanMs, outcome } = place;
  if (record.state !== "ACTIVE" || outcome !== null || last === null || liveIn(place) !== undefined) return [];
  if (!isPlaced(last, record)) return [];
  const next = nextInPlace(last, lastRanMs, request.spec);
  return next.kind === "again" && next.notBeforeMs > nowMs ? [next.notBeforeMs] : [];
}
