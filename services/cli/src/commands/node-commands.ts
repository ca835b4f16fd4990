import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { NodeDecideOptions, NodeDecision } from "../verbs/node-decide.ts";
import type { NodeHealthOptions } from "../verbs/node-health.ts";
import type { NodeListOptions } from "../verbs/node-list.ts";
import type { NodeWatchOptions } from "../verbs/node-watch.ts";
import { lazily } from "./lazily.ts";

const NODE = [
  "<node>",
  "id of the node, or the beginning of it when no other node's begins so",
] as const;

const DECISIONS: Readonly<Record<NodeDecision, string>> = {
  approve: "let a pending or rejected node join the fleet",
  reject: "refuse a node: it is cut off and cannot come back until it is approved or deleted",
  delete: "remove a node from the record: it is cut off, and may register again as a new node",
  cordon: "let no new work come to a node",
  uncordon: "let new work come to a node again",
  "mark-unhealthy": "show a node as UNHEALTHY, whatever it sends, until the mark is cleared",
  "clear-mark": "clear the mark of mark-unhealthy",
};

/** Add `node` and its verbs. */
export function addNodeCommands(program: Command, shell: Shell): void {
  const node = program.command("node").description("see the nodes and decide about them");
  addList(node, shell);
  addDescribe(node, shell);
  for (const decision of keysOf(DECISIONS)) addDecision(node, shell, decision);
  addStatus(node, shell);
  addHealth(node, shell);
  addWatch(node, shell);
  addSummary(node, shell);
}

function addSelection(command: Command): Command {
  return command
    .option(
      "--labels <selector>",
      "only nodes whose labels match, in Kubernetes' syntax: zone=a,gpu in (h100,a100),!spot",
    )
    .option(
      "--filter-approval <states>",
      "only approved, pending or rejected nodes; several with commas",
    )
    .option(
      "--filter-status <states>",
      "only healthy, unhealthy, unknown, connected or disconnected nodes; several with commas",
    )
    .option("--filter-type <types>", "only compute or requester nodes")
    .option(
      "--order-by <column>",
      "id, type, approval, status, scheduling, cores, memory, disk, gpus or created",
      "id",
    )
    .option("--order-reversed", "the other way round");
}

function addList(node: Command, shell: Shell): void {
  addSelection(node.command("list").description("list nodes"))
    .option(
      "--show <groups>",
      "columns after ID, TYPE, APPROVAL and STATUS, with commas: scheduling, labels, capacity, seen, connection, version, hardware, features, reasons (default: scheduling,labels,capacity,seen,connection)",
    )
    .option(
      "--limit <count>",
      "at most so many nodes; the token to go on from is printed to standard error (default: all)",
    )
    .option(
      "--next-token <token>",
      "go on from where an earlier list with --limit ended; filters and order must be the same",
    )
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .option("--no-style", "neither colours nor bold headings")
    .addHelpText(
      "after",
      `
STATUS is health for compute nodes and connection for requesters (processes of the control plane).
LAST SEEN comes from the health service; "-" when nobody knows.

--output json|yaml prints a rollcall.registry.v1.ListNodesResponse in proto JSON: {"nodes": [...], "nextPageToken": ""}.
--output csv prints RFC 4180 with bytes and RFC 3339 times.`,
    )
    .action(
      lazily<NodeListOptions>(shell, async () => (await import("../verbs/node-list.ts")).nodeList),
    );
}

function addDescribe(node: Command, shell: Shell): void {
  node
    .command("describe")
    .description("print all that is recorded of a node")
    .argument(...NODE)
    .addHelpText(
      "after",
      "\n--output yaml (default) or json: a rollcall.node.v1.Node in proto JSON.",
    )
    .action(lazily(shell, async () => (await import("../verbs/node-describe.ts")).nodeDescribe));
}

function addDecision(node: Command, shell: Shell, decision: NodeDecision): void {
  node
    .command(decision)
    .description(DECISIONS[decision])
    .argument(...NODE)
    .option("-m, --message <reason>", "why, for people; stored with the decision")
    .option("--etag <etag>", "only when the node has not changed since this etag was read")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      "\nPrints Ok. --output json|yaml prints the rollcall.node.v1.Node as it is now.",
    )
    .action(
      lazily<NodeDecideOptions>(shell, async () =>
        (await import("../verbs/node-decide.ts")).nodeDecide(decision),
      ),
    );
}

function addStatus(node: Command, shell: Shell): void {
  node
    .command("status")
    .description("show a node on one screen")
    .argument(...NODE)
    .action(lazily(shell, async () => (await import("../verbs/node-status.ts")).nodeStatus));
}

function addHealth(node: Command, shell: Shell): void {
  node
    .command("health")
    .description("show live usage with sparklines of the last 60 samples, of one node or of all")
    .argument("[node]", NODE[1])
    .option("--wide", "sparklines of all 60 samples in the table of all nodes")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      `
--output json|yaml prints a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse in proto JSON.
--output csv prints the latest sample of each node.`,
    )
    .action(
      lazily<NodeHealthOptions>(
        shell,
        async () => (await import("../verbs/node-health.ts")).nodeHealth,
      ),
    );
}

function addWatch(node: Command, shell: Shell): void {
  addSelection(
    node
      .command("watch")
      .description("watch all nodes, or one, until Ctrl-C")
      .argument("[node]", NODE[1]),
  )
    .option("--interval <duration>", "time between two frames", "2s")
    .option("--count <frames>", "end after so many frames")
    .addHelpText(
      "after",
      "\nRedraws in place on a terminal; elsewhere it prints one snapshot after the other.",
    )
    .action(
      lazily<NodeWatchOptions>(
        shell,
        async () => (await import("../verbs/node-watch.ts")).nodeWatch,
      ),
    );
}

function addSummary(node: Command, shell: Shell): void {
  node
    .command("summary")
    .description("count the nodes by state, and add up cores, memory and GPUs")
    .addHelpText(
      "after",
      "\n--output json|yaml prints a rollcall.registry.v1.GetClusterSummaryResponse in proto JSON.",
    )
    .action(lazily(shell, async () => (await import("../verbs/node-summary.ts")).nodeSummary));
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  const keys: readonly string[] = Object.keys(table);
  return keys.filter((key): key is K => key in table);
}
