import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fromJson, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import {
  HealthPolicySchema,
  type SetHealthPolicyRequestSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { findDeepNesting } from "@rollcall/config/yaml-nesting";
import { POLICY_FIELD_NAMES, POLICY_FIELDS } from "@rollcall/domain/policy-fields";
import { parseAllDocuments } from "yaml";
import { UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { parsePolicyValue } from "./policy-options.ts";

/**
 * Read a policy from a file: YAML or JSON as printed by `policy show --output yaml`. Values that the file leaves out
 * are inherited. Throws UsageError.
 */
export async function readPolicyFile(
  shell: Shell,
  file: string,
): Promise<MessageInitShape<typeof SetHealthPolicyRequestSchema>> {
  const document = await readDocument(shell, file);
  try {
    const { scope, selector, priority, values } = fromJson(HealthPolicySchema, document, {
      ignoreUnknownFields: false,
    });
    if (scope === undefined) throw new UsageError(`${file}: scope is missing`);
    return { scope, selector, priority, ...(values === undefined ? {} : { values }) };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} is not a health policy: ${messageOf(error)}`, { cause: error });
  }
}

async function readDocument(shell: Shell, file: string): Promise<JsonObject> {
  const text = await readFile(resolve(shell.cwd, file), "utf8").catch((cause: unknown) => {
    throw unreadableFile(file, cause);
  });
  const deep = findDeepNesting(text);
  if (deep !== null) throw new UsageError(`${file} is not a health policy: ${deep.message}`);
  const documents = parseAllDocuments(text);
  const [first, ...more] = documents;
  if (more.length > 0) {
    throw new UsageError(
      `${file} has ${documents.length} documents, and policy set takes one policy; \`rollcall apply -f\` accepts ` +
        "several objects, as `rollcall export` writes them",
    );
  }
  const [error] = first?.errors ?? [];
  if (error !== undefined) throw new UsageError(`${file} is not YAML: ${error.message}`, { cause: error });
  const document: unknown = first?.toJS();
  if (!isObject(document)) throw new UsageError(`${file} is not a health policy`);
  // Accept the response of `policy show`, which contains the policy.
  const policy = isObject(document.policy) ? document.policy : document;
  return isObject(policy.values) ? { ...policy, values: plainValues(file, policy.values) } : policy;
}

/** Convert durations written as in flags, "1m", to the seconds of proto JSON. */
function plainValues(file: string, values: JsonObject): JsonObject {
  const plain: JsonObject = { ...values };
  for (const field of POLICY_FIELD_NAMES) {
    const { name, kind } = POLICY_FIELDS[field];
    const value = values[name];
    const isDuration = kind === "duration" || kind === "hold";
    if (!isDuration || typeof value !== "string") continue;
    const duration = parsePolicyValue(POLICY_FIELDS[field], value);
    if (typeof duration !== "object") throw new Error(`${file}: ${name} is not a duration`);
    plain[name] = `${Number(duration.seconds) + duration.nanos / 1e9}s`;
  }
  return plain;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
