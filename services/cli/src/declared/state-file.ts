import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
} from "@bufbuild/protobuf";
import {
  DeclaredHealthPolicySchema,
  DeclaredNodeLabelsSchema,
  type DeclaredObject,
  DeclaredObjectSchema,
  DeclaredWebhookSchema,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { WebhookSpecSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { findDeepNesting } from "@rollcall/config/yaml-nesting";
import { didYouMean, type FileProblem, readDurationMs, readJobPart } from "@rollcall/wire/job-file";
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";

/** The content of a file of declared state. */
export interface StateFile {
  readonly objects: readonly DeclaredObject[];
  /** The owner that it names; empty for none. */
  readonly owner: string;
  readonly problems: readonly FileProblem[];
}

/** Maximum number of characters in one file. One call accepts fewer. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

const KINDS = ["HealthPolicy", "NodeLabels", "Webhook", "Job"] as const;
const KEYS = ["kind", "name", "owner", "spec"] as const;

/**
 * Read a file of declared state: YAML or JSON, with one document or one list item per object. Reports every problem at
 * once, except those that only the control plane can find.
 *
 * @param seen names of objects that other files declare; those of this file are added.
 */
export function parseStateFile(text: string, seen: Set<string> = new Set()): StateFile {
  if (text.length > MOST_CHARACTERS) return wrongAt({ line: 1, column: 1 }, "the file is too long");
  const deep = findDeepNesting(text);
  if (deep !== null) return wrongAt(deep, deep.message);
  const lines = new LineCounter();
  const documents = [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })];
  const reader = new StateReader(lines, seen);
  for (const document of documents) {
    for (const { message, pos } of document.errors) reader.failAt(pos[0], "", message.split("\n", 1)[0] ?? "");
  }
  if (reader.problems.length === 0) for (const document of documents) reader.readDocument(document);
  const problems = reader.problems.toSorted((left, right) => left.line - right.line || left.column - right.column);
  return { objects: reader.objects, owner: reader.owner, problems };
}

function wrongAt(place: { readonly line: number; readonly column: number }, message: string): StateFile {
  return { objects: [], owner: "", problems: [{ ...place, path: "", message }] };
}

/** Reads documents, and collects every object and every problem with its position. */
class StateReader {
  readonly problems: FileProblem[] = [];
  readonly objects: DeclaredObject[] = [];
  owner = "";
  readonly #lines: LineCounter;
  readonly #seen: Set<string>;

  constructor(lines: LineCounter, seen: Set<string>) {
    this.#lines = lines;
    this.#seen = seen;
  }

  failAt(offset: number, path: string, message: string): void {
    const { line, col } = this.#lines.linePos(offset);
    this.problems.push({ line: Math.max(line, 1), column: Math.max(col, 1), path, message });
  }

  readDocument(document: Document.Parsed): void {
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) return;
    const items = isSeq(contents) ? contents.items : [contents];
    // The cast is safe, because the items of a parsed sequence are nodes.
    for (const item of items) this.#readObject(document, resolved(document, item as Node));
  }

  #readObject(document: Document, node: Node): void {
    if (!isMap(node)) {
      this.#fail(node, "", "an object should be a map with kind, name and spec");
      return;
    }
    const values = this.#entries(document, node);
    for (const [key, { at }] of values) {
      if (!KEYS.some((known) => known === key)) this.#fail(at, key, `unknown key${didYouMean(key, KEYS)}`);
    }
    this.#readOwner(values.get("owner")?.value);
    if (values.size === 1 && values.has("owner")) return;
    const kind = this.#text(node, "kind", values);
    const name = this.#text(node, "name", values);
    const spec = values.get("spec")?.value;
    if (spec === undefined) this.#fail(node, "spec", "is missing");
    if (kind === null || name === null || spec === undefined) return;
    const known = KINDS.find((word) => word === kind);
    if (known === undefined) {
      this.#fail(values.get("kind")?.value ?? node, "kind", `should be one of ${KINDS.join(", ")}`);
      return;
    }
    const twice = `${known}/${name}`;
    if (this.#seen.has(twice)) this.#fail(node, "name", `${twice} is declared twice`);
    this.#seen.add(twice);
    const before = this.problems.length;
    const object = this.#read(document, { kind: known, name, spec, node });
    if (this.problems.length === before && object !== null) this.objects.push(object);
  }

  #read(
    document: Document,
    given: { readonly kind: (typeof KINDS)[number]; readonly name: string; readonly spec: Node; readonly node: Node },
  ): DeclaredObject | null {
    const { kind, name, spec, node } = given;
    switch (kind) {
      case "HealthPolicy": {
        const scope = policyScope(name);
        if (scope === null) this.#fail(node, "name", "should be default, group/NAME or node/ID");
        const json = this.#block(document, spec, {
          schema: DeclaredHealthPolicySchema,
          path: "spec",
          hidden: ["scope"],
        });
        if (scope === null || this.problems.length > 0) return null;
        const value = fromJson(DeclaredHealthPolicySchema, { ...json, scope });
        return create(DeclaredObjectSchema, { object: { case: "healthPolicy", value } });
      }
      case "NodeLabels": {
        const json = this.#block(document, spec, { schema: DeclaredNodeLabelsSchema, path: "spec", hidden: ["node"] });
        if (this.problems.length > 0) return null;
        const value = fromJson(DeclaredNodeLabelsSchema, { ...json, node: name });
        return create(DeclaredObjectSchema, { object: { case: "nodeLabels", value } });
      }
      case "Webhook": {
        const json = this.#block(document, spec, { schema: WebhookSpecSchema, path: "spec", hidden: [] });
        if (this.problems.length > 0) return null;
        const value = fromJson(DeclaredWebhookSchema, { name, spec: json });
        return create(DeclaredObjectSchema, { object: { case: "webhook", value } });
      }
      case "Job": {
        const part = { document, node: spec, lines: this.#lines };
        const { spec: job, problems } = readJobPart(part, { name, path: "spec" });
        this.problems.push(...problems);
        if (job === null) return null;
        return create(DeclaredObjectSchema, { object: { case: "job", value: { spec: job } } });
      }
    }
  }

  /** Read a map as proto JSON; each problem of its keys and values is reported separately. */
  #block(
    document: Document,
    node: Node,
    at: { readonly schema: DescMessage; readonly path: string; readonly hidden: readonly string[] },
  ): JsonObject {
    const { schema, path, hidden } = at;
    if (!isMap(node)) {
      this.#fail(node, path, "should be a map of keys");
      return {};
    }
    const fields = schema.fields.filter(({ name }) => !hidden.includes(name));
    const json: Record<string, JsonValue> = {};
    for (const [key, { at: place, value }] of this.#entries(document, node)) {
      const field = fields.find((it) => it.jsonName === key || it.name === key);
      const inner = `${path}.${key}`;
      if (field === undefined) {
        const words = fields.map(({ jsonName }) => jsonName);
        this.#fail(place, inner, `unknown key${didYouMean(key, words)}`);
      } else {
        const read = this.#value(document, value, { field, schema, path: inner });
        if (read !== undefined) json[field.jsonName] = read;
      }
    }
    return json;
  }

  #value(
    document: Document,
    node: Node,
    at: { readonly field: DescField; readonly schema: DescMessage; readonly path: string },
  ): JsonValue | undefined {
    const { field, schema, path } = at;
    if (field.fieldKind === "message" && field.message.typeName === "google.protobuf.Duration") {
      const read = readDurationMs(node);
      if (read.ok) return `${read.value / 1_000}s`;
      this.#fail(node, path, read.message);
      return undefined;
    }
    if (field.fieldKind === "message") return this.#block(document, node, { schema: field.message, path, hidden: [] });
    const json = node.toJS(document) as JsonValue;
    try {
      if (json === null) throw new Error("is empty");
      fromJson(schema, { [field.jsonName]: json });
      return json;
    } catch {
      this.#fail(node, path, `should be ${wordFor(field)}`);
      return undefined;
    }
  }

  #entries(document: Document, map: YAMLMap): ReadonlyMap<string, { readonly at: Node; readonly value: Node }> {
    const entries = new Map<string, { readonly at: Node; readonly value: Node }>();
    for (const { key, value } of map.items) {
      // The casts are safe, because the keys and values of a parsed map are nodes.
      const [at, given] = [key as Node, value as Node | null];
      if (!isScalar(at) || typeof at.value !== "string") this.#fail(at, "", "a key should be a string");
      // Report a key without a value, which a flow map can contain.
      else if (given === null) this.#fail(at, at.value, "is empty");
      else entries.set(at.value, { at, value: resolved(document, given) });
    }
    return entries;
  }

  #text(node: Node, key: string, values: ReadonlyMap<string, { readonly value: Node }>): string | null {
    const value = values.get(key)?.value;
    if (value === undefined) this.#fail(node, key, "is missing");
    else if (!isScalar(value) || typeof value.value !== "string" || value.value === "") {
      this.#fail(value, key, "should be a string");
    } else return value.value;
    return null;
  }

  #readOwner(value: Node | undefined): void {
    if (value === undefined) return;
    const owner = isScalar(value) && typeof value.value === "string" ? value.value : "";
    if (owner === "") this.#fail(value, "owner", "should be a string");
    else if (this.owner !== "" && this.owner !== owner)
      this.#fail(value, "owner", `is already set to ${this.owner} further above`);
    else this.owner = owner;
  }

  #fail(node: Node, path: string, message: string): void {
    this.failAt(node.range?.[0] ?? 0, path, message);
  }
}

function resolved(document: Document, node: Node): Node {
  return isAlias(node) ? (node.resolve(document) ?? node) : node;
}

function policyScope(name: string): JsonObject | null {
  if (name === "default") return { default: true };
  const [, kind, rest] = /^(group|node)\/(.+)$/.exec(name) ?? [];
  return kind === undefined || rest === undefined ? null : { [kind]: rest };
}

function wordFor(field: DescField): string {
  switch (field.fieldKind) {
    case "list":
      return "a list of strings";
    case "map":
      return "a map of strings to strings";
    case "scalar":
      return SCALAR_WORDS[field.scalar] ?? "a number";
    default:
      return "a valid value";
  }
}

/** The words for scalar types, keyed by protobuf's numbers of bool and string. */
const SCALAR_WORDS: Readonly<Record<number, string>> = { 8: "true or false", 9: "a string" };
