import { refusalText } from "../explain.ts";
import type { JobSpec } from "../job-spec.ts";
import { chooseGrant } from "../placement/choose-grant.ts";
import type { PlacementReason } from "../placement/node-class.ts";
import { type PlacementRequest, placementRequest } from "../placement/placement-request.ts";
import { PlacementSearch } from "../placement/placement-search.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { couldFit, countRefusals, matchingNodes } from "../placement/refusals.ts";
import { nextInPlace } from "../retry-place.ts";
import { isBarred, isPerNode, isPlaced, type KnownJob, liveIn, type Place, type WorkState } from "./work-state.ts";

/** Places that a preview names at most. */
const MOST_PREVIEWED = 1_000;

/** Why nodes will not do, by reason. */
export interface ExplainedRefusal {
  readonly reason: PlacementReason;
  /** For people. */
  readonly message: string;
  readonly nodes: number;
}

/** Why a job has places in which nothing runs. */
export interface JobExplanation {
  /** Places that found no node. */
  readonly waiting: number;
  /** Places that failed and are tried again later. */
  readonly retrying: number;
  /** When the first of these is tried again; null for none. */
  readonly nextTryAtMs: number | null;
  /** Why nodes will not do for one more execution, the most frequent first; empty when nothing waits. */
  readonly refusals: readonly ExplainedRefusal[];
  /** Nodes in all. */
  readonly nodes: number;
}

/** One place of a job that is not submitted yet, and where it would go. */
export interface PreviewedPlace {
  readonly index: number;
  readonly nodeId: string;
  /** The execution that runs there now; null for a new one. */
  readonly executionId: string | null;
  readonly isReplaced: boolean;
}

/** What would happen to a job. */
export interface JobPreview {
  readonly places: readonly PreviewedPlace[];
  /** Places that would wait. */
  readonly waiting: number;
  readonly refusals: readonly ExplainedRefusal[];
  readonly nodes: number;
  /** Whether any node could run it if nothing else ran there. */
  readonly couldFit: boolean;
}

/** Explain why places of a job are empty; null for a job that is not known. */
export function explainJob(state: WorkState, name: string, nowMs: number): JobExplanation | null {
  const job = state.jobs.get(name);
  if (job === undefined) return null;
  const tries = [...job.places.values()].flatMap((place) => nextTry(job, place, nowMs));
  const isCounted = !isPerNode(job.record) && job.record.state === "ACTIVE";
  // A memory that plans nothing has not noted which of the empty places wait.
  const waiting = isCounted ? Math.max(0, job.empty.size - tries.length) + untouched(job) : job.waiting.size;
  return {
    waiting,
    retrying: tries.length,
    nextTryAtMs: tries.length === 0 ? null : tries.reduce((one, other) => Math.min(one, other)),
    ...(waiting === 0 || isBarred(job.record)
      ? { refusals: [], nodes: state.pool.size }
      : explainRefusals(state, job.request, job.counts)),
  };
}

/** Places in which nothing has ever been. */
function untouched({ record, fresh, places }: KnownJob): number {
  let found = 0;
  for (let index = fresh; index < record.count; index += 1) if (!places.has(index)) found += 1;
  return found;
}

/** Show where executions of a job would go if it were submitted now. Nothing is changed. */
export function previewJob(state: WorkState, spec: JobSpec): JobPreview {
  const known = state.jobs.get(spec.name);
  const request = placementRequest(spec);
  state.pool.use(request);
  const counts = new Map(known?.counts);
  const places = isPerNode({ spec } as KnownJob["record"])
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
  known: KnownJob | undefined,
  counts: Map<string, number>,
): Omit<JobPreview, "couldFit"> {
  const { pool } = state;
  const { spec } = request;
  const isRolled = known !== undefined && spec.type === "service";
  // What runs is replaced, and none of it stays.
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
      // One that runs gives its place to the one that replaces it.
      if (live === undefined) waiting += 1;
      else places.push({ index, nodeId: live.nodeId, executionId: live.id, isReplaced: true });
      continue;
    }
    pool.take(node.id, grant);
    for (const sums of [counts, staying]) sums.set(node.id, (sums.get(node.id) ?? 0) + 1);
    taken.push(() => pool.release(node.id, grant));
    places.push({ index, nodeId: node.id, executionId: live?.id ?? null, isReplaced: live !== undefined });
  }
  // While it is still taken: what is left is too little for those that wait.
  const explained = explainRefusals(state, request, counts);
  for (const release of taken) release();
  return { places, waiting, ...explained };
}

function previewPerNode(
  state: WorkState,
  request: PlacementRequest,
  known: KnownJob | undefined,
  counts: Map<string, number>,
): Omit<JobPreview, "couldFit"> {
  const { pool } = state;
  const search = new PlacementSearch(pool, { ...request, spec: { ...request.spec, maxPerNode: 0 } }, null);
  const places: PreviewedPlace[] = [];
  let waiting = 0;
  for (const [index, nodeId] of matchingNodes(pool, request).entries()) {
    const place = known?.placeByNode.get(nodeId);
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

function nextTry({ record, request }: KnownJob, place: Place, nowMs: number): readonly number[] {
  const { last, lastRanMs, outcome } = place;
  if (record.state !== "ACTIVE" || outcome !== null || last === null || liveIn(place) !== undefined) return [];
  if (!isPlaced(last, record)) return [];
  const next = nextInPlace(last, lastRanMs, request.spec);
  return next.kind === "again" && next.notBeforeMs > nowMs ? [next.notBeforeMs] : [];
}
