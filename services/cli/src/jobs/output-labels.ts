import type { Execution } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { Style } from "../output/style.ts";

/** How many of the last characters of an id to show: ids made at the same time have equal beginnings. */
const ID_LETTERS = 6;

const STYLES = ["cyan", "warning", "good", "magenta", "blue"] as const satisfies readonly Style[];

/** The prefix of an execution's lines. */
export interface OutputLabel {
  readonly text: string;
  readonly style: Style;
}

/**
 * Names executions of a job in few letters: "web.0" by the replica, or "web@node-1" where each node has one, and with
 * the end of its id where the same was named before.
 */
export class OutputLabels {
  readonly #job: string;
  readonly #isPerNode: boolean;
  readonly #labels = new Map<string, OutputLabel>();
  readonly #owners = new Map<string, string>();

  constructor(job: string, isPerNode: boolean) {
    this.#job = job;
    this.#isPerNode = isPerNode;
  }

  of({ id, index, nodeId }: Pick<Execution, "id" | "index" | "nodeId">): OutputLabel {
    const known = this.#labels.get(id);
    if (known !== undefined) return known;
    const place = this.#isPerNode ? `${this.#job}@${nodeId}` : `${this.#job}.${index}`;
    const owner = this.#owners.get(place);
    if (owner === undefined) this.#owners.set(place, id);
    const text = owner === undefined ? place : `${place}/${id.slice(-ID_LETTERS)}`;
    const label: OutputLabel = { text, style: STYLES[this.#labels.size % STYLES.length] ?? "plain" };
    this.#labels.set(id, label);
    return label;
  }

  /** Letters of the longest one so far. */
  get width(): number {
    return Math.max(0, ...[...this.#labels.values()].map(({ text }) => text.length));
  }
}
