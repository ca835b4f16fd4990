/** Limits on the jobs of one owner; null for no limit. */
export interface OwnerQuota {
  /** Maximum number of jobs in the store, in any state. */
  readonly jobs: number | null;
  /** Maximum number of executions that the owner's active jobs want. */
  readonly executions: number | null;
  /** Maximum number of millicores that these executions request in total. */
  readonly millicores: number | null;
}

/** What an owner's jobs use. */
export interface OwnerUsage {
  readonly jobs: number;
  readonly executions: number;
  readonly millicores: number;
}

/** A limit of a quota that a change exceeds. */
export interface ExceededQuota {
  readonly resource: keyof OwnerUsage;
  readonly limit: number;
  readonly used: number;
  readonly wanted: number;
}

const RESOURCES = ["jobs", "executions", "millicores"] as const;

/**
 * The first limit of a quota that a change exceeds; null for none. A change that does not increase the usage
 * is always allowed.
 */
export function exceededQuota(quota: OwnerQuota, before: OwnerUsage, after: OwnerUsage): ExceededQuota | null {
  for (const resource of RESOURCES) {
    const [limit, used, wanted] = [quota[resource], before[resource], after[resource]];
    if (limit !== null && wanted > limit && wanted > used) return { resource, limit, used, wanted };
  }
  return null;
}
