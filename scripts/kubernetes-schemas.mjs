// Makes the schemas in tests/kubernetes/schemas, which validate rendered manifests without a cluster. They come from
// Kubernetes' own OpenAPI document and from the custom resource definitions of other projects, for the kinds in the
// chart. They have no descriptions and refuse unknown fields. The script downloads the projects' Go modules. Run it to
// validate against newer versions.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { parseAllDocuments } = createRequire(new URL("../libs/config/package.json", import.meta.url))("yaml");

const OUT = fileURLToPath(new URL("../tests/kubernetes/schemas/", import.meta.url));
const KUBERNETES = "k8s.io/kubernetes@v1.36.3";
const KINDS = [
  ...["Service", "ServiceAccount", "ConfigMap", "Secret", "Pod"],
  ...["Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "HorizontalPodAutoscaler", "PodDisruptionBudget"],
  ...["NetworkPolicy", "Ingress", "ClusterRole", "ClusterRoleBinding", "PersistentVolumeClaim"],
];
const VERSIONS = { HorizontalPodAutoscaler: "v2" };
/**
 * The Go modules with custom resources. Each has the folder with the definitions, and the kinds that the chart uses.
 */
const CUSTOM = [
  ["sigs.k8s.io/gateway-api@v1.4.0", "config/crd/standard", ["HTTPRoute", "GRPCRoute", "BackendTLSPolicy"]],
  ["github.com/cert-manager/cert-manager@v1.18.2", "deploy/crds", ["Certificate"]],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd",
    ["ServiceMonitor", "PrometheusRule"],
  ],
  ["github.com/cloudnative-pg/cloudnative-pg@v1.27.0", "config/crd/bases", ["Cluster"]],
];
const SHARED = "_definitions.json";
const ANY = new Set([
  "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
]);

function moduleFolder(name) {
  return JSON.parse(execFileSync("go", ["mod", "download", "-json", name], { encoding: "utf8" })).Dir;
}

/** Make a strict JSON Schema without descriptions. `ref` renames references. */
function strict(schema, ref = (name) => name) {
  if (schema.$ref !== undefined) return { $ref: ref(schema.$ref) };
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") return { type: ["integer", "string"] };
  const { type, properties, items, additionalProperties: more, required } = schema;
  const kept = {};
  for (const key of ["enum", "pattern", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"]) {
    if (schema[key] !== undefined) kept[key] = schema[key];
  }
  const inner = (it) => strict(it, ref);
  if (type !== undefined) kept.type = schema.nullable ? [type, "null"] : type;
  if (required !== undefined) kept.required = required;
  if (items !== undefined) kept.items = inner(items);
  if (properties !== undefined) {
    kept.properties = Object.fromEntries(Object.entries(properties).map(([name, it]) => [name, inner(it)]));
    if (!schema["x-kubernetes-preserve-unknown-fields"]) kept.additionalProperties = false;
  }
  if (typeof more === "object") kept.additionalProperties = inner(more);
  return kept;
}

function write(name, value) {
  writeFileSync(join(OUT, name), `${JSON.stringify(value)}\n`);
}

/** Return the file name that kubeconform looks for. The core group has no name, so the version replaces it. */
function fileOf(kind, group, version) {
  return `${kind}_${group || version}_${version}.json`.toLowerCase();
}

function writeKubernetes() {
  const text = readFileSync(join(moduleFolder(KUBERNETES), "api/openapi-spec/swagger.json"), "utf8");
  const { definitions } = JSON.parse(text);
  const used = {};
  const nameOf = (path) => path.replace("#/definitions/", "");
  const use = (name) => {
    if (used[name] !== undefined) return;
    used[name] = {};
    const found = definitions[name];
    if (ANY.has(name)) return;
    if (name.endsWith("resource.Quantity")) {
      used[name] = { type: ["string", "number"] };
      return;
    }
    used[name] = strict(found, (path) => {
      use(nameOf(path));
      return path;
    });
  };
  for (const [name, definition] of Object.entries(definitions)) {
    const [{ group, kind, version } = {}] = definition["x-kubernetes-group-version-kind"] ?? [];
    if (!KINDS.includes(kind) || version !== (VERSIONS[kind] ?? "v1") || group === "events.k8s.io") continue;
    use(name);
    write(fileOf(kind, group, version), { $ref: `${SHARED}#/definitions/${name}` });
  }
  write(SHARED, { definitions: used });
}

function writeCustom() {
  for (const [module, folder, kinds] of CUSTOM) {
    const dir = join(moduleFolder(module), folder);
    const files = readdirSync(dir).filter((name) => name.endsWith(".yaml"));
    const found = files
      .flatMap((name) => parseAllDocuments(readFileSync(join(dir, name), "utf8")).map((it) => it.toJS()))
      .filter((it) => it?.kind === "CustomResourceDefinition" && kinds.includes(it.spec.names.kind));
    for (const { spec } of found) {
      const { name, schema } = spec.versions.find((it) => it.storage);
      const whole = strict(schema.openAPIV3Schema);
      // Refuse a status, because the chart does not write one. Allow any metadata, because other checks cover names and
      // labels.
      whole.properties = { ...whole.properties, metadata: { type: "object" }, status: { not: {} } };
      write(fileOf(spec.names.kind, spec.group, name), whole);
    }
  }
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
writeKubernetes();
writeCustom();
