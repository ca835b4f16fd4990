import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Command } from "commander";
import {
  APPROVAL_WORDS,
  COLUMN_GROUPS,
  CONNECTION_WORDS,
  DECLARED_KIND_WORDS,
  ENDED_STATE_WORDS,
  EVENT_TYPE_WORDS,
  EXECUTION_STATE_WORDS,
  JOB_STATE_WORDS,
  JOB_TYPE_WORDS,
  NODE_WAIT_WORDS,
  ORDER_WORDS,
  OUTPUT_WORDS,
  ROLE_WORDS,
  SCHEDULING_WORDS,
  STATUS_WORDS,
  TYPE_WORDS,
} from "../choices.ts";
import { dashed, POLICY_VALUE_NAMES } from "../policies/policy-options.ts";
import type { Source } from "./read-candidates.ts";

const SWITCH_WORDS = ["on", "off"] as const;
const OUTCOME_WORDS = [
  "OK",
  ...Object.keys(ErrorReason).filter((name) => !/^\d+$/.test(name) && name !== "UNSPECIFIED"),
];

/** The accepted words of options, by the option, or by the command and the option where commands differ. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  "--output": OUTPUT_WORDS,
  "--filter-approval": APPROVAL_WORDS,
  "--filter-status": STATUS_WORDS,
  "--filter-type": TYPE_WORDS,
  "--filter-connection": CONNECTION_WORDS,
  "--filter-scheduling": SCHEDULING_WORDS,
  "--order-by": ORDER_WORDS,
  "--sort-by": ORDER_WORDS,
  "--for": NODE_WAIT_WORDS,
  "--role": ROLE_WORDS,
  "--show": COLUMN_GROUPS,
  "--type": EVENT_TYPE_WORDS,
  "--exclude-type": EVENT_TYPE_WORDS,
  "--types": JOB_TYPE_WORDS,
  "--kinds": DECLARED_KIND_WORDS,
  "--outcome": OUTCOME_WORDS,
  "--unset": POLICY_VALUE_NAMES.map(dashed),
  "--agent-may-shorten": SWITCH_WORDS,
  "--hardware-hold": SWITCH_WORDS,
  "job list --states": JOB_STATE_WORDS,
  "job executions --states": EXECUTION_STATE_WORDS,
  "job delete --states": ENDED_STATE_WORDS,
};

/** The kinds of names that options accept, by the option, or by the command and the option. */
const SOURCES: Readonly<Record<string, readonly Source[]>> = {
  "--node": ["node"],
  "--id": ["node"],
  "--execution": ["execution"],
  "--context": ["context"],
  "--labels": ["label"],
  "--selector": ["label"],
  "--label": ["label"],
  "--actor": ["actor"],
  "--method": ["method"],
  "--target": ["node", "job"],
  "policy --group": ["policy-group"],
  "brake --group": ["brake-group"],
};

/** The kinds of names that arguments accept, by the argument, or by the noun and the argument. */
const ARGUMENTS: Readonly<Record<string, readonly Source[]>> = {
  node: ["node"],
  job: ["job"],
  "job-or-execution": ["job", "execution"],
  execution: ["execution"],
  version: ["job-version"],
  context: ["context"],
  "token-id": ["join-token"],
  "access-id": ["access-token"],
  "webhook name": ["webhook"],
  shell: ["shell"],
};

/** The words that an option accepts; empty if it accepts other values. */
export function optionWords(command: Command, long: string): readonly string[] {
  return lookUp(WORDS, command, long) ?? [];
}

/** The kinds of names that an option accepts; empty if it accepts none. */
export function optionSource(command: Command, long: string): readonly Source[] {
  return lookUp(SOURCES, command, long) ?? [];
}

/** The kinds of names that an argument accepts; null if it accepts none. */
export function argumentSource(command: Command, name: string): readonly Source[] | null {
  return lookUp(ARGUMENTS, command, name) ?? null;
}

/** The entry for a verb, its noun, or any command. */
function lookUp<T>(table: Readonly<Record<string, T>>, command: Command, name: string): T | undefined {
  const noun = command.parent?.name() ?? "";
  return table[`${noun} ${command.name()} ${name}`] ?? table[`${noun} ${name}`] ?? table[name];
}
