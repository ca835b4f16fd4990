import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type AccessService,
  PersonSchema,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { actorOf, type KnownCaller } from "@rollcall/identity";
import { getAccessToken } from "@rollcall/store";
import { accessTokenToProto, knownCallerOf, roleToProto } from "../access/convert.ts";
import type { AdminDeps } from "../deps.ts";

/** Tell the caller who it is here. */
export function whoAmI({ store }: Pick<AdminDeps, "store">): MethodImpl<typeof AccessService.method.whoAmI> {
  return async (_request, context) => {
    const caller = knownCallerOf(context);
    const { expiresAtMs } = caller;
    return create(WhoAmIResponseSchema, {
      actor: actorOf(caller),
      role: roleToProto(caller.role),
      clusterId: store.clusterId(),
      ...(expiresAtMs === undefined ? {} : { expireTime: timestampFromMs(expiresAtMs) }),
      credential: await credentialOf(caller, store),
    });
  };
}

async function credentialOf(caller: KnownCaller, store: AdminDeps["store"]): Promise<WhoAmIResponse["credential"]> {
  if (caller.kind === "person") {
    const { issuer, subject } = caller;
    return { case: "person", value: create(PersonSchema, { issuer, subject }) };
  }
  const token = await getAccessToken(store.db, caller.id);
  if (token === null) throw new Error(`access token ${caller.id} is gone`);
  return { case: "accessToken", value: accessTokenToProto(token) };
}
