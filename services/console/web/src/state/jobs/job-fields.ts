import { clone, create } from "@bufbuild/protobuf";
import {
  DockerTaskSchema,
  type JobSpec,
  JobSpecSchema,
  JobType,
  ProcessTaskSchema,
  ResourcesSchema,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { parseSelector } from "@rollcall/domain";
import { formatBytes, formatMillicores } from "../units.ts";

/** A common field of a job's specification, as text that users can edit. */
export interface JobField {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  /** The text of the field; "" if it is not set. */
  readonly read: (spec: JobSpec) => string;
  /** Set the field of a copy. Returns what is wrong with the text, or null. */
  readonly write: (copy: JobSpec, text: string) => string | null;
}

/** The result of editing a field. */
export type FieldEdit =
  | { readonly ok: true; readonly spec: JobSpec }
  | { readonly ok: false; readonly message: string };

/** Set a field to the text that a user typed. */
export function editField(field: JobField, spec: JobSpec, text: string): FieldEdit {
  const copy = clone(JobSpecSchema, spec);
  const message = field.write(copy, text.trim());
  return message === null ? { ok: true, spec: copy } : { ok: false, message };
}

const WHOLE = /^[0-9]{1,6}$/;
const CORES = /^[0-9]{1,5}(\.[0-9]{1,3})?$/;
const BYTES = /^([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B?|B)?$/i;
const POWERS = ["", "K", "M", "G", "T"];

/** The fields that most jobs need, in the order of the form. */
export const JOB_FIELDS: readonly JobField[] = [
  {
    ...{ name: "name", label: "Name", hint: "" },
    read: ({ name }) => name,
    write: (copy, text) => {
      copy.name = text;
      return text === "" ? "a name is missing" : null;
    },
  },
  {
    ...{ name: "command", label: "Command", hint: "for example: sleep 600" },
    read: (spec) => joinWords(commandOf(spec)),
    write: (copy, text) => {
      const words = splitWords(text);
      if (words === null) return "a quotation mark is not closed";
      if (copy.task.case === "docker") copy.task.value.command = words;
      else copy.task = { case: "process", value: create(ProcessTaskSchema, { ...processOf(copy), command: words }) };
      return words.length === 0 && copy.task.case === "process" ? "a command or an image is missing" : null;
    },
  },
  {
    ...{ name: "image", label: "Container image", hint: "empty: the command runs as a process of the machine" },
    read: ({ task }) => (task.case === "docker" ? task.value.image : ""),
    write: (copy, text) => {
      const command = [...commandOf(copy)];
      if (text === "") {
        if (copy.task.case === "docker") copy.task = { case: "process", value: create(ProcessTaskSchema, { command }) };
        return command.length === 0 ? "a command or an image is missing" : null;
      }
      if (copy.task.case === "docker") copy.task.value.image = text;
      else copy.task = { case: "docker", value: create(DockerTaskSchema, { image: text, command }) };
      return null;
    },
  },
  {
    ...{ name: "count", label: "Count", hint: "number of executions" },
    read: ({ count }) => (count === undefined ? "" : String(count)),
    write: (copy, text) => {
      if (text === "") delete copy.count;
      else copy.count = Number(text);
      return text === "" || WHOLE.test(text) ? null : "a whole number";
    },
  },
  {
    ...{ name: "cores", label: "Cores", hint: "per execution, for example 0.5" },
    read: ({ resources }) => (resources?.millicores ? formatMillicores(resources.millicores) : ""),
    write: (copy, text) => {
      if (text !== "" && !CORES.test(text)) return "a number, for example 0.5";
      resourcesOf(copy).millicores = Math.round(Number(text) * 1_000);
      return null;
    },
  },
  {
    ...{ name: "memory", label: "Memory", hint: "per execution, for example 512 MiB" },
    read: ({ resources }) => (resources?.memoryBytes ? bytesText(resources.memoryBytes) : ""),
    write: (copy, text) => {
      const bytes = text === "" ? 0n : parseBytes(text);
      if (bytes === null) return "an amount, for example 512 MiB";
      resourcesOf(copy).memoryBytes = bytes;
      return null;
    },
  },
  {
    ...{ name: "gpus", label: "GPUs", hint: "per execution" },
    read: ({ resources }) => (resources?.gpus ? String(resources.gpus) : ""),
    write: (copy, text) => {
      if (text !== "" && !WHOLE.test(text)) return "a whole number";
      resourcesOf(copy).gpus = Number(text);
      return null;
    },
  },
  {
    ...{ name: "selector", label: "Only on nodes with labels", hint: "for example: zone=a,gpu" },
    read: ({ selector }) => selector,
    write: (copy, text) => {
      const parsed = parseSelector(text);
      copy.selector = text;
      return parsed.ok ? null : parsed.message;
    },
  },
];

/** The specification that the form for a new job starts with. */
export function firstJob(): JobSpec {
  const task = { case: "process" as const, value: { command: ["sleep", "600"] } };
  return create(JobSpecSchema, { name: "my-job", type: JobType.SERVICE, count: 1, task });
}

function commandOf({ task }: JobSpec): readonly string[] {
  return task.case === undefined ? [] : task.value.command;
}

function processOf({ task }: JobSpec) {
  return task.case === "process" ? task.value : {};
}

function resourcesOf(copy: JobSpec) {
  copy.resources ??= create(ResourcesSchema);
  return copy.resources;
}

/** Parse "512 MiB", "512Mi" or "1.5G". Units are powers of 1,024. */
function parseBytes(text: string): bigint | null {
  const [, number, unit = ""] = BYTES.exec(text) ?? [];
  if (number === undefined) return null;
  const power = POWERS.indexOf(unit.charAt(0).toUpperCase().replace("B", ""));
  return BigInt(Math.round(Number(number) * 1_024 ** power));
}

/** Format an amount so that parsing it returns the same amount. */
function bytesText(bytes: bigint): string {
  const text = formatBytes(Number(bytes));
  return parseBytes(text) === bytes ? text : `${bytes} B`;
}

/** Split a command at blanks, except within quotation marks; null if one is not closed. */
function splitWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\" && quote !== "'") {
      at += 1;
      word = (word ?? "") + text.charAt(at);
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + char;
    }
  }
  if (quote !== "") return null;
  return word === null ? words : [...words, word];
}

function joinWords(words: readonly string[]): string {
  return words.map((word) => (/^[^\s'"\\]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
