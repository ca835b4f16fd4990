import type { ConnectRouter } from "@connectrpc/connect";
import { BrakeService } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import type { AdminDeps } from "../deps.ts";
import { freezeReactions } from "../rpc/freeze-reactions.ts";
import { getBrake } from "../rpc/get-brake.ts";
import { releaseReactions } from "../rpc/release-reactions.ts";

const CHANGE: MethodPolicy = { caller: "operator", deadlineMs: 10_000, idempotent: false };

/** Who may call each method of the brake, for how long, and whether a client may repeat it by itself. */
export const BRAKE_POLICIES: PolicyTable = definePolicies(BrakeService, {
  getBrake: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  freezeReactions: CHANGE,
  releaseReactions: CHANGE,
});

/** Serve the brake: one line a method. */
export function routeBrake(router: ConnectRouter, deps: AdminDeps): void {
  router.service(BrakeService, {
    getBrake: getBrake(deps),
    freezeReactions: freezeReactions(deps),
    releaseReactions: releaseReactions(deps),
  });
}
