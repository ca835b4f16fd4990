import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { Failure } from "../failure.ts";

/** Read one node by its id or an unambiguous prefix. Throws Failure: "failed to <verb> node <what was typed>: ...". */
export async function getNode(control: ControlPlane, reference: string, verb: string): Promise<Node> {
  const registry = control.client("registry", RegistryService);
  const what = `${verb} node ${reference}`;
  const { node } = await control.attempt("registry", what, () => registry.getNode({ node: reference }));
  if (node === undefined) throw new Failure(`failed to ${what}: the answer holds no node`);
  return node;
}
