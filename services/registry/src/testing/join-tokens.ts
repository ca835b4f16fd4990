import { randomBytes } from "node:crypto";
import { joinTokenText } from "@rollcall/domain";
import {
  insertJoinToken,
  joinTokenHash,
  lockJoinToken,
  type NewJoinToken,
  type Store,
  saveRevocation,
} from "@rollcall/store";

/** A token, and its text. */
export interface MadeToken {
  readonly id: string;
  readonly text: string;
}

/**
 * Create a token as admin does. By default, it is valid for one use, one day and any name, and
 * grants nothing.
 */
export async function makeToken(
  store: Store,
  terms: Partial<Omit<NewJoinToken, "id" | "hash">> = {},
): Promise<MadeToken> {
  const id = randomBytes(6).toString("hex");
  const text = joinTokenText(store.clusterId(), id, randomBytes(32).toString("base64url"));
  const token = {
    ...{ id, hash: joinTokenHash(text), description: "", maxUses: 1, ttlMs: 86_400_000 },
    ...{ nodeNamePattern: "", labels: {}, preauthorized: false, ephemeral: false },
    createdBy: "token:operator",
    ...terms,
  };
  await store.transaction((tx) => insertJoinToken(tx, token));
  return { id, text };
}

/** Revoke a token as admin does. */
export async function revokeToken(store: Store, id: string): Promise<void> {
  await store.transaction(async (tx) => {
    await lockJoinToken(tx, id);
    await saveRevocation(tx, id, { actor: "token:operator", reason: "" });
  });
}

export async function expireToken(store: Store, id: string): Promise<void> {
  await store.db
    .updateTable("join_tokens")
    .set({ expires_at: new Date(0) })
    .where("id", "=", id)
    .execute();
}
