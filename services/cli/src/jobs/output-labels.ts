import type { Execution } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { Style } from "../output/style.ts";

/**
 * Number of characters at the end of an id to show. Ids that were created at the same time have the same beginning.
 */
const ID_LETTERS = 6;

const STYLES = ["cyan", "warning", "good", "magenta", "blue"] as const satisfies readonly Style[];

/** The prefix of an execution's lines. */
export interface OutputLabel {
  readonly text: string;
  readonly style: Style;
}

/**
 * Gives the executions of a job short names: "web.0" by replica index, or "web@node-1" for a job with one execution
 * per node. If the name is taken, the end of the id is added.
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

  /** Length of the longest label so far. */
  get width(): number {
    return Math.max(0, ...[...this.#labels.values()].map(({ text }) => text.length));
  }
}
