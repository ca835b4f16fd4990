import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** What nodes are told to run. */
export interface SpecRecord {
  /** SHA-256 of `spec`. */
  readonly digest: Buffer;
  /** An encoded rollcall.work.v1.ExecutionSpec. */
  readonly spec: Buffer;
}

/** Keep a spec under its digest. One that is there is the same. */
export async function saveSpec(tx: Tx, digest: Uint8Array, spec: Uint8Array): Promise<void> {
  await tx
    .insertInto("execution_specs")
    .values({ digest: Buffer.from(digest), spec: Buffer.from(spec) })
    // Written again, so that its age is that of its last use: upkeep forgets old ones that nothing refers to.
    .onConflict((conflict) => conflict.constraint("execution_specs_pkey").doUpdateSet({ created_at: sql<Date>`now()` }))
    .execute();
}

/** These specs; those that are not there are left out. */
export async function readSpecs(db: Db, digests: readonly Uint8Array[]): Promise<readonly SpecRecord[]> {
  if (digests.length === 0) return [];
  return db
    .selectFrom("execution_specs")
    .select(["digest", "spec"])
    .where(
      "digest",
      "in",
      digests.map((digest) => Buffer.from(digest)),
    )
    .execute();
}
