import type { Job, JobState } from "./job.ts";
import type { UpdatePolicy } from "./job-spec.ts";

/** A change to a job that does not create a new version. */
export type JobEditKind = "JOB_SCALED" | "JOB_RESTARTED" | "JOB_STOPPED";

/** Why a job cannot be deleted. */
export type JobDeletionRefusal = "JOB_ACTIVE" | "JOB_NOT_ENDED";

/**
 * Why a job cannot be deleted; null if it can. A job is kept while a node may still run one of its executions, because
 * stopping an execution requires its job.
 *
 * @param openExecutions the number of executions that have not ended, or whose end their nodes have not confirmed.
 */
export function refuseJobDeletion(state: JobState, openExecutions: number): JobDeletionRefusal | null {
  if (state === "ACTIVE") return "JOB_ACTIVE";
  return openExecutions > 0 ? "JOB_NOT_ENDED" : null;
}

/** Why a job in its current state cannot be changed. */
export type JobEditRefusal = "JOB_STOPPED" | "JOB_ENDED";

/**
 * Why a job cannot be changed; null if it can. A job that has ended keeps its result, and scaling or restarting it
 * would have no effect. To run it again, submit it again.
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

/** Number of a job's newest versions that are kept. The last version that became ready is kept in any case. */
export const MOST_JOB_VERSIONS = 100;

/** A kept version of a job, without its specification. */
export interface JobVersionHead {
  readonly version: number;
  /** Whether all executions of the version became ready. */
  readonly wasReady: boolean;
  /** The version that first had this specification. For a submitted version, this is the version itself. */
  readonly origin: number;
}

/** The effect of reverting a job, or why it is refused. */
export type RevertDecision =
  | {
      readonly ok: true;
      /** The version whose specification the new version gets. */
      readonly to: JobVersionHead;
      /** All versions with that specification. Running executions of these versions stay. */
      readonly sameVersions: readonly number[];
    }
  /** The given version is no longer kept, or never existed. */
  | { readonly ok: false; readonly refusal: "UNKNOWN_VERSION"; readonly kept: readonly number[] }
  /** The newest version already has the specification of the given version. */
  | { readonly ok: false; readonly refusal: "IS_NEWEST"; readonly origin: number }
  /** No version was given, and no version with a different specification became ready. */
  | { readonly ok: false; readonly refusal: "NONE_READY" };

/**
 * Decide which version to revert a job to: the given one or, by default, the newest version that became ready and has
 * a different specification.
 *
 * @param kept the kept versions in any order, including the job's newest.
 * @param wanted the given version; null for the default.
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
 * How many executions a job wants after a revert: the count of the version that it reverts to. A job that was scaled
 * after its newest version was submitted keeps its count instead.
 */
export function revertedCount(counts: {
  readonly present: number;
  readonly submitted: number;
  readonly reverted: number;
}): number {
  return counts.present === counts.submitted ? counts.reverted : counts.present;
}

/**
 * Whether a job must not be restarted: the update to its newest version halted, and no version with that specification
 * ever became ready. A restart would replace running executions with the failing version.
 */
export function refusesRestart(job: Pick<Job, "halted" | "version" | "readyVersion" | "sameVersions">): boolean {
  const { halted, version, readyVersion, sameVersions = [] } = job;
  if (halted === null || readyVersion === version) return false;
  return readyVersion === null || !sameVersions.includes(readyVersion);
}

/**
 * The version that a job must automatically revert to, because the update to its newest version halted and its policy
 * requires a revert; null for none. A version that an automatic revert created is not reverted automatically, because
 * two failing versions would alternate forever.
 */
export function autoRevertTo(
  job: Pick<Job, "state" | "halted" | "version" | "readyVersion" | "sameVersions" | "undone"> & {
    readonly spec: { readonly update: Pick<UpdatePolicy, "autoRevert"> };
  },
): number | null {
  const { state, spec, readyVersion, undone = null } = job;
  if (state !== "ACTIVE" || !spec.update.autoRevert || undone !== null) return null;
  return refusesRestart(job) ? readyVersion : null;
}
