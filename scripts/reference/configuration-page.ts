import { declaredKeys, environmentName } from "../../libs/config/src/keys.ts";
import { describeValue, writeValue } from "../../libs/config/src/value-types.ts";
import { ALL_KEYS } from "../../services/rollcall/src/config/all-keys.ts";
import { code, page, prose } from "./markdown.ts";

const PREFACE = `# Configuration

Generated from the declarations of all keys by \`make gen\`; do not edit.

A value comes from the nearest of: a flag or \`--set KEY=VALUE\`, the environment, the file (\`--config FILE\`, else
\`ROLLCALL_CONFIG\`), the default. The file is YAML; paths may be written with sections or with dots, in any case.
\`rollcall config default\` prints a file with every key, and \`rollcall config list\` what is in effect and where it comes
from. Every problem of a configuration is reported at once, and a key that does not exist is one of them.

Durations are written \`15s\`, \`1h30m\` or \`250ms\`; a bare number means seconds. Lists are written as YAML lists, or as
one text with commas. Maps are written as YAML maps, or as \`zone=a,rack=7\`. [Files of Bacalhau and
KohakuRiver](../other-configurations.md) are read too.
`;

type Key = ReturnType<typeof declaredKeys>[number];

/** docs/reference/configuration.md: every key, with what may be written, its default, and its other names. */
export function configurationPage(): string {
  const keys = declaredKeys(ALL_KEYS);
  const sections = [...new Set(keys.map(({ path }) => sectionOf(path)))];
  return page(
    PREFACE,
    ...sections.flatMap((section) => [
      `## ${section}`,
      "",
      ...keys.filter(({ path }) => sectionOf(path) === section).flatMap(keyLines),
    ]),
  );
}

function sectionOf(path: string): string {
  return path.split(".")[0] ?? path;
}

function keyLines(key: Key): readonly string[] {
  const { path, doc, flag, env = [], aliases = [], secret } = key;
  const isSwitch = typeof key.default === "boolean";
  const flags = flag === undefined ? "" : ` Flag ${code(isSwitch ? `--[no-]${flag}` : `--${flag}`)}.`;
  const variables = [environmentName(path), ...env].map(code).join(" or ");
  return [
    `### ${path}`,
    "",
    prose(doc),
    "",
    bullet(`Value: ${describeValue(key.schema)}. ${defaultOf(key)}${secret ? " It is never shown." : ""}`),
    bullet(`Environment ${variables}.${flags}`),
    ...(aliases.length === 0 ? [] : [bullet(`Also as ${aliases.map(code).join(", ")}.`)]),
    "",
  ];
}

function defaultOf(key: Key): string {
  const written = writeValue(key.schema, key.default);
  if (written === undefined || written === "") return "Not set by default.";
  if (typeof written === "string") return `Default ${code(written)}.`;
  const items = Array.isArray(written) ? written : Object.entries(written).map(([name, value]) => `${name}=${value}`);
  return items.length === 0 ? "Empty by default." : `Default ${code(items.join(","))}.`;
}

function bullet(text: string): string {
  return `- ${prose(text).replaceAll("\n", "\n  ")}`;
}
