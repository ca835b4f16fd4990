import { clearField, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Json } from "@rollcall/domain";

/** Which fields of a message are requested. */
export interface ReadMask {
  /** The requested parts of each field, by the field's name in the schema; null means the whole field. */
  readonly wanted: ReadonlyMap<string, ReadMask | null>;
  /** The fields that are not requested. */
  readonly unwanted: readonly DescField[];
  /** Message fields that are requested only in part. */
  readonly parts: readonly { readonly field: DescField; readonly mask: ReadMask }[];
}

/** A mask, or the index of the first path that names no field. */
export type ParsedReadMask =
  | { readonly ok: true; readonly mask: ReadMask }
  | { readonly ok: false; readonly at: number; readonly description: string };

/** Maximum number of paths. No message has this many useful fields. */
export const MOST_PATHS = 100;

/**
 * Parse the paths of a message's field mask. A path can go through a list, and then selects the field in each item. A
 * path to a whole field includes all paths to its parts.
 */
export function parseReadMask(desc: DescMessage, paths: readonly string[]): ParsedReadMask {
  if (paths.length > MOST_PATHS) {
    return { ok: false, at: MOST_PATHS, description: `at most ${MOST_PATHS} paths are allowed` };
  }
  const root: Tree = new Map();
  for (const [at, path] of paths.entries()) {
    const problem = addPath(root, desc, path.split("."));
    if (problem !== null) return { ok: false, at, description: `${path}: ${problem}` };
  }
  return { ok: true, mask: compile(desc, root) };
}

/** The requested parts of each field of a message; null means the whole field. */
type Tree = Map<string, Tree | null>;

function addPath(root: Tree, desc: DescMessage, names: readonly string[]): string | null {
  let tree = root;
  let message: DescMessage | undefined = desc;
  for (const [at, name] of names.entries()) {
    if (message === undefined) return `${names[at - 1]} has no fields`;
    const field: DescField | undefined = message.fields.find((one) => one.name === name);
    if (field === undefined) return `${message.name} has no field ${name}`;
    const known = tree.get(name);
    // Check the rest of the path even if the whole field is already requested.
    const next: Tree = known ?? new Map();
    if (known !== null) tree.set(name, at === names.length - 1 ? null : next);
    tree = next;
    message = field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;
  }
  return null;
}

function compile(desc: DescMessage, tree: Tree): ReadMask {
  const wanted = new Map<string, ReadMask | null>();
  const unwanted: DescField[] = [];
  const parts: { field: DescField; mask: ReadMask }[] = [];
  for (const field of desc.fields) {
    const part = tree.get(field.name);
    if (part === undefined) {
      unwanted.push(field);
    } else if (part === null || (field.fieldKind !== "message" && field.fieldKind !== "list") || !field.message) {
      wanted.set(field.name, null);
    } else {
      const mask = compile(field.message, part);
      wanted.set(field.name, mask);
      parts.push({ field, mask });
    }
  }
  return { wanted, unwanted, parts };
}

/** Remove everything that is not requested from a message, in place. */
export function applyReadMask(message: Message, mask: ReadMask): void {
  for (const field of mask.unwanted) clearField(message, field);
  for (const { field, mask: part } of mask.parts) {
    const value = (message as unknown as Readonly<Record<string, unknown>>)[field.localName];
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) applyReadMask(item as Message, part);
    }
  }
}

/** The requested parts of a message in its JSON form, so that the rest need not be decoded. */
export function maskJson(value: Json, mask: ReadMask, desc: DescMessage): Json {
  if (Array.isArray(value)) return value.map((item) => maskJson(item, mask, desc));
  if (typeof value !== "object" || value === null) return value;
  const kept: Record<string, Json> = {};
  for (const field of desc.fields) {
    const part = mask.wanted.get(field.name);
    const name = field.jsonName in value ? field.jsonName : field.name;
    const held = (value as Readonly<Record<string, Json | undefined>>)[name];
    if (part === undefined || held === undefined) continue;
    const nested = field.fieldKind === "message" || field.fieldKind === "list" ? field.message : undefined;
    kept[name] = part === null || nested === undefined ? held : maskJson(held, part, nested);
  }
  return kept;
}
