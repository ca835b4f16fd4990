import type { Machine } from "./machine.ts";
import type { CommandResult } from "./run-command.ts";

/** Run the first of several programs that exists here. */
export async function askProgram(
  machine: Machine,
  programs: readonly string[],
  args: readonly string[],
): Promise<CommandResult> {
  for (const program of programs) {
    const result = await machine.run(program, args);
    if (result.kind !== "missing") return result;
  }
  return { kind: "missing" };
}
