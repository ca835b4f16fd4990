import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { BrakeService, ReleaseReactionsResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { BRAKE_CLUSTER, type BrakeRow, brakeEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import { lockBrake, saveFreeze, saveOrder, type Tx } from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import { changeBrake } from "../brake/brake-change.ts";
import type { AdminDeps } from "../deps.ts";
import { requestKey } from "../request-key.ts";
import { BRAKE_CODEC } from "./freeze-reactions.ts";

/** Let the brake of a group, or of the cluster, decide by itself again; or have everything go that is pending. */
export function releaseReactions({ store }: AdminDeps): MethodImpl<typeof BrakeService.method.releaseReactions> {
  const method = BrakeService.method.releaseReactions;
  return async ({ group, reason, requestId, now }, context) => {
    const call = auditedCall(context, method);
    const { actor } = call;
    const key = requestKey(method, requestId, actor);
    const { result: brake } = await store.change((tx) =>
      answerOnce(tx, key, BRAKE_CODEC, async () => {
        // The cluster's row before any other's, so that two who release wait for each other in one order.
        if (now && group !== "" && group !== BRAKE_CLUSTER) await checkCluster(tx, group);
        return changeBrake(tx, { group, reason, call }, async (row) => {
          if (row.frozen === null && !now) throw notFrozen(row);
          if (now) await saveOrder(tx, row.group, { actor, reason });
          if (row.frozen === null) return null;
          await saveFreeze(tx, row.group, null);
          const change = { group: row.group, before: "FROZEN", after: row.mode } as const;
          const why = { reason: "OPERATOR_RELEASED", actor, message: reason } as const;
          return brakeEvent({ ...change, ...why, counts: null });
        });
      }),
    );
    return create(ReleaseReactionsResponseSchema, { brake });
  };
}

async function checkCluster(tx: Tx, group: string): Promise<void> {
  const { frozen } = await lockBrake(tx, BRAKE_CLUSTER);
  if (frozen === null) return;
  const message = `the brake of the cluster was frozen by ${frozen.actor}, which holds ${group} back too: release the cluster first`;
  const metadata = { group, actor: frozen.actor };
  throw refuse("BRAKE_CLUSTER_FROZEN", message, { metadata, subject: group });
}

function notFrozen({ group, mode }: BrakeRow) {
  const hint =
    mode === "NORMAL"
      ? "it releases by itself"
      : `it is ${mode} because most of its nodes are gone; to let everything go that is pending, release it with now (rollcall brake release --now)`;
  const message = `the brake of ${group} is not frozen: ${hint}`;
  return refuse("BRAKE_NOT_FROZEN", message, { metadata: { group, mode }, subject: group });
}
