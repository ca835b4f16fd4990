import type { Client } from "@connectrpc/connect";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What the verbs that decide about a node take. */
export interface NodeDecideOptions {
  readonly message?: string;
  readonly etag?: string;
  readonly requestId?: string;
}

/** What operators decide about a node, as the command line calls it. */
export type NodeDecision =
  | "approve"
  | "reject"
  | "delete"
  | "cordon"
  | "uncordon"
  | "mark-unhealthy"
  | "clear-mark";

interface Command {
  readonly node: string;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
}

type Call = (
  admin: Client<typeof AdminService>,
  command: Command,
) => Promise<{ readonly node?: Node | undefined }>;

const CALLS: Readonly<Record<NodeDecision, Call>> = {
  approve: (admin, command) => admin.approveNode(command),
  reject: (admin, command) => admin.rejectNode(command),
  delete: (admin, command) => admin.deleteNode(command),
  cordon: (admin, command) => admin.cordonNode(command),
  uncordon: (admin, command) => admin.uncordonNode(command),
  "mark-unhealthy": (admin, command) => admin.markNodeUnhealthy(command),
  "clear-mark": (admin, command) => admin.clearNodeMark(command),
};

/** `node approve`, `reject` and the like: prints Ok, or with --output the rollcall.node.v1.Node as it is now. */
export function nodeDecide(decision: NodeDecision): Verb<NodeDecideOptions> {
  return async ({ shell, args, options }) => {
    const format = outputFormat(options, ["table", "json", "yaml"]);
    const node = args[0] ?? "";
    const control = reachControlPlane(shell, options);
    const admin = control.client("admin", AdminService);
    const command: Command = {
      node,
      reason: options.message ?? "",
      etag: options.etag ?? "",
      requestId: options.requestId ?? "",
    };
    const answer = await control.attempt("admin", `${decision} node ${node}`, () =>
      CALLS[decision](admin, command),
    );
    if (format === "table" || answer.node === undefined) {
      shell.out.write("Ok\n");
      return;
    }
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(NodeSchema, answer.node)));
  };
}
