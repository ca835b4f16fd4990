import { randomBytes } from "node:crypto";
import { joinTokenText } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { insertJoinToken, joinTokenHash, openStore } from "@rollcall/store";

/**
 * Create a preauthorized token with unlimited uses in the same way as the admin service. Returns its text.
 * The registry must have created the tables before.
 */
export async function makeJoinToken(url: string): Promise<string> {
  const log = silentLogger;
  const store = await openStore({ url, log, applicationName: "bench" });
  try {
    const id = randomBytes(6).toString("hex");
    const text = joinTokenText(store.clusterId(), id, randomBytes(32).toString("base64url"));
    await store.transaction((tx) =>
      insertJoinToken(tx, {
        ...{ id, hash: joinTokenHash(text), description: "bench", createdBy: "bench" },
        ...{ maxUses: null, ttlMs: null, nodeNamePattern: "", labels: {} },
        ...{ preauthorized: true, ephemeral: false },
      }),
    );
    return text;
  } finally {
    await store.close();
  }
}
