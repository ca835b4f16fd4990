import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import {
  type Brake,
  BrakeSchema,
  BrakeService,
  FreezeReactionsResponseSchema,
  GetBrakeResponseSchema,
  ReleaseReactionsResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/brake_pb";
import {
  BRAKE_CLUSTER,
  type BrakeEffect,
  type BrakeRefusalReason,
  type BrakeRow,
  type Decided,
  freezeBrake,
  releaseBrake,
  suggestName,
} from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import { BRAKE_LEASE, type Change, lockBrake, readLease, saveFreeze, saveOrder, type Tx } from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";
import { readBrakes } from "./brake-view.ts";

const CHANGE: MethodPolicy = { caller: "operator", deadlineMs: 10_000, idempotent: false };

/** Who can call each method of the brake, its deadline, and whether clients can retry it automatically. */
export const BRAKE_POLICIES: PolicyTable = definePolicies(BrakeService, {
  getBrake: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  freezeReactions: CHANGE,
  releaseReactions: CHANGE,
});

/** Register the methods of the brake. */
export function routeBrake(router: ConnectRouter, services: AdminServices): void {
  const { store } = services;
  const { freezeReactions, releaseReactions } = BrakeService.method;
  const options = { codec: messageCodec(BrakeSchema) };
  router.service(BrakeService, {
    getBrake: async () => {
      const [brakes, lease] = await Promise.all([readBrakes(store.db), readLease(store.db, BRAKE_LEASE)]);
      return create(GetBrakeResponseSchema, { brakes: [...brakes], decider: lease?.instance ?? "" });
    },
    freezeReactions: async (request, context: HandlerContext) => {
      const operation = readOperation(services, freezeReactions, request, context);
      const group = groupOf(request);
      const brake = await commit(services, operation, options, (tx) =>
        changeBrake(tx, operation, group, (row) => freezeBrake(row, operation.by)),
      );
      return create(FreezeReactionsResponseSchema, { brake });
    },
    releaseReactions: async (request, context: HandlerContext) => {
      const operation = readOperation(services, releaseReactions, request, context);
      const group = groupOf(request);
      const { now } = request;
      const brake = await commit(services, operation, options, async (tx) => {
        // Lock the cluster's row first, so that concurrent releases lock rows in the same order.
        const cluster = now && group !== BRAKE_CLUSTER ? await lockBrake(tx, BRAKE_CLUSTER) : null;
        return changeBrake(tx, operation, group, (row) => releaseBrake(row, { now, cluster }, operation.by));
      });
      return create(ReleaseReactionsResponseSchema, { brake });
    },
  });
}

function groupOf({ group }: { readonly group: string }): string {
  return group === "" ? BRAKE_CLUSTER : group;
}

const MOST_NAMED = 3;

/** Lock a brake, decide, and save the decision. Throws BRAKE_GROUP_NOT_FOUND, or the refusal by the decision. */
async function changeBrake(
  tx: Tx,
  operation: Operation,
  group: string,
  decide: (row: BrakeRow) => Decided<BrakeEffect, BrakeRefusalReason>,
): Promise<Change<Brake>> {
  checkKnown(group, await readBrakes(tx));
  const decided = decide(await lockBrake(tx, group));
  if (!decided.ok) throw refusalError(decided.refusal, group);
  for (const effect of decided.effects) await save(tx, group, effect);
  const after = (await readBrakes(tx)).find((brake) => brake.group === group);
  if (after === undefined) throw new Error(`the brake of ${group} disappeared while it was locked`);
  return { result: after, events: decided.events, audit: [auditOf(operation, group)] };
}

function save(tx: Tx, group: string, effect: BrakeEffect): Promise<void> {
  switch (effect.kind) {
    case "freeze":
      return saveFreeze(tx, group, effect);
    case "unfreeze":
      return saveFreeze(tx, group, null);
    case "release-all":
      return saveOrder(tx, group, effect);
  }
}

function checkKnown(group: string, brakes: readonly Brake[]): void {
  if (brakes.some((brake) => brake.group === group)) return;
  const groups = brakes.map((brake) => brake.group);
  const more = groups.length > MOST_NAMED ? ", …" : "";
  const known = `${groups.slice(0, MOST_NAMED).join(", ")}${more}`;
  const message = `brake group ${group} does not exist: no replica has nodes in it; existing groups: ${known}`;
  const missing = { reason: "BRAKE_GROUP_NOT_FOUND", message, metadata: { group, groups: known } } as const;
  throw refusalError(suggestName(missing, group, groups), group);
}
