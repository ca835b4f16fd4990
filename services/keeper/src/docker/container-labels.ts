import type { ExecutionIdentity } from "../journal/execution-record.ts";

/** The labels by which a keeper knows its containers. */
export const LABELS = {
  keeper: "rollcall.keeper",
  execution: "rollcall.execution",
  job: "rollcall.job",
  node: "rollcall.node",
  spec: "rollcall.spec",
  image: "rollcall.image",
} as const;

/** Labels by name. */
export type Labels = Readonly<Record<string, string>>;

/** The labels of an execution's container. */
export function labelsOf(keeper: string, { id, job, nodeId, specDigest }: ExecutionIdentity): Labels {
  return {
    [LABELS.keeper]: keeper,
    [LABELS.execution]: id,
    [LABELS.job]: job,
    [LABELS.node]: nodeId,
    [LABELS.spec]: specDigest,
  };
}

/** The name of an execution's container. An engine gives a name once: no two keepers make two containers. */
export function containerName(keeper: string, id: string): string {
  return `rollcall-${keeper}-${id}`;
}

/** Whether a container is that of an execution, whatever its name says. */
export function isContainerOf(labels: Labels | null | undefined, keeper: string, id: string): boolean {
  return labels?.[LABELS.keeper] === keeper && labels[LABELS.execution] === id;
}
