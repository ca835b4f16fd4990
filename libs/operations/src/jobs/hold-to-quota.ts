import { type ExceededQuota, exceededQuota, type OwnerUsage } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { lockOwner, readOwnerUsage, type Tx } from "@rollcall/store";
import type { Operation } from "../operation.ts";

/**
 * Change an owner's jobs, and check the result against the caller's quota if there is one. Concurrent calls are
 * serialized, so that their changes are counted together. Throws QUOTA_EXCEEDED. The caller must then roll back the
 * transaction.
 */
export async function holdToQuota<T>(
  tx: Tx,
  operation: Pick<Operation, "quota">,
  owner: string,
  change: () => Promise<T>,
): Promise<T> {
  return holdAllToQuota(tx, operation, [owner], change);
}

/**
 * Like holdToQuota(), but changes the jobs of several owners together. Capacity that one job frees is available to
 * another. Each owner's usage is read only once before and once after the change, however many jobs there are. The
 * jobs must already be locked.
 */
export async function holdAllToQuota<T>(
  tx: Tx,
  { quota }: Pick<Operation, "quota">,
  owners: readonly string[],
  change: () => Promise<T>,
): Promise<T> {
  if (quota === null) return change();
  const before = new Map<string, OwnerUsage>();
  for (const owner of [...new Set(owners)].sort()) {
    await lockOwner(tx, owner);
    before.set(owner, await readOwnerUsage(tx, owner));
  }
  const result = await change();
  for (const [owner, usage] of before) {
    const exceeded = exceededQuota(quota, usage, await readOwnerUsage(tx, owner));
    if (exceeded !== null) throw quotaExceeded(owner, exceeded);
  }
  return result;
}

const WORDS = {
  jobs: { unit: "jobs", key: "Quota.Jobs", scale: 1 },
  executions: { unit: "executions", key: "Quota.Executions", scale: 1 },
  millicores: { unit: "cores", key: "Quota.Cores", scale: 1_000 },
} as const;

function quotaExceeded(owner: string, { resource, limit, used, wanted }: ExceededQuota): Error {
  const { unit, key, scale } = WORDS[resource];
  const amounts = { limit: limit / scale, used: used / scale, wanted: wanted / scale };
  const text =
    `the jobs of ${owner} use ${amounts.used} of ${amounts.limit} ${unit} and would use ${amounts.wanted}: stop, ` +
    `scale down or delete jobs, or ask an admin to raise ${key}`;
  const numbers = Object.entries(amounts).map(([name, amount]) => [name, String(amount)]);
  return refuse("QUOTA_EXCEEDED", text, {
    metadata: { owner, quota: unit, ...Object.fromEntries(numbers) },
    subject: owner,
  });
}
