import { HealthQueryService, type NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { useEffect, useState } from "react";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";

/** Maximum number of nodes whose usage is watched at the same time; the server accepts 200. */
const MOST_WATCHED = 100;
/** How long scrolling must pause before other nodes are watched. */
const REST_MS = 350;

/** The live usage of the nodes on screen. */
export function useUsage(ids: readonly string[]): ReadonlyMap<string, NodeHealth> {
  const wanted = ids.slice(0, MOST_WATCHED).join("\n");
  const [watched, setWatched] = useState("");
  const [usage, setUsage] = useState<ReadonlyMap<string, NodeHealth>>(new Map());
  useEffect(() => {
    const timer = window.setTimeout(() => setWatched(wanted), REST_MS);
    return () => window.clearTimeout(timer);
  }, [wanted]);
  useStream(watched, () => {
    const nodeIds = watched.split("\n").filter(Boolean);
    if (nodeIds.length === 0) return null;
    return {
      open: (signal) => clientOf(HealthQueryService).watchNodeHealth({ nodeIds }, { signal }),
      onMessage: ({ nodes, goneIds }) => {
        if (nodes.length + goneIds.length === 0) return;
        setUsage((before) => {
          // Drop the usage of nodes that are no longer watched.
          const kept = nodeIds.flatMap((id) => {
            const known = before.get(id);
            return known === undefined || goneIds.includes(id) ? [] : [[id, known] as const];
          });
          return new Map([...kept, ...nodes.map((node) => [node.nodeId, node] as const)]);
        });
      },
    };
  });
  return usage;
}
