import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type JobSpec, JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { findDeepNesting } from "@rollcall/config/yaml-nesting";
import { parseSelector } from "@rollcall/domain";
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { JOB_FILE_KEYS, type JobFileKey, type ValueKind } from "./job-file-keys.ts";
import {
  didYouMean,
  type Read,
  readByteCount,
  readCores,
  readDurationMs,
  readFlag,
  readPort,
  readText,
  readWhole,
} from "./job-file-values.ts";

/**
 * A position in a job file: the line and column, both from 1, and the path of the key; the path of a whole job is "".
 */
export interface FilePlace {
  readonly line: number;
  readonly column: number;
  readonly path: string;
}

/** A problem in a job file. */
export interface FileProblem extends FilePlace {
  readonly message: string;
}

/** A job that was read from a file. */
export interface FiledJob {
  readonly spec: JobSpec;
  /**
   * The position of an API field in the file, for example of "resources.memory_bytes". If the file does not give the
   * field, the closest position.
   */
  placeOf(field: string): FilePlace;
}

/** The jobs of a file, or every problem in it. */
export type JobFile =
  | { readonly ok: true; readonly jobs: readonly FiledJob[] }
  | { readonly ok: false; readonly problems: readonly FileProblem[] };

/** Maximum number of jobs in one file. */
const MOST_JOBS = 100;
/** Maximum number of characters in one file. MOST_JOBS jobs need fewer. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

/**
 * Parse a job file: YAML or JSON, with one document per job. Problems that only the control plane can find are not
 * reported.
 */
export function parseJobFile(text: string): JobFile {
  const whole = { line: 1, column: 1, path: "" };
  if (text.length > MOST_CHARACTERS) return refuse([{ ...whole, message: "the file is too long" }]);
  const lines = new LineCounter();
  const deep = findDeepNesting(text);
  if (deep !== null) return refuse([{ ...deep, path: "" }]);
  const documents = [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })];
  const syntax = documents.flatMap(({ errors }) =>
    errors.map(({ message, pos: [at] }) => ({ ...positionOf(lines, at), path: "", message: firstLine(message) })),
  );
  if (syntax.length > 0) return refuse(syntax);
  const written = documents.filter(({ contents }) => contents !== null && !isEmpty(contents));
  if (written.length === 0) return refuse([{ ...whole, message: "the file contains no job" }]);
  if (written.length > MOST_JOBS) {
    return refuse([{ ...whole, message: `the file contains ${written.length} jobs; the limit is ${MOST_JOBS}` }]);
  }
  const readers = written.map((document) => new JobReader(document, lines));
  const jobs = readers.map((reader) => reader.read());
  const problems = [...readers.flatMap((reader) => reader.problems), ...sameNames(jobs)];
  return problems.length > 0 ? refuse(problems) : { ok: true, jobs: jobs.filter((job) => job !== null) };
}

/**
 * Read a job that is part of another document, which provides the job's name. Reads the other keys, and collects every
 * problem in them.
 *
 * @param path of the part, for problems: "spec".
 */
export function readJobPart(
  { document, node, lines }: { readonly document: Document; readonly node: Node; readonly lines: LineCounter },
  { name, path }: { readonly name: string; readonly path: string },
): { readonly spec: JobSpec | null; readonly problems: readonly FileProblem[] } {
  const reader = new JobReader(document, lines);
  const keys = JOB_FILE_KEYS.filter((key) => key.name !== "name");
  const spec = reader.readPart(node, { path, keys });
  if (spec !== null) spec.name = name;
  return { spec, problems: reader.problems };
}

/** Format a problem as one line: "web.yaml:7:12: resources.memory: should be ...". */
export function problemLine(file: string, { line, column, path, message }: FileProblem): string {
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}

function refuse(problems: readonly FileProblem[]): JobFile {
  const inOrder = problems.toSorted((left, right) => left.line - right.line || left.column - right.column);
  return { ok: false, problems: inOrder };
}

function sameNames(jobs: readonly (FiledJob | null)[]): readonly FileProblem[] {
  const seen = new Set<string>();
  return jobs.flatMap((job) => {
    if (job === null || job.spec.name === "") return [];
    const { name } = job.spec;
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    return [{ ...job.placeOf("name"), message: `another job in the file is named ${name}` }];
  });
}

/** Reads one document, and collects the position of every value and every problem. */
class JobReader {
  readonly problems: FileProblem[] = [];
  readonly #document: Document;
  readonly #lines: LineCounter;
  /** Positions in the file, keyed by API field. */
  readonly #places = new Map<string, FilePlace>();

  constructor(document: Document, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  read(): FiledJob | null {
    const root = this.#resolve(this.#document.contents);
    if (root === null) return null;
    const spec = this.readPart(root, { path: "", keys: JOB_FILE_KEYS });
    return spec === null ? null : { spec, placeOf: (field) => this.#placeOf(field) };
  }

  readPart(
    node: Node,
    { path, keys }: { readonly path: string; readonly keys: readonly JobFileKey[] },
  ): JobSpec | null {
    const at = { path, field: "" };
    this.#note(node, at);
    const json = this.#readBlock(node, keys, at);
    return this.problems.length === 0 ? fromJson(JobSpecSchema, json) : null;
  }

  #readBlock(node: Node, keys: readonly JobFileKey[], at: Spot): JsonObject {
    if (!isMap(node)) {
      this.#fail(node, at, at.path === "" ? "a job should be a map of keys" : "should be a map of keys");
      return {};
    }
    const json: Record<string, JsonValue> = {};
    const chosen = new Map<string, string>();
    for (const { key: keyNode, value } of node.items) {
      const name = isScalar(keyNode) ? String(keyNode.value) : "";
      const key = keys.find((it) => it.name === name);
      const place = isNode(keyNode) ? keyNode : node;
      const inner = key === undefined ? at : spotOf(at, name, key.field);
      if (key === undefined) {
        const known = keys.map((it) => it.name);
        this.#fail(place, { ...at, path: joined(at.path, name) }, `unknown key${didYouMean(name, known)}`);
        continue;
      }
      this.#noteChoice(chosen, key, place, inner);
      const content = this.#resolve(value);
      if (content === null || isEmpty(content)) {
        this.#note(place, inner);
        this.#fail(place, inner, "has no value; set one, or remove the key");
        continue;
      }
      this.#note(content, inner);
      const read = this.#readValue(content, key.value, inner);
      if (read !== undefined) put(json, key.field, read);
    }
    this.#requireKeys(node, keys, at);
    return json;
  }

  #noteChoice(chosen: Map<string, string>, { name, choice }: JobFileKey, place: Node, at: Spot): void {
    if (choice === undefined) return;
    const other = chosen.get(choice);
    if (other === undefined) chosen.set(choice, name);
    else this.#fail(place, at, `${other} is also given; give only one of ${choice}`);
  }

  #requireKeys(node: Node, keys: readonly JobFileKey[], at: Spot): void {
    const names = isMap(node) ? node.items.map(({ key }) => (isScalar(key) ? String(key.value) : "")) : [];
    for (const { name, required, field } of keys) {
      if (required === true && !names.includes(name)) this.#fail(node, spotOf(at, name, field), "is required");
    }
    const choices = new Set(keys.flatMap(({ choice }) => choice ?? []));
    for (const choice of choices) {
      const given = keys.some((key) => key.choice === choice && names.includes(key.name));
      if (!given) this.#fail(node, at, `${choice} is required`);
    }
  }

  #readValue(node: Node, value: ValueKind, at: Spot): JsonValue | undefined {
    switch (value.kind) {
      case "text": {
        const text = this.#take(node, at, readText(node));
        if (at.field === "selector" && text !== undefined) this.#checkSelector(node, at, text);
        return text;
      }
      case "flag": {
        const flag = this.#take(node, at, readFlag(node));
        return flag === undefined ? undefined : flag !== (value.inverted ?? false);
      }
      case "whole":
        return this.#take(node, at, readWhole(node, value.most));
      case "cores":
        return this.#take(node, at, readCores(node));
      case "bytes":
        return this.#take(node, at, readByteCount(node))?.toString();
      case "duration": {
        const ms = this.#take(node, at, readDurationMs(node));
        return ms === undefined ? undefined : `${ms / 1000}s`;
      }
      case "word":
        return this.#readWord(node, value.words, at);
      case "texts":
        return this.#readList(node, at, readText);
      case "wholes":
        return this.#readList(node, at, (item) => readWhole(item, value.most));
      case "map":
        return this.#readMap(node, at, readText);
      case "ports":
        return this.#readPorts(node, at);
      case "block":
        return this.#readBlock(node, value.keys, at);
    }
  }

  #readWord(node: Node, words: Readonly<Record<string, number>>, at: Spot): number | undefined {
    const text = this.#take(node, at, readText(node));
    if (text === undefined) return undefined;
    const word = Object.hasOwn(words, text) ? words[text] : undefined;
    if (word !== undefined) return word;
    const known = Object.keys(words);
    this.#fail(node, at, `should be one of ${known.join(", ")}${didYouMean(text, known)}`);
    return undefined;
  }

  #readList<T extends JsonValue>(node: Node, at: Spot, read: (item: Node) => Read<T>): JsonValue | undefined {
    if (!isSeq(node)) {
      this.#fail(node, at, "should be a list, for example [a, b]");
      return undefined;
    }
    return node.items.flatMap((item, index) => {
      const inner = { path: `${at.path}[${index}]`, field: `${at.field}[${index}]` };
      const content = this.#resolve(item);
      if (content === null) return [];
      this.#note(content, inner);
      const value = this.#take(content, inner, read(content));
      return value === undefined ? [] : [value];
    });
  }

  #readMap<T extends JsonValue>(node: Node, at: Spot, read: (item: Node) => Read<T>): Record<string, T> | undefined {
    if (!isMap(node)) {
      this.#fail(node, at, "should be a map of names and values");
      return undefined;
    }
    const entries = node.items.flatMap(({ key, value }): [string, T][] => {
      const name = isScalar(key) ? String(key.value) : "";
      const inner = { path: joined(at.path, name), field: `${at.field}["${name}"]` };
      const content = this.#resolve(value) ?? (isNode(key) ? key : node);
      this.#note(content, inner);
      const item = this.#take(content, inner, read(content));
      return item === undefined ? [] : [[name, item]];
    });
    return Object.fromEntries(entries);
  }

  #readPorts(node: Node, at: Spot): JsonValue | undefined {
    const ports = this.#readMap(node, at, readPort);
    if (ports === undefined || !isMap(node)) return undefined;
    return Object.entries(ports).map(([label, port], index) => {
      const place = this.#places.get(`${at.field}["${label}"]`);
      if (place !== undefined) this.#places.set(`${at.field}[${index}]`, place);
      return { label, port };
    });
  }

  #checkSelector(node: Node, at: Spot, text: string): void {
    const parsed = parseSelector(text);
    if (!parsed.ok) this.#fail(node, at, parsed.message);
  }

  #take<T>(node: Node, at: Spot, read: Read<T>): T | undefined {
    if (read.ok) return read.value;
    this.#fail(node, at, read.message);
    return undefined;
  }

  /**
   * Resolve a value to its node; null for none. An alias is followed once, because it cannot refer to another alias.
   */
  #resolve(value: unknown): Node | null {
    if (!isNode(value)) return null;
    if (!isAlias(value)) return value;
    const target = value.resolve(this.#document);
    return target === undefined || isAlias(target) ? null : target;
  }

  #note(node: Node, { path, field }: Spot): void {
    this.#places.set(field, { ...positionOf(this.#lines, node.range?.[0] ?? 0), path });
  }

  #fail(node: Node, { path }: Spot, message: string): void {
    this.problems.push({ ...positionOf(this.#lines, node.range?.[0] ?? 0), path, message });
  }

  #placeOf(field: string): FilePlace {
    for (let rest = field; rest !== ""; rest = rest.slice(0, lastCut(rest))) {
      const place = this.#places.get(rest);
      if (place !== undefined) return place;
    }
    return this.#places.get("") ?? { line: 1, column: 1, path: "" };
  }
}

/** A value: the path of its keys in the file, and its field in the API. */
interface Spot {
  readonly path: string;
  readonly field: string;
}

function spotOf(at: Spot, name: string, field: string): Spot {
  return { path: joined(at.path, name), field: joined(at.field, field) };
}

function joined(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** The start of the last part of a field: the index of its "." or "[". */
function lastCut(field: string): number {
  return Math.max(0, field.lastIndexOf("."), field.lastIndexOf("["));
}

/** Put a value at the path of a field, which can have two parts. */
function put(json: Record<string, JsonValue>, field: string, value: JsonValue): void {
  const [first = "", second] = field.split(".");
  json[first] = second === undefined ? value : { [second]: value };
}

function isNode(value: unknown): value is Node {
  return isAlias(value) || isScalar(value) || isMap(value) || isSeq(value);
}

function isEmpty(node: unknown): boolean {
  return isScalar(node) && node.value === null;
}

function positionOf(lines: LineCounter, offset: number): { readonly line: number; readonly column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
