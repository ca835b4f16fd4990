import type { ConfigurationView, Shell } from "@rollcall/cli";

/** What `config list` and `config default` show. Services are loaded only when it is asked. */
export function createConfigurationView(shell: Shell): ConfigurationView {
  return {
    list: async (file) => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { loadConfiguration } = await import("./load.ts");
      const { listConfig } = await import("@rollcall/runtime/config");
      const config = await loadConfiguration({ keys: ALL_KEYS }, { shell, file, flags: {} });
      return listConfig(config);
    },
    defaultYaml: async () => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { printDefaultYaml } = await import("@rollcall/runtime/config");
      return printDefaultYaml(ALL_KEYS);
    },
  };
}
