import type { DescMethod } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";

/** How a method is named in policies, logs and metrics: "rollcall.registry.v1.RegistryService/GetNode". */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** How a code is written in logs and metrics: "ok", "not_found". */
export function codeName(code: Code | undefined): string {
  return code === undefined ? "ok" : codeToString(code);
}
