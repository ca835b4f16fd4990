import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Column } from "../output/table.ts";
import { formatDuration } from "../output/units.ts";
import { silentMs } from "./read-health.ts";

/** The column that tells when a node was last heard of. */
export const LAST_SEEN_COLUMN: Column<{ readonly health: NodeHealth | undefined }> = {
  title: "LAST SEEN",
  name: "last_seen",
  cell: ({ health }) => {
    const ms = silentMs(health);
    if (ms === null || health?.lastSeenTime === undefined) return { text: "-", raw: "" };
    return {
      text: `${formatDuration(ms)} ago`,
      raw: timestampDate(health.lastSeenTime).toISOString(),
    };
  },
};
