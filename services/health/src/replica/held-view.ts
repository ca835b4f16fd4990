import { WatchedNodes } from "../watch/watched-nodes.ts";
import { HeldNodes } from "./held-nodes.ts";
import type { Replica } from "./replica.ts";

/** What readers see of the nodes that a process holds. */
export type HeldView = Pick<Replica, "instance" | "nodes" | "watched">;

/** The view of a process that holds no node. */
export function holdsNothing(instance: string): HeldView {
  return { instance, nodes: new HeldNodes(), watched: new WatchedNodes(() => undefined) };
}
