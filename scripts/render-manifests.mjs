// Renders the chart into deploy/kubernetes for users without Helm, and into tests/kubernetes/rendered for the checks of
// `make test`, which has no helm. It needs helm in the PATH, or in .tools/bin, where .ci/run installs it. An acceptance
// test renders the files again and compares them.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NAMESPACE = "rollcall";
/** Without Helm, nothing runs the test's pod or removes an old Job, so a Job's name depends on its content. */
const WITHOUT_HELM = ["migration.nameByContent=true", "test.enabled=false"];
/** Replaces data of secrets that differ at each rendering. */
const SECRET = "c2VjcmV0";

/** The files in deploy/kubernetes, each with the settings that differ from the chart's defaults. */
export const MANIFESTS = {
  "rollcall.yaml": WITHOUT_HELM,
  "rollcall-apart.yaml": [...WITHOUT_HELM, "layout=apart"],
};

/**
 * The files in tests/kubernetes/rendered, each with settings in addition to the file of values with the same name. They
 * contain no alerts and no dashboard, which have their own tests.
 */
export const CASES = {
  "everything.yaml": ["monitoring.prometheusRule=false", "monitoring.dashboard=false"],
  "openshift.yaml": [],
  "trial.yaml": [],
};

/** Return the path of a tool that .ci/run installed, or the tool's name to use the system's own. */
export function toolPath(name) {
  const own = join(ROOT, ".tools/bin", name);
  return existsSync(own) ? own : name;
}

/** Render the chart. `files` are values files; `settings` have the form KEY=VALUE. */
export function render({ settings = [], files = [] }) {
  const words = [
    ...["template", "rollcall", join(ROOT, "deploy/chart"), "--namespace", NAMESPACE],
    ...files.flatMap((file) => ["--values", file]),
    ...settings.flatMap((setting) => ["--set", setting]),
  ];
  return execFileSync(toolPath("helm"), words, { encoding: "utf8", maxBuffer: 64 * 1_048_576, stdio: "pipe" });
}

/** Render every file of MANIFESTS and CASES. Returns the texts, keyed by path in the repository. */
export function renderAll() {
  const manifests = Object.entries(MANIFESTS).map(([name, settings]) => [
    `deploy/kubernetes/${name}`,
    render({ settings }),
  ]);
  const cases = Object.entries(CASES).map(([name, settings]) => [
    `tests/kubernetes/rendered/${name}`,
    withoutSecrets(render({ settings, files: [join(ROOT, "tests/kubernetes", name)] })),
  ]);
  return new Map([...manifests, ...cases]);
}

function withoutSecrets(text) {
  const documents = text.split(/^---$/m);
  const hide = (one) => one.replaceAll(/^( {2}[\w.-]+: )[\w+/]{20,}=*$/gm, `$1${SECRET}`);
  return documents.map((one) => (/^kind: Secret$/m.test(one) ? hide(one) : one)).join("---");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of renderAll()) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
}
