import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type BrakeService, GetBrakeResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { BRAKE_LEASE, readLease } from "@rollcall/store";
import { readBrakes } from "../brake/brake-view.ts";
import type { AdminDeps } from "../deps.ts";

/** Answer every brake. */
export function getBrake({ store }: AdminDeps): MethodImpl<typeof BrakeService.method.getBrake> {
  return async () => {
    const [brakes, lease] = await Promise.all([readBrakes(store.db), readLease(store.db, BRAKE_LEASE)]);
    return create(GetBrakeResponseSchema, { brakes: [...brakes], decider: lease?.instance ?? "" });
  };
}
