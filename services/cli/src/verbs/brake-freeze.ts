import { BrakeService, FreezeReactionsResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What `brake freeze` takes. */
export interface BrakeFreezeOptions {
  readonly group?: string;
  readonly message?: string;
  readonly requestId?: string;
}

/** `brake freeze`: it prints Ok, or with --output a FreezeReactionsResponse. */
export const brakeFreeze: Verb<BrakeFreezeOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const { group = "cluster", message: reason = "", requestId = "" } = options;
  const control = reachControlPlane(shell, options);
  const answer = await control.attempt("admin", `freeze the brake of ${group}`, () =>
    control.client("admin", BrakeService).freezeReactions({ group, reason, requestId }),
  );
  if (format === "table") {
    shell.out.write("Ok\n");
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(FreezeReactionsResponseSchema, answer)));
};
