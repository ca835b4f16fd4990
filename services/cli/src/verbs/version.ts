import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { cliVersion } from "../version.ts";

/** `version`: what runs here. */
export const version: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const { node, platform } = shell.runsOn;
  if (format === "table") {
    shell.out.write(`rollcall ${cliVersion()} (Node.js ${node}, ${platform})\n`);
    return;
  }
  const { formatStructured } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, { version: cliVersion(), node, platform }));
};
