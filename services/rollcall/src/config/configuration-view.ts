import type { ConfigurationView, Shell } from "@rollcall/cli";
import type { Config, LoadOptions, Problem } from "@rollcall/config";
import type { AllValues } from "./all-keys.ts";

/** The output of `config list`, `config default` and `config convert`. Services are loaded only when needed. */
export function createConfigurationView(shell: Shell): ConfigurationView {
  return {
    list: async (file) => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { loadConfiguration } = await import("./load.ts");
      const { listConfig } = await import("@rollcall/config");
      const sources = { shell, file, flags: {} };
      const config = await loadConfiguration<AllValues>({ keys: ALL_KEYS }, sources);
      const { formatProblem } = await import("@rollcall/config");
      return {
        settings: listConfig(config),
        problems: await contradictions(config),
        warnings: config.warnings.map(formatProblem),
      };
    },
    defaultYaml: async () => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { printDefaultYaml } = await import("@rollcall/config");
      return printDefaultYaml(ALL_KEYS);
    },
    convert: async (named) => {
      const { ALL_KEYS } = await import("./all-keys.ts");
      const { foreignKeysOf, readNamedFile } = await import("./load.ts");
      const { convertConfig, formatProblems, printConverted } = await import("@rollcall/config");
      const file = await readNamedFile(shell, named);
      const foreign = await foreignKeysOf();
      const result = convertConfig({ keys: ALL_KEYS, foreign, file });
      // Run the checks of `up` and `agent`, so that both start with the converted file.
      const problems = result.ok ? await startProblems({ keys: ALL_KEYS, foreign, file }) : result.problems;
      if (!result.ok || problems.length > 0) {
        const { UsageError } = await import("@rollcall/cli");
        throw new UsageError(`${named} cannot be converted:\n${formatProblems(problems)}`);
      }
      return { ...result.config, yaml: printConverted(result.config, named) };
    },
  };
}

/** Reasons why `up` or `agent` would not start with a file whose values are individually valid. */
async function startProblems(
  from: Pick<LoadOptions<AllValues>, "keys"> & Required<Pick<LoadOptions<AllValues>, "foreign" | "file">>,
): Promise<readonly Problem[]> {
  const { loadConfig } = await import("@rollcall/config");
  const check = await startCheck();
  const result = loadConfig<AllValues>({ ...from, check });
  return result.ok ? [] : result.problems;
}

/** The checks of value combinations in `up`, `serve` and `agent`. */
async function startCheck(): Promise<NonNullable<LoadOptions<AllValues>["check"]>> {
  const { checkAgentConfig } = await import("@rollcall/agent");
  const { checkControlPlaneConfig } = await import("./control-plane-config.ts");
  const { plaintextProblem } = await import("./check-tls-config.ts");
  return (values) => {
    const plaintext = plaintextProblem(values);
    return [
      ...checkControlPlaneConfig(values),
      ...checkAgentConfig(values),
      ...(plaintext === null ? [] : [{ path: "Listen.Host" as const, message: plaintext }]),
    ];
  };
}

/** The combinations that `up`, `serve` or `agent` would refuse, one per line. */
async function contradictions({ values, origins }: Config<AllValues>): Promise<readonly string[]> {
  const { formatProblem } = await import("@rollcall/config");
  const problems = (await startCheck())(values);
  const lines = problems.map(({ path, message }) => {
    const source = origins[path]?.source ?? "default";
    return formatProblem(source === "default" ? { path, message } : { where: source, path, message });
  });
  return [...new Set(lines)];
}
