import type { Client } from "@connectrpc/connect";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { changeMany, type ManyAnswer } from "../nodes/change-many.ts";
import { type ChoiceOptions, chooseNodes, type Selector } from "../nodes/choose-nodes.ts";
import { outputFormat } from "../output/format.ts";
import { printable } from "../output/text.ts";

/** What the verbs that decide about nodes take. */
export interface NodeDecideOptions extends ChoiceOptions {
  readonly message?: string;
  readonly etag?: string;
  readonly requestId?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** What operators decide about a node, as the command line calls it. */
export type NodeDecision =
  | "approve"
  | "reject"
  | "delete"
  | "cordon"
  | "uncordon"
  | "mark-unhealthy"
  | "clear-mark"
  | "rotate-key"
  | "accept-hardware"
  | "ban"
  | "unban";

/** The fields that the requests of all verbs have. */
export interface NodeCommand {
  /** Either this or the selector. */
  readonly node?: string;
  readonly selector?: Selector;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
  readonly validateOnly?: boolean;
  readonly pageToken?: string;
}

/** Calls the method of a verb. */
export type NodeCall = (
  admin: Client<typeof AdminService>,
  command: NodeCommand,
) => Promise<ManyAnswer & { readonly node?: Node | undefined }>;

const CALLS: Readonly<Record<NodeDecision, NodeCall>> = {
  approve: (admin, command) => admin.approveNode(command),
  reject: (admin, command) => admin.rejectNode(command),
  delete: (admin, command) => admin.deleteNode(command),
  cordon: (admin, command) => admin.cordonNode(command),
  uncordon: (admin, command) => admin.uncordonNode(command),
  "mark-unhealthy": (admin, command) => admin.markNodeUnhealthy(command),
  "clear-mark": (admin, command) => admin.clearNodeMark(command),
  "rotate-key": (admin, command) => admin.requireKeyRotation(command),
  "accept-hardware": (admin, command) => admin.acceptNodeHardware(command),
  ban: (admin, command) => admin.banNode(command),
  unban: (admin, command) => admin.unbanNode(command),
};

/**
 * `node approve`, `reject` and the like. Of one node that is named it prints Ok, or with --output the
 * rollcall.node.v1.Node as it is now; of many it prints what became of each, and exits with 1 when one was refused.
 */
export function nodeDecide(decision: NodeDecision): Verb<NodeDecideOptions> {
  return (invocation) => decideNodes(invocation, decision, invocation.args, CALLS[decision]);
}

/**
 * Do a verb to the nodes that are named, or chosen by the options; `remarks` is what has to be said of a single one as
 * it is then.
 */
export async function decideNodes(
  { shell, options }: Parameters<Verb<NodeDecideOptions>>[0],
  verb: string,
  names: readonly string[],
  call: NodeCall,
  remarks: (node: Node) => readonly string[] = () => [],
): Promise<void> {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const choice = chooseNodes(names, options);
  const control = reachControlPlane(shell, options);
  const admin = control.client("admin", AdminService);
  const { message: reason = "", etag = "", requestId = "" } = options;
  if (choice.kind === "many" || options.dryRun === true) {
    if (etag !== "") throw new UsageError("--etag is of one node that is named");
    const selector = choice.kind === "many" ? choice.selector : namedOne(choice.node);
    await changeMany(shell, {
      ...{ verb, selector, requestId, format },
      ...{ yes: options.yes ?? false, dryRun: options.dryRun ?? false },
      call: (command) => control.attempt("admin", `${verb} nodes`, () => call(admin, { ...command, reason, etag })),
    });
    return;
  }
  const { node } = choice;
  const answer = await control.attempt("admin", `${verb} node ${node}`, () =>
    call(admin, { node, reason, etag, requestId }),
  );
  // Of a ban alone: best said, because the name may be a slip.
  if (answer.node === undefined) shell.err.write(`there is no node ${node}, only its id\n`);
  else for (const remark of remarks(answer.node)) shell.err.write(`${printable(remark)}\n`);
  if (format === "table") {
    shell.out.write("Ok\n");
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  const plain = answer.node === undefined ? {} : toPlain(NodeSchema, answer.node);
  shell.out.write(await formatStructured(format, plain));
}

function namedOne(node: string): Selector {
  const nothing = { memberships: [], healths: [], connections: [], schedulings: [], types: [] };
  return { ...nothing, nodes: [node], labelSelector: "", all: false };
}
