import type { ConfigurationView, Shell } from "@rollcall/cli";
import type { Config } from "@rollcall/runtime/config";
import type { AllValues } from "./all-keys.ts";

/** What `config list` and `config default` show. Services are loaded only when it is asked. */
export function createConfigurationView(shell: Shell): ConfigurationView {
  return {
    list: async (file) => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { loadConfiguration } = await import("./load.ts");
      const { listConfig } = await import("@rollcall/runtime/config");
      const sources = { shell, file, flags: {} };
      const config = await loadConfiguration<AllValues>({ keys: ALL_KEYS }, sources);
      return { settings: listConfig(config), problems: await contradictions(config) };
    },
    defaultYaml: async () => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { printDefaultYaml } = await import("@rollcall/runtime/config");
      return printDefaultYaml(ALL_KEYS);
    },
  };
}

/** What `up`, `serve` or `agent` would refuse, though each value is right by itself; a line each. */
async function contradictions({ values, origins }: Config<AllValues>): Promise<readonly string[]> {
  const { checkAgentConfig } = await import("@rollcall/agent");
  const { checkControlPlaneConfig } = await import("./control-plane-config.ts");
  const { formatProblem } = await import("@rollcall/runtime/config");
  const problems = [...checkControlPlaneConfig(values), ...checkAgentConfig(values)];
  const lines = problems.map(({ path, message }) => {
    const source = origins[path]?.source ?? "default";
    return formatProblem(
      source === "default" ? { path, message } : { where: source, path, message },
    );
  });
  return [...new Set(lines)];
}
