import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";
import { workspaceRoot } from "../support/workspace.ts";
import type { Manifest } from "./manifests.ts";

const FOLDER = join(workspaceRoot, "tests/kubernetes/schemas");
const SHARED = "_definitions.json";

const read = (name: string): object => JSON.parse(readFileSync(join(FOLDER, name), "utf8"));
const ajv = new Ajv({ strict: false, allErrors: true }).addSchema(read(SHARED), SHARED);
const checks = new Map<string, ValidateFunction>();

/**
 * Return the file name that scripts/kubernetes-schemas.mjs gives a schema. In the core group, the version
 * replaces the group's name.
 */
function fileOf({ apiVersion, kind }: Manifest): string {
  const [group = "", version = group] = apiVersion.split("/");
  return `${kind}_${group}_${version}.json`.toLowerCase();
}

function checkOf(file: string): ValidateFunction {
  const check = checks.get(file) ?? ajv.compile(read(file));
  checks.set(file, check);
  return check;
}

/**
 * Validate manifests with the schemas of Kubernetes in this repository. Unknown fields and kinds are errors.
 * Returns the errors.
 */
export function problemsOf(manifests: readonly Manifest[]): readonly string[] {
  return manifests.flatMap((manifest) => {
    const subject = `${manifest.kind} ${manifest.metadata.name}`;
    const file = fileOf(manifest);
    if (!existsSync(join(FOLDER, file))) return [`${subject}: there is no schema of its kind`];
    const check = checkOf(file);
    if (check(manifest)) return [];
    return (check.errors ?? []).map(({ instancePath, message = "", params }) => {
      const field = params.additionalProperty === undefined ? "" : `: ${params.additionalProperty}`;
      return `${subject}: ${instancePath} ${message}${field}`;
    });
  });
}
