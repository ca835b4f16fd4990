import { BrakeService, ReleaseReactionsResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import type { Shell } from "../shell.ts";
import type { BrakeFreezeOptions } from "./brake-freeze.ts";

/** What `brake release` takes. */
export interface BrakeReleaseOptions extends BrakeFreezeOptions {
  readonly now?: boolean;
  readonly yes?: boolean;
}

/**
 * `brake release`: it asks before it lets go what is pending, and prints Ok, or with --output a
 * ReleaseReactionsResponse.
 */
export const brakeRelease: Verb<BrakeReleaseOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const { group = "cluster", message: reason = "", requestId = "", now = false } = options;
  const control = reachControlPlane(shell, options);
  if (now && options.yes !== true && !(await isWanted(shell, control, group))) return;
  const answer = await control.attempt("admin", `release the brake of ${group}`, () =>
    control.client("admin", BrakeService).releaseReactions({ group, reason, requestId, now }),
  );
  if (format === "table") {
    shell.out.write("Ok\n");
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(ReleaseReactionsResponseSchema, answer)));
};

async function isWanted(shell: Shell, control: ControlPlane, group: string): Promise<boolean> {
  const { brakes } = await control.attempt("admin", "read the brake", () =>
    control.client("admin", BrakeService).getBrake({}),
  );
  const pending = brakes.find((brake) => brake.group === group)?.pending ?? 0;
  const question = `let go ${pending === 1 ? "1 reaction" : `${pending} reactions`} of ${group} at once?`;
  if (shell.ask === null) throw new UsageError(`${question} There is no terminal to ask on: say --yes to do it`);
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}
