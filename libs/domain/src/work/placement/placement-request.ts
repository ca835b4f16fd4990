import { parseSelector } from "../../labels/parse-selector.ts";
import type { Selector } from "../../labels/selectors.ts";
import type { Grant } from "../execution.ts";
import type { JobSpec } from "../job-spec.ts";
import type { Amounts } from "./amount-rows.ts";

/** A job's requirements on a node, prepared once per version. */
export interface PlacementRequest {
  readonly spec: JobSpec;
  readonly selector: Selector;
  readonly amounts: Amounts;
  /** Pairs of label and port number. */
  readonly staticPorts: readonly (readonly [string, number])[];
  readonly dynamicLabels: readonly string[];
  /** Features that the node's executors must support, with the names used in ClassFacts.lacks. */
  readonly needs: readonly string[];
  /** The grant of each execution if it consists only of amounts; null if ports or GPUs must be chosen. */
  readonly plainGrant: Grant | null;
  /** Requests with equal signatures have the same result on every node, so they can share a search. */
  readonly signature: string;
  /**
   * Whether a node with enough of all amounts can still be unsuitable, because other executions hold a port or a GPU
   * that the request needs. If false, only the amounts decide.
   */
  readonly isPicky: boolean;
}

/**
 * Prepare a job's requirements. The selector was checked when the job was submitted; if it cannot be parsed now, no
 * node matches.
 */
export function placementRequest(spec: JobSpec): PlacementRequest {
  const { resources, constraints } = spec;
  const { millicores, memoryBytes, diskBytes, gpus, ports } = resources;
  const parsed = parseSelector(spec.selector);
  const entries = Object.entries(ports);
  const staticPorts = entries.filter(([, port]) => port !== 0);
  const dynamicLabels = entries.flatMap(([label, port]) => (port === 0 ? [label] : []));
  const { selector, matchAgentLabels, executor, user, directory, strategy, maxPerNode } = spec;
  const needs = needsOf(spec);
  // Include owner and job name only if the job uses secrets, because they do not matter otherwise.
  const secrets = spec.secrets.length === 0 ? null : [spec.secrets, spec.owner, spec.name];
  return {
    spec,
    selector: parsed.ok ? parsed.selector : UNREADABLE,
    amounts: { millicores, memoryBytes, diskBytes, gpus },
    staticPorts,
    dynamicLabels,
    needs,
    plainGrant: gpus > 0 || entries.length > 0 ? null : { millicores, memoryBytes, diskBytes, ports: {}, gpuUuids: [] },
    signature: JSON.stringify([
      ...[selector, matchAgentLabels, constraints, resources, executor, user, directory, strategy, maxPerNode, needs],
      secrets,
    ]),
    isPicky:
      maxPerNode > 0 ||
      entries.length > 0 ||
      constraints.gpuModel !== null ||
      constraints.gpuIndices.length > 0 ||
      strategy === "spread",
  };
}

function needsOf({ checked, secrets, loss }: JobSpec): readonly string[] {
  return [
    ...(checked ? ["checks"] : []),
    ...(secrets.length > 0 ? ["secrets"] : []),
    ...(loss.stopOnAgentAfterMs === null ? [] : ["stop-on-agent-after"]),
  ];
}

const UNREADABLE: Selector = [
  { operator: "exists", key: "rollcall.io/none" },
  { operator: "!exists", key: "rollcall.io/none" },
];
