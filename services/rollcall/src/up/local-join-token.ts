import { randomBytes } from "node:crypto";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { type JoinTokenEnforcement, joinTokenEvent, joinTokenText } from "@rollcall/domain";
import { insertJoinToken, joinTokenHash, type Store } from "@rollcall/store";

/** The facts that determine whether the local agent needs a token. */
export interface LocalJoinTokenInput {
  readonly store: Pick<Store, "change" | "clusterId">;
  readonly enforcement: JoinTokenEnforcement;
  /** The agent's state directory. */
  readonly stateDirectory: string;
}

/** The lifetime of the token, long enough for an agent that crashes a few times before it registers. */
const TTL_MS = 10 * 60_000;
const DESCRIPTION = "for the agent of rollcall up";

/**
 * Create a single-use token for the agent of `up`, because both belong to the same user. Null when no token is needed,
 * or when the agent has already registered. The token does not approve the agent, which needs the same approval as
 * other machines.
 */
export async function localJoinToken(input: LocalJoinTokenInput): Promise<string | null> {
  const { store, enforcement, stateDirectory } = input;
  if (enforcement === "none" || (await hasRegistered(stateDirectory))) return null;
  const id = randomBytes(6).toString("hex");
  const text = joinTokenText(store.clusterId(), id, randomBytes(32).toString("base64url"));
  const terms = {
    ...{ maxUses: 1, ttlMs: TTL_MS, nodeNamePattern: "", labels: {} },
    ...{ preauthorized: false, ephemeral: false },
  };
  const made = { id, hash: joinTokenHash(text), description: DESCRIPTION, createdBy: "system" };
  await store.change(async (tx) => {
    await insertJoinToken(tx, { ...terms, ...made });
    const event = joinTokenEvent({
      type: "join.token.created",
      ...{ tokenId: id, actor: "system", message: DESCRIPTION, before: null, after: terms },
    });
    return { result: null, events: [event] };
  });
  return text;
}

/** Whether the agent has registered. A registered agent has a sentinel file. */
async function hasRegistered(stateDirectory: string): Promise<boolean> {
  return access(join(stateDirectory, "sentinel.json")).then(
    () => true,
    () => false,
  );
}
