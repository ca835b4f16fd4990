import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { EventService } from "../libs/api/src/gen/rollcall/events/v1/events_pb.ts";
import { RegistryService } from "../libs/api/src/gen/rollcall/registry/v1/registry_pb.ts";
import { describeError } from "../libs/errors/src/index.ts";
import { accessTokenHash, ensureAccessToken, revokeAccessToken } from "../libs/store/src/index.ts";
import { createTestDatabase } from "../libs/testkit/src/index.ts";
import { type Rig, startRig } from "../services/registry/src/testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

async function keep(id: string): Promise<string> {
  const text = `test-token-of-${id}`;
  const hash = accessTokenHash(text);
  await ensureAccessToken(rig.store.db, { id, name: id, role: "viewer", hash });
  return text;
}

/** Open a stream, and call `then` when the first message has arrived. Returns how the stream ended. */
async function endOf(stream: AsyncIterable<unknown>, then: () => Promise<unknown>) {
  let isOpen = false;
  try {
    for await (const _ of stream) {
      if (!isOpen) await then();
      isOpen = true;
    }
    return { reason: "none" };
  } catch (error) {
    return isOpen ? describeError(error) : { reason: `not opened: ${String(error)}` };
  }
}

function streamsOf(token: string) {
  return {
    watchEvents: () => rig.client(EventService, token).watchEvents({}),
    watchNodes: () => rig.client(RegistryService, token).watchNodes({}),
  };
}

describe("a stream", () => {
  it.each(["watchEvents", "watchNodes"] as const)(
    "of %s should end when its token is revoked, and tell why",
    async (name) => {
      const id = `revoked-${name}`;
      const stream = streamsOf(await keep(id))[name]();
      const by = { actor: "token:admin", reason: "" };
      const revoke = () => rig.store.transaction((tx) => revokeAccessToken(tx, id, by));
      expect(await endOf(stream, revoke)).toMatchObject({
        reason: "TOKEN_REVOKED",
        metadata: { token: id },
      });
    },
  );

  it.each(["watchEvents", "watchNodes"] as const)(
    "of %s should end when its token has expired, and tell why",
    async (name) => {
      const id = `expired-${name}`;
      const stream = streamsOf(await keep(id))[name]();
      const passed = { expires_at: new Date(0) };
      const expire = () => rig.store.db.updateTable("access_tokens").set(passed).where("id", "=", id).execute();
      expect(await endOf(stream, expire)).toMatchObject({ reason: "TOKEN_EXPIRED" });
    },
  );
});
