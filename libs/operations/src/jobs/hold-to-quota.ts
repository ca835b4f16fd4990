import { type ExceededQuota, exceededQuota } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { lockOwner, readOwnerUsage, type Tx } from "@rollcall/store";
import type { Operation } from "../operation.ts";

/**
 * Change jobs of an owner within the quota that holds for the caller, if any. What several calls change at once is
 * counted together: they take turns. Throws QUOTA_EXCEEDED, with which the transaction must end.
 */
export async function holdToQuota<T>(
  tx: Tx,
  { quota }: Pick<Operation, "quota">,
  owner: string,
  change: () => Promise<T>,
): Promise<T> {
  if (quota === null) return change();
  await lockOwner(tx, owner);
  const before = await readOwnerUsage(tx, owner);
  const result = await change();
  const exceeded = exceededQuota(quota, before, await readOwnerUsage(tx, owner));
  if (exceeded !== null) throw quotaExceeded(owner, exceeded);
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
    `the jobs of ${owner} have ${amounts.used} of ${amounts.limit} ${unit}, and would have ${amounts.wanted}: stop, ` +
    `scale down or delete jobs, or ask an admin to raise ${key}`;
  const numbers = Object.entries(amounts).map(([name, amount]) => [name, String(amount)]);
  return refuse("QUOTA_EXCEEDED", text, {
    metadata: { owner, quota: unit, ...Object.fromEntries(numbers) },
    subject: owner,
  });
}
