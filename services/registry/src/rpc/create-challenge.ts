import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import { CreateChallengeResponseSchema, type RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createChallenge as createNonce, NONCE_TTL_MS } from "@rollcall/identity";
import type { RegistryServices } from "../registry-services.ts";

/** Answer a nonce. Nothing is kept: it says itself by whom and when it was made. */
export function createChallenge({
  store,
  clock,
}: RegistryServices): MethodImpl<typeof RegistryService.method.createChallenge> {
  return () => {
    const nowMs = clock.wallMs();
    return create(CreateChallengeResponseSchema, {
      nonce: createNonce(store.clusterSecret(), nowMs),
      expireTime: timestampFromMs(nowMs + NONCE_TTL_MS),
      clusterId: store.clusterId(),
    });
  };
}
