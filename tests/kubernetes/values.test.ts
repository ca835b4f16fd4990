import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { Ajv } from "ajv";
import { readChartValues } from "../../scripts/reference/chart-page.ts";
import { CASES } from "../../scripts/render-manifests.mjs";
import { workspaceRoot } from "../support/workspace.ts";
import { readYaml } from "./manifests.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
}

const schema: Schema & { readonly definitions: Readonly<Record<string, Schema>> } = JSON.parse(
  readFileSync(join(workspaceRoot, "deploy/chart/values.schema.json"), "utf8"),
);
const values = readYaml("deploy/chart/values.yaml");
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);

/** Follow a reference, such as "#/definitions/pod/properties/affinity". */
function resolved({ $ref, ...own }: Schema): Schema {
  if ($ref === undefined) return own;
  const found = $ref
    .replace("#/", "")
    .split("/")
    .reduce((at, key) => Object(at)[key], schema as unknown);
  return resolved(Object(found));
}

/** List the paths that a schema describes. Maps with free keys are one path. */
function describedPaths(part: Schema, path = ""): readonly string[] {
  const { properties, additionalProperties } = resolved(part);
  if (properties === undefined || additionalProperties !== false) return [path];
  return Object.entries(properties).flatMap(([key, it]) => describedPaths(it, path === "" ? key : `${path}.${key}`));
}

/** List the paths of the values, as far as the schema describes them. */
function writtenPaths(value: unknown, part: Schema, path = ""): readonly string[] {
  const { properties, additionalProperties } = resolved(part);
  if (properties === undefined || additionalProperties !== false) return [path];
  return Object.entries(Object(value)).flatMap(([key, it]) =>
    writtenPaths(it, properties[key] ?? {}, path === "" ? key : `${path}.${key}`),
  );
}

/** Set one value, such as "agent.join.issuer". */
function withValue(path: string, value: unknown): unknown {
  const copy = structuredClone(values);
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const at = keys.reduce((it: object, key) => Object(it)[key], copy);
  Object.assign(at, { [last]: value });
  return copy;
}

describe("values.schema.json", () => {
  it("should describe exactly the values of values.yaml, and the overrides of `defaults`", () => {
    const written = writtenPaths(values, schema);
    const described = describedPaths(schema);
    expect(written.filter((path) => !described.includes(path))).toEqual([]);
    const overrides = new Set(Object.keys(Object(values.defaults)));
    const isOverride = (path: string) => {
      const [group = "", key = ""] = path.replace("database.trial", "trial").split(".");
      const services = ["api", "registry", "admin", "scheduler", "health", "console"];
      const groups = [...services, "migration", "backup", "test", "trial"];
      return groups.includes(group) && overrides.has(key);
    };
    // Helm itself adds `global`.
    const undocumented = described.filter((path) => !written.includes(path) && path !== "global");
    expect(undocumented.filter((path) => !isOverride(path))).toEqual([]);
  });

  it("should refuse unknown keys in every map that is not free", () => {
    const isOpen = ({ type, properties, additionalProperties }: Schema) =>
      type === "object" && properties !== undefined && additionalProperties !== false;
    const open = (part: Schema, path: string): readonly string[] => [
      ...(isOpen(part) ? [path] : []),
      ...Object.entries(part.properties ?? {}).flatMap(([key, it]) => open(it, `${path}.${key}`)),
    ];
    expect(open(schema, "values")).toEqual([]);
    expect(Object.entries(schema.definitions).flatMap(([name, it]) => open(it, name))).toEqual([]);
  });

  it("should accept the defaults, and the values of every test", () => {
    for (const name of Object.keys(CASES)) {
      const merged = merge(values, readYaml(`tests/kubernetes/${name}`));
      expect([name, validate(merged), validate.errors]).toEqual([name, true, null]);
    }
  });

  it.each([
    ["layout", "none"],
    ["nameOverride", "Fleet"],
    ["fullnameOverride", "x".repeat(41)],
    ["openshift", "yes"],
    ["extraObjects", [1]],
    ["image.digest", "sha256:1"],
    ["image.pullSecrets", [{ name: "pull" }]],
    ["serviceAccount.anotations", {}],
    ["adminToken.create", "true"],
    ["database.trial.storage", "1 GB"],
    ["database.trial.replicas", 2],
    ["tls.certManager.dnsNames", []],
    ["defaults.env", []],
    ["defaults.extraEnv", [{ value: "x" }]],
    ["defaults.extraVolumeMounts", [{ name: "x" }]],
    ["defaults.topologySpreadConstraints", [{ maxSkew: 1 }]],
    ["health.autoscaling.sesions", 1],
    ["migration.replicas", 1],
    ["backup.schedule", "daily"],
    ["backup.keep", 0],
    ["backup.replicas", 1],
    ["test.command", ["sh"]],
    ["agent.replicas", 1],
  ])("should refuse %s: %j", (path, value) => {
    expect(validate(withValue(path, value))).toBe(false);
  });

  it.each([
    ["tls.create", { tls: { create: true, hasCA: false } }],
    ["tls.create", { tls: { create: true, certManager: { enabled: true, issuerRef: { name: "authority" } } } }],
    ["database.trial", { database: { trial: { enabled: true }, cloudNativePG: { enabled: true } } }],
    ["gateway", { gateway: { enabled: true } }],
    ["ingress", { ingress: { enabled: true } }],
  ])("should refuse %s with values that exclude it: %j", (_path, own) => {
    expect(validate(merge(values, own))).toBe(false);
  });
});

describe("readChartValues()", () => {
  it("should read paths, defaults and comments, and take a comment only for the line below it", () => {
    const text = [
      "# The first line of a file.",
      "",
      "# Names the",
      '# thing.\nname: ""',
      "group:",
      "  # A list.",
      "  items:",
      "    - a",
      "    - b",
      "  flag: true",
      "free: {}",
      "#  An: example",
    ].join("\n");
    expect(readChartValues(text)).toEqual([
      { path: "name", comment: "Names the thing.", written: '""' },
      { path: "group", comment: "", written: null },
      { path: "group.items", comment: "A list.", written: "[a, b]" },
      { path: "group.flag", comment: "", written: "true" },
      { path: "free", comment: "", written: "{}" },
    ]);
  });

  it("should find a comment of every value or of a group around it, for the README", () => {
    const found = readChartValues(readFileSync(join(workspaceRoot, "deploy/chart/values.yaml"), "utf8"));
    const commented = new Set(found.filter(({ comment }) => comment !== "").map(({ path }) => path));
    const silent = found.filter(({ path }) => {
      const keys = path.split(".");
      return !keys.some((_, at) => commented.has(keys.slice(0, at + 1).join(".")));
    });
    expect(silent.map(({ path }) => path).filter((path) => path !== "image" && !path.startsWith("image."))).toEqual([]);
  });
});

/** Merge values as Helm does: maps key by key, everything else as a whole. */
function merge(base: unknown, own: unknown): unknown {
  const isMap = (it: unknown): it is object => typeof it === "object" && it !== null && !Array.isArray(it);
  if (!isMap(base) || !isMap(own)) return own;
  const keys = new Set([...Object.keys(base), ...Object.keys(own)]);
  return Object.fromEntries(
    [...keys].map((key) => [key, key in own ? merge(Object(base)[key], Object(own)[key]) : Object(base)[key]]),
  );
}
