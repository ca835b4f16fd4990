/** What the jobs of one owner can use; null for no limit. */
export interface OwnerQuota {
  /** Jobs in the store, whatever their state. */
  readonly jobs: number | null;
  /** Executions that their active jobs want. */
  readonly executions: number | null;
  /** Thousandths of a core that these executions ask for. */
  readonly millicores: number | null;
}

/** What the jobs of an owner use. */
export interface OwnerUsage {
  readonly jobs: number;
  readonly executions: number;
  readonly millicores: number;
}

/** What of a quota a change exceeds. */
export interface ExceededQuota {
  readonly resource: keyof OwnerUsage;
  readonly limit: number;
  readonly used: number;
  readonly wanted: number;
}

const RESOURCES = ["jobs", "executions", "millicores"] as const;

/** The first part of a quota that a change exceeds; null for none. A change that uses no more is always allowed. */
export function exceededQuota(quota: OwnerQuota, before: OwnerUsage, after: OwnerUsage): ExceededQuota | null {
  for (const resource of RESOURCES) {
    const [limit, used, wanted] = [quota[resource], before[resource], after[resource]];
    if (limit !== null && wanted > limit && wanted > used) return { resource, limit, used, wanted };
  }
  return null;
}
