import type { Command } from "commander";
import { AMOUNTS_NOTE, NODE_WAIT_WORDS } from "../choices.ts";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes, loaded, STRICT } from "../command.ts";
import type { NodeBanOptions, NodeDecideOptions } from "../nodes/change/decide.ts";
import type { NodeCordonOptions, NodeDrainOptions } from "../nodes/change/drain.ts";
import type { NodeVerb } from "../nodes/change/verb-words.ts";
import type { NodeHealthOptions } from "../nodes/health.ts";
import type { NodeListOptions } from "../nodes/list.ts";
import type { NodeWaitOptions } from "../nodes/wait.ts";
import type { NodeWatchOptions } from "../nodes/watch.ts";
import type { NodeWhyOptions } from "../nodes/why.ts";
import type { ListingOptions } from "../output/listing.ts";
import type { Shell } from "../shell.ts";

/** How to name a node when a person reads the output. Scripts, which request another format, give exact ids. */
const READ_NODE = "Id of the node, or an unambiguous prefix of it; with -o only the exact id";
const NODES = ["[node...]", "Ids of nodes"] as const;

const DECISIONS: Readonly<Record<NodeVerb, string>> = {
  approve: "Approve pending or rejected nodes",
  reject: "Reject nodes: end their streams, and keep them out until they are approved or deleted",
  delete: "Delete nodes: end their streams, and forget them; they can register again as new nodes",
  cordon: "Cordon nodes, so that they get no new work",
  uncordon: "Uncordon nodes, so that they can get new work again; this also ends their drain",
  undrain: "Cancel the drain of nodes, or end a finished one, so that they can get new work again",
  "mark-unhealthy": "Mark nodes as UNHEALTHY, regardless of their heartbeats, until the mark is cleared",
  "clear-mark": "Clear the mark that mark-unhealthy set",
  "rotate-key": "Require nodes to replace their keys; `node describe` shows the requirement until they have",
  "accept-hardware": "Accept the hardware that nodes report now, and lift the hold for missing hardware",
  ban: "Ban nodes: reject them, and refuse their ids and keys until the ban is lifted",
  unban: "Lift the ban of nodes, an id or a key; the nodes stay rejected until they are approved",
};

/** Define the verbs of `node`. Each is loaded when it is called. */
export function defineNode(node: Command, shell: Shell): void {
  defineList(node, shell);
  const describe = node
    .command("describe")
    .description("Show a node on one screen")
    .argument("<node>", READ_NODE)
    .action(
      action(
        shell,
        loaded(async () => (await import("../nodes/describe.ts")).nodeDescribe),
      ),
    );
  addNotes(describe, "-o yaml|json prints the complete rollcall.node.v1.Node in proto JSON.");
  for (const decision of keysOf(DECISIONS)) defineDecision(node, shell, decision);
  defineDrain(node, shell);
  const label = node
    .command("label")
    .description("Set labels of nodes with key=value, and remove them with key-")
    .argument("[node...]", "Ids of nodes, then key=value to set a label and key- to remove one");
  addNotes(
    addChoice(label),
    "These labels override those of join tokens and of the nodes themselves, which cannot be removed here. " +
      "`rollcall node describe` shows where each comes from. Keys with the prefix rollcall.io/ are reserved, " +
      "except rollcall.io/group.",
  );
  label.action(
    action(
      shell,
      loaded<NodeDecideOptions>(async () => (await import("../nodes/change/decide.ts")).nodeLabel),
    ),
  );
  const bans = node.command("bans").description("List the banned ids and keys, newest first");
  addNotes(
    addListingOptions(bans),
    "-o json|yaml prints a rollcall.admin.v1.ListBansResponse in proto JSON; -o csv prints RFC 4180.",
  );
  bans.action(
    action(
      shell,
      loaded<ListingOptions>(async () => (await import("../nodes/change/bans.ts")).nodeBans),
    ),
  );
  defineWhy(node, shell);
  defineHealth(node, shell);
  const wait = node
    .command("wait")
    .description("Wait until nodes are in a state, such as healthy or drained")
    .argument("<node...>", "Ids of the nodes, which need not be registered yet")
    .option("--for <states>", `${NODE_WAIT_WORDS.join(", ")}; or several, separated by commas`);
  addNotes(
    wait,
    "--timeout limits the whole wait; by default it has no limit. A wait of more than two seconds prints the current " +
      "state of the node to standard error. Prints one line per node that is in the state.",
  );
  wait.action(
    action(
      shell,
      loaded<NodeWaitOptions>(async () => (await import("../nodes/wait.ts")).nodeWait),
    ),
  );
  const watch = node
    .command("watch")
    .description("Watch all nodes, or one, until Ctrl-C")
    .argument("[node]", "Id of the node")
    .option("--interval <duration>", "Time between two frames", "2s")
    .option("--count <frames>", "Exit after this many frames");
  addNotes(addSelection(watch), "Redraws in place on a terminal; otherwise prints one snapshot after the other.");
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
  addNotes(
    summary,
    AMOUNTS_NOTE,
    "-o json|yaml prints a rollcall.registry.v1.GetClusterSummaryResponse in proto JSON.",
  );
}

function addFilters(command: Command): Command {
  return command
    .option(
      "-l, --labels <selector>",
      "Only nodes whose labels match, in the syntax of Kubernetes: zone=a,gpu in (h100,a100),!spot",
    )
    .option("--selector <selector>", "Same as --labels")
    .option("--filter-approval <states>", "Only approved, pending or rejected nodes, separated by commas")
    .option(
      "--filter-status <states>",
      "Only healthy, unhealthy, unknown, connected or disconnected nodes, separated by commas",
    )
    .option("--type, --filter-type <types>", "Only nodes of these types: compute or control-plane")
    .option(
      "--filter-scheduling <states>",
      "Only eligible, ineligible, draining, drained or unconfirmed nodes, separated by commas",
    );
}

function addSelection(command: Command): Command {
  return addFilters(command)
    .option("--filter-connection <states>", "Only connected or disconnected nodes")
    .option("--search <words>", "Only nodes with all of these words in id, host name, labels or models")
    .option("--all", "Include the processes of the control plane")
    .option("--order-by <column>", "id, type, approval, status, scheduling, cores, memory, disk, gpus or created", "id")
    .option("--sort-by <column>", "Same as --order-by")
    .option("--order-reversed", "Reverse the order");
}

function defineList(node: Command, shell: Shell): void {
  const list = addSelection(node.command("list").description("List nodes"))
    .option(
      "--show <groups>",
      "Columns after ID, TYPE, APPROVAL and STATUS, separated by commas: scheduling, labels, capacity, work, seen, " +
        "connection, version, hardware, features, reasons (default: scheduling,labels,capacity,seen,connection)",
    )
    .option("--next-token <token>", "Continue where an earlier list with --limit ended; use the same filters and order")
    .option("--deleted", "List removed nodes instead, newest first, with time, actor and reason; no filters")
    .option("--no-style", "Print neither colours nor bold headings")
    .action(
      action(
        shell,
        loaded<NodeListOptions>(async () => (await import("../nodes/list.ts")).nodeList),
      ),
    );
  addNotes(
    addListingOptions(addLimit(list, "nodes")),
    "STATUS is the health of a machine, or the connection of a process of the control plane. LAST SEEN comes " +
      'from the health service; "-" means unknown. If the terminal is too narrow, columns are left out; -o wide ' +
      "prints them all.",
    "With --limit, the token to continue from goes to standard error. -o json|yaml prints a " +
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
      .option("--key <fingerprint>", "Ban or unban a key instead of nodes, by its fingerprint: SHA256:...")
      .option("--id <id>", "Ban or unban exactly this id, whether or not a node has it")
      .action(
        action(
          shell,
          loaded<NodeBanOptions>(async () => (await import("../nodes/change/decide.ts")).nodeBan(verb)),
        ),
      );
    return;
  }
  if (verb === "cordon") {
    command.option("--until <time>", "Lift the cordon automatically at a time, or after a duration such as 2h").action(
      action(
        shell,
        loaded<NodeCordonOptions>(async () => (await import("../nodes/change/drain.ts")).nodeCordon),
      ),
    );
    return;
  }
  const load = async () => (await import("../nodes/change/decide.ts")).nodeDecide(verb);
  command.action(action(shell, loaded<NodeDecideOptions>(load)));
}

function defineDrain(node: Command, shell: Shell): void {
  const drain = node
    .command("drain")
    .description("Drain nodes: give them no new work, and move or stop what runs there")
    .argument(...NODES)
    .option("--deadline <duration>", "Stop what still runs after this time; 0s stops it at once (default: 1h)")
    .option(
      "--force",
      "Stop everything now; do not wait for lost nodes, or for other nodes after the deadline and the grace period",
    )
    .option("--ignore-daemons", "Leave daemons running")
    .option("--keep-ineligible", "Leave the nodes cordoned when the drain is cancelled")
    .option("--no-force", "Undo an earlier --force: give executions time to end")
    .option("--no-ignore-daemons", "Undo an earlier --ignore-daemons: stop daemons")
    .option("--no-keep-ineligible", "Undo an earlier --keep-ineligible: leave the nodes uncordoned")
    .option("--max-parallel <count>", "Drain at most this many of the selected nodes at a time")
    .option("--detach", "Do not wait until the nodes are drained")
    .option("--monitor", "Only show what a drain in progress is waiting for");
  addNotes(
    addChoice(drain),
    "Services are moved to other nodes; batch and ops executions can run until the deadline; daemons stop last. " +
      "What a drain is waiting for goes to standard error. Ctrl-C ends the waiting, not the drain, which `rollcall " +
      "node undrain` cancels. Draining a node again changes the options that are given, and counts the " +
      "deadline from now; all other options and the reason are kept.",
  );
  drain.action(
    action(
      shell,
      loaded<NodeDrainOptions>(async () => (await import("../nodes/change/drain.ts")).nodeDrain),
    ),
  );
}

/** The options of every verb that changes nodes. */
function addChoice(command: Command): Command {
  addFilters(command)
    .option("--all", "All compute nodes")
    .option("-y, --yes", "Do not ask before changing several nodes, or nodes selected by options")
    .option("--dry-run", "Only print which nodes would be changed")
    .option(...STRICT)
    .option("--etag <etag>", "Only if the node has not changed since this etag was read");
  return addNotes(
    addChangeOptions(command),
    "For a single named node: prints the result, such as `Ok: web-1 cordoned`; -o name prints the node's id, and " +
      "-o json|yaml the changed rollcall.node.v1.Node.",
    "For several nodes, or nodes selected by options: shows them and asks first; needs --yes without a terminal. " +
      'Prints each outcome, and exits with 1 if one was refused. -o json|yaml prints {"outcomes": ' +
      "[rollcall.admin.v1.NodeOutcome, ...]}.",
  );
}

function defineWhy(node: Command, shell: Shell): void {
  const why = node
    .command("why")
    .description("Explain how a node got into its state, whether it can take work, and what would change that")
    .argument("<node>", READ_NODE)
    .option("--limit <count>", "Print at most this many of the latest events, up to 1000", "100")
    .option("--since <time>", "Only events since then: a duration ago such as 1h, or a time")
    .action(
      action(
        shell,
        loaded<NodeWhyOptions>(async () => (await import("../nodes/why.ts")).nodeWhy),
      ),
    );
  addNotes(
    why,
    "Each entry has the time, the change, its evidence (silence, threshold and the policy that set it, time not " +
      "counted) and the actor, newest last.",
    "-o json|yaml prints a rollcall.registry.v1.ExplainNodeResponse in proto JSON, with every replica that took part.",
  );
}

function defineHealth(node: Command, shell: Shell): void {
  const health = node
    .command("health")
    .description("Show live usage with sparklines of the last 60 samples, of one node or all nodes")
    .option("-f, --follow", "Redraw one node live, every 2 s, until Ctrl-C");
  addNotes(
    addHealth(health, shell),
    "-o json|yaml prints a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse in proto JSON; " +
      "-o csv prints the latest sample of each node.",
  );
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] {
  const keys: readonly string[] = Object.keys(table);
  return keys.filter((key): key is K => key in table);
}

/** Define `rollcall top`. */
export function defineTop(top: Command, shell: Shell): void {
  addNotes(
    addHealth(top, shell),
    "-o json|yaml prints a rollcall.health.v1.ListNodeHealthResponse in proto JSON; -o csv prints the latest sample " +
      "of each node.",
  );
}

/** Show the live usage of one node, or of all. */
function addHealth(command: Command, shell: Shell): Command {
  command.argument("[node]", READ_NODE).action(
    action(
      shell,
      loaded<NodeHealthOptions>(async () => (await import("../nodes/health.ts")).nodeHealth),
    ),
  );
  return addListingOptions(command);
}
