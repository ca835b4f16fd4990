import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { BanSchema, type Ban as ProtoBan } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import type { Ban } from "@rollcall/store";

/** The public message of a ban. */
export function banToProto(ban: Ban): ProtoBan {
  return create(BanSchema, {
    nodeId: ban.nodeId ?? "",
    fingerprint: ban.fingerprint ?? "",
    reason: ban.reason,
    actor: ban.actor,
    createTime: timestampFromMs(ban.atMs),
  });
}
