// Renders the chart into deploy/kubernetes, for those who install without Helm. It needs helm, in the PATH or in
// .tools/bin, where .ci/run puts it. A test renders them again and compares.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NAMESPACE = "rollcall";

/** The files in deploy/kubernetes, and what each sets besides the chart's defaults. Helm removes no Job of theirs. */
export const MANIFESTS = {
  "rollcall.yaml": ["migration.nameByContent=true"],
  "rollcall-apart.yaml": ["migration.nameByContent=true", "layout=apart"],
};

/** A tool of .ci/run, or the system's. */
export function toolPath(name) {
  const own = join(ROOT, ".tools/bin", name);
  return existsSync(own) ? own : name;
}

/** What the chart makes of values. `files` are files of values, `settings` are KEY=VALUE. */
export function render({ settings = [], files = [] }) {
  const words = [
    ...["template", "rollcall", join(ROOT, "deploy/chart"), "--namespace", NAMESPACE],
    ...files.flatMap((file) => ["--values", file]),
    ...settings.flatMap((setting) => ["--set", setting]),
  ];
  return execFileSync(toolPath("helm"), words, { encoding: "utf8", maxBuffer: 64 * 1_048_576, stdio: "pipe" });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const out = join(ROOT, "deploy/kubernetes");
  mkdirSync(out, { recursive: true });
  for (const [name, settings] of Object.entries(MANIFESTS)) writeFileSync(join(out, name), render({ settings }));
}
