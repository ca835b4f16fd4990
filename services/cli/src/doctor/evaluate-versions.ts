import type { AgentVersion, ProcessFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { type Finding, finding, fine } from "./finding.ts";

/** Maximum number of minor versions that processes and agents can be apart. */
const MOST_APART = 2;

/** Evaluate how far the versions of processes and agents are apart. */
export function evaluateVersions(
  processes: readonly ProcessFacts[],
  agents: readonly AgentVersion[],
): readonly Finding[] {
  const ours = sorted(processes.map(({ version }) => version));
  return [...evaluateProcessVersions(ours), ...evaluateAgentVersions(ours, agents)];
}

function evaluateProcessVersions(versions: readonly string[]): readonly Finding[] {
  const about = { check: "versions", subject: "control plane" };
  const [oldest, newest] = [versions[0], versions.at(-1)];
  if (oldest === undefined || newest === undefined) return [];
  if (oldest === newest) return [fine(about.check, about.subject, `all processes run ${newest}`)];
  const found = `processes run ${versions.join(", ")}`;
  const advice = `upgrade those that are behind to ${newest}; \`rollcall status\` lists them`;
  return [finding(minorsApart(oldest, newest) > MOST_APART ? "problem" : "warning", about, found, advice)];
}

function evaluateAgentVersions(ours: readonly string[], agents: readonly AgentVersion[]): readonly Finding[] {
  const about = { check: "agent-versions", subject: "agents" };
  const [oldest, newest] = [ours[0], ours.at(-1)];
  const known = agents.filter(({ version }) => partsOf(version) !== null);
  if (oldest === undefined || newest === undefined || known.length === 0) return [];
  const old = known.filter(({ version }) => compare(version, newest) < 0 && minorsApart(version, newest) > MOST_APART);
  const ahead = known.filter(({ version }) => compare(version, oldest) > 0);
  if (old.length > 0) {
    const advice = `upgrade them: a control plane supports agents up to ${MOST_APART} minor versions behind`;
    return [finding("problem", about, `${countText(old)}: too old for ${newest}`, advice)];
  }
  if (ahead.length > 0) {
    const advice = "upgrade the control plane first, then the agents";
    return [finding("warning", about, `${countText(ahead)}: newer than the control plane`, advice)];
  }
  return [fine(about.check, about.subject, countText(known))];
}

function countText(agents: readonly AgentVersion[]): string {
  return agents.map(({ version, nodes }) => `${nodes} on ${version}`).join(", ");
}

function sorted(versions: readonly string[]): readonly string[] {
  return [...new Set(versions)].filter((version) => partsOf(version) !== null).toSorted(compare);
}

function compare(one: string, other: string): number {
  const [left, right] = [partsOf(one) ?? [], partsOf(other) ?? []];
  for (const [at, part] of left.entries()) if (part !== right[at]) return part - (right[at] ?? 0);
  return 0;
}

/** The number of minor versions between two versions. A different major version counts as too far apart. */
function minorsApart(one: string, other: string): number {
  const [left = [], right = []] = [partsOf(one) ?? undefined, partsOf(other) ?? undefined];
  if (left[0] !== right[0]) return Number.POSITIVE_INFINITY;
  return Math.abs((left[1] ?? 0) - (right[1] ?? 0));
}

function partsOf(version: string): readonly number[] | null {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version);
  return match === null ? null : match.slice(1).map(Number);
}
