import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** An execution spec in the form that is sent to nodes. */
export interface SpecRow {
  /** SHA-256 of `spec`. */
  readonly digest: Buffer;
  /** An encoded rollcall.work.v1.ExecutionSpec. */
  readonly spec: Buffer;
}

/** Store a spec under its digest. A spec that is already stored under the digest is identical. */
export async function saveSpec(tx: Tx, digest: Uint8Array, spec: Uint8Array): Promise<void> {
  await tx
    .insertInto("execution_specs")
    .values({ digest: Buffer.from(digest), spec: Buffer.from(spec) })
    // Update the time even if the spec exists, so that it records the last use. Upkeep deletes specs that were last
    // used long ago and that nothing references.
    .onConflict((conflict) => conflict.constraint("execution_specs_pkey").doUpdateSet({ created_at: sql<Date>`now()` }))
    .execute();
}

/** Read these specs. Missing specs are left out. */
export async function readSpecs(db: Db, digests: readonly Uint8Array[]): Promise<readonly SpecRow[]> {
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
