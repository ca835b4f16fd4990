import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthQueryService,
  WatchNodeHealthResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { HealthServices } from "../health-services.ts";

/** Stream nodes as they are, then their changes, whichever replica holds them. */
export function watchNodeHealth({
  watches,
}: HealthServices): MethodImpl<typeof HealthQueryService.method.watchNodeHealth> {
  return async function* ({ nodeIds, includeSamples }, { signal }) {
    for await (const { items, dropped } of watches.watch({ nodeIds, includeSamples, signal })) {
      yield create(WatchNodeHealthResponseSchema, {
        nodes: [...items],
        goneIds: [...dropped],
      });
    }
  };
}
