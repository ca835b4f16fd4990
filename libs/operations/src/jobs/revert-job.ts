import {
  autoRevertTo,
  type CommandSource,
  decideRevert,
  jobChangedEvent,
  jobSubmittedEvent,
  type NewEvent,
  type OwnerQuota,
  type RevertDecision,
  refuseJobEdit,
  revertedCount,
} from "@rollcall/domain";
import { describeError, reasonOf } from "@rollcall/errors";
import {
  type Change,
  type Db,
  getJob,
  getJobVersion,
  type JobRow,
  lockJob,
  type ReservedStore,
  readJobVersionHeads,
  saveHalted,
  saveJobVersion,
  saveSpec,
  type Tx,
} from "@rollcall/store";
import { executionSpecOf, jobFromText, jobToText, recheckedJobOf } from "@rollcall/wire";
import { auditOf, type Operation } from "../operation.ts";
import { holdToQuota } from "./hold-to-quota.ts";
import {
  checkJobEtag,
  jobEnded,
  jobNotFound,
  jobStopped,
  jobVersionIsNewest,
  jobVersionNotFound,
} from "./job-refusals.ts";
import { type AcceptedJob, acceptJob } from "./submit-job.ts";

/** A job to revert. */
export interface RevertOrder {
  readonly name: string;
  /** The etag that the job must have; empty to accept a job in any state. */
  readonly etag: string;
  /** The version to revert to; null for the last version that became ready. */
  readonly version: number | null;
}

/** The result of a revert. */
export interface JobReverted {
  readonly job: JobRow;
  /** The version that the job was reverted to. */
  readonly revertedTo: number;
}

/** The job that a revert submits. */
export interface RevertedJob extends AcceptedJob {
  /**
   * The user who submitted the version to revert to. This user stays the owner of the specification, so that nodes
   * grant it the same secrets.
   */
  readonly owner: string;
  /** The desired number of executions. */
  readonly count: number;
  readonly before: JobRow;
  readonly decision: Extract<RevertDecision, { readonly ok: true }>;
}

/**
 * Decide what a revert submits. Throws JOB_NOT_FOUND, ETAG_MISMATCH, JOB_STOPPED, JOB_ENDED, JOB_VERSION_NOT_FOUND,
 * JOB_VERSION_IS_NEWEST, or INVALID_JOB when current rules reject the earlier version.
 */
export async function decideRevertIn(db: Db, { name, etag, version }: RevertOrder): Promise<RevertedJob> {
  const before = await getJob(db, name);
  if (before === null) throw await jobNotFound(db, name);
  checkJobEtag(before, name, etag);
  const refusal = refuseJobEdit(before.state);
  if (refusal === "JOB_STOPPED") throw jobStopped(name);
  if (refusal === "JOB_ENDED") throw jobEnded(name, before.state, "JOB_REVERTED");
  const decision = decideRevert(before.version, await readJobVersionHeads(db, name), version);
  if (!decision.ok) {
    if (decision.refusal === "IS_NEWEST") throw jobVersionIsNewest(before, version ?? before.version, decision.origin);
    throw jobVersionNotFound(name, version, decision.refusal === "UNKNOWN_VERSION" ? decision.kept : []);
  }
  const target = await getJobVersion(db, name, decision.to.version);
  if (target === null) throw jobVersionNotFound(name, decision.to.version, []);
  const accepted = acceptJob(jobFromText(target.spec), target.actor);
  const { type, count: reverted } = accepted.spec;
  const newest = await getJobVersion(db, name, before.version);
  const submitted = newest === null ? before.count : (jobFromText(newest.spec).count ?? 1);
  const isCounted = type === "batch" || type === "service";
  const count = isCounted ? revertedCount({ present: before.count, submitted, reverted }) : reverted;
  return { ...accepted, owner: target.actor, count, before, decision };
}

/**
 * Create a new version of a job with the specification of an earlier one. Throws the same errors as decideRevertIn().
 */
export async function revertJobIn(tx: Tx, operation: Operation, order: RevertOrder): Promise<Change<JobReverted>> {
  await lockJob(tx, order.name);
  const reverted = await decideRevertIn(tx, order);
  const { job, event } = await holdToQuota(tx, operation, reverted.owner, () =>
    submitReverted(tx, reverted, operation.by, null),
  );
  const revertedTo = reverted.decision.to.version;
  return { result: { job, revertedTo }, events: [event], audit: [auditOf(operation, order.name)] };
}

async function submitReverted(
  tx: Tx,
  { before, decision, submitted, spec, owner, count }: RevertedJob,
  by: CommandSource,
  undone: number | null,
): Promise<{ readonly job: JobRow; readonly event: NewEvent }> {
  const { name, type } = spec;
  const version = before.version + 1;
  const { digest, bytes } = executionSpecOf(submitted, version, owner);
  await saveSpec(tx, digest, bytes);
  const said = by.message === "" ? "" : `: ${by.message}`;
  const reason = `reverted to version ${decision.to.version} by ${by.actor}${said}`.slice(0, MOST_REASON);
  const job = await saveJobVersion(tx, {
    ...{ name, type, version, count, spec: jobToText(submitted, count), specDigest: digest, actor: owner, reason },
    ...{ millicores: spec.resources.millicores, isOneNode: spec.constraints.nodeId !== null },
    revert: { origin: decision.to.origin, sameVersions: decision.sameVersions, undone },
  });
  const event = jobSubmittedEvent({
    ...{ name, type, before, after: job, by: { ...by, message: reason }, reason: "JOB_REVERTED" },
  });
  return { job, event };
}

/** Maximum length of a submission's reason, in characters. */
const MOST_REASON = 1_024;

/** A job to revert automatically. */
export interface AutoRevertOrder {
  readonly job: string;
  /** The version whose update halted. */
  readonly version: number;
  readonly by: CommandSource;
  /** The quota of each owner's jobs. */
  readonly quota: OwnerQuota;
}

/**
 * Revert a job whose update to a version halted, as its policy requires. Does nothing if a revert is no longer
 * required. Returns null, or the reason why the earlier version cannot be submitted. The reason is also stored with
 * the job.
 */
export async function autoRevertJob(
  store: Pick<ReservedStore, "change">,
  order: AutoRevertOrder,
): Promise<string | null> {
  try {
    await store.change((tx) => autoRevertIn(tx, order));
    return null;
  } catch (error) {
    if (reasonOf(error) === undefined) throw error;
    const { message } = describeError(error);
    await store.change((tx) => noteNotReverted(tx, order, message));
    return message;
  }
}

async function autoRevertIn(
  tx: Tx,
  { job: name, version, by, quota }: AutoRevertOrder,
): Promise<{ readonly result: null; readonly events: readonly NewEvent[] }> {
  const before = await lockJob(tx, name);
  const to = before?.version === version ? autoRevertTo({ ...before, spec: recheckedJobOf(before).spec }) : null;
  if (before === null || to === null) return { result: null, events: [] };
  const message = `the update to version ${version} halted: ${before.halted ?? ""}`;
  const reverted = await decideRevertIn(tx, { name, etag: "", version: to });
  // Check the quota only if the earlier version belongs to another owner. The current owner's usage already includes
  // the job.
  const isOthers = reverted.owner !== before.actor;
  const { event } = await holdToQuota(tx, { quota: isOthers ? quota : null }, reverted.owner, () =>
    submitReverted(tx, reverted, { ...by, message }, version),
  );
  return { result: null, events: [event] };
}

const NOT_REVERTED = "; it cannot be reverted automatically: ";

async function noteNotReverted(
  tx: Tx,
  { job: name, version, by }: AutoRevertOrder,
  why: string,
): Promise<{ readonly result: null; readonly events: readonly NewEvent[] }> {
  const before = await lockJob(tx, name);
  const halted = before?.version === version ? before.halted : null;
  if (before === null || halted === null || halted.includes(NOT_REVERTED)) return { result: null, events: [] };
  const after = await saveHalted(tx, name, `${halted}${NOT_REVERTED}${why}`);
  const facts = { name, before, after, reason: "JOB_UPDATED", actor: by.actor, message: after.halted ?? "" } as const;
  return { result: null, events: [jobChangedEvent(facts)] };
}
