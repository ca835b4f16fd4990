import type { Command } from "commander";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes, loaded, STRICT } from "../command.ts";
import type { NodeBanOptions, NodeDecideOptions, NodeVerb } from "../nodes/decide.ts";
import type { NodeCordonOptions, NodeDrainOptions } from "../nodes/drain.ts";
import type { NodeHealthOptions } from "../nodes/health.ts";
import type { NodeListOptions } from "../nodes/list.ts";
import type { NodeWatchOptions } from "../nodes/watch.ts";
import type { NodeWhyOptions } from "../nodes/why.ts";
import type { ListingOptions } from "../output/listing.ts";
import type { Shell } from "../shell.ts";

/** How a node is named where a person reads the answer; scripts, which ask for another format, give exact ids. */
const READ_NODE = "Id of the node, or an unambiguous prefix of it; with -o only the exact id";
const NODES = ["[node...]", "Ids of nodes"] as const;

const DECISIONS: Readonly<Record<NodeVerb, string>> = {
  approve: "Approve pending or rejected nodes",
  reject: "Reject nodes: their streams end, and they cannot return until they are approved or deleted",
  delete: "Delete nodes from the record: their streams end, and they may register again as new nodes",
  cordon: "Cordon nodes: they get no new work",
  uncordon: "Uncordon nodes: they may get new work again; a drain of them ends",
  undrain: "Cancel the drain of nodes, or end one that is done: they may get new work again",
  "mark-unhealthy": "Mark nodes as UNHEALTHY, whatever they send, until the mark is cleared",
  "clear-mark": "Clear the mark of mark-unhealthy",
  "rotate-key": "Require nodes to replace their keys; `node describe` shows it until they have",
  "accept-hardware": "Accept the hardware that nodes report now, and lift the hold for what was missing",
  ban: "Ban nodes: as reject, and neither their ids nor their keys can return until unban",
  unban: "Lift the ban of nodes, an id or a key; the nodes stay rejected until they are approved",
};

/** Define the verbs of `node`. They are loaded one by one, when they are called. */
export function defineNode(node: Command, shell: Shell): void {
  defineList(node, shell);
  const describe = node
    .command("describe")
    .alias("status")
    .description("Show a node on one screen")
    .argument("<node>", READ_NODE)
    .action(
      action(
        shell,
        loaded(async () => (await import("../nodes/describe.ts")).nodeDescribe),
      ),
    );
  addNotes(describe, "-o yaml|json prints all that is recorded of it, a rollcall.node.v1.Node in proto JSON.");
  for (const decision of keysOf(DECISIONS)) defineDecision(node, shell, decision);
  defineDrain(node, shell);
  const label = node
    .command("label")
    .description("Set labels of nodes with key=value, and remove them with key-")
    .argument("[node...]", "Nodes as for the other verbs, then key=value and key-");
  addNotes(
    addChoice(label),
    "Such labels override those of join tokens and of the nodes themselves, which cannot be removed here; " +
      "`rollcall node describe` shows where each comes from. Keys with the prefix rollcall.io/ are reserved, " +
      "except rollcall.io/group.",
  );
  label.action(
    action(
      shell,
      loaded<NodeDecideOptions>(async () => (await import("../nodes/decide.ts")).nodeLabel),
    ),
  );
  const bans = node.command("bans").description("List the banned ids and keys, the newest first");
  addNotes(
    addListingOptions(bans),
    "-o json|yaml prints a rollcall.admin.v1.ListBansResponse in proto JSON; -o csv prints RFC 4180.",
  );
  bans.action(
    action(
      shell,
      loaded<ListingOptions>(async () => (await import("../nodes/bans.ts")).nodeBans),
    ),
  );
  defineWhy(node, shell);
  defineHealth(node, shell);
  const watch = node
    .command("watch")
    .description("Watch all nodes, or one, until Ctrl-C")
    .argument("[node]", "Id of the node")
    .option("--interval <duration>", "Time between two frames", "2s")
    .option("--count <frames>", "End after so many frames");
  addNotes(addSelection(watch), "Redraws in place on a terminal; elsewhere it prints one snapshot after the other.");
  watch.action(
    action(
      shell,
      loaded<NodeWatchOptions>(async () => (await import("../nodes/watch.ts")).nodeWatch),
    ),
  );
  const summary = node
    .command("summary")
    .description("Count the nodes by state, and add up cores, memory, disk and GPUs")
    .action(
      action(
        shell,
        loaded(async () => (await import("../nodes/summary.ts")).nodeSummary),
      ),
    );
  addNotes(summary, "-o json|yaml prints a rollcall.registry.v1.GetClusterSummaryResponse in proto JSON.");
}

function addFilters(command: Command): Command {
  return command
    .option(
      "-l, --labels <selector>",
      "Only nodes whose labels match, in the syntax of Kubernetes: zone=a,gpu in (h100,a100),!spot",
    )
    .option("--filter-approval <states>", "Only approved, pending or rejected nodes; several with commas")
    .option(
      "--filter-status <states>",
      "Only healthy, unhealthy, unknown, connected or disconnected nodes; several with commas",
    )
    .option("--type, --filter-type <types>", "Only nodes of these types: compute or control-plane")
    .option(
      "--filter-scheduling <states>",
      "Only eligible, ineligible, draining, drained or unconfirmed nodes; several with commas",
    );
}

function addSelection(command: Command): Command {
  return addFilters(command)
    .option("--filter-connection <states>", "Only connected or disconnected nodes")
    .option("--search <words>", "Only nodes with all of these words in id, host name, labels or models")
    .option("--all", "The processes of the control plane too")
    .option("--order-by <column>", "id, type, approval, status, scheduling, cores, memory, disk, gpus or created", "id")
    .option("--order-reversed", "Reverse the order");
}

function defineList(node: Command, shell: Shell): void {
  const list = addSelection(node.command("list").description("List nodes"))
    .option(
      "--show <groups>",
      "Columns after ID, TYPE, APPROVAL and STATUS, with commas: scheduling, labels, capacity, work, seen, " +
        "connection, version, hardware, features, reasons (default: scheduling,labels,capacity,seen,connection)",
    )
    .option("--next-token <token>", "Go on where an earlier list with --limit ended; use the same filters and order")
    .option("--deleted", "List removed nodes instead: when, by whom and why, the newest first; no filters")
    .option("--no-style", "Print neither colours nor bold headings")
    .action(
      action(
        shell,
        loaded<NodeListOptions>(async () => (await import("../nodes/list.ts")).nodeList),
      ),
    );
  addNotes(
    addListingOptions(addLimit(list, "nodes")),
    "STATUS is the health of a machine, and the connection of a process of the control plane. LAST SEEN comes " +
      'from the health service; "-" is unknown. Where the terminal is too narrow, columns are left out; -o wide ' +
      "prints them all.",
    "With --limit, the token to go on from goes to standard error. -o json|yaml prints a " +
      'rollcall.registry.v1.ListNodesResponse in proto JSON: {"nodes": [...], "nextPageToken": ""}; with ' +
      "--deleted a rollcall.registry.v1.ListDeletedNodesResponse. -o csv prints RFC 4180 with bytes and RFC 3339 " +
      "times.",
  );
}

function defineDecision(node: Command, shell: Shell, verb: NodeVerb): void {
  const command = addChoice(
    node
      .command(verb)
      .description(DECISIONS[verb])
      .argument(...NODES),
  );
  if (verb === "ban" || verb === "unban") {
    command
      .option("--key <fingerprint>", "A key instead of nodes, by its fingerprint: SHA256:...")
      .option("--id <id>", "This exact id, whether or not a node has it")
      .action(
        action(
          shell,
          loaded<NodeBanOptions>(async () => (await import("../nodes/decide.ts")).nodeBan(verb)),
        ),
      );
    return;
  }
  if (verb === "cordon") {
    command
      .option("--until <time>", "Lift the cordon by itself then: a time, or a duration from now such as 2h")
      .action(
        action(
          shell,
          loaded<NodeCordonOptions>(async () => (await import("../nodes/drain.ts")).nodeCordon),
        ),
      );
    return;
  }
  const load = async () => (await import("../nodes/decide.ts")).nodeDecide(verb);
  command.action(action(shell, loaded<NodeDecideOptions>(load)));
}

function defineDrain(node: Command, shell: Shell): void {
  const drain = node
    .command("drain")
    .description("Drain nodes: they get no new work, and what runs there is moved or ended")
    .argument(...NODES)
    .option("--deadline <duration>", "End what still runs after this time; 0s is at once (default: 1h)")
    .option("--force", "Stop everything at once; do not wait for a lost node, nor for any beyond deadline and grace")
    .option("--ignore-daemons", "Let daemons run on")
    .option("--keep-ineligible", "Leave the nodes cordoned when the drain is cancelled")
    .option("--no-force", "Give what runs its time, where an earlier order was --force")
    .option("--no-ignore-daemons", "Stop daemons, where an earlier order was --ignore-daemons")
    .option("--no-keep-ineligible", "Leave no cordon, where an earlier order was --keep-ineligible")
    .option("--max-parallel <count>", "Drain so many of the chosen nodes at a time; the others wait their turn")
    .option("--detach", "Do not wait until the nodes are drained")
    .option("--monitor", "Only show what a drain that goes on waits for");
  addNotes(
    addChoice(drain),
    "Services are moved to other nodes; batch and ops executions may finish until the deadline; daemons stop last. " +
      "What is still waited for goes to standard error. Ctrl-C ends the waiting and not the drain, which `rollcall " +
      "node undrain` cancels. To drain a node again changes the options that are given, and counts the " +
      "deadline from now; the others, and the reason, stay.",
  );
  drain.action(
    action(
      shell,
      loaded<NodeDrainOptions>(async () => (await import("../nodes/drain.ts")).nodeDrain),
    ),
  );
}

/** The options of every verb that changes nodes. */
function addChoice(command: Command): Command {
  addFilters(command)
    .option("--all", "Every machine")
    .option("-y, --yes", "Do not ask before changing nodes that options chose, or several")
    .option("--dry-run", "Only print which nodes would be changed")
    .option(...STRICT)
    .option("--etag <etag>", "Only when the node has not changed since this etag was read");
  return addNotes(
    addChangeOptions(command),
    "One node that is named: prints Ok; -o json|yaml prints the rollcall.node.v1.Node as it is then.",
    "Several, or chosen by options: shows them and asks first; without a terminal it needs --yes. Prints the " +
      'outcome of each, and exits with 1 when one was refused. -o json|yaml prints {"outcomes": ' +
      "[rollcall.admin.v1.NodeOutcome, ...]}.",
  );
}

function defineWhy(node: Command, shell: Shell): void {
  const why = node
    .command("why")
    .description("Explain how a node came to its state, whether it may take work, and what would change that")
    .argument("<node>", READ_NODE)
    .option("--limit <count>", "Print at most this many of the latest events, 1000 at most", "100")
    .option("--since <time>", "Only events since then: a duration ago such as 1h, or a time")
    .action(
      action(
        shell,
        loaded<NodeWhyOptions>(async () => (await import("../nodes/why.ts")).nodeWhy),
      ),
    );
  addNotes(
    why,
    "Each entry says when, what, on which evidence (silence, threshold and the policy that set it, time not " +
      "counted) and by whom, the newest last.",
    "-o json|yaml prints a rollcall.registry.v1.ExplainNodeResponse in proto JSON, with every replica that took part.",
  );
}

function defineHealth(node: Command, shell: Shell): void {
  const health = node
    .command("health")
    .description("Show live usage with sparklines of the last 60 samples, of one node or of all")
    .argument("[node]", READ_NODE)
    .option("-f, --follow", "Redraw one node live, every 2 s, until Ctrl-C")
    .action(
      action(
        shell,
        loaded<NodeHealthOptions>(async () => (await import("../nodes/health.ts")).nodeHealth),
      ),
    );
  addNotes(
    addListingOptions(health),
    "-o json|yaml prints a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse in proto JSON; " +
      "-o csv prints the latest sample of each node.",
  );
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  const keys: readonly string[] = Object.keys(table);
  return keys.filter((key): key is K => key in table);
}
