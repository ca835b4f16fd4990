import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type AccessService, GetLoginOptionsResponseSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { AdminDeps } from "../deps.ts";

/** Tell how to get in without an access token. */
export function getLoginOptions({
  loginIssuers = [],
}: Pick<AdminDeps, "loginIssuers">): MethodImpl<typeof AccessService.method.getLoginOptions> {
  const answer = create(GetLoginOptionsResponseSchema, {
    issuers: loginIssuers.map((issuer) => ({ ...issuer })),
  });
  return async () => answer;
}
