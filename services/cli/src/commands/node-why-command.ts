import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { NodeWhyOptions } from "../verbs/node-why.ts";
import { lazily } from "./lazily.ts";

/** Add `node why`. */
export function addWhy(node: Command, shell: Shell): void {
  node
    .command("why")
    .description("tell how a node came to be in its state, whether it may take work, and what would change that")
    .argument("<node>", "id of the node, or the beginning of it when no other node's begins so")
    .option("--limit <count>", "so many of the latest things that happened to it, 1000 at most", "100")
    .option("--since <time>", "only what happened since then: a duration ago such as 1h, or a time")
    .addHelpText(
      "after",
      `
Each line says when, what, by which evidence (silence, threshold and the policy that set it, time not counted, replica) and by whom, the newest last.
--output json|yaml prints a rollcall.registry.v1.ExplainNodeResponse in proto JSON.`,
    )
    .action(lazily<NodeWhyOptions>(shell, async () => (await import("../verbs/node-why.ts")).nodeWhy));
}
