import type { JobRecord, JobState } from "./job-record.ts";
import type { UpdatePolicy } from "./job-spec.ts";

/** A change of a job that makes no new version. */
export type JobEditKind = "JOB_SCALED" | "JOB_RESTARTED" | "JOB_STOPPED";

/** Why a job cannot be deleted. */
export type JobDeletionRefusal = "JOB_ACTIVE" | "JOB_NOT_ENDED";

/**
 * Decide whether a job can be deleted. Null means yes. While a node may run something of it, the job is needed to stop
 * that.
 *
 * @param openExecutions executions that have not ended, or whose nodes have not confirmed that they have.
 */
export function refuseJobDeletion(state: JobState, openExecutions: number): JobDeletionRefusal | null {
  if (state === "ACTIVE") return "JOB_ACTIVE";
  return openExecutions > 0 ? "JOB_NOT_ENDED" : null;
}

/** Why a job in its present state cannot be changed. */
export type JobEditRefusal = "JOB_STOPPED" | "JOB_ENDED";

/**
 * Decide whether a job can be changed. Null means yes. A job that has ended keeps its result, and only runs again when
 * it is submitted again: to scale or restart it would have no effect.
 */
export function refuseJobEdit(state: JobState): JobEditRefusal | null {
  switch (state) {
    case "ACTIVE":
      return null;
    case "STOPPED":
      return "JOB_STOPPED";
    case "COMPLETED":
    case "FAILED":
      return "JOB_ENDED";
  }
}

/** Versions that are kept of a job, from the newest on. The last one that became ready is kept besides. */
export const MOST_JOB_VERSIONS = 100;

/** A version of a job that is kept, without its specification. */
export interface JobVersionHead {
  readonly version: number;
  /** Whether all that was placed of it became ready. */
  readonly wasReady: boolean;
  /** The version that first had the specification; its own number where it was submitted. */
  readonly origin: number;
}

/** What reverting a job would do, or why it cannot be. */
export type RevertDecision =
  | {
      readonly ok: true;
      /** The version whose specification the next version gets. */
      readonly to: JobVersionHead;
      /** All versions with that specification: what runs of them stays. */
      readonly sameVersions: readonly number[];
    }
  /** The version is not kept, or never existed. */
  | { readonly ok: false; readonly refusal: "UNKNOWN_VERSION"; readonly kept: readonly number[] }
  /** The newest version has the specification already. */
  | { readonly ok: false; readonly refusal: "IS_NEWEST"; readonly origin: number }
  /** No version was named, and no earlier one with another specification became ready. */
  | { readonly ok: false; readonly refusal: "NONE_READY" };

/**
 * Decide which version a job is reverted to: the one that is named, or else the newest that became ready and has a
 * specification that differs from the job's.
 *
 * @param kept the versions that are kept, the newest of the job among them, in any order.
 * @param wanted null for none in particular.
 */
export function decideRevert(newest: number, kept: readonly JobVersionHead[], wanted: number | null): RevertDecision {
  const newestFirst = [...kept].sort((one, other) => other.version - one.version);
  const origin = newestFirst.find(({ version }) => version === newest)?.origin ?? newest;
  const to =
    wanted === null
      ? newestFirst.find((head) => head.wasReady && head.origin !== origin)
      : newestFirst.find(({ version }) => version === wanted);
  if (to === undefined) {
    if (wanted === null) return { ok: false, refusal: "NONE_READY" };
    return { ok: false, refusal: "UNKNOWN_VERSION", kept: newestFirst.map(({ version }) => version) };
  }
  if (to.origin === origin) return { ok: false, refusal: "IS_NEWEST", origin };
  const sameVersions = newestFirst.filter((head) => head.origin === to.origin).map(({ version }) => version);
  return { ok: true, to, sameVersions };
}

/**
 * How many executions a job wants after a revert: as many as the version that it reverts to asks for, except that a
 * count that was changed by scaling since the newest version was submitted stays.
 */
export function revertedCount(counts: {
  readonly present: number;
  readonly submitted: number;
  readonly reverted: number;
}): number {
  return counts.present === counts.submitted ? counts.reverted : counts.present;
}

/**
 * The version that a job is reverted to without being asked, since the update to its newest version halted and its
 * policy says so; null for none. What undid a version automatically is not undone itself: two versions that both fail
 * would follow each other without end.
 */
export function autoRevertTo(
  job: Pick<JobRecord, "state" | "halted" | "version" | "readyVersion" | "sameVersions" | "undone"> & {
    readonly spec: { readonly update: Pick<UpdatePolicy, "autoRevert"> };
  },
): number | null {
  const { state, spec, halted, version, readyVersion, sameVersions = [], undone = null } = job;
  if (state !== "ACTIVE" || halted === null || !spec.update.autoRevert || undone !== null) return null;
  if (readyVersion === null || readyVersion === version || sameVersions.includes(readyVersion)) return null;
  return readyVersion;
}
