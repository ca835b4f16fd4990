import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { type NodeDecideOptions, nodeDecide } from "./node-decide.ts";

/** What `node ban` and `node unban` take. */
export interface NodeBanOptions extends NodeDecideOptions {
  /** The fingerprint of a key. */
  readonly key?: string;
  /** An exact id. */
  readonly id?: string;
}

/** `node ban` and `node unban`: of nodes as the other verbs, or of a key, or of an id that no node has. */
export function nodeBan(verb: "ban" | "unban"): Verb<NodeBanOptions> {
  return async (invocation) => {
    const { shell, args, options } = invocation;
    const { key: fingerprint, id: nodeId, message: reason = "", requestId = "" } = options;
    if (fingerprint === undefined && nodeId === undefined) return nodeDecide(verb)(invocation);
    const hasSelection = [options.labels, options.filterApproval, options.filterStatus].some(
      (option) => option !== undefined,
    );
    if (args.length > 0 || hasSelection || (fingerprint !== undefined && nodeId !== undefined)) {
      throw new UsageError("--key and --id name what is meant by themselves: say one of them alone");
    }
    outputFormat(options, ["table"]);
    const control = reachControlPlane(shell, options);
    const admin = control.client("admin", AdminService);
    const name = fingerprint ?? nodeId ?? "";
    await control.attempt("admin", `${verb} ${name}`, async () => {
      const why = { reason, requestId };
      if (fingerprint !== undefined) {
        const key = { fingerprint, ...why };
        return verb === "ban" ? await admin.banNode(key) : await admin.unbanNode(key);
      }
      return verb === "ban"
        ? await admin.banNode({ nodeId: name, ...why })
        : await admin.unbanNode({ node: name, ...why });
    });
    shell.out.write("Ok\n");
  };
}
