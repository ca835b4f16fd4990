import { NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { getNode } from "../nodes/get-node.ts";
import { outputFormat } from "../output/format.ts";
import { formatStructured, toPlain } from "../output/structured.ts";

/** `node describe`: all that the record knows of one node, a rollcall.node.v1.Node in YAML or JSON. */
export const nodeDescribe: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["yaml", "json"]);
  const node = await getNode(reachControlPlane(shell, options), args[0] ?? "", "describe");
  shell.out.write(await formatStructured(format, toPlain(NodeSchema, node)));
};
