import type { DescMethod } from "@bufbuild/protobuf";

/** How a method is named in policies, logs and metrics: "rollcall.registry.v1.RegistryService/GetNode". */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}
