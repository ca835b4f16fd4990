import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { NodeBanOptions } from "../verbs/node-ban.ts";
import type { NodeDecideOptions, NodeDecision } from "../verbs/node-decide.ts";
import type { NodeHealthOptions } from "../verbs/node-health.ts";
import type { NodeListOptions } from "../verbs/node-list.ts";
import type { NodeListDeletedOptions } from "../verbs/node-list-deleted.ts";
import type { NodeWatchOptions } from "../verbs/node-watch.ts";
import { lazily } from "./lazily.ts";
import { addWhy } from "./node-why-command.ts";

const NODE = ["<node>", "id of the node, or the beginning of it when no other node's begins so"] as const;

const NODES = ["[node...]", "ids of nodes, or beginnings of them that no other node's has"] as const;

const DECISIONS: Readonly<Record<NodeDecision, string>> = {
  approve: "let a pending or rejected node join the fleet",
  reject: "refuse a node: it is cut off and cannot come back until it is approved or deleted",
  delete: "remove a node from the record: it is cut off, and may register again as a new node",
  cordon: "let no new work come to a node",
  uncordon: "let new work come to a node again",
  "mark-unhealthy": "show a node as UNHEALTHY, whatever it sends, until the mark is cleared",
  "clear-mark": "clear the mark of mark-unhealthy",
  "rotate-key": "have a node replace its key; describe shows since when that is wanted, until it is done",
  "accept-hardware": "take a node's hardware as it is now for what it should be; a hold for what was missing is lifted",
  ban: "keep a node out: as reject, and neither its id nor its key can come back until unban",
  unban: "lift the ban of a node, an id or a key; the node stays rejected until it is approved",
};

/** Add `node` and its verbs. */
export function addNodeCommands(program: Command, shell: Shell): void {
  const node = program.command("node").description("see the nodes and decide about them");
  addList(node, shell);
  addDescribe(node, shell);
  for (const decision of keysOf(DECISIONS)) addDecision(node, shell, decision);
  addLabel(node, shell);
  addBans(node, shell);
  addStatus(node, shell);
  addWhy(node, shell);
  addHealth(node, shell);
  addWatch(node, shell);
  addSummary(node, shell);
}

function addFilters(command: Command): Command {
  return command
    .option(
      "--labels <selector>",
      "only nodes whose labels match, in Kubernetes' syntax: zone=a,gpu in (h100,a100),!spot",
    )
    .option("--filter-approval <states>", "only approved, pending or rejected nodes; several with commas")
    .option(
      "--filter-status <states>",
      "only healthy, unhealthy, unknown, connected or disconnected nodes; several with commas",
    )
    .option("--filter-type <types>", "only compute or requester nodes");
}

function addSelection(command: Command): Command {
  return addFilters(command)
    .option("--order-by <column>", "id, type, approval, status, scheduling, cores, memory, disk, gpus or created", "id")
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
    .option(
      "--deleted",
      "not nodes but what is left of removed ones: when, by whom and why, the newest first; no filters",
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
With --deleted a rollcall.registry.v1.ListDeletedNodesResponse. --output csv prints RFC 4180 with bytes and RFC 3339 times.`,
    )
    .action(
      lazily<NodeListOptions & NodeListDeletedOptions>(shell, async () => async (invocation) => {
        const verb =
          invocation.options.deleted === true
            ? (await import("../verbs/node-list-deleted.ts")).nodeListDeleted
            : (await import("../verbs/node-list.ts")).nodeList;
        await verb(invocation);
      }),
    );
}

function addDescribe(node: Command, shell: Shell): void {
  node
    .command("describe")
    .description("print all that is recorded of a node")
    .argument(...NODE)
    .addHelpText("after", "\n--output yaml (default) or json: a rollcall.node.v1.Node in proto JSON.")
    .action(lazily(shell, async () => (await import("../verbs/node-describe.ts")).nodeDescribe));
}

function addDecision(node: Command, shell: Shell, decision: NodeDecision): void {
  const command = addChoice(
    node
      .command(decision)
      .description(DECISIONS[decision])
      .argument(...NODES),
  );
  if (decision === "ban" || decision === "unban") {
    command
      .option("--key <fingerprint>", "not a node but a key, by its fingerprint: SHA256:...")
      .option("--id <id>", "exactly this id, whether there is such a node or not")
      .action(lazily<NodeBanOptions>(shell, async () => (await import("../verbs/node-ban.ts")).nodeBan(decision)));
    return;
  }
  command.action(
    lazily<NodeDecideOptions>(shell, async () => (await import("../verbs/node-decide.ts")).nodeDecide(decision)),
  );
}

/** The options of every verb that does something to nodes. */
function addChoice(command: Command): Command {
  return addFilters(command)
    .option("--filter-scheduling <states>", "only eligible or ineligible nodes; several with commas")
    .option("--all", "every node")
    .option("-y, --yes", "do not ask before doing it to more than one node")
    .option("--dry-run", "only say what would be done to which nodes")
    .option("-m, --message <reason>", "why, for people; stored with the decision")
    .option("--etag <etag>", "only when the node has not changed since this etag was read")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      `
One node that is named: prints Ok; --output json|yaml prints the rollcall.node.v1.Node as it is now.
Several, or chosen by options: shows them and asks first; without a terminal it wants --yes. Prints what became of each, and exits with 1
when one was refused. --output json|yaml prints {"outcomes": [rollcall.admin.v1.NodeOutcome, ...]}.`,
    );
}

function addLabel(node: Command, shell: Shell): void {
  addChoice(
    node
      .command("label")
      .description("set labels of nodes with key=value and remove them with key-")
      .argument("[node...]", "nodes as for the other verbs, then key=value and key-"),
  )
    .addHelpText(
      "after",
      `
Such labels win over what a join token granted and over what the node says of itself; \`rollcall node describe\` shows which came from where.
Keys with the prefix rollcall.io/ are the control plane's own, but for rollcall.io/group.`,
    )
    .action(lazily<NodeDecideOptions>(shell, async () => (await import("../verbs/node-label.ts")).nodeLabel));
}

function addBans(node: Command, shell: Shell): void {
  node
    .command("bans")
    .description("list the ids and keys that are banned, the newest first")
    .addHelpText(
      "after",
      "\n--output json|yaml prints a rollcall.admin.v1.ListBansResponse in proto JSON; csv prints RFC 4180.",
    )
    .action(lazily(shell, async () => (await import("../verbs/node-bans.ts")).nodeBans));
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
    .option("--follow", "redraw one node live, every 2 s, until Ctrl-C")
    .addHelpText(
      "after",
      `
--output json|yaml prints a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse in proto JSON.
--output csv prints the latest sample of each node.`,
    )
    .action(lazily<NodeHealthOptions>(shell, async () => (await import("../verbs/node-health.ts")).nodeHealth));
}

function addWatch(node: Command, shell: Shell): void {
  addSelection(node.command("watch").description("watch all nodes, or one, until Ctrl-C").argument("[node]", NODE[1]))
    .option("--interval <duration>", "time between two frames", "2s")
    .option("--count <frames>", "end after so many frames")
    .addHelpText("after", "\nRedraws in place on a terminal; elsewhere it prints one snapshot after the other.")
    .action(lazily<NodeWatchOptions>(shell, async () => (await import("../verbs/node-watch.ts")).nodeWatch));
}

function addSummary(node: Command, shell: Shell): void {
  node
    .command("summary")
    .description("count the nodes by state, and add up cores, memory and GPUs")
    .addHelpText("after", "\n--output json|yaml prints a rollcall.registry.v1.GetClusterSummaryResponse in proto JSON.")
    .action(lazily(shell, async () => (await import("../verbs/node-summary.ts")).nodeSummary));
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  const keys: readonly string[] = Object.keys(table);
  return keys.filter((key): key is K => key in table);
}
