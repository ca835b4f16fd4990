import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type Brake,
  BrakeSchema,
  BrakeService,
  FreezeReactionsResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { type BrakeFreeze, brakeEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import { saveFreeze } from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import { changeBrake } from "../brake/brake-change.ts";
import type { AdminDeps } from "../deps.ts";
import { requestKey } from "../request-key.ts";

/** How the first answer to a request about one brake is kept. */
export const BRAKE_CODEC = {
  encode: (brake: Brake) => toBinary(BrakeSchema, brake),
  decode: (bytes: Uint8Array) => fromBinary(BrakeSchema, bytes),
};

/** Hold back every reaction of a group, or of the cluster. */
export function freezeReactions({ store }: AdminDeps): MethodImpl<typeof BrakeService.method.freezeReactions> {
  const method = BrakeService.method.freezeReactions;
  return async ({ group, reason, requestId }, context) => {
    const call = auditedCall(context, method);
    const { actor } = call;
    const key = requestKey(method, requestId, actor);
    const { result: brake } = await store.change((tx) =>
      answerOnce(tx, key, BRAKE_CODEC, () =>
        changeBrake(tx, { group, reason, call }, async (row) => {
          if (row.frozen !== null) throw alreadyFrozen(row.group, row.frozen);
          await saveFreeze(tx, row.group, { actor, reason });
          const change = { group: row.group, before: row.mode, after: "FROZEN" } as const;
          const why = { reason: "OPERATOR_FROZEN", actor, message: reason, counts: null } as const;
          return brakeEvent({ ...change, ...why });
        }),
      ),
    );
    return create(FreezeReactionsResponseSchema, { brake });
  };
}

function alreadyFrozen(group: string, { actor, reason }: BrakeFreeze) {
  const why = reason === "" ? "" : `: ${reason}`;
  const message = `the brake of ${group} was frozen already, by ${actor}${why}`;
  return refuse("BRAKE_ALREADY_FROZEN", message, { metadata: { group, actor }, subject: group });
}
