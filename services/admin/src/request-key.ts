import type { DescMethod } from "@bufbuild/protobuf";
import type { RequestKey } from "@rollcall/store";

/** Under which an answer is remembered; null for a request that does not name itself. */
export function requestKey(method: DescMethod, requestId: string, caller: string): RequestKey | null {
  if (requestId === "") return null;
  return { requestId, method: `/${method.parent.typeName}/${method.name}`, caller };
}
