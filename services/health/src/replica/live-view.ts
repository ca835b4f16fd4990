import { LiveNodes } from "./live-nodes.ts";
import type { Replica } from "./replica.ts";
import { WatchedNodes } from "./watched-nodes.ts";

/** The part of a replica that queries of health use. */
export type LiveView = Pick<Replica, "instance" | "nodes" | "watched">;

/** The view of a process that holds no nodes. */
export function holdsNothing(instance: string): LiveView {
  return { instance, nodes: new LiveNodes(), watched: new WatchedNodes(() => undefined) };
}
