import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import type { ConfigurationView } from "../parts.ts";

/**
 * `config convert`: a configuration file of another program, or with older names, in our keys; what has no meaning here
 * stands in comments.
 */
export function configConvert(configuration: ConfigurationView): Verb {
  return async ({ shell, args, options }) => {
    const format = outputFormat(options, ["yaml", "json"]);
    const { settings, leftAside, yaml } = await configuration.convert(args[0] ?? "");
    if (format === "yaml") {
      shell.out.write(yaml);
      return;
    }
    const { formatStructured } = await import("../output/structured.ts");
    const plain = {
      settings: settings.map(({ path, written, where, from, note }) => ({
        key: path,
        value: written,
        source: where,
        alias: from ?? null,
        note,
      })),
      leftAside: leftAside.map(({ path, where, why }) => ({ key: path, source: where, why })),
    };
    shell.out.write(await formatStructured(format, plain));
  };
}
