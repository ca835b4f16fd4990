import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";

/** How a code is written in logs and metrics: "ok", "not_found". */
export function codeName(code: Code | undefined): string {
  return code === undefined ? "ok" : codeToString(code);
}
