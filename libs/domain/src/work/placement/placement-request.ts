import { parseSelector } from "../../labels/parse-selector.ts";
import type { Selector } from "../../labels/selectors.ts";
import type { Grant } from "../execution.ts";
import type { JobSpec } from "../job-spec.ts";
import type { Amounts } from "./amount-rows.ts";

/** What a job asks of a node, prepared once a version. */
export interface PlacementRequest {
  readonly spec: JobSpec;
  readonly selector: Selector;
  readonly amounts: Amounts;
  /** Label and port. */
  readonly staticPorts: readonly (readonly [string, number])[];
  readonly dynamicLabels: readonly string[];
  /** What an executor has to do besides running it, in the words of the nodes that lack it. */
  readonly needs: readonly string[];
  /** What each execution is given, where they ask for amounts alone; null where ports or GPUs have to be chosen. */
  readonly plainGrant: Grant | null;
  /** Equal for requests that any node answers alike, so that they can share a search. */
  readonly signature: string;
  /**
   * Whether a node that has enough of all amounts may still not do: it then stays so until something is returned to
   * it. Otherwise the amounts alone decide.
   */
  readonly isPicky: boolean;
}

/** Prepare what a job asks for. Its selector was checked when it was submitted; one that cannot be read fits none. */
export function placementRequest(spec: JobSpec): PlacementRequest {
  const { resources, constraints } = spec;
  const { millicores, memoryBytes, diskBytes, gpus, ports } = resources;
  const parsed = parseSelector(spec.selector);
  const entries = Object.entries(ports);
  const staticPorts = entries.filter(([, port]) => port !== 0);
  const dynamicLabels = entries.flatMap(([label, port]) => (port === 0 ? [label] : []));
  const { selector, matchAgentLabels, executor, user, directory, strategy, maxPerNode } = spec;
  const needs = needsOf(spec);
  // Nodes compare who asks only where secrets are asked for.
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
